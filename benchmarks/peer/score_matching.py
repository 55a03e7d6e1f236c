"""Rivals that match scores: GSM-VI (Modi et al. 2023, package gsmvi) and BaM (Cai et al. 2024, written here).

Both begin where L-BFGS from 0 ends, with its own estimate of the covariance there, as their authors advise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import sqrtm
from scipy.optimize import minimize

from mgvbp import from_jax
from mgvbp.core.optional import require
from peer.problems import Problem
from peer.record import Array, Budget, Prepared, Snapshot, clock, factor, marks

GSM_BATCH, GSM_STEPS = 2, 5000
"""The defaults of gsmvi."""
BAM_BATCH, BAM_STEPS = 8, 1250
"""As many gradients."""

Update = Callable[[int, Array, Array, Array, Array], tuple[Array, Array]]
"""Of the number of the step (from 1), draws and their scores (B, d), the mean and the covariance."""


def gsm(problem: Problem) -> Prepared:
    """Gaussian score matching: every draw moves the Gaussian as little as gives it the draw's score; their mean."""
    theirs = require("gsmvi.gsm", "peers").gsm_update

    def update(t: int, draws: Array, scores: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
        moved = theirs(draws, scores, mean, covariance)
        return np.asarray(moved[0]), np.asarray(moved[1])

    return prepared(problem, update, GSM_BATCH, GSM_STEPS)


def bam(problem: Problem) -> Prepared:
    """Batch and match, with the inverse regularisation B d / t for draws that are not a Gaussian's."""

    def update(t: int, draws: Array, scores: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
        rate = BAM_BATCH * len(mean) / t
        part = rate / (1.0 + rate)
        z, g = draws.mean(axis=0), scores.mean(axis=0)
        U = rate * np.cov(scores.T, bias=True).reshape(len(z), -1) + part * np.outer(g, g)
        spread = np.cov(draws.T, bias=True).reshape(len(z), -1)
        V = covariance + rate * spread + part * np.outer(mean - z, mean - z)
        root: Any = sqrtm(np.eye(len(z)) + 4.0 * U @ V)
        new = 2.0 * np.linalg.solve(np.eye(len(z)) + np.real(root).T, V.T).T
        new = 0.5 * (new + new.T)
        return (1.0 - part) * mean + part * (new @ g + z), new

    return prepared(problem, update, BAM_BATCH, BAM_STEPS)


def prepared(problem: Problem, update: Update, batch: int, steps: int) -> Prepared:
    """Compilation is what the first of two equal short runs takes longer."""
    function = from_jax(problem.traced).value_and_grad

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        start, number = clock(), max(1, int(budget.share * steps))
        mean, covariance, gradients = started(function, problem.dim)
        rng, looks, path = np.random.default_rng(seed), marks(number), list[Snapshot]()
        for t in range(1, number + 1):
            scale = factor(covariance)
            draws = mean + rng.standard_normal((batch, problem.dim)) @ scale.T
            scores = function(draws)[1]
            gradients += batch
            with np.errstate(all="ignore"):
                moved = update(t, draws, scores, mean, covariance)
            if (
                np.isfinite(factor(moved[1])).all() and np.isfinite(moved[0]).all()
            ):  # else the step is left out
                mean, covariance = moved
            seconds = clock() - start
            over = seconds > budget.seconds
            if t in looks or over:
                path.append(Snapshot(0, gradients, seconds, mean, factor(covariance)))
            if over:
                break
        return path

    short = Budget(share=5.0 / steps)
    first, second = run(0, short)[-1].seconds, run(0, short)[-1].seconds
    return Prepared(max(0.0, first - second), run)


def started(function: Callable[[Array], tuple[Array, Array]], dim: int) -> tuple[Array, Array, int]:
    """Where L-BFGS from 0 ends, the inverse Hessian that it knows there, and how many gradients that took."""

    def loss(x: Array) -> tuple[float, Array]:
        value, slope = function(x[None])
        return (-float(value[0]), -slope[0]) if np.isfinite(value[0]) else (1e300, 0.0 * x)

    end = minimize(loss, np.zeros(dim), jac=True, method="L-BFGS-B")
    inverse: Any = end.hess_inv
    covariance = inverse.todense()
    return end.x, 0.5 * (covariance + covariance.T), int(end.nfev)
