"""The filter of FIGARCH, cut at lag K, in a recursion of first order.

``h_t = ω + g_t`` with ``g_t = Σ_{k=1}^K λ_k e²_{t−k}``,  ``λ_k = β λ_{k−1} + δ_k − φ δ_{k−1}``,
``δ_k = (k − 1 − d)/k δ_{k−1}``,  ``λ_0 = δ_0 = −1``.

Subtract β g_{t−1} from g_t: with ``v_t = Σ_{k=2}^K δ_k e²_{t−k}``, which needs neither φ nor β,

    ``g_{t+1} = β g_t + v_{t+1} − φ v_t − φ d e²_{t−1} + (φ − β + d) e²_t + (φ δ_K − β λ_K) e²_{t−K}``.

``δ_k = d (1 − d) ρ_k(d)`` for k ≥ 2, and ρ_k is an entire function of d that varies like k^{−d}: 24 Chebyshev
polynomials have it on [0, 1] to the last digits for any K of use. And e² is quadratic in the coefficients of
the mean. So v_t is linear in products of polynomials of d and of the mean's coefficients, with weights that
depend on the data alone: they are computed once a sample, and the v of all draws are one matrix product.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from weakref import WeakKeyDictionary

import numpy as np
from numpy.polynomial.chebyshev import chebpts1, chebvander
from scipy.fft import irfft, next_fast_len, rfft

from mgvbp.core import Array, positive_integer
from mgvbp.volatility.filters.base import Filter, check_orders
from mgvbp.volatility.filters.data import FilterData
from mgvbp.volatility.filters.garch import bounded
from mgvbp.volatility.filters.lanes import LANES, WINDOW, Flags, compiled, residuals_of_day

LOWEST, HIGHEST = WINDOW
DEGREES = 24
"""Chebyshev polynomials for the dependence on d: with 24 the variances are right to 1e-12 for 1,000 lags."""
BASES: WeakKeyDictionary[FilterData, dict[int, Array]] = WeakKeyDictionary()
"""What `long_memory` returned for each sample and truncation, as long as the sample lives."""


class FigarchFilter(Filter):
    """Variances of FIGARCH(p, d, q).

    Parameters
    ----------
    p, q : {0, 1}
        The numbers of φ and β; the coefficients are (ω, [φ], d, [β]), where ω is the intercept of the sum over
        past squares and d lies in [0, 1]. A draw with another d gets NaN.
    truncation : int
        The lag K of the last past square.

    Examples
    --------
    >>> from mgvbp.volatility.filters import FilterData, paper_startup
    >>> returns = np.array([1.0, -2.0])
    >>> sample = FilterData(returns, np.empty((2, 0)), paper_startup(returns))
    >>> FigarchFilter(0, 0, truncation=2).variance(sample, np.empty((0, 1)), [[0.1], [0.4]]).T.round(4)
    array([[0.36, 0.56, 1.82]])
    """

    def __init__(self, p: int, q: int, truncation: int = 1000) -> None:
        check_orders(1, p=p, q=q)
        self.orders = (p, q)
        self.truncation = positive_integer(truncation, "truncation")

    def _rows(self, sample: FilterData, coefficients: Array) -> Array:
        bases = BASES.setdefault(sample, {})
        if self.truncation not in bases:
            bases[self.truncation] = long_memory(sample, self.truncation)
        return figarch_coefficients(self.orders, coefficients)

    def _fill(self, sample: FilterData, mean: Array, rows: Array, h: Array, plainly: Flags) -> None:
        start = sample.startup
        with np.errstate(all="ignore"):
            v = BASES[sample][self.truncation] @ long_memory_weights(rows[2], mean)
        figarch(
            sample.y, sample.X, mean, rows, v, self.truncation, start.distant_square, start.bounds, h, plainly
        )


def figarch_coefficients(orders: tuple[int, int], coefficients: Array) -> Array:
    """ω, φ, d and β (4, S), zero where the model has none."""
    full = np.zeros((4, coefficients.shape[1]))
    full[[True, orders[0] == 1, True, orders[1] == 1]] = coefficients
    return full


def long_memory(sample: FilterData, truncation: int) -> Array:
    """The data's part of v_t on days 0 to T: (T + 1, pairs × DEGREES).

    A pair is one of the products that make up ``e² = (y − Xb)²``, in the order of `pairs`. Squares before the
    first day are the start-up's, and belong to the product y².
    """
    days, parts = len(sample), np.column_stack([sample.y, -sample.X])
    length = next_fast_len(truncation + days + 1, real=True)  # the ends that wrap around are cut off
    weights = rfft(chebyshev_weights(truncation), length, axis=0)
    columns = []
    for i, j in pairs(parts.shape[1]):
        series = np.zeros(truncation + days)
        series[truncation:] = parts[:, i] * parts[:, j]
        if i == j == 0:
            series[:truncation] = sample.startup.distant_square
        columns.append(irfft(rfft(series, length)[:, None] * weights, length, axis=0)[truncation:])
    return np.concatenate([column[: days + 1] for column in columns], axis=1)


def chebyshev_weights(truncation: int) -> Array:
    """Coefficients of ρ_k(d), k = 0 to K, in Chebyshev polynomials of 2d − 1: (K + 1, DEGREES)."""
    nodes = chebpts1(DEGREES)
    d = 0.5 * (nodes + 1.0)
    rho = np.zeros((truncation + 1, DEGREES))
    rho[2:3] = 0.5  # nothing where K = 1
    for k in range(3, truncation + 1):
        rho[k] = (k - 1.0 - d) / k * rho[k - 1]
    fit = 2.0 / DEGREES * chebvander(nodes, DEGREES - 1)  # discrete orthogonality of the polynomials
    fit[:, 0] *= 0.5
    return np.asarray(rho @ fit)


def long_memory_weights(d: Array, mean: Array) -> Array:
    """The draws' part of v_t: (pairs × DEGREES, S)."""
    inside = (d >= 0.0) & (d <= 1.0)
    polynomials = chebvander(2.0 * np.where(inside, d, 0.5) - 1.0, DEGREES - 1).T
    polynomials = np.where(inside, d * (1.0 - d), np.nan) * polynomials
    b = np.concatenate([np.ones((1, len(d))), mean])
    products = [b[i] * b[j] * (1.0 if i == j else 2.0) for i, j in pairs(len(b))]
    return np.concatenate([product * polynomials for product in products])


