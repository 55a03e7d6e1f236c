"""A smooth density from draws, where there is no formula."""

from __future__ import annotations

import numpy as np

from mgvbp.core.linalg import Array

POINTS = 201
"""Points of a curve."""
CELLS = 400
"""Cells of the histogram that is smoothed; a bandwidth has many, so that they do not show."""
FAR = 4
"""Bandwidths to which a draw contributes; beyond them a normal kernel is below 0.0004 of its maximum."""


def smooth_density(values: Array, low: float, high: float) -> tuple[Array, Array]:
    """Points between two ends and the density of ``values`` (N,) there: a kernel estimate from a fine histogram.

    The bandwidth is one and a half times that of Silverman (1986, eq. 3.31), as the eye takes small waves for modes.
    """
    quartiles = np.quantile(values, [0.25, 0.75])
    bandwidth = 1.35 * min(float(values.std()), float(np.diff(quartiles)[0]) / 1.34) * len(values) ** -0.2
    start = max(low - FAR * bandwidth, float(values.min()))
    end = min(high + FAR * bandwidth, float(values.max()))
    if not start < end:  # all values are the same number, or lie beyond the ends
        start, end = low, high
    counts, edges = np.histogram(values, CELLS, (start, end))
    width = (end - start) / CELLS
    heights = _smoothed(counts / (len(values) * width), bandwidth / width)
    x = np.linspace(max(low, start), min(high, end), POINTS)
    return x, np.interp(x, 0.5 * (edges[1:] + edges[:-1]), heights)


def _smoothed(heights: Array, bandwidth: float) -> Array:
    """Heights smoothed by a normal kernel K that is ``bandwidth`` cells wide, with a linear correction at both ends.

    The kernel is (a₂ − a₁u) K(u) / (a₀a₂ − a₁²), where a₀, a₁ and a₂ are the moments of K over the cells that there are
    (Jones 1993, Statistics and Computing 3, 135-146). With it the density of a number with a limited range, such as a
    weight or a correlation, neither falls off nor piles up at the ends.
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
    return np.maximum(estimate, 0.0)  # the correction can go below zero
