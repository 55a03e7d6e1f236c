"""Derivatives by central differences, extrapolated to a step of zero: for functions that cost next to nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mgvbp.core.linalg import Array

FIRST = 2.0**-3
"""The first step. Each further step is a quarter of the one before; powers of two add without rounding."""
LEVELS = 10
"""Most steps. The last one is 5e-7, which resolves features of width 1e-4."""
ROUND_OFF = 100.0 * float(np.finfo(np.float64).eps)
"""Rounding error of a value, relative to 1 + |value|. It is many units, since densities are sums of terms that
cancel."""
ENOUGH = 1e-9
"""Estimated error, relative to 1 + |derivative|, at which no further step is taken."""
MOST_NUMBERS = 2**21
"""Most numbers in the points that a function of rows gets in one call."""


def derivatives(function: Callable[[Array], Array], x: Array) -> Array:
    """The derivative of each entry of ``function(x)`` in its own entry of ``x``, all of one shape.

    Ridders (1982): the central differences ``D(h) = f' + c₂h² + c₄h⁴ + …`` of ever smaller steps are extrapolated to
    h = 0 as a polynomial in h². For each entry the extrapolation with the least estimated error is taken: small steps
    lose digits, large steps miss narrow features. The estimated error is the difference between the extrapolation and
    those that it is made of, plus round-off, since extrapolations may agree by chance. The result is nan where no
    difference is finite.
    """
    best, error = np.full(x.shape, np.nan), np.full(x.shape, np.inf)
    before: list[Array] = []
    for level in range(LEVELS):
        step = FIRST * 0.25**level
        ahead, behind = x + step, x - step
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            above, below = function(ahead), function(behind)
            # x ± h are rounded, so that their distance is not exactly 2h
            row = [(above - below) / (ahead - behind)]
            noise = ROUND_OFF * (1.0 + np.abs(above)) / step
            for power, coarse in enumerate(before, start=1):
                row.append(row[-1] + (row[-1] - coarse) / (16.0**power - 1.0))
                spread = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - coarse))
                better = spread + noise < error
                best, error = np.where(better, row[-1], best), np.where(better, spread + noise, error)
            before = row
        if (error <= ENOUGH * (1.0 + np.abs(best))).all():
            break
    return best


def gradients(function: Callable[[Array], Array], theta: Array) -> Array:
    """The gradient (S, d) at the rows of ``theta`` of a function of rows, (R, d) -> (R,)."""
    number, dim = theta.shape

    def along_axes(part: Array, moved: Array) -> Array:
        """The values at θ with one entry replaced by that of ``moved``, for each entry in turn: (S, d) -> (S, d)."""
        points = np.repeat(part[:, None], dim, axis=1)
        points[:, np.arange(dim), np.arange(dim)] = moved
        return function(points.reshape(-1, dim)).reshape(moved.shape)

    at_once = max(1, MOST_NUMBERS // dim**2)
    parts = [theta[start : start + at_once] for start in range(0, number, at_once)]
    found = [derivatives(partial(along_axes, part), part) for part in parts]
    return np.concatenate([np.empty((0, dim)), *found])
