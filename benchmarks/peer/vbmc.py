"""PyVBMC at its defaults, for d ≤ 6: a Gaussian process of the log density and a mixture of Gaussians.

The mixture is judged as the Gaussian with its moments, like all others here; that may be less than it is worth.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

from mgvbp.core.optional import require
from peer.problems import Problem
from peer.record import Array, Budget, Prepared, Snapshot, clock, factor

LARGEST = 6


class LateError(Exception):
    """The time is over."""


def run_vbmc(problem: Problem) -> Prepared:
    """The plausible box is one standard deviation of N(0, I)."""
    if problem.dim > LARGEST:
        raise ValueError(f"d > {LARGEST}, beyond what PyVBMC is meant for in this comparison")
    pyvbmc = require("pyvbmc", "peers")

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        np.random.seed(seed)  # noqa: NPY002  (PyVBMC draws from NumPy's global generator)
        start, seen = clock(), [0]
        stamps: dict[int, float] = {}
        one = np.ones((1, problem.dim))

        def log_density(theta: Array) -> float:
            if clock() - start > budget.seconds:
                raise LateError
            seen[0] += 1
            stamps[seen[0]] = clock() - start
            return float(problem.log_density(np.atleast_2d(theta))[0])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solver = pyvbmc.VBMC(
                log_density,
                0.0 * one,
                plausible_lower_bounds=-one,
                plausible_upper_bounds=one,
                options={"display": "off"},
            )
            last: list[Any] = []
            with contextlib.suppress(LateError):
                last.append(solver.optimize()[0])
            history = solver.iteration_history
            counted = zip(history["func_count"], history["vp"], strict=True)
            path = [snapshot(int(n), stamps[int(n)], vp) for n, vp in counted]
            path += [snapshot(seen[0], clock() - start, vp) for vp in last]
        return path

    return Prepared(0.0, run)


def snapshot(count: int, seconds: float, mixture: Any) -> Snapshot:
    """The moments of a mixture."""
    mean, covariance = mixture.moments(cov_flag=True)
    return Snapshot(count, 0, seconds, np.asarray(mean).ravel(), factor(np.atleast_2d(covariance)))
