"""`score` for Hansen's skew-t and for the generalised error distribution.

The products of a run of 16 days take one logarithm, as in `score`; the power of the generalised error distribution
needs one a day.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core import Array
from mgvbp.volatility.filters.lanes import LANES, Flags, compiled, residual, residuals_of_day
from mgvbp.volatility.filters.score import RUN


@compiled
def score_skewed(
    y: Array, X: Array, mean: Array, h: Array, rows: Array, first: int, plainly: Flags, out: Array
) -> None:
    """Write ``Σ log h`` and ``Σ log(1 + c x²)``, with ``x = a + b e/√h``, of each draw to ``out`` (2, LANES).

    ``rows`` (4, LANES) are a, b, and c left and right of x = 0; the other arguments are those of `score`. With
    ``N ← N (h + c (a √h + b e)²)`` and ``D ← D h`` the second sum is log(N/D).
    """
    days, m, n = len(y), X.shape[1], h.shape[1]
    work = np.empty(9 * LANES)
    a, b = work[:LANES], work[LANES : 2 * LANES]
    left, right = work[2 * LANES : 3 * LANES], work[3 * LANES : 4 * LANES]
    N, D, e = work[4 * LANES : 5 * LANES], work[5 * LANES : 6 * LANES], work[6 * LANES : 7 * LANES]
    logs, terms = work[7 * LANES : 8 * LANES], work[8 * LANES :]
    for row in range(4):
        for w in range(n):
            work[row * LANES + w] = rows[row, w]
    for w in range(n):
        logs[w] = terms[w] = 0.0
    for start in range(first, days, RUN):
        for w in range(n):
            N[w] = D[w] = 1.0
        for t in range(start, min(start + RUN, days)):
            if m > 0:
                residuals_of_day(y, X, mean, t, e)
            y_t = y[t]
            for w in range(n):
                h_t = h[t, w]
                e_t = e[w] if m > 0 else y_t
                x = a[w] * math.sqrt(h_t) + b[w] * e_t
                down, up = left[w], right[w]
                N[w] *= h_t + (down if x < 0.0 else up) * (x * x)
                D[w] *= h_t
        for w in range(n):
            logs[w] += math.log(D[w])
            terms[w] += math.log(N[w] / D[w])
    for w in range(n):
        out[0, w], out[1, w] = logs[w], terms[w]
        if plainly[w] or not math.isfinite(logs[w] + terms[w]):
            out[0, w] = out[1, w] = 0.0
            for t in range(first, days):
                x = a[w] + b[w] * residual(y, X, mean, t, w) / math.sqrt(h[t, w])
                out[0, w] += math.log(h[t, w])
                out[1, w] += math.log1p((left[w] if x < 0.0 else right[w]) * x * x)


@compiled
def score_power(
    y: Array, X: Array, mean: Array, h: Array, rows: Array, first: int, plainly: Flags, out: Array
) -> None:
    """Write ``Σ log h`` and ``Σ (k e²/h)^p`` of each draw to ``out`` (2, LANES); ``rows`` (2, LANES) are p and k."""
    for w in range(h.shape[1]):
        logs = terms = 0.0
        for t in range(first, len(y)):
            logs += math.log(h[t, w])
            terms += (rows[1, w] * residual(y, X, mean, t, w) ** 2 / h[t, w]) ** rows[0, w]
        out[0, w], out[1, w] = logs, terms
