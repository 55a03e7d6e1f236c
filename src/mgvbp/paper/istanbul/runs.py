"""The data, the settings as printed and as run, and what the cells run."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

import mgvbp
from mgvbp import datasets
from mgvbp.baselines import Chains
from mgvbp.models import LinearRegression
from mgvbp.paper.common import ARRIVED, METHODS, PRIOR_VARIANCE, Array, linear_lower_bound, printed
from mgvbp.paper.seeds import over_seeds
from mgvbp.paper.spec import Cells, Outcome, reference
from mgvbp.paper.target import Path, Target, run_auto, run_mcmc, run_ml

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
SEEDS = 8
"""Runs of a row: our number is their mean."""
INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian."""
PRINTED = printed("Istanbul data")
AS_RUN = printed("Istanbul data", step_size=0.1, clip_initial=1000.0, precision_scale=2.0)
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
RACES = {
    f"{panel}: {method} {structure}": (panel, method, structure)
    for panel in PANELS
    for structure in ("full", "diagonal")
    for method in METHODS
}
"""The runs of the comparisons, by the names of their cells."""


class Istanbul(Target):
    """The regression on the rows to train, within a structure of the covariance, and the rows to test."""

    def __init__(self, structure: str) -> None:
        data = datasets.load("istanbul")
        X, self.X_test = (
            np.column_stack([np.ones(len(part)), part[data.features]]) for part in (data.train, data.test)
        )
        self.y_test = data.test[data.target].to_numpy()
        self.likelihood = self.model = LinearRegression(X, data.train[data.target], list(BETAS))
        self.prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(COORDINATES))
        self.family = STRUCTURES[structure]
        self.optimum = reference("istanbul")["exact"]["istanbul_perf"][structure]["LB*"]

    def gap(self, q: mgvbp.Gaussian) -> float:
        """Nats by which the exact bound at ``q`` is below the optimum of its structure."""
        return float(self.optimum - linear_lower_bound(self.model, self.prior, q))

    def values(self, mean: Array, covariance: Array, sigma: float) -> dict[str, float]:
        """Means, standard deviations × 10² and covariances × 10³, and the fit on both parts in the paper's units.

        Both MSEs are sums of squares × 10⁵, over the training rows n − 4.
        """
        values = {f"mean {name}": float(x) for name, x in zip(BETAS, mean, strict=False)} | {"mean σ": sigma}
        for i, name in enumerate(COORDINATES[: len(covariance)]):
            values[f"sd {name}"] = float(100.0 * np.sqrt(covariance[i, i]))
            for j in (
                np.flatnonzero(covariance[i, i + 1 :]) + i + 1
            ):  # other covariances are zero by structure
                values[f"cov {name} {COORDINATES[j]}"] = float(1e3 * covariance[i, j])
        beta, psi, scale = mean[: len(BETAS)], np.log(sigma), 1e5 / (len(self.model.y) - 4)
        residual, error = self.model.y - self.model.X @ beta, self.y_test - self.X_test @ beta
        test = -0.5 * np.sum(error**2) / sigma**2 - len(error) * (psi + 0.5 * np.log(2.0 * np.pi))
        return values | {
            "log-lik": float(self.model(np.append(beta, psi)[None])[0]),
            "MSE": float(scale * residual @ residual),
            "test log-lik": float(test),
            "test MSE": float(scale * error @ error),
            "test MSE, own n": float(1e5 * error @ error / len(error)),
        }

    def fitted(self, q: mgvbp.Posterior) -> Outcome:
        """σ is the mean of exp(ψ)."""
        sigma = float(np.exp(q.mean[-1] + 0.5 * q.std[-1] ** 2))
        values = {"LB*": q.lower_bound, "below optimum": self.gap(q), "queries": float(q.n_evaluations)}
        return Outcome(values | self.values(q.mean, q.covariance, sigma))

    def sampled(self, chains: Chains) -> Outcome:
        """The moments of the draws."""
        sigma = float(np.exp(chains.flat[:, -1]).mean())
        return Outcome(self.values(chains.flat.mean(axis=0), np.cov(chains.flat.T), sigma))

    def maximum_likelihood(self) -> Outcome:
        """Least squares, with s² = SSE/(n − 8)."""
        X, y = self.model.X, self.model.y
        beta = np.asarray(np.linalg.lstsq(X, y)[0], dtype=np.float64)
        residual = y - X @ beta
        variance = residual @ residual / (len(y) - len(beta))
        values = self.values(beta, variance * np.linalg.inv(X.T @ X), float(np.sqrt(variance)))
        return Outcome(values, settings={"optimiser": "least squares"})


