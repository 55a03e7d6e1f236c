"""The data, the settings as printed and as run, and what the cells run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from operator import gt
from typing import Any

import numpy as np

import mgvbp
from mgvbp import datasets
from mgvbp.baselines import Chains
from mgvbp.models import LinearRegression
from mgvbp.paper import mcmc
from mgvbp.paper.bounds import linear_lower_bound
from mgvbp.paper.common import ARRIVED, METHODS, PRIOR_VARIANCE, Array, Method, Path, quietly
from mgvbp.paper.hyperparameters import printed
from mgvbp.paper.spec import Outcome, reference

BETAS = ("const", "SP", "NIK", "BOV", "DAX", "FTSE", "EU", "EM")
COORDINATES = (*BETAS, "ψ")
"""θ = (β, ψ) with ψ = log σ."""
STRUCTURES: dict[str, str | mgvbp.BlockDiagonal] = {
    "full": "full",
    "diagonal": "diagonal",
    "block 1": mgvbp.BlockDiagonal([8, 1]),
    "block 2": mgvbp.BlockDiagonal([1, 3, 2, 2, 1]),
}
"""The paper's covariance structures, with the sizes of their blocks."""
UNCONVERGED = ("diagonal", "block 2")
"""The structures whose runs end before they reach the optimum."""
INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian."""
PRINTED = printed("Istanbul")
AS_RUN = printed("Istanbul", step_size=0.1, clip_initial=1000.0, precision_scale=2.0)
"""The settings saved with the authors' results. Their code takes whole natural gradients of the precision."""
DRAWS: dict[str, dict[str, Any]] = {
    "as printed": {"estimator": "loglik", "num_draws": 100, "draws": "mc"},
    "as run": {"estimator": "h", "num_draws": 50, "draws": "sobol"},
}
PANELS: dict[str, dict[str, Any]] = {
    "the authors' step and clip": {"clip_gradient": 50_000.0},
    "no clip": {"clip_initial": None},
    "a fifth of the step": {"clip_gradient": 50_000.0, "step_size": 0.02},
}
"""What each comparison of the methods changes. The clip is that of the gradient, one quantity for all methods."""


@dataclass(frozen=True)
class Setting:
    """The model on the rows to train, its prior, and the rows to test."""

    model: LinearRegression
    prior: mgvbp.Gaussian
    X_test: Array
    y_test: Array


@cache
def setting() -> Setting:
    """Load the data."""
    data = datasets.load("istanbul")
    X, X_test = (
        np.column_stack([np.ones(len(part)), part[data.features]]) for part in (data.train, data.test)
    )
    model = LinearRegression(X, data.train[data.target], list(BETAS))
    prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(COORDINATES))
    return Setting(model, prior, X_test, data.test[data.target].to_numpy())


def gap(structure: str, q: mgvbp.Gaussian) -> float:
    """Nats by which the exact bound at ``q`` is below the optimum of its structure."""
    at = setting()
    optimum = reference("istanbul")["exact"]["istanbul_perf"][structure]["LB*"]
    return float(optimum - linear_lower_bound(at.model, at.prior, q))


def performance(beta: Array, sigma: float) -> dict[str, float]:
    """The fit on both parts in the paper's units: both MSEs are sums of squares × 10⁵, over the training rows n − 4."""
    at = setting()
    psi, scale = np.log(sigma), 1e5 / (len(at.model.y) - 4)
    theta = np.append(beta, psi)[None]
    residual, error = at.model.y - at.model.X @ beta, at.y_test - at.X_test @ beta
    test = -0.5 * np.sum(error**2) / sigma**2 - len(error) * (psi + 0.5 * np.log(2.0 * np.pi))
    return {
        "log-lik": float(at.model(theta)[0]),
        "MSE": float(scale * residual @ residual),
        "test log-lik": float(test),
        "test MSE": float(scale * error @ error),
        "test MSE, own n": float(1e5 * error @ error / len(error)),
    }


def moments(mean: Array, covariance: Array, sigma: float) -> dict[str, float]:
    """Means, standard deviations × 10² and covariances × 10³."""
    values = {f"mean {name}": float(x) for name, x in zip(BETAS, mean, strict=False)} | {"mean σ": sigma}
    for i, name in enumerate(COORDINATES[: len(covariance)]):
        values[f"sd {name}"] = float(100.0 * np.sqrt(covariance[i, i]))
        for j in np.flatnonzero(covariance[i, i + 1 :]) + i + 1:  # other covariances are zero by structure
            values[f"cov {name} {COORDINATES[j]}"] = float(1e3 * covariance[i, j])
    return values


