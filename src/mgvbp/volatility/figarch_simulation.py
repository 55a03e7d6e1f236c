"""Paths of FIGARCH, one day at a time for all paths: on from the end of a sample, or a whole series.

Coefficients are columns, one a draw: (ω, [φ], d, [β]), with ω the intercept of the ARCH(∞) form. All else is as in
`mgvbp.volatility.simulation`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgvbp.core import Array, positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.simulation import BURN_IN, Future, quietly, require_days, slack


@quietly
def simulate_figarch(
    orders: tuple[int, int],
    coefficients: Array,
    squares: Array,
    presample: float | Array,
    shocks: Array,
    truncation: int = 1000,
) -> Future:
    """Continue ``h_t = ω + Σ_k λ_k e²_{t−k}``, ``e_t = √h_t z_t``, with the λ of `figarch_weights`.

    Parameters
    ----------
    orders : (p, q), each 0 or 1
    coefficients : ndarray of shape (2 + p + q, S)
    squares : ndarray of shape (L, S)
        The past e², oldest first; L may be 0.
    presample : float or ndarray of shape (S,)
        e² on every day before those.
    shocks : ndarray of shape (H, ..., S)
    truncation : int
        The number of lags.

    Returns
    -------
    variance, residuals : ndarray of shape (H, ..., S)
    """
    h = _figarch(orders, coefficients, squares, presample, shocks**2, truncation)
    return h, np.sqrt(h) * shocks


def figarch_series(
    orders: tuple[int, int],
    coefficients: Array,
    shocks: Array,
    burn_in: int = BURN_IN,
    truncation: int = 1000,
) -> Future:
    """A series from the beginning, as `garch_series`; e² is ``ω/(1 − Σλ)`` on all days before it."""
    require_days(shocks, burn_in)
    level = coefficients[0] / slack(np.sum(list(figarch_weights(orders, coefficients, truncation)), axis=0))
    nothing = np.empty((0, *level.shape))
    h, e = simulate_figarch(orders, coefficients, nothing, level, shocks, truncation)
    return h[burn_in:], e[burn_in:]


def figarch_weights(orders: tuple[int, int], coefficients: Array, truncation: int) -> Iterator[Array]:
    """The ARCH(∞) weights λ_1, ..., λ_truncation of FIGARCH, (S,) each (Baillie, Bollerslev and Mikkelsen 1996).

    ``λ_1 = φ − β + d``, ``λ_k = β λ_{k−1} + δ_k − φ δ_{k−1}``, with the weights δ of the fractional difference
    ``1 − (1 − L)^d``: ``δ_1 = d``, ``δ_k = (k − 1 − d)/k δ_{k−1}``.

    Examples
    --------
    >>> weights = figarch_weights((1, 1), np.array([[0.1], [0.2], [0.4], [0.3]]), truncation=3)
    >>> np.concatenate(list(weights))
    array([0.3  , 0.13 , 0.079])
    """
    p, q = orders
    if len(coefficients) != 2 + p + q:
        raise InvalidInputError(
            f"coefficients of FIGARCH{orders} have {2 + p + q} rows; got shape {coefficients.shape}"
        )
    zero = np.zeros(coefficients.shape[1:])
    phi, d, beta = coefficients[1] if p else zero, coefficients[1 + p], coefficients[-1] if q else zero
    delta, weight = d, phi - beta + d
    yield weight
    for k in range(2, truncation + 1):
        before, delta = delta, (k - 1.0 - d) / k * delta
        weight = beta * weight + delta - phi * before
        yield weight


@quietly
def _figarch(
    orders: tuple[int, int],
    coefficients: Array,
    past: Array,
    presample: float | Array,
    squares: Array,
    truncation: int,
) -> Array:
    """The variances for given z², or their means, (H, ..., S)."""
    H, K = len(squares), positive_integer(truncation, "truncation")
    kept = past[max(0, len(past) - K) :]
    known = np.empty((K, *np.broadcast_shapes(past.shape[1:], np.shape(presample))))  # e² of the last K days
    known[: K - len(kept)], known[K - len(kept) :] = presample, kept
    # what the past gives to each day is the same on all paths of a draw; lag by lag, as its weight appears
    base = coefficients[0] + np.zeros((H, *known.shape[1:]))
    recent = []
    for k, weight in enumerate(figarch_weights(orders, coefficients, K), start=1):
        base[:k] += weight * known[K - k :][:H]
        if k < H:
            recent.append(weight)
    kernel = np.array(recent[::-1])
    h = np.empty((H, *np.broadcast_shapes(squares.shape[1:], base.shape[1:])))
    e2 = np.empty_like(h)
    for t in range(H):
        h[t] = base[t]
        if lags := min(t, len(kernel)):
            h[t] += np.einsum("ks,k...s->...s", kernel[-lags:], e2[t - lags : t])
        e2[t] = h[t] * squares[t]
    return h