@cache
def target(structure: str, seed: int = 0) -> Istanbul:
    """The paper's posterior, and a structure to approximate it."""
    return Istanbul(structure)


def run_mgvbp(structure: str, how: str, seed: int, max_iterations: int = 1200, seeds: int = 1) -> Outcome:
    """MGVBP with the settings that the paper prints, or with those of the authors' saved results, over seeds.

    The curves are the path of the first run, and LB* and the mean of EU of each.
    """
    settings = {**(PRINTED if how == "as printed" else AS_RUN), "max_iterations": max_iterations}
    options = DRAWS[how] | {"initial_variance": INITIAL_VARIANCE}
    sd = 0.1 if how == "as printed" else 0.01 if structure == "full" else 0.0
    runs = []
    for k in range(seed, seed + seeds):
        start = sd * np.random.default_rng(k).standard_normal(len(COORDINATES))
        runs.append(target(structure).by_method("MGVBP", settings, k, initial_mean=start, **options))
    each = [target(structure).fitted(q).values for q in runs]
    trace = runs[0].trace
    curves = {"iteration": list(range(1, len(trace) + 1, 4)), "bound": trace.smoothed[::4].tolist()}
    curves |= {f"seeds {name}": [values[name] for values in each] for name in ("LB*", "mean EU")}
    record = {"method": "MGVBP", **settings, **options, "sd of the initial mean": sd}
    return Outcome(over_seeds(each), curves, record, sum(q.n_evaluations for q in runs))


def run_race(panel: str, method: str, structure: str, seed: int, max_iterations: int = 1200) -> Outcome:
    """One of the methods on the same draws as the others, followed by the exact bound."""
    settings = {**AS_RUN, "clip_natural_gradient": None, "max_iterations": max_iterations, **PANELS[panel]}
    options = DRAWS["as run"] | {"initial_variance": INITIAL_VARIANCE}
    at = target(structure)
    path = Path(lambda iteration: at.gap(iteration.gaussian), every=10)
    start = np.zeros(len(COORDINATES))
    q = at.by_method(method, settings, seed, initial_mean=start, callback=path, **options)
    values = {"iterations": float(len(q.trace)), "below optimum": at.gap(q)}
    values |= path.arrival(lambda gap: gap <= 1.0, "to 1 nat")
    values |= path.arrival(lambda gap: gap <= ARRIVED, f"to {ARRIVED} nats")
    curves = {"iteration": path.iterations, "gap": path.seen}
    return Outcome(values, curves, {"method": method, **settings, **options}, q.n_evaluations)


def cells(quick: bool) -> Cells:
    """Four structures with the printed settings, the authors' and `auto`; ML, MCMC; a race of the methods.

    A quick run has maximum likelihood, `auto` and one of the authors' runs. The tolerance of `auto` is a thousandth of
    a nat, as the default of 0.01 would show in the covariances.
    """
    full = partial(target, "full")
    found: Cells = {"ML": partial(run_ml, full)}
    found |= {f"{s} auto": partial(run_auto, partial(target, s), tol=0.001) for s in STRUCTURES}
    found["full as run"] = partial(run_mgvbp, "full", "as run")
    if not quick:
        found["MCMC"] = partial(run_mcmc, full, steps=20_000)
        found |= {f"{s} {how}": partial(run_mgvbp, s, how, seeds=SEEDS) for s in STRUCTURES for how in DRAWS}
        found |= {name: partial(run_race, *race) for name, race in RACES.items()}
    return found
