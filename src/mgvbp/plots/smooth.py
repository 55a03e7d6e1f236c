"""A smooth density from draws, where there is no formula."""

from __future__ import annotations

import numpy as np

from mgvbp.core.linalg import Array

POINTS = 201
"""Of a curve."""
CELLS = 400
"""Of the histogram that is smoothed: many to a bandwidth."""
FAR = 4
"""Bandwidths, to which a draw contributes."""


def smooth_density(values: Array, low: float, high: float) -> tuple[Array, Array]:
    """Points between two ends and the density of ``values`` (N,) there: a kernel estimate from a fine histogram.

    The bandwidth is Silverman's (1986, eq. 3.31), half as wide again: the eye takes small waves for modes.
    """
    quartiles = np.quantile(values, [0.25, 0.75])
    bandwidth = 1.35 * min(float(values.std()), float(np.diff(quartiles)[0]) / 1.34) * len(values) ** -0.2
    start = max(low - FAR * bandwidth, float(values.min()))
    end = min(high + FAR * bandwidth, float(values.max()))
    if not start < end:  # all are the same number, or beyond the ends
        start, end = low, high
    counts, edges = np.histogram(values, CELLS, (start, end))
    width = (end - start) / CELLS
    heights = _smoothed(counts / (len(values) * width), bandwidth / width)
    x = np.linspace(max(low, start), min(high, end), POINTS)
    return x, np.interp(x, 0.5 * (edges[1:] + edges[:-1]), heights)


def _smoothed(heights: Array, bandwidth: float) -> Array:
    """Heights smoothed by a normal kernel K, so many cells wide, with the linear correction at both ends.

    With a₀, a₁ and a₂ the moments of K over the cells that there are, the kernel is (a₂ − a₁u) K(u) / (a₀a₂ − a₁²)
    (Jones 1993, Statistics and Computing 3, 135-146): weights and correlations, whose range ends, neither fall off
    there nor pile up.
    """
    reach = int(FAR * bandwidth)
    if reach == 0:
        return heights
    u = np.arange(-reach, reach + 1) / bandwidth
    kernel = np.exp(-0.5 * u**2)

    def folded(array: Array, power: int) -> Array:
        return np.convolve(array, u**power * kernel)[reach : reach + len(array)]

    a0, a1, a2 = (folded(np.ones_like(heights), power) for power in range(3))
    estimate = (a2 * folded(heights, 0) - a1 * folded(heights, 1)) / (a0 * a2 - a1**2)
    return np.maximum(estimate, 0.0)  # the correction can go below
