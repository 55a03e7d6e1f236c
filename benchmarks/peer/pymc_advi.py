"""PyMC: FullRankADVI with its default optimiser, the log density a potential written in JAX."""

from __future__ import annotations

import warnings

import numpy as np

from mgvbp.core.optional import require
from peer.problems import Problem
from peer.record import Budget, Prepared, Snapshot, clock, factor, marks

STEPS = 20_000
"""Twice the default of ``pm.fit``."""


def full_rank(problem: Problem) -> Prepared:
    """One gradient a step; windowed Adagrad, 0.001."""
    pymc, pytensor = require("pymc", "peers"), require("pytensor", "peers")
    start = clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTensor's on BLAS, which a d of 30 does not need
        with pymc.Model():
            theta = pymc.Flat("theta", shape=problem.dim)
            pymc.Potential("log density", pytensor.wrap_jax(problem.traced)(theta))
            inference = pymc.FullRankADVI(random_seed=0)
        # with the loss, as pm.fit does: without it the generator stands still and every step has the same draw
        step = inference.objective.step_function(score=True)
    shared = [variable for variable in step.get_shared() if isinstance(variable.get_value(), np.ndarray)]
    initial = [variable.get_value() for variable in shared]
    step()  # JAX compiles at the first
    compile_seconds = clock() - start
    moments = pytensor.function([], [inference.approx.mean, inference.approx.cov])

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        """Runs differ by the state of the generator, which goes on where the one before left it."""
        for variable, value in zip(shared, initial, strict=True):
            variable.set_value(value)
        steps = max(1, int(budget.share * STEPS))
        looks, seconds, path = marks(steps), 0.0, []
        start = clock()
        for i in range(1, steps + 1):
            try:
                step()
            except (FloatingPointError, ValueError):
                break
            late = seconds + clock() - start > budget.seconds
            if i in looks or late:
                seconds += clock() - start
                mean, covariance = moments()
                path.append(Snapshot(0, i, seconds, mean, factor(covariance)))
                start = clock()
            if late:
                break
        return path

    return Prepared(compile_seconds, run)
