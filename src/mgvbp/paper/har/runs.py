"""What the cells run: the paper's methods with the authors' settings and with equal ones, auto, MCMC and ML."""

from __future__ import annotations

from typing import Any

import numpy as np

import mgvbp
from mgvbp.paper import target as base
from mgvbp.paper.common import ARRIVED, METHODS, Path, quietly
from mgvbp.paper.har.target import target
from mgvbp.paper.spec import Outcome, reference
from mgvbp.paper.target import EVERY

NUM_DRAWS = 50
"""Draws of an iteration, as the authors ran it."""
INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian."""
SHRINKAGE = 0.95
"""The authors start at this share of the maximum likelihood estimate."""
SETTINGS: dict[str, Any] = {
    "momentum": 0.4, "clip_natural_gradient": 50_000.0, "clip_initial": 1000.0, "decay_after": 600,
    "max_iterations": 800, "window": 31, "patience": 300,
}  # fmt: skip
"""What the authors ran; their text says 150 draws, 1,000 iterations and a decay after 750."""
OWN: dict[str, dict[str, float]] = {
    "MGVBP": {"step_size": 0.002, "precision_scale": 2.0},
    "MGVB": {"step_size": 0.001, "precision_scale": 1.0},
    "QBVI": {"step_size": 0.001, "precision_scale": 2.0},
}
"""What the authors gave each method: MGVBP has twice the step of the others, MGVB half the natural gradient."""
FAIR: dict[str, Any] = {
    "step_size": 0.002,
    "precision_scale": 2.0,
    "decay_after": None,
    "patience": 20_000,
    "clip_natural_gradient": None,  # it is another quantity for MGVB, which diverges under it at this step
    "clip_gradient": 50_000.0,
}
"""The same for all methods. The patience exceeds every budget, so that a run ends when it arrives."""
FAIR_BUDGET = 10_000
"""Iterations that a fair run may take, twelve times the authors' 800."""
REPLICATIONS = 7
"""Further seeds of the authors' runs. These runs stop on the way, and where depends on the seed: 8 runs measure it."""
VARIANTS = {"": ("loglik", "full"), " h": ("h", "full"), " diagonal": ("loglik", "diagonal")}
"""Estimator and family, by the end of a row's name."""


def run_ml(seed: int) -> Outcome:
    """Least squares; nothing in it is random."""
    return base.run_ml(target(), "least squares")


def fit_named(method: str, variant: str, seed: int, settings: dict[str, Any], callback: Any) -> Any:
    """One run of a method from the authors' start."""
    at = target()
    estimator, family = VARIANTS[variant]
    with quietly():
        return mgvbp.fit(
            at.model,
            at.prior,
            method=METHODS[method](**settings),
            family=family,
            estimator=estimator,
            draws="sobol",
            num_draws=NUM_DRAWS,
            initial_mean=SHRINKAGE * at.maximum_likelihood()[0],
            initial_variance=INITIAL_VARIANCE,
            rng=seed,
            callback=callback,
        )


def record(method: str, variant: str, settings: dict[str, Any]) -> dict[str, Any]:
    """All that a run depended on except the seed."""
    chosen = {"method": method, "num_draws": NUM_DRAWS, "draws": "sobol", "variant": VARIANTS[variant]}
    return settings | chosen


def run_named(seed: int, method: str, variant: str, replications: int) -> Outcome:
    """One of the paper's methods with the authors' settings, and its spread over seeds."""
    at, path = target(), Path[mgvbp.Gaussian](lambda q: q, EVERY)
    settings = {**SETTINGS, **OWN[method]}
    posterior = fit_named(method, variant, seed, settings, path)
    seeds = range(seed + 1, seed + 1 + replications)
    runs = [posterior, *(fit_named(method, variant, other, settings, None) for other in seeds)]
    columns = at.report(np.array([run.mean for run in runs]))
    columns["LB*"] = np.array([run.lower_bound for run in runs])
    spread = {f"seeds {name}": float(values.std(ddof=1)) for name, values in columns.items()}
    return Outcome(
        at.described(posterior) | spread,
        at.curves(path, posterior.trace),
        record(method, variant, settings),
        sum(run.n_evaluations for run in runs),
    )


def run_fair(seed: int, method: str, variant: str, budget: int) -> Outcome:
    """The same step and scale for every method, until it arrives."""
    at, settings = target(), {**SETTINGS, **FAIR, "max_iterations": budget}
    optimum = reference("har")["exact"][VARIANTS[variant][1]]["LB*"]
    path = Path[bool](lambda q: bool(optimum - at.exact_bound(q) <= ARRIVED), EVERY)

    def arrived(iteration: Any) -> bool:
        path(iteration)
        return path.seen[-1]

    posterior = fit_named(method, variant, seed, settings, arrived)
    arrival = path.first(bool)
    values = {} if arrival is None else {"arrival": arrival}
    return Outcome(values, {}, record(method, variant, settings), posterior.n_evaluations)


def run_auto(seed: int, variant: str) -> Outcome:
    """``mgvbp.fit`` without options but the family."""
    at, family = target(), VARIANTS[variant][1]
    posterior = mgvbp.fit(at.model, at.prior, family=family, rng=seed)
    settings = {"method": "auto", "family": family}
    return Outcome(at.described(posterior), settings=settings, n_evaluations=posterior.n_evaluations)


def run_mcmc(seed: int, steps: int) -> Outcome:
    """An ensemble of 40 walkers that start at draws from the approximation by ``auto``."""
    at = target()
    return base.run_mcmc(at, mgvbp.fit(at.model, at.prior, rng=seed), seed, steps, walkers=40)[0]
