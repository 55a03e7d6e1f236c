"""What the cells run: maximum likelihood, the paper's methods with the authors' settings, auto and MCMC."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize

import mgvbp
from mgvbp.experiments import mcmc
from mgvbp.experiments.common import ARRIVED, METHODS, Array, quietly
from mgvbp.experiments.spec import Cell, Outcome, reference
from mgvbp.experiments.volatility.target import Target, exact_bound, summary, target
from mgvbp.volatility import Likelihood, VolatilityModel

RUNS = {
    "MGVBP": ("MGVBP", 0.02),
    "MGVB": ("MGVB", 0.01),
    "QBVI": ("QBVI", 0.01),
    "MGVBP 0.01": ("MGVBP", 0.01),
}
"""Method and step size of the rows. The authors ran MGVBP with twice the step; the last run has the others'."""
NUM_DRAWS = 150
INITIAL_VARIANCE = 0.05
SHARED: dict[str, Any] = {
    "momentum": 0.4,
    "precision_scale": 2.0,
    "clip_gradient": 1000.0,  # clipped by its natural gradient instead, MGVB diverges on EGARCH(1,0,1)
    "window": 31,  # what the authors' code averages where the paper says 30
    "patience": 5000,
}
BUDGETS: dict[str, dict[str, Any]] = {
    "GARCH": {"max_iterations": 500, "decay_after": 1000, "clip_initial": 100.0},
    "EGARCH": {"max_iterations": 3000, "decay_after": 2500, "clip_initial": 1000.0},
    "FIGARCH": {"max_iterations": 1200, "decay_after": 2500, "clip_initial": 1000.0},
}
"""What the authors ran, by kind of model; their text says 1,200 iterations and a clip of 1,000 for the first."""
EVERY = 10
"""Iterations between the approximations that are kept."""
DRAWS = 500
"""From a posterior, for the spread of what is reported."""


class Path:
    """A callback that keeps every tenth approximation."""

    def __init__(self) -> None:
        self.iterations: list[int] = []
        self.gaussians: list[mgvbp.Gaussian] = []

    def __call__(self, seen: Any) -> None:
        if seen.iteration % EVERY == 1:
            self.iterations.append(seen.iteration)
            self.gaussians.append(seen.gaussian)

    def arrival(self, bound: Callable[[mgvbp.Gaussian], float], optimum: float) -> dict[str, float]:
        """The first iteration that is within `ARRIVED` of the optimum, if one is."""
        pairs = zip(self.iterations, self.gaussians, strict=True)
        first = next((t for t, q in pairs if optimum - bound(q) <= ARRIVED), None)
        return {} if first is None else {"arrival": float(first)}

    def curves(
        self, trace: mgvbp.Trace, report: Callable[[Array], dict[str, Array]]
    ) -> dict[str, list[float]]:
        """The smoothed bound and the columns of the tables at the kept iterations."""
        rows = report(np.array([q.mean for q in self.gaussians]))
        bound = trace.smoothed[np.array(self.iterations) - 1]
        named = {"iteration": np.array(self.iterations), "LB": bound, **rows}
        return {name: values.tolist() for name, values in named.items()}


def maximum_likelihood(likelihood: Likelihood) -> tuple[Array, int]:
    """ψ (d,) of the largest likelihood, from the best of a coarse grid, and what it cost."""
    starts = likelihood.model.starts(likelihood)

    def loss(psi: Array) -> float:
        return -float(likelihood(psi[None])[0])

    best: Array = starts[int(np.argmax(likelihood(starts)))]
    found = minimize(loss, best, jac="3-point", method="BFGS", options={"gtol": 1e-4})
    return np.asarray(found.x), len(starts) + int(found.nfev)


def run_ml(seed: int, model: str) -> Outcome:
    """Maximum likelihood by BFGS."""
    at = target(model)
    psi, evaluations = maximum_likelihood(at.likelihood)
    return Outcome(summary(at.report, psi), settings={"optimiser": "BFGS"}, n_evaluations=evaluations)


