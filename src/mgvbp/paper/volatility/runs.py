"""What the cells run: maximum likelihood, the paper's methods with the authors' settings, auto and MCMC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import mgvbp
from mgvbp.paper import target as base
from mgvbp.paper.common import ARRIVED, METHODS, Array, Path, quietly
from mgvbp.paper.spec import Cell, Outcome, reference
from mgvbp.paper.target import EVERY
from mgvbp.paper.volatility.target import target
from mgvbp.volatility import VolatilityModel

RUNS = {
    "MGVBP": ("MGVBP", 0.02),
    "MGVB": ("MGVB", 0.01),
    "QBVI": ("QBVI", 0.01),
    "MGVBP 0.01": ("MGVBP", 0.01),
}
"""Method and step size of each run. The authors gave MGVBP twice the step of the others; the last run has the same."""
NUM_DRAWS = 150
"""Draws of an iteration."""
INITIAL_VARIANCE = 0.05
"""Variance of the first Gaussian."""
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
"""What the authors ran for each kind of model. For the first kind their text says 1,200 iterations, a clip of 1,000."""


def run_ml(seed: int, model: str) -> Outcome:
    """Maximum likelihood by BFGS; nothing in it is random."""
    return base.run_ml(target(model), "BFGS")


def run_named(seed: int, model: str, run: str, max_iterations: int | None = None) -> Outcome:
    """One of the paper's methods, from the maximum of the likelihood, with the authors' settings."""
    at = target(model)
    method, step_size = RUNS[run]
    kind = "GARCH" if model.startswith(("ARCH", "GARCH", "GJR")) else model.partition("(")[0]
    settings = {**SHARED, **BUDGETS[kind], "step_size": step_size}
    if max_iterations is not None:
        settings["max_iterations"] = max_iterations
    path = Path[mgvbp.Gaussian](lambda q: q, EVERY)
    with quietly():
        posterior = mgvbp.fit(
            at.likelihood,
            at.prior,
            method=METHODS[method](**settings),
            estimator="h",
            draws="sobol",
            num_draws=NUM_DRAWS,
            initial_mean=at.maximum_likelihood()[0],
            initial_variance=INITIAL_VARIANCE,
            rng=seed,
            callback=path,
        )
    optimum = reference("volatility")["exact"][model]["LB*"]
    values = at.described(posterior)
    if (arrival := path.first(lambda q: optimum - at.exact_bound(q) <= ARRIVED)) is not None:
        values["arrival"] = arrival
    values["shortened"] = float(np.count_nonzero(posterior.trace.reductions))
    return Outcome(
        values,
        densities(at.model, posterior.sample(100_000, 0)) | at.curves(path, posterior.trace),
        {**settings, "method": method, "num_draws": NUM_DRAWS, "draws": "sobol", "estimator": "h"},
        posterior.n_evaluations,
    )


def run_auto(seed: int, model: str) -> Outcome:
    """``model.fit(returns)`` without options."""
    at = target(model)
    posterior = at.model.fit(at.likelihood.series, rng=seed).posterior
    curves = densities(at.model, posterior.sample(100_000, 0))
    return Outcome(at.described(posterior), curves, {"method": "auto"}, posterior.n_evaluations)


def run_mcmc(seed: int, model: str, steps: int) -> Outcome:
    """An ensemble of 64 walkers that start at draws from the approximation by ``auto``."""
    at = target(model)
    around = at.model.fit(at.likelihood.series, rng=seed).posterior
    outcome, chains = base.run_mcmc(at, around, seed, steps, walkers=64)
    return replace(outcome, curves=densities(at.model, chains.flat))


def densities(model: VolatilityModel, psi: Array) -> dict[str, list[float]]:
    """Histograms of the marginals of draws (S, d), in ψ and in the parameters: edges and heights."""
    curves: dict[str, list[float]] = {}
    values = model.parameters.constrain(psi)
    for i, name in enumerate(model.parameters.names):
        for space, x in (("psi", psi[:, i]), ("theta", values[name])):
            ends = tuple(np.quantile(x, [0.001, 0.999]))
            heights, edges = np.histogram(x, bins=50, range=ends, density=True)
            curves |= {f"{space} {name} edges": edges.tolist(), f"{space} {name} heights": heights.tolist()}
    return curves


def cells_of(model: str, mcmc_steps: int = 5000) -> list[Cell]:
    """All runs of a model."""
    return [
        *(Cell(f"{model} {run}", partial(run_named, model=model, run=run)) for run in RUNS),
        Cell(f"{model} auto", partial(run_auto, model=model)),
        Cell(f"{model} MCMC", partial(run_mcmc, model=model, steps=mcmc_steps)),
        Cell(f"{model} ML", partial(run_ml, model=model)),
    ]
