"""The filter of ARCH, GARCH and GJR.

``h_t = ω + Σ α_i e²_{t−i} + Σ γ_i e²_{t−i} 1[e_{t−i} < 0] + Σ β_i h_{t−i}``

The state is what past days add to the variances of the next two, ``next`` and ``later`` (the transposed form of a
digital filter). With α + γ in place of α after a loss,

    ``h_t = next,  next ← later + ω + α_1 e²_t + β_1 h_t,  later ← α_2 e²_t + β_2 h_t``.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core import Array
from mgvbp.volatility.filters.base import LaggedFilter
from mgvbp.volatility.filters.data import LARGEST, FilterData
from mgvbp.volatility.filters.lanes import LANES, WINDOW, Flags, compiled, residual, residuals_of_day

LOWEST, HIGHEST = WINDOW


class GarchFilter(LaggedFilter):
    """Variances of GJR(p, o, q), of which GARCH and ARCH are cases.

    Examples
    --------
    >>> from mgvbp.volatility.filters import FilterData, paper_startup
    >>> returns = np.array([1.0, -2.0])
    >>> sample = FilterData(returns, np.empty((2, 0)), paper_startup(returns))
    >>> GarchFilter(1, 0, 1).variance(sample, np.empty((0, 1)), [[0.1], [0.2], [0.5]]).T
    array([[0.95  , 0.775 , 1.2875]])
    """

    def _rows(self, sample: FilterData, coefficients: Array) -> Array:
        start = sample.startup
        alpha, gamma, beta = self._by_lag(coefficients)
        owed = alpha * start.square + gamma * start.negative_square + beta * start.variance
        return np.stack([
            coefficients[0] + owed[0] + owed[1], coefficients[0], alpha[0], alpha[0] + gamma[0], beta[0],
            owed[1], alpha[1], alpha[1] + gamma[1], beta[1],
        ])  # fmt: skip

    def _fill(self, sample: FilterData, mean: Array, rows: Array, h: Array, plainly: Flags) -> None:
        garch(sample.y, sample.X, mean, rows, sample.startup.bounds, max(self.orders) == 2, h, plainly)


@compiled
def garch(
    y: Array, X: Array, mean: Array, rows: Array, bounds: Array, two: bool, h: Array, plainly: Flags
) -> None:
    """Write the variances of a block of draws to ``h`` (T + 1, LANES).

    ``rows`` (9, LANES) are next, ω, α_1, α_1 + γ_1, β_1, later, α_2, α_2 + γ_2, β_2; the last four count if ``two``.
    """
    days, m, n = len(y), X.shape[1], h.shape[1]
    work = np.empty(11 * LANES)
    following, omega = work[:LANES], work[LANES : 2 * LANES]
    gain, loss, beta = work[2 * LANES : 3 * LANES], work[3 * LANES : 4 * LANES], work[4 * LANES : 5 * LANES]
    later, gain_2 = work[5 * LANES : 6 * LANES], work[6 * LANES : 7 * LANES]
    loss_2, beta_2 = work[7 * LANES : 8 * LANES], work[8 * LANES : 9 * LANES]
    e, inside = work[9 * LANES : 10 * LANES], work[10 * LANES :]
    for row in range(9):
        for w in range(n):
            work[row * LANES + w] = rows[row, w]
    for w in range(n):
        inside[w] = 0.0
    for t in range(days):
        if m > 0:
            residuals_of_day(y, X, mean, t, e)
        day, y_t = min(t, bounds.shape[1] - 1), y[t]
        lower, upper = max(bounds[0, day], LOWEST), min(bounds[1, day], HIGHEST)
        for w in range(n):
            h_t = following[w]
            h[t, w] = h_t
            inside[w] += 1.0 if lower <= h_t and h_t <= upper else 0.0
            e_t = e[w] if m > 0 else y_t
            square, up, down = e_t * e_t, gain[w], loss[w]
            owed = omega[w] + (down if e_t < 0.0 else up) * square + beta[w] * h_t
            if two:
                owed += later[w]
                up, down = gain_2[w], loss_2[w]
                later[w] = (down if e_t < 0.0 else up) * square + beta_2[w] * h_t
            following[w] = owed
    for w in range(n):
        h[days, w] = following[w]
        plainly[w] = inside[w] != days
        if plainly[w]:
            garch_plainly(y, X, mean, rows, bounds, w, h)


@compiled
def garch_plainly(y: Array, X: Array, mean: Array, rows: Array, bounds: Array, w: int, h: Array) -> None:
    """`garch` for draw ``w`` alone, within the bounds."""
    following, omega, gain, loss, beta, later, gain_2, loss_2, beta_2 = rows[:, w]
    for t in range(len(y)):
        h[t, w] = bounded(following, bounds, t)
        e = residual(y, X, mean, t, w)
        following = later + omega + (loss if e < 0.0 else gain) * e * e + beta * h[t, w]
        later = (loss_2 if e < 0.0 else gain_2) * e * e + beta_2 * h[t, w]
    h[len(y), w] = following


@compiled
def bounded(h: float, bounds: Array, t: int) -> float:
    """The variance of day ``t`` as the safeguards of the package arch have it; NaN stays."""
    day = min(t, bounds.shape[1] - 1)
    lower: float = bounds[0, day]
    upper: float = bounds[1, day]
    if h < lower:
        return lower
    if h > LARGEST:
        return upper + 1000.0
    if h > upper:
        return upper + math.log(h / upper)
    return h
