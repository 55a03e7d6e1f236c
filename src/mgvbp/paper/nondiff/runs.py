"""Simulated data, the paper's settings, and what the cells run."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from scipy.optimize import least_squares

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.models import Reconstruction
from mgvbp.paper.common import Array, printed
from mgvbp.paper.spec import Cells, Outcome
from mgvbp.paper.target import Path, Target, run_auto, run_mcmc, run_ml

DIM, TRAIN, TEST = 20, 2000, 500
"""Parameters, rows to train and rows to test. The paper states 4000 and 1000 rows, but its log-likelihoods and MSEs
agree with each other for half of these."""
PRIOR = mgvbp.Gaussian(variance=1.0, dim=DIM)
INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian."""
SETTINGS = printed("Non-diff. model")
NUM_DRAWS = 15
"""Draws of an iteration."""
PANELS: dict[str, dict[str, Any]] = {
    "equal steps": {"clip_gradient": 150.0, "clip_natural_gradient": None, "precision_scale": 2.0},
    "other clip": {"precision_scale": 1.0},
}
"""Two readings of the paper's clip of 150. The first clips the gradient, which is one quantity for all methods. The
second clips the natural gradient, which is another quantity for MGVB, whose variable is the covariance."""
FAMILIES = {"MGVB": "full", "MGVBP": "full", "QBVI": "full", "QBVI diagonal": "diagonal"}
"""The family of each method."""
FORMS = {"norms": False, "squared norms": True}
DATA_SETS = {"norms": 4, "squared norms": 2}
FEW, MANY = 200, 5000
"""Draws for the bound along a run, and at its end. They are the same for all methods, so that their error cancels in
differences."""


class Simulated(Target):
    """Data set ``number`` of a seed, and the mean that all methods start from."""

    def __init__(self, form: str, number: int, seed: int, family: str = "full", rows: int = TRAIN) -> None:
        rng = np.random.default_rng([seed, number])
        X, y, self.truth = Reconstruction.simulate(rows + TEST, DIM, squared=FORMS[form], rng=rng)
        self.start = np.sqrt(INITIAL_VARIANCE) * rng.standard_normal(DIM)
        self.likelihood = self.model = Reconstruction(X[:rows], y[:rows], squared=FORMS[form])
        self.X_test, self.y_test = X[rows:], y[rows:]
        self.prior, self.family = PRIOR, family

    def bound(self, q: mgvbp.Gaussian, num_draws: int) -> float:
        """The lower bound by Monte Carlo; the standardised draws are the same for every ``q``."""
        theta = q.sample(num_draws, rng=2**31)
        return float(np.mean(self.model(theta) + PRIOR.log_density(theta) - q.log_density(theta)))

    def performance(self, beta: Array) -> dict[str, float]:
        """Log-likelihood, MSE = SSE/(n − 20) and mean absolute deviation on both parts."""
        values = {}
        for prefix, X, y in (("", self.model.X, self.model.y), ("test ", self.X_test, self.y_test)):
            error = y - self.model.predictive(beta[None], X)[0]
            squares = float(error @ error)
            values[f"{prefix}log-lik"] = -0.5 * (squares + len(y) * float(np.log(2.0 * np.pi)))
            values[f"{prefix}MSE"] = squares / (len(y) - DIM)
            values[f"{prefix}MAD"] = float(np.abs(error).mean())
        return values

    def fitted(self, q: mgvbp.Posterior) -> Outcome:
        """The performance at the mean, and bounds; squared norms have the evidence too, which no bound exceeds."""
        values = self.performance(q.mean)
        values |= {"LB*": q.lower_bound, "LB": self.bound(q, MANY), "few": self.bound(q, FEW)}
        values |= {"queries": float(q.n_evaluations), "log-lik − LB*": values["log-lik"] - q.lower_bound}
        evidence = log_evidence(self.model) if self.model.squared else None
        return Outcome(values if evidence is None else values | {"log evidence": evidence})

    def sampled(self, chains: Chains) -> Outcome:
        """The performance at the mean of the draws."""
        return Outcome(self.performance(chains.flat.mean(axis=0)))

    def maximum_likelihood(self) -> Outcome:
        """Nonlinear least squares from β = ½, which is on the same side of the kinks as the truth."""

        def residual(beta: Array) -> Array:
            return np.asarray(self.model.y - self.model.predictive(beta[None], self.model.X)[0])

        found = least_squares(residual, np.full(DIM, 0.5))
        settings = {"optimiser": "least squares"}
        return Outcome(self.performance(found.x), {}, settings, int(found.nfev))

    def auto(self, seed: int, **options: Any) -> mgvbp.Posterior:
        """From the start of the methods, unless another is given."""
        start: dict[str, Any] = {"initial_mean": self.start, "initial_variance": INITIAL_VARIANCE}
        return super().auto(seed, **start | options)

    def around(self, seed: int) -> mgvbp.Gaussian:
        """A short run of `auto`."""
        return self.auto(seed, initial_mean=np.full(DIM, 0.5), max_evaluations=5000)