def pairs(count: int) -> list[tuple[int, int]]:
    """Which two parts of a residual make up each product of its square."""
    return list(combinations_with_replacement(range(count), 2))


@compiled
def figarch(
    y: Array,
    X: Array,
    mean: Array,
    rows: Array,
    v: Array,
    truncation: int,
    presample: float,
    bounds: Array,
    h: Array,
    plainly: Flags,
) -> None:
    """Write the variances of a block of draws to ``h`` (T + 1, LANES).

    ``rows`` (4, LANES) are ω, φ, d, β; ``v`` (T + 1, LANES).
    """
    days, m, n = len(y), X.shape[1], h.shape[1]
    work = np.empty(14 * LANES)
    omega, phi = work[:LANES], work[LANES : 2 * LANES]
    d, beta = work[2 * LANES : 3 * LANES], work[3 * LANES : 4 * LANES]
    delta, lam = work[4 * LANES : 5 * LANES], work[5 * LANES : 6 * LANES]
    g, newest = work[6 * LANES : 7 * LANES], work[7 * LANES : 8 * LANES]
    older, oldest = work[8 * LANES : 9 * LANES], work[9 * LANES : 10 * LANES]
    previous, inside = work[10 * LANES : 11 * LANES], work[11 * LANES : 12 * LANES]
    e, e_old = work[12 * LANES : 13 * LANES], work[13 * LANES :]
    for row in range(4):
        for w in range(n):
            work[row * LANES + w] = rows[row, w]
    for w in range(n):
        delta[w] = d[w]
        lam[w] = phi[w] - beta[w] + d[w]
        g[w] = lam[w]
        inside[w] = 0.0
        previous[w] = presample
    for k in range(2, truncation + 1):
        for w in range(n):
            before = delta[w]
            delta[w] = before - (1.0 + d[w]) * (1.0 / k) * before
            lam[w] = beta[w] * lam[w] + delta[w] - phi[w] * before
            g[w] += lam[w]
    for w in range(n):
        g[w] *= presample
        newest[w] = phi[w] - beta[w] + d[w]
        older[w] = phi[w] * d[w]
        oldest[w] = phi[w] * delta[w] - beta[w] * lam[w]
    for t in range(days):
        past = t >= truncation
        if m > 0:
            residuals_of_day(y, X, mean, t, e)
            if past:
                residuals_of_day(y, X, mean, t - truncation, e_old)
        y_t, y_old = y[t], y[t - truncation] if past else 0.0
        day = min(t, bounds.shape[1] - 1)
        lower, upper = max(bounds[0, day], LOWEST), min(bounds[1, day], HIGHEST)
        for w in range(n):
            h_t = omega[w] + g[w]
            h[t, w] = h_t
            inside[w] += 1.0 if lower <= h_t and h_t <= upper else 0.0
            e_t, e_then = (e[w], e_old[w]) if m > 0 else (y_t, y_old)
            square, last = e_t * e_t, e_then * e_then if past else presample
            g[w] = (
                beta[w] * g[w]
                + (v[t + 1, w] - phi[w] * v[t, w])
                + (newest[w] * square - older[w] * previous[w] + oldest[w] * last)
            )
            previous[w] = square
    for w in range(n):
        h[days, w] = omega[w] + g[w]
        plainly[w] = inside[w] != days
        if plainly[w]:  # the bounds do not feed back into g
            for t in range(days):
                h[t, w] = bounded(h[t, w], bounds, t)
