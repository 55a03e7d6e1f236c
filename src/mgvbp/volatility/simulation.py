"""Paths of GARCH, EGARCH and FIGARCH, one day at a time for all paths: on from the end of a sample, or a whole series.

Coefficients are columns, one a draw: (ω, α_1..α_p, γ_1..γ_o, β_1..β_q) for GARCH and EGARCH of ``orders`` (p, o, q),
(ω, [φ], d, [β]) for FIGARCH of ``orders`` (p, q), with ω the intercept of the ARCH(∞) form. Draws are the last axis
everywhere. Shocks z are given, of shape (H, S), or (H, n, S) for n paths a draw; a last axis of 1 is broadcast to S.
Draws whose variance explodes or turns negative end as inf or nan, without a warning and without an effect on others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from mgvbp.core import Array, positive_integer, require_memory
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.filters import MEAN_ABSOLUTE, figarch_coefficients

BURN_IN = 1000
"""The first days of a simulation, which are dropped. A persistence of 0.99 has left 4e-5 of the start by then."""

Future = tuple[Array, Array]
"""Variances and residuals of the simulated days, each (H, ..., S)."""
Orders = tuple[int, int, int]
quietly = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""Silences NumPy: draws that explode end as inf or nan, which needs no warning."""


def checked_days(days: int) -> int:
    """The days of a series to simulate, if the machine has room for it."""
    number = positive_integer(days, "days")
    require_memory(4 * number, f"a series of {number:,} days", "simulate fewer days")
    return number


# --- GARCH, GJR and EGARCH ----------------------------------------------------------------------------


@quietly
def simulate_garch(
    orders: Orders, coefficients: Array, residuals: Array, variance: Array, shocks: Array
) -> Future:
    """Continue ``h_t = ω + Σ α_i e²_{t−i} + Σ γ_i e²_{t−i} 1[e_{t−i} < 0] + Σ β_i h_{t−i}``, ``e_t = √h_t z_t``.

    The past ``residuals`` and ``variance`` are (L, S), oldest first; L is at least ``max(orders)``.

    Examples
    --------
    >>> coefficients, e, h = np.array([[0.1], [0.1], [0.8]]), np.array([[-2.0]]), np.array([[1.0]])
    >>> shocks = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> simulate_garch((1, 0, 1), coefficients, e, h, shocks)[0]
    array([[1.3 , 1.3 ],
           [1.27, 1.14]])
    """
    past = residuals**2, np.minimum(residuals, 0.0) ** 2, variance
    h = _recursion(orders, coefficients, past, shocks, lambda h, z: (h * z**2, h * (z**2 * (z < 0.0))))
    return h, np.sqrt(h) * shocks


@quietly
def simulate_egarch(
    orders: Orders, coefficients: Array, residuals: Array, variance: Array, shocks: Array
) -> Future:
    """`simulate_garch` of ``log h_t = ω + Σ α_i (|z_{t−i}| − √(2/π)) + Σ γ_i z_{t−i} + Σ β_i log h_{t−i}``."""
    z = residuals / np.sqrt(variance)
    past = np.abs(z) - MEAN_ABSOLUTE, z, np.log(variance)
    log_h = _recursion(orders, coefficients, past, shocks, lambda _, z: (np.abs(z) - MEAN_ABSOLUTE, z))
    return np.exp(log_h), np.exp(0.5 * log_h) * shocks


def garch_series(orders: Orders, coefficients: Array, shocks: Array) -> Future:
    """A series without a past. Its first days have the mean variance ``ω/(1 − Σα − Σγ/2 − Σβ)`` of all later ones."""
    omega, alpha, gamma, beta = _parts(orders, coefficients)
    level = omega / _slack(alpha.sum(axis=0) + 0.5 * gamma.sum(axis=0) + beta.sum(axis=0))
    return _series(simulate_garch, orders, coefficients, level, shocks)


def egarch_series(orders: Orders, coefficients: Array, shocks: Array) -> Future:
    """A series without a past. Its first days have ``log h = ω/(1 − Σβ)``, the mean of all later ones."""
    omega, _, _, beta = _parts(orders, coefficients)
    return _series(simulate_egarch, orders, coefficients, np.exp(omega / _slack(beta.sum(axis=0))), shocks)


