"""Where a search should begin: the estimate that another package found, and the width of the likelihood around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgvbp.core.linalg import Array

DROP = 0.5
"""The steps that are looked for lower the log-likelihood by about so many nats: one conditional standard deviation."""
FINE = 0.1
"""Part of such a step over which the curvature is measured: narrow directions of collinear parameters show, and the
drop of 0.005 nats is far above rounding."""
NEAR = (0.1, 2.5)
"""A step whose drop is between these is taken; a quadratic is then seen far above rounding, and its tails are not."""
ROUNDS = 25
"""Most attempts at a step; each changes it by a factor of up to 10, so that any unit is found."""
ONE_SIDED = 0.02
"""Where one side changes by less than this part of the other's drop, the estimate is at the end of a flat stretch, as a
variance estimated as zero is on the scale of its logarithm."""
SMALLEST = 1e-10
"""Eigenvalues of the curvature in units of its diagonal; one below this is rounding, or negative: 1 takes its place."""


def around(
    log_likelihood: Callable[[Array], Array], estimate: Array, information: Array | None = None
) -> tuple[Array, Array]:
    """A mean (d,) and a covariance (d, d) to start from: ``estimate``, and the inverse of the curvature there.

    The curvature is that of differences whose steps are found by how far the log-likelihood, (S, d) -> (S,), drops,
    so that the parameters may have any units. An entry of the estimate at the end of a flat stretch is moved to where
    the likelihood begins to fall, and its variance is 1. If the ``information``, minus the Hessian (d, d), is known
    and finite, nothing is evaluated.
    """
    if information is not None and np.isfinite(information).all():
        return estimate, _inverse(information)
    x = estimate.copy()
    steps, drops = _steps(log_likelihood, x)
    low, high = drops.min(axis=0), drops.max(axis=0)
    flat = (np.abs(low) < ONE_SIDED * high) & (high > NEAR[0])
    if flat.any():
        x[flat] += np.where(drops[0] > drops[1], steps, -steps)[flat]
        steps, _ = _steps(log_likelihood, x)
    curvature = _curvature(log_likelihood, x, FINE * steps)
    curvature[flat] = curvature[:, flat] = 0.0
    curvature[flat, flat] = 1.0
    return x, _inverse(curvature)


def _inverse(curvature: Array) -> Array:
    """The inverse of a matrix that should be positive definite; where it is not, its diagonal takes its place."""
    units = np.sqrt(np.abs(np.diag(curvature)))
    units = np.where(units > 0.0, units, 1.0)
    values, vectors = np.linalg.eigh(curvature / np.outer(units, units))
    inverse = vectors / np.where(values > SMALLEST, values, 1.0) @ vectors.T / np.outer(units, units)
    return np.asarray(0.5 * (inverse + inverse.T))


def _steps(log_likelihood: Callable[[Array], Array], x: Array) -> tuple[Array, Array]:
    """A step (d,) along each axis that lowers the log-likelihood by about `DROP`, and the drops ahead and behind."""
    dim, top = len(x), float(log_likelihood(x[None])[0])
    steps, drops = 0.1 * np.maximum(np.abs(x), 0.1), np.zeros((2, dim))
    short, long = np.zeros(dim), np.full(dim, np.inf)
    open_ = np.arange(dim)
    for _ in range(ROUNDS):
        moves = np.eye(dim)[open_] * steps[open_, None]
        values = log_likelihood(np.concatenate([x + moves, x - moves]))
        drops[:, open_] = top - np.where(np.isfinite(values), values, -np.inf).reshape(2, -1)
        mean = np.maximum(drops[:, open_].mean(axis=0), 1e-3 * DROP)
        small, large = mean < NEAR[0], mean > NEAR[1]
        short[open_[small]], long[open_[large]] = steps[open_[small]], steps[open_[large]]
        open_, mean = open_[small | large], mean[small | large]
        if not len(open_):
            break
        # by the law of a parabola, or between a step that is too short and one that is too long
        guess = steps[open_] * np.clip(np.sqrt(DROP / mean), 0.1, 10.0)
        between = np.sqrt(short[open_] * long[open_])
        steps[open_] = np.where((guess > short[open_]) & (guess < long[open_]), guess, between)
    return steps, drops


def _curvature(log_likelihood: Callable[[Array], Array], x: Array, steps: Array) -> Array:
    """Minus the second differences (d, d) of the log-likelihood.

    ``f(+i+j) + f(−i−j) − f(+i) − f(−i) − f(+j) − f(−j) + 2f(0) = 2 hᵢhⱼ ∂ᵢ∂ⱼf`` up to fourth order.
    """
    dim = len(x)
    axes = np.eye(dim) * steps
    i, j = np.tril_indices(dim, -1)
    moves = np.concatenate([axes, axes[i] + axes[j]])
    values = log_likelihood(np.concatenate([x[None], x + moves, x - moves]))
    # a point outside of the support says no more than that the likelihood falls
    values = np.where(np.isfinite(values), values, values[0] - DROP)
    top, both = values[0], values[1:].reshape(2, -1).sum(axis=0)
    result = np.diag(2.0 * top - both[:dim])
    result[i, j] = result[j, i] = -0.5 * (both[dim:] - both[i] - both[j] + 2.0 * top)
    return np.asarray(result / np.outer(steps, steps))