@cache
def simulated(form: str, number: int, seed: int, family: str = "full") -> Simulated:
    """A data set that several runs share."""
    return Simulated(form, number, seed, family)


def run_method(
    form: str, number: int, method: str, panel: str, seed: int, max_iterations: int = 5000
) -> Outcome:
    """A method with the paper's settings."""
    at = simulated(form, number, seed, FAMILIES[method])
    settings = {**SETTINGS, **PANELS[panel], "max_iterations": max_iterations}
    path = Path(lambda iteration: at.bound(iteration.gaussian, FEW), every=100)
    q = at.by_method(
        method.split()[0],
        settings,
        seed,
        estimator="h",
        num_draws=NUM_DRAWS,
        initial_mean=at.start,
        initial_variance=INITIAL_VARIANCE,
        callback=path if number == 0 else None,  # the figure shows the first data set
    )
    values = at.fitted(q).values | {"first LB": float(q.trace.lower_bound[0])}
    curves = {"iteration": path.iterations, "bound": path.seen}
    return Outcome(values, curves, {"method": method, "draws": NUM_DRAWS, **settings}, q.n_evaluations)


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


def run_form(form: str, rows: int, seed: int, replications: int) -> Outcome:
    """What two numbers of the paper would be under a form of the model, over simulated data sets.

    With the posterior's Gaussian approximation N(β, P⁻¹) the bound lies ½(log det P + ‖β‖² + tr P⁻¹) below the
    log-likelihood at its mean. The first bound is that of N(μ_1, 0.01 I).
    """
    found: dict[str, list[float]] = {"log-lik − LB*": [], "first LB": []}
    for number in range(replications):
        at = Simulated(form, 1000 + number, seed, rows=rows)
        beta = at.truth
        J = slopes(at.model, beta)
        P = J.T @ J + np.eye(DIM)
        trace = np.trace(np.linalg.inv(P))
        found["log-lik − LB*"].append(float(0.5 * (np.linalg.slogdet(P)[1] + beta @ beta + trace)))
        found["first LB"].append(at.bound(mgvbp.Gaussian(at.start, INITIAL_VARIANCE), 50))
    values: dict[str, float] = {}
    for name, x in found.items():
        values |= {name: float(np.mean(x)), f"{name}, sd": float(np.std(x, ddof=1))}
    return Outcome(values, found, {"rows": rows, "replications": replications})


def slopes(model: Reconstruction, beta: Array, step: float = 1e-5) -> Array:
    """Derivatives of f by central differences, (n, d); β must be farther from the kinks than the step."""
    points = np.concatenate([beta + step * np.eye(DIM), beta - step * np.eye(DIM)])
    f = model.predictive(points, model.X)
    return np.asarray((f[:DIM] - f[DIM:]).T / (2.0 * step))


def cells(quick: bool) -> Cells:
    """Both forms of the model on simulated data, with the paper's methods and settings, `auto`, ML and MCMC.

    A quick run has ML and MGVBP on one data set, and fewer data sets for the forms. `auto` has a fifth of the paper's
    75,000 queries.
    """
    every = {f"{form} {k}": (form, k) for form in FORMS for k in range(DATA_SETS[form])}
    sets = {"norms 0": ("norms", 0)} if quick else every
    methods = ["MGVBP"] if quick else list(FAMILIES)
    at = {name: partial(simulated, *which) for name, which in sets.items()}
    found: Cells = {f"{name} ML": partial(run_ml, make) for name, make in at.items()}
    if not quick:
        found |= {f"{n} auto": partial(run_auto, make, max_evaluations=15_000) for n, make in at.items()}
        chain = partial(run_mcmc, steps=4000, walkers=2 * DIM + 20)
        found |= {f"{n} MCMC": partial(chain, make) for n, make in at.items() if n.startswith("norms")}
    runs = [(name, method, "equal steps") for name in sets for method in methods]
    runs += [] if quick else [("norms 0", method, "other clip") for method in methods]
    found |= {
        f"{n} {method} {panel}": partial(run_method, *sets[n], method, panel) for n, method, panel in runs
    }
    form = partial(run_form, replications=20 if quick else 200)
    sizes = (TRAIN,) if quick else (TRAIN, 2 * TRAIN)
    return found | {f"form {f} {n}": partial(form, f, n) for f in FORMS for n in sizes}
