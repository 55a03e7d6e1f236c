"""The filter of EGARCH.

``log h_t = ω + Σ α_i (|z_{t−i}| − √(2/π)) + Σ γ_i z_{t−i} + Σ β_i log h_{t−i}`` with z = e/√h

The state is as in `garch`, with logarithms. The model needs one exponential a day and draw, which `exponential`
computes in the lanes. Numba would call the C library once for each: a kernel then takes 3.5 times as long, and a whole
fit of 5,030 days 1.4 to 1.8 times.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core import Array
from mgvbp.volatility.filters.base import LaggedFilter
from mgvbp.volatility.filters.data import LOG_LARGEST, MEAN_ABSOLUTE, FilterData
from mgvbp.volatility.filters.lanes import (
    LANES,
    WINDOW,
    Flags,
    bits_of,
    compiled,
    float_of,
    residual,
    residuals_of_day,
)

LOWEST, HIGHEST = WINDOW
PER_LOG_2 = 1.0 / math.log(2.0)
"""1 / log 2: how many powers of two a natural logarithm is."""
LOG_2_HIGH = float.fromhex("0x1.62e42fefa0000p-1")
LOG_2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")
"""log 2 as a sum of two floats. The first can be multiplied by integers below 2^13 without rounding."""
SHIFT = 1.5 * 2.0**52
"""A float to which numbers below 2^51 can be added: the last bits of the sum are the nearest integer."""
F2, F3, F4, F5, F6, F7, F8, F9, F10, F11, F12, F13 = (1.0 / math.factorial(i) for i in range(2, 14))
"""The coefficients 1/k! of the Taylor sum. The term after the last is below 1e-17 for arguments up to ½ log 2."""


class EgarchFilter(LaggedFilter):
    """Variances of EGARCH(p, o, q).

    Examples
    --------
    >>> from mgvbp.volatility.filters import FilterData, paper_startup
    >>> returns = np.array([1.0, -2.0])
    >>> sample = FilterData(returns, np.empty((2, 0)), paper_startup(returns))
    >>> EgarchFilter(1, 0, 1).variance(sample, np.empty((0, 1)), [[0.1], [0.2], [0.5]]).T.round(4)
    array([[1.337 , 1.2951, 1.5238]])
    """

    def _rows(self, sample: FilterData, coefficients: Array) -> Array:
        start = sample.startup
        alpha, gamma, beta = self._by_lag(coefficients)
        owed = alpha * start.surprise + beta * start.log_variance
        constant = coefficients[0] - MEAN_ABSOLUTE * (alpha[0] + alpha[1])  # has all of the √(2/π)
        return np.stack([
            coefficients[0] + owed[0] + owed[1], constant, alpha[0], gamma[0], beta[0],
            owed[1] + MEAN_ABSOLUTE * alpha[1], alpha[1], gamma[1], beta[1],
        ])  # fmt: skip

    def _fill(self, sample: FilterData, mean: Array, rows: Array, h: Array, plainly: Flags) -> None:
        start, two = sample.startup, max(self.orders) == 2
        egarch(sample.y, sample.X, mean, rows, start.log_bounds, start.log_overflow, two, h, plainly)


@compiled
def egarch(
    y: Array,
    X: Array,
    mean: Array,
    rows: Array,
    bounds: Array,
    overflow: float,
    two: bool,
    h: Array,
    plainly: Flags,
) -> None:
    """Write the variances of a block of draws to ``h`` (T + 1, LANES).

    ``rows`` (9, LANES) are next, constant, α_1, γ_1, β_1, later, α_2, γ_2, β_2; the last four count if ``two``.
    """
    days, m, n = len(y), X.shape[1], h.shape[1]
    work = np.empty(11 * LANES)
    following, constant = work[:LANES], work[LANES : 2 * LANES]
    alpha, gamma, beta = work[2 * LANES : 3 * LANES], work[3 * LANES : 4 * LANES], work[4 * LANES : 5 * LANES]
    later, alpha_2 = work[5 * LANES : 6 * LANES], work[6 * LANES : 7 * LANES]
    gamma_2, beta_2 = work[7 * LANES : 8 * LANES], work[8 * LANES : 9 * LANES]
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
            log_h = following[w]
            root = exponential(0.5 * log_h)
            h_t = root * root
            h[t, w] = h_t
            # of a number beyond ±700 `exponential` is wrong, and may look like a variance
            good = lower <= h_t and h_t <= upper and abs(log_h) < 50.0
            inside[w] += 1.0 if good else 0.0
            z = (e[w] if m > 0 else y_t) / root
            owed = constant[w] + alpha[w] * abs(z) + gamma[w] * z + beta[w] * log_h
            if two:
                owed += later[w]
                later[w] = alpha_2[w] * abs(z) + gamma_2[w] * z + beta_2[w] * log_h
            following[w] = owed
    for w in range(n):
        h[days, w] = math.exp(following[w])
        plainly[w] = inside[w] != days
        if plainly[w]:
            egarch_plainly(y, X, mean, rows, bounds, overflow, w, h)


@compiled
def exponential(x: float) -> float:
    """``exp(x)`` without a branch, to 4e-16, for |x| < 700: 2^k times the Taylor sum of the rest."""
    shifted = x * PER_LOG_2 + SHIFT
    k = shifted - SHIFT
    r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW
    s = F8 + r * (F9 + r * (F10 + r * (F11 + r * (F12 + r * F13))))
    s = 1.0 + r * (1.0 + r * (F2 + r * (F3 + r * (F4 + r * (F5 + r * (F6 + r * (F7 + r * s)))))))
    return float_of(bits_of(s) + (bits_of(shifted) << 52))


@compiled
def egarch_plainly(
    y: Array, X: Array, mean: Array, rows: Array, bounds: Array, overflow: float, w: int, h: Array
) -> None:
    """`egarch` for draw ``w`` alone, within the bounds."""
    following, constant, alpha, gamma, beta, later, alpha_2, gamma_2, beta_2 = rows[:, w]
    for t in range(len(y)):
        lower, upper, excess = bounds[:, min(t, bounds.shape[1] - 1)]
        log_h = following if following <= LOG_LARGEST or math.isnan(following) else overflow
        h_t = math.exp(min(log_h, LOG_LARGEST))
        if h_t < lower:
            h_t = lower
            log_h = math.log(h_t)
        elif h_t > upper:
            h_t = upper + log_h - excess
            log_h = math.log(h_t)
        h[t, w] = h_t
        z = residual(y, X, mean, t, w) / math.sqrt(h_t)
        following = later + constant + alpha * abs(z) + gamma * z + beta * log_h
        later = alpha_2 * abs(z) + gamma_2 * z + beta_2 * log_h
    h[len(y), w] = math.exp(following)
