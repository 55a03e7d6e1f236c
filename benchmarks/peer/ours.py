"""mgvbp: `auto` with function values alone, and with JAX's gradients; both at their defaults."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

import mgvbp
from peer.problems import Problem
from peer.record import Budget, Prepared, Snapshot, clock, factor


def values(problem: Problem) -> Prepared:
    """From log densities alone."""
    return prepared(problem, problem.log_density, gradient=False)


def gradients(problem: Problem) -> Prepared:
    """From log densities and gradients."""
    return prepared(problem, mgvbp.from_jax(problem.traced), gradient=True)


def prepared(problem: Problem, function: Any, gradient: bool) -> Prepared:
    """Compilation is what the first of two equal runs takes longer."""
    run = partial(fit, problem, function, gradient)
    first, second = run(0, Budget())[-1].seconds, run(0, Budget())[-1].seconds
    return Prepared(max(0.0, first - second), run)


def fit(problem: Problem, function: Any, gradient: bool, seed: int, budget: Budget) -> list[Snapshot]:
    """It stops by itself, whatever the budget; a snapshot is the Gaussian that an iteration drew from."""
    seen: list[tuple[int, float, mgvbp.Gaussian]] = []
    start = clock()

    def look(iteration: Any) -> None:
        seen.append((iteration.n_evaluations, clock() - start, iteration.gaussian))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        posterior = mgvbp.fit(function, dim=problem.dim, rng=seed, callback=look)
    seen.append((posterior.n_evaluations, clock() - start, posterior))
    return [
        Snapshot(
            0 if gradient else n, n if gradient else 0, seconds, np.asarray(q.mean), factor(q.covariance)
        )
        for n, seconds, q in seen
    ]
