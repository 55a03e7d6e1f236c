"""Derivatives by central differences, extrapolated to a step of zero: for functions that cost next to nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgvbp.core.linalg import Array

FIRST = 2.0**-3
"""The first step; each further one is a quarter of the one before. Powers of two, which add without rounding."""
LEVELS = 10
"""Steps at most, the last 5e-7: what is 1e-4 wide is resolved."""
ROUND_OFF = 100.0 * float(np.finfo(np.float64).eps)
"""Of a value, relative to 1 + |value|: densities are sums of terms that cancel."""
ENOUGH = 1e-9
"""Estimated error, relative to 1 + |derivative|, at which no further step is taken."""
MOST_NUMBERS = 2**21
"""In the points that a function of rows gets at once."""


def derivatives(function: Callable[[Array], Array], x: Array) -> Array:
    """The derivative of each entry of ``function(x)`` in its own entry of ``x``, all of one shape.

    Ridders (1982): the central differences ``D(h) = f' + c₂h² + c₄h⁴ + …`` of ever smaller steps are extrapolated to
    h = 0 as a polynomial in h². Of each entry the extrapolation that differs least from those it is made of is
    taken: small steps lose digits, large ones miss what is narrow. What differs by less than round-off agrees by
    chance, which is counted as well. nan where no difference is finite.
    """
    best, error = np.full(x.shape, np.nan), np.full(x.shape, np.inf)
    before: list[Array] = []
    for level in range(LEVELS):
        step = FIRST * 0.25**level
        ahead, behind = x + step, x - step
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            above, below = function(ahead), function(behind)
            row = [(above - below) / (ahead - behind)]  # by the distance that the floats have, not by 2h
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
    at_once = max(1, MOST_NUMBERS // dim**2)
    parts = [theta[start : start + at_once] for start in range(0, number, at_once)]
    return np.concatenate([np.empty((0, dim)), *(_gradients(function, part) for part in parts)])


def _gradients(function: Callable[[Array], Array], theta: Array) -> Array:
    dim = theta.shape[1]

    def along_axes(moved: Array) -> Array:
        """The values where one entry of θ is the moved one, for each entry in turn: (S, d) -> (S, d)."""
        points = np.repeat(theta[:, None], dim, axis=1)
        points[:, np.arange(dim), np.arange(dim)] = moved
        return function(points.reshape(-1, dim)).reshape(moved.shape)

    return derivatives(along_axes, theta)
