"""Simulated data, the paper's settings, and what the cells run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.models import Reconstruction
from mgvbp.paper import mcmc
from mgvbp.paper.common import Array, Method, Path, quietly
from mgvbp.paper.hyperparameters import printed
from mgvbp.paper.spec import Outcome

DIM, TRAIN, TEST = 20, 2000, 500
"""Parameters, rows to train and rows to test. The paper states 4000 and 1000 rows, but its log-likelihoods and MSEs
agree with each other for half of these."""
PRIOR = mgvbp.Gaussian(variance=1.0, dim=DIM)
INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian."""
SETTINGS = printed("Non-diff. model")
PANELS: dict[str, dict[str, Any]] = {
    "equal steps": {"clip_gradient": 150.0, "clip_natural_gradient": None, "precision_scale": 2.0},
    "other clip": {"precision_scale": 1.0},
}
"""Two readings of the paper's clip of 150. The first clips the gradient, which is one quantity for all methods. The
second clips the natural gradient, which is another quantity for MGVB, whose variable is the covariance."""
METHODS: dict[str, tuple[type[Method], str]] = {
    "MGVB": (mgvbp.MGVB, "full"),
    "MGVBP": (mgvbp.MGVBP, "full"),
    "QBVI": (mgvbp.QBVI, "full"),
    "QBVI diagonal": (mgvbp.QBVI, "diagonal"),
}
FORMS = {"norms": False, "squared norms": True}
DATA_SETS = {"norms": 4, "squared norms": 2}
FEW, MANY = 200, 5000
"""Draws for the bound along a run, and at its end. They are the same for all methods, so that their error cancels in
differences."""


@dataclass(frozen=True)
class Sample:
    """One simulated data set."""

    model: Reconstruction
    X_test: Array
    y_test: Array
    start: Array


@cache
def simulated(form: str, seed: int, number: int, rows: int = TRAIN) -> Sample:
    """Data set ``number`` of a seed, and the mean that all methods start from."""
    rng = np.random.default_rng([seed, number])
    X, y, _ = Reconstruction.simulate(rows + TEST, DIM, squared=FORMS[form], rng=rng)
    start = np.sqrt(INITIAL_VARIANCE) * rng.standard_normal(DIM)
    return Sample(Reconstruction(X[:rows], y[:rows], squared=FORMS[form]), X[rows:], y[rows:], start)


def bound(model: Reconstruction, q: mgvbp.Gaussian, num_draws: int) -> float:
    """The lower bound by Monte Carlo; the standardised draws are the same for every ``q``."""
    theta = q.sample(num_draws, rng=2**31)
    return float(np.mean(model(theta) + PRIOR.log_density(theta) - q.log_density(theta)))


def performance(at: Sample, beta: Array) -> dict[str, float]:
    """Log-likelihood, MSE = SSE/(n − 20) and mean absolute deviation on both parts."""
    values = {}
    for prefix, X, y in (("", at.model.X, at.model.y), ("test ", at.X_test, at.y_test)):
        error = y - at.model.predictive(beta[None], X)[0]
        squares = float(error @ error)
        values[f"{prefix}log-lik"] = -0.5 * (squares + len(y) * float(np.log(2.0 * np.pi)))
        values[f"{prefix}MSE"] = squares / (len(y) - DIM)
        values[f"{prefix}MAD"] = float(np.abs(error).mean())
    return values


def described(at: Sample, q: mgvbp.Posterior) -> dict[str, float]:
    """What the tables show of a fit."""
    values = performance(at, q.mean)
    values |= {"LB*": q.lower_bound, "LB": bound(at.model, q, MANY), "queries": float(q.n_evaluations)}
    return values | {"log-lik − LB*": values["log-lik"] - q.lower_bound}


def run_method(
    seed: int, form: str, number: int, method: str, panel: str, max_iterations: int = 5000
) -> Outcome:
    """A method with the paper's settings; a run that breaks down gives its best iterate."""
    at = simulated(form, seed, number)
    kind, family = METHODS[method]
    settings = {**SETTINGS, **PANELS[panel], "max_iterations": max_iterations}
    path = Path(lambda q: bound(at.model, q, FEW), 100)
    with quietly():
        q = mgvbp.fit(
            at.model,
            PRIOR,
            method=kind(**settings),
            family=family,
            estimator="h",
            num_draws=15,
            initial_mean=at.start,
            initial_variance=INITIAL_VARIANCE,
            rng=seed,
            callback=path if number == 0 else None,  # the figure shows the first data set
        )
    curves = {"iteration": [float(t) for t in path.iterations], "bound": path.seen}
    values = described(at, q) | {"first LB": float(q.trace.lower_bound[0])}
    return Outcome(values, curves, {"method": method, "draws": 15, **settings}, q.n_evaluations)