def _recursion(
    orders: Orders,
    coefficients: Array,
    past: tuple[Array, Array, Array],
    shocks: Array,
    news: Callable[[Array, Array], tuple[Array, Array]],
) -> Array:
    """``x_t = ω + Σ α_i a_{t−i} + Σ γ_i c_{t−i} + Σ β_i x_{t−i}``, (H, ..., S).

    ``past`` has the earlier a, c and x, (L, S) each and oldest first; ``news`` makes a_t and c_t of x_t and z_t.
    """
    omega, alpha, gamma, beta = _parts(orders, coefficients)
    # latest first: what comes in on the left drops the oldest
    a, c, x = (deque(rows[::-1], maxlen=len(rows)) for rows in past)
    found = np.empty((len(shocks), *np.broadcast_shapes(shocks.shape[1:], omega.shape, past[0].shape[1:])))
    for t, shock in enumerate(shocks):
        found[t] = omega + _sum(alpha, a) + _sum(gamma, c) + _sum(beta, x)
        for queue, value in zip((a, c, x), (*news(found[t], shock), found[t]), strict=True):
            queue.appendleft(value)
    return found


def _parts(orders: Orders, coefficients: Array) -> tuple[Array, Array, Array, Array]:
    """ω (S,), α (p, S), γ (o, S) and β (q, S)."""
    omega, alpha, gamma, beta = np.split(coefficients, np.cumsum([1, *orders[:2]]))
    return omega[0], alpha, gamma, beta


def _sum(weights: Array, lagged: Iterable[Array]) -> Array | float:
    """``Σ_i w_i x_{t−i}`` for weights (n, S) of the n latest rows."""
    return sum((w * x for w, x in zip(weights, lagged, strict=False)), start=0.0)


def _slack(persistence: Array) -> Array:
    """What the persistence (S,) leaves of 1; the mean of the variance is finite if that is positive."""
    if not (persistence < 1.0).all():
        raise InvalidInputError(
            "a series starts at its mean variance, which is finite for coefficients that sum to less than 1 "
            f"(γ counts half); got {persistence.max()}"
        )
    return 1.0 - persistence


def _series(
    simulate: Callable[[Orders, Array, Array, Array, Array], Future],
    orders: Orders,
    coefficients: Array,
    level: Array,
    shocks: Array,
) -> Future:
    """Days of the variance ``level`` (S,), as many as the recursion looks back, then the recursion."""
    lags = max(orders)
    h = np.empty((len(shocks), *np.broadcast_shapes(shocks.shape[1:], level.shape)))
    h[:lags] = level
    e = np.empty_like(h)
    e[:lags] = np.sqrt(h[:lags]) * shocks[:lags]
    h[lags:], e[lags:] = simulate(orders, coefficients, e[:lags], h[:lags], shocks[lags:])
    return h, e


# --- FIGARCH ------------------------------------------------------------------------------------------


@quietly
def simulate_figarch(
    orders: tuple[int, int],
    coefficients: Array,
    squares: Array,
    presample: float | Array,
    shocks: Array,
    truncation: int,
) -> Future:
    """Continue ``h_t = ω + Σ_k λ_k e²_{t−k}``, ``e_t = √h_t z_t``, with the λ of `figarch_weights`.

    The past e² are ``squares`` (L, S), oldest first, where L may be 0, and ``presample`` on every day before those.
    """
    H, K = len(shocks), truncation
    kept = squares[max(0, len(squares) - K) :]
    # e² of the last K days
    known = np.empty((K, *np.broadcast_shapes(squares.shape[1:], np.shape(presample))))
    known[: K - len(kept)], known[K - len(kept) :] = presample, kept
    # what the past gives to each day is the same on all paths of a draw; lag by lag, as its weight appears
    base = coefficients[0] + np.zeros((H, *known.shape[1:]))
    recent = []
    for k, weight in enumerate(figarch_weights(orders, coefficients, K), start=1):
        base[:k] += weight * known[K - k :][:H]
        if k < H:
            recent.append(weight)
    kernel = np.array(recent[::-1])
    h = np.empty((H, *np.broadcast_shapes(shocks.shape[1:], base.shape[1:])))
    e2 = np.empty_like(h)
    for t, shock in enumerate(shocks):
        h[t] = base[t]
        if lags := min(t, len(kernel)):
            h[t] += np.einsum("ks,k...s->...s", kernel[-lags:], e2[t - lags : t])
        e2[t] = h[t] * shock**2
    return h, np.sqrt(h) * shocks


def figarch_series(orders: tuple[int, int], coefficients: Array, shocks: Array, truncation: int) -> Future:
    """A series without a past: e² is the mean variance ``ω/(1 − Σλ)`` on all days before it."""
    level = coefficients[0] / _slack(np.sum(list(figarch_weights(orders, coefficients, truncation)), axis=0))
    return simulate_figarch(orders, coefficients, np.empty((0, *level.shape)), level, shocks, truncation)


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
    _, phi, d, beta = figarch_coefficients(orders, coefficients)
    delta, weight = d, phi - beta + d
    yield weight
    for k in range(2, truncation + 1):
        before, delta = delta, (k - 1.0 - d) / k * delta
        weight = beta * weight + delta - phi * before
        yield weight