def described(structure: str, q: mgvbp.Posterior) -> dict[str, float]:
    """All that the tables show of a fit; σ is the mean of exp(ψ)."""
    sigma = float(np.exp(q.mean[-1] + 0.5 * q.std[-1] ** 2))
    values = {"LB*": q.lower_bound, "below optimum": gap(structure, q), "queries": float(q.n_evaluations)}
    return values | performance(q.mean[:-1], sigma) | moments(q.mean, q.covariance, sigma)


def run_ml(seed: int) -> Outcome:
    """Least squares, with s² = SSE/(n − 8)."""
    model = setting().model
    beta = np.asarray(np.linalg.lstsq(model.X, model.y)[0], dtype=np.float64)
    residual = model.y - model.X @ beta
    variance = residual @ residual / (len(model.y) - len(beta))
    covariance = variance * np.linalg.inv(model.X.T @ model.X)
    sigma = float(np.sqrt(variance))
    return Outcome(
        performance(beta, sigma) | moments(beta, covariance, sigma), settings={"ML": "least squares"}
    )


def run_mcmc(seed: int, steps: int) -> Outcome:
    """The posterior itself, by MCMC from walkers around `auto`."""

    def values(chains: Chains) -> dict[str, float]:
        draws = chains.flat
        mean, sigma = draws.mean(axis=0), float(np.exp(draws[:, -1]).mean())
        return moments(mean, np.cov(draws.T), sigma) | performance(mean[:-1], sigma)

    at = setting()
    around = mgvbp.fit(at.model, at.prior, rng=seed)
    return mcmc.run(at.model, at.prior, around, seed, values, steps)[0]


def run_auto(seed: int, structure: str) -> Outcome:
    """`auto` to a thousandth of a nat; the default of 0.01 would show in the covariances."""
    at = setting()
    q = mgvbp.fit(at.model, at.prior, family=STRUCTURES[structure], tol=0.001, rng=seed)
    curves = {"queries": q.trace.n_evaluations.tolist(), "bound": q.trace.smoothed.tolist()}
    return Outcome(described(structure, q), curves, {"method": "auto", "tol": 0.001}, q.n_evaluations)


def run_mgvbp(seed: int, structure: str, how: str, max_iterations: int = 1200) -> Outcome:
    """MGVBP with the settings that the paper prints, or with those of the authors' saved results."""
    settings = {**(PRINTED if how == "as printed" else AS_RUN), "max_iterations": max_iterations}
    sd = 0.1 if how == "as printed" else 0.01 if structure == "full" else 0.0
    start = sd * np.random.default_rng(seed).standard_normal(len(COORDINATES))
    q, _ = followed(mgvbp.MGVBP(**settings), structure, seed, initial_mean=start, **DRAWS[how])
    curves = {"iteration": list(range(1, len(q.trace) + 1, 4)), "bound": q.trace.smoothed[::4].tolist()}
    described_as = {"method": "MGVBP", **settings, **DRAWS[how], "sd of the initial mean": sd}
    return Outcome(described(structure, q), curves, described_as, q.n_evaluations)


def run_spread(seed: int, structure: str, replications: int = 10) -> Outcome:
    """The authors' settings with other draws: how much of the result of one run is chance."""
    runs = [run_mgvbp(seed + 1 + k, structure, "as run") for k in range(replications)]
    curves = {key: [run.values[key] for run in runs] for key in ("LB*", "mean EU")}
    return Outcome(
        {"replications": float(replications)}, curves, runs[0].settings, sum(r.n_evaluations for r in runs)
    )


def run_race(seed: int, method: str, structure: str, panel: str, max_iterations: int = 1200) -> Outcome:
    """One of the methods on the same draws as the others, followed by the exact bound."""
    settings = {**AS_RUN, "clip_natural_gradient": None, "max_iterations": max_iterations, **PANELS[panel]}
    chosen = METHODS[method](**settings)
    start = np.zeros(len(COORDINATES))
    q, path = followed(chosen, structure, seed, initial_mean=start, **DRAWS["as run"])
    values = {"iterations": float(len(q.trace)), "below optimum": gap(structure, q)}
    for nats, column in ((1.0, "to 1 nat"), (ARRIVED, f"to {ARRIVED} nats")):
        if (reached := path.first(partial(gt, nats))) is not None:
            values[column] = reached
    curves = {"iteration": [float(t) for t in path.iterations], "gap": path.seen}
    return Outcome(values, curves, {"method": method, **settings, **DRAWS["as run"]}, q.n_evaluations)


def followed(
    method: Method, structure: str, seed: int, **options: Any
) -> tuple[mgvbp.Posterior, Path[float]]:
    """Fit, and follow the exact gap at every tenth iteration; a run that breaks down gives its best iterate."""
    at, path = setting(), Path(partial(gap, structure), 10)
    with quietly():
        q = mgvbp.fit(
            at.model,
            at.prior,
            method=method,
            family=STRUCTURES[structure],
            initial_variance=INITIAL_VARIANCE,
            rng=seed,
            callback=path,
            **options,
        )
    return q, path