def run_named(seed: int, model: str, run: str, max_iterations: int | None = None) -> Outcome:
    """One of the paper's methods, from the maximum of the likelihood, with the authors' settings."""
    at = target(model)
    method, step_size = RUNS[run]
    kind = "GARCH" if model.startswith(("ARCH", "GARCH", "GJR")) else model.partition("(")[0]
    settings = {**SHARED, **BUDGETS[kind], "step_size": step_size}
    if max_iterations is not None:
        settings["max_iterations"] = max_iterations
    path = Path()
    with quietly():
        posterior = mgvbp.fit(
            at.likelihood,
            at.prior,
            method=METHODS[method](**settings),
            estimator="h",
            draws="sobol",
            num_draws=NUM_DRAWS,
            initial_mean=maximum_likelihood(at.likelihood)[0],
            initial_variance=INITIAL_VARIANCE,
            rng=seed,
            callback=path,
        )
    bound = partial(exact_bound, at.likelihood, at.prior)
    optimum = reference("volatility")["exact"][model]["LB*"]
    values = described(at, posterior) | path.arrival(bound, optimum)
    values["shortened"] = float(np.count_nonzero(posterior.trace.reductions))
    return Outcome(
        values,
        densities(at.model, posterior.sample(100_000, 0)) | path.curves(posterior.trace, at.report),
        {**settings, "method": method, "num_draws": NUM_DRAWS, "draws": "sobol", "estimator": "h"},
        posterior.n_evaluations,
    )


def run_auto(seed: int, model: str) -> Outcome:
    """``model.fit(returns)``."""
    at = target(model)
    posterior = at.model.fit(at.likelihood.series, rng=seed).posterior
    curves = densities(at.model, posterior.sample(100_000, 0))
    return Outcome(described(at, posterior), curves, {"method": "auto"}, posterior.n_evaluations)


def run_mcmc(seed: int, model: str, steps: int) -> Outcome:
    """An ensemble of 64 walkers, started at draws from the approximation by ``auto``."""
    at = target(model)
    around = at.model.fit(at.likelihood.series, rng=seed).posterior
    walkers, prior = 64, at.prior

    def log_density(psi: Array) -> Array:
        return at.likelihood(psi) + prior.log_density(psi)

    chains = mcmc.sample(log_density, around, seed, steps=steps, walkers=walkers)
    draws = chains.flat[np.random.default_rng(seed).integers(len(chains.flat), size=DRAWS)]
    values = summary(at.report, chains.flat.mean(axis=0), draws)
    values |= chains.diagnostics
    settings = {"sampler": "emcee", "walkers": walkers, "steps": steps}
    return Outcome(values, densities(at.model, chains.flat), settings, walkers * (steps + 1))


def described(at: Target, posterior: mgvbp.Posterior) -> dict[str, float]:
    """The columns at the posterior's mean, its own bound, and the bound there without noise."""
    values = summary(at.report, posterior.mean, posterior.sample(DRAWS, 0))
    values |= {"LB*": posterior.lower_bound, "LB at point": exact_bound(at.likelihood, at.prior, posterior)}
    return values


def densities(model: VolatilityModel, psi: Array) -> dict[str, list[float]]:
    """Histograms of the marginals of draws (S, d), in ψ and in the parameters: edges and heights."""
    curves = {}
    values = model.parameters.constrain(psi)
    for i, name in enumerate(model.parameters.names):
        for space, x in (("psi", psi[:, i]), ("theta", values[name])):
            heights, edges = np.histogram(
                x, bins=50, range=tuple(np.quantile(x, [0.001, 0.999])), density=True
            )
            curves[f"{space} {name} edges"], curves[f"{space} {name} heights"] = (
                edges.tolist(),
                heights.tolist(),
            )
    return curves


def cells_of(model: str, mcmc_steps: int = 5000) -> list[Cell]:
    """All runs of a model."""
    return [
        *(Cell(f"{model} {run}", partial(run_named, model=model, run=run)) for run in RUNS),
        Cell(f"{model} auto", partial(run_auto, model=model)),
        Cell(f"{model} MCMC", partial(run_mcmc, model=model, steps=mcmc_steps)),
        Cell(f"{model} ML", partial(run_ml, model=model)),
    ]