def run_auto(seed: int, form: str, number: int, max_evaluations: int = 15_000) -> Outcome:
    """`auto` with a fifth of the paper's 75,000 queries."""
    at = simulated(form, seed, number)
    with quietly():
        q = mgvbp.fit(
            at.model,
            PRIOR,
            initial_mean=at.start,
            initial_variance=INITIAL_VARIANCE,
            max_evaluations=max_evaluations,
            rng=seed,
        )
    values = described(at, q) | {"few": bound(at.model, q, FEW)}
    if FORMS[form] and (found := log_evidence(at.model)) is not None:
        values["log evidence"] = found
    return Outcome(
        values, settings={"method": "auto", "max_evaluations": max_evaluations}, n_evaluations=q.n_evaluations
    )


def log_evidence(model: Reconstruction) -> float | None:
    """The log evidence of squared norms, which no bound exceeds; None if the posterior reaches a kink.

    Where all β are positive the model is linear, f = 4 (1 − x)ᵀβ, and the posterior is conjugate. It does not reach a
    kink if all means are 5 standard deviations or more above zero.
    """
    A = 4.0 * (1.0 - model.X)
    precision = A.T @ A + np.eye(DIM)
    mean = np.linalg.solve(precision, A.T @ model.y)
    if (mean * np.sqrt(np.diag(precision)) < 5.0).any():
        return None
    quadratic = model.y @ model.y - mean @ precision @ mean
    log_det = np.linalg.slogdet(precision)[1]
    return float(-0.5 * (len(model.y) * np.log(2.0 * np.pi) + log_det + quadratic))


def run_ml(seed: int, form: str, number: int) -> Outcome:
    """Nonlinear least squares from β = ½, which is on the same side of the kinks as the truth."""
    at = simulated(form, seed, number)

    def residual(beta: Array) -> Array:
        return np.asarray(at.model.y - at.model.predictive(beta[None], at.model.X)[0])

    found = least_squares(residual, np.full(DIM, 0.5))
    return Outcome(performance(at, found.x), settings={"ML": "least squares"}, n_evaluations=int(found.nfev))


def run_mcmc(seed: int, form: str, number: int, steps: int) -> Outcome:
    """The posterior itself, from walkers around a short run of `auto`."""
    at = simulated(form, seed, number)
    options: dict[str, Any] = {"initial_mean": np.full(DIM, 0.5), "initial_variance": 0.01, "rng": seed}
    with quietly():
        around = mgvbp.fit(at.model, PRIOR, max_evaluations=5000, **options)

    def values(chains: Chains) -> dict[str, float]:
        return performance(at, chains.flat.mean(axis=0))

    return mcmc.run(at.model, PRIOR, around, seed, values, steps, walkers=2 * DIM + 20)[0]


def run_form(seed: int, form: str, rows: int, replications: int) -> Outcome:
    """What two numbers of the paper would be under a form of the model, over simulated data sets.

    With the posterior's Gaussian approximation N(β, P⁻¹) the bound lies ½(log det P + ‖β‖² + tr P⁻¹) below the
    log-likelihood at its mean. The first bound is that of N(μ_1, 0.01 I).
    """
    differences, firsts = [], []
    for number in range(replications):
        at = simulated(form, seed, 1000 + number, rows)
        beta = np.random.default_rng([seed, 1000 + number]).random(DIM)  # the simulator's first draws
        J = slopes(at.model, beta)
        P = J.T @ J + np.eye(DIM)
        trace = np.trace(np.linalg.inv(P))
        differences.append(0.5 * (np.linalg.slogdet(P)[1] + beta @ beta + trace))
        firsts.append(bound(at.model, mgvbp.Gaussian(at.start, INITIAL_VARIANCE), 50))
    values: dict[str, float] = {}
    for name, x in (("log-lik − LB*", differences), ("first LB", firsts)):
        values |= {name: float(np.mean(x)), f"{name}, sd": float(np.std(x, ddof=1))}
    curves = {"log-lik − LB*": [float(x) for x in differences], "first LB": [float(x) for x in firsts]}
    return Outcome(values, curves, {"rows": rows, "replications": replications})


def slopes(model: Reconstruction, beta: Array, step: float = 1e-5) -> Array:
    """Derivatives of f by central differences, (n, d); β must be farther from the kinks than the step."""
    points = np.concatenate([beta + step * np.eye(DIM), beta - step * np.eye(DIM)])
    f = model.predictive(points, model.X)
    return np.asarray((f[:DIM] - f[DIM:]).T / (2.0 * step))
