"""The log-likelihood of residuals given their variances: no division and no logarithm per day.

Over a run of 16 days a fraction N/D is carried along. For normal errors

    ``N ← N h + D e²,  D ← D h``  gives  ``Σ e²/h = N/D``  and  ``Σ log h = log D``;

for Student's t with c = 1/(ν − 2)

    ``N ← N (h + c e²),  D ← D h``  gives  ``Σ log(1 + c e²/h) = log(N/D)``.

The products of all runs are kept as a number in [1, 2) and a power of two: one logarithm a draw is left. Hansen's
skew-t takes one logarithm a run, and the generalised error distribution, whose power needs one anyway, one a day.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core import Array
from mgvbp.volatility.filters.lanes import (
    LANES,
    Flags,
    bits_of,
    compiled,
    float_of,
    residual,
    residuals_of_day,
)

RUN = 16
"""Days whose variances are multiplied before a division: as many as the `WINDOW` of the lanes allows."""
FRACTION, ONE = (1 << 52) - 1, 1023 << 52
"""The bits of a float that hold its fraction, and the bits of 1.0."""
INTEGERS, INTEGER_BITS = 2.0**52, (1023 + 52) << 52
"""2^52 and its bits. An integer below 2^52, put into the last bits, makes the float 2^52 + that integer."""
LOG_2 = math.log(2.0)


@compiled
def power_of_two(bits: np.int64) -> float:
    """The exponent of a positive float. AVX2 cannot convert 64-bit integers to floats, hence the trick with bits."""
    return (float_of(((bits >> 52) & 2047) | INTEGER_BITS) - INTEGERS) - 1023.0


@compiled
def fraction(bits: np.int64) -> float:
    """A positive float over its power of two, in [1, 2)."""
    return float_of((bits & FRACTION) | ONE)


@compiled
def score(
    student: bool, y: Array, X: Array, mean: Array, h: Array, c: Array, first: int, plainly: Flags, out: Array
) -> None:
    """Sum over the days from ``first`` on, for each draw of a block.

    Parameters
    ----------
    student : bool
        Student's t, or normal errors.
    y, X : ndarrays of shapes (T,) and (T, m)
    mean : ndarray of shape (m, LANES)
    h : ndarray of shape (T + 1, LANES)
    c : ndarray of shape (1, LANES)
        1/(ν − 2), read for Student's t only.
    plainly : bool ndarray of shape (LANES,)
        Draws with variances outside of the window: computed as the formulas stand.
    out : ndarray of shape (2, LANES)
        Takes ``Σ log h`` and ``Σ e²/h``; for Student's t ``Σ log h`` and ``Σ log(1 + c e²/h)``.
    """
    days, m, n = len(y), X.shape[1], h.shape[1]
    work = np.empty(8 * LANES)
    N, D = work[:LANES], work[LANES : 2 * LANES]
    e, C = work[2 * LANES : 3 * LANES], work[3 * LANES : 4 * LANES]
    product, ratio = work[4 * LANES : 5 * LANES], work[5 * LANES : 6 * LANES]
    powers, total = work[6 * LANES : 7 * LANES], work[7 * LANES :]
    for w in range(n):
        C[w] = c[0, w]
        product[w] = ratio[w] = 1.0
        powers[w] = total[w] = 0.0
    for start in range(first, days, RUN):
        for w in range(n):
            N[w] = 1.0 if student else 0.0
            D[w] = 1.0
        for t in range(start, min(start + RUN, days)):
            if m > 0:
                residuals_of_day(y, X, mean, t, e)
            y_t = y[t]
            for w in range(n):
                h_t = h[t, w]
                e_t = e[w] if m > 0 else y_t
                square = e_t * e_t
                if student:
                    N[w] *= h_t + C[w] * square
                else:
                    N[w] = N[w] * h_t + D[w] * square
                D[w] *= h_t
        for w in range(n):
            bits = bits_of(product[w] * D[w])
            powers[w] += power_of_two(bits)
            product[w] = fraction(bits)
            if student:
                quotient = ratio[w] * (N[w] / D[w])
                bits = bits_of(quotient)
                # the difference is NaN where N has left the range of a float
                total[w] += power_of_two(bits) + (quotient - quotient)
                ratio[w] = fraction(bits)
            else:
                total[w] += N[w] / D[w]
    for w in range(n):
        out[0, w] = math.log(product[w]) + LOG_2 * powers[w]
        out[1, w] = math.log(ratio[w]) + LOG_2 * total[w] if student else total[w]
        if plainly[w] or not math.isfinite(total[w]):
            score_plainly(student, y, X, mean, h, c, first, w, out)


@compiled
def score_plainly(
    student: bool, y: Array, X: Array, mean: Array, h: Array, c: Array, first: int, w: int, out: Array
) -> None:
    """`score` of draw ``w`` alone, a logarithm and a division a day."""
    logs = terms = 0.0
    for t in range(first, len(y)):
        ratio = residual(y, X, mean, t, w) ** 2 / h[t, w]
        logs += math.log(h[t, w])
        terms += math.log1p(c[0, w] * ratio) if student else ratio
    out[0, w], out[1, w] = logs, terms


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
