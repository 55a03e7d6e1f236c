"""Paths of GARCH and EGARCH, one day at a time for all paths: on from the end of a sample, or a whole series.

Coefficients are columns, one a draw: (ω, α_1..α_p, γ_1..γ_o, β_1..β_q). Draws are the last axis everywhere. Shocks
are given, of shape (H, S), or (H, n, S) for n paths a draw; a last axis of 1 stands for S equal columns. Draws whose
variance explodes or turns negative end as inf or nan, without a warning and without touching the others.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from mgvbp.core import Array, as_floats, as_generator, positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.filters.startup import MEAN_ABSOLUTE

BURN_IN = 1000
"""The first days of a simulation, which are dropped. A persistence of 0.99 has left 4e-5 of the start by then."""

Orders = tuple[int, int, int]
Future = tuple[Array, Array]
"""Variances and residuals of the simulated days, each (H, ..., S)."""
quietly = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""Draws that explode end as inf or nan: no warning is needed."""


def standard_shocks(
    horizon: int, paths: int, nu: Array | None = None, rng: int | np.random.Generator | None = None
) -> Array:
    """Independent errors of mean 0 and variance 1, (horizon, paths): normal, or Student t.

    Parameters
    ----------
    horizon, paths : int
    nu : ndarray of shape (paths,), optional
        Degrees of freedom above 2, one a path: the t variables are scaled by ``√((ν − 2)/ν)``.
    rng : int or Generator, optional

    Examples
    --------
    >>> standard_shocks(10, 10_000, np.full(10_000, 8.0), rng=0).std().round(2)
    np.float64(1.0)
    """
    shape = positive_integer(horizon, "horizon"), positive_integer(paths, "paths")
    generator = as_generator(rng)
    if nu is None:
        return generator.standard_normal(shape)
    nu = as_floats(nu, "nu")
    if nu.shape not in ((1,), shape[1:]) or nu.min() <= 2.0:
        raise InvalidInputError(
            f"nu must be {paths} numbers above 2, since a t distribution of 2 degrees of freedom or fewer has no "
            f"variance; got shape {nu.shape}, the least of them {nu.min(initial=math.inf)}"
        )
    return np.asarray(np.sqrt((nu - 2.0) / nu) * generator.standard_t(nu, shape))


# --- GARCH and GJR ------------------------------------------------------------------------------------


@quietly
def simulate_garch(
    orders: Orders, coefficients: Array, residuals: Array, variance: Array, shocks: Array
) -> Future:
    """Continue ``h_t = ω + Σ α_i e²_{t−i} + Σ γ_i e²_{t−i} 1[e_{t−i} < 0] + Σ β_i h_{t−i}``, ``e_t = √h_t z_t``.

    Parameters
    ----------
    orders : (p, o, q)
    coefficients : ndarray of shape (1 + p + o + q, S)
    residuals, variance : ndarray of shape (L, S)
        The past e and h, oldest first; L is at least ``max(orders)``.
    shocks : ndarray of shape (H, ..., S)
        The future z.

    Returns
    -------
    variance, residuals : ndarray of shape (H, ..., S)

    Examples
    --------
    >>> coefficients, e, h = np.array([[0.1], [0.1], [0.8]]), np.array([[-2.0]]), np.array([[1.0]])
    >>> shocks = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> simulate_garch((1, 0, 1), coefficients, e, h, shocks)[0]
    array([[1.3 , 1.3 ],
           [1.27, 1.14]])
    """
    squares = shocks**2
    h = _garch(orders, coefficients, residuals, variance, squares, squares * (shocks < 0.0))
    return h, np.sqrt(h) * shocks


def garch_series(orders: Orders, coefficients: Array, shocks: Array, burn_in: int = BURN_IN) -> Future:
    """A series from the beginning: `simulate_garch` without a past.

    The first ``max(orders)`` days have the unconditional variance ``ω/(1 − Σα − Σγ/2 − Σβ)``, which then is the
    mean of all later ones too. Of the H days the first ``burn_in`` are dropped.

    Returns
    -------
    variance, residuals : ndarray of shape (H − burn_in, ..., S)
    """
    omega, alpha, gamma, beta = _parts(orders, coefficients)
    level = omega / slack(alpha.sum(axis=0) + 0.5 * gamma.sum(axis=0) + beta.sum(axis=0))
    return _series(simulate_garch, orders, coefficients, level, shocks, burn_in)


@quietly
def _garch(
    orders: Orders, coefficients: Array, residuals: Array, variance: Array, squares: Array, losses: Array
) -> Array:
    """The variances for given z² and z² 1[z < 0], (H, ..., S)."""
    omega, alpha, gamma, beta = _parts(orders, coefficients, residuals, variance)
    h = np.empty((len(squares), *np.broadcast_shapes(squares.shape[1:], omega.shape, residuals.shape[1:])))
    past_squares, past_losses, past_h = map(
        _latest_first, (residuals**2, np.minimum(residuals, 0.0) ** 2, variance)
    )
    for t in range(len(h)):
        h[t] = omega + _sum(alpha, past_squares) + _sum(gamma, past_losses) + _sum(beta, past_h)
        past_squares.appendleft(h[t] * squares[t])
        past_losses.appendleft(h[t] * losses[t])
        past_h.appendleft(h[t])
    return h


# --- EGARCH -------------------------------------------------------------------------------------------


@quietly
def simulate_egarch(
    orders: Orders, coefficients: Array, residuals: Array, variance: Array, shocks: Array
) -> Future:
    """Continue ``log h_t = ω + Σ α_i (|z_{t−i}| − √(2/π)) + Σ γ_i z_{t−i} + Σ β_i log h_{t−i}``.

    The parameters and what is returned are those of `simulate_garch`.
    """
    omega, alpha, gamma, beta = _parts(orders, coefficients, residuals, variance)
    log_h = np.empty((len(shocks), *np.broadcast_shapes(shocks.shape[1:], omega.shape, residuals.shape[1:])))
    z = residuals / np.sqrt(variance)
    past_sizes, past_z, past_log_h = map(_latest_first, (np.abs(z) - MEAN_ABSOLUTE, z, np.log(variance)))
    for t, shock in enumerate(shocks):
        log_h[t] = omega + _sum(alpha, past_sizes) + _sum(gamma, past_z) + _sum(beta, past_log_h)
        past_sizes.appendleft(np.abs(shock) - MEAN_ABSOLUTE)
        past_z.appendleft(shock)
        past_log_h.appendleft(log_h[t])
    return np.exp(log_h), np.exp(0.5 * log_h) * shocks


def egarch_series(orders: Orders, coefficients: Array, shocks: Array, burn_in: int = BURN_IN) -> Future:
    """A series from the beginning, as `garch_series`; the first days have ``log h = ω/(1 − Σβ)``."""
    omega, _, _, beta = _parts(orders, coefficients)
    level = np.exp(omega / slack(beta.sum(axis=0)))
    return _series(simulate_egarch, orders, coefficients, level, shocks, burn_in)


# --- what they share ----------------------------------------------------------------------------------


def _parts(orders: Orders, coefficients: Array, *past: Array) -> tuple[Array, Array, Array, Array]:
    """ω (S,), α (p, S), γ (o, S) and β (q, S); checks that there are as many, and that the past is long enough."""
    p, o, q = orders
    if len(coefficients) != 1 + p + o + q:
        raise InvalidInputError(
            f"orders {orders} have {1 + p + o + q} coefficients, ω included; got shape {coefficients.shape}"
        )
    if past and min(map(len, past)) < max(orders):
        raise InvalidInputError(
            f"orders {orders} need {max(orders)} days of past residuals and variances; "
            f"got shapes {' and '.join(str(array.shape) for array in past)}"
        )
    omega, alpha, gamma, beta = np.split(coefficients, np.cumsum([1, p, o]))
    return omega[0], alpha, gamma, beta


def _latest_first(rows: Array) -> deque[Array]:
    """The rows of an array (L, S), oldest first, such that a row which comes in on the left drops the oldest."""
    return deque(rows[::-1], maxlen=len(rows))


def _sum(weights: Array, lagged: Iterable[Array]) -> Array | float:
    """``Σ_i w_i x_{t−i}`` for weights (n, S) of the n latest rows."""
    return sum((w * x for w, x in zip(weights, lagged, strict=False)), start=0.0)


def slack(persistence: Array) -> Array:
    """What the persistence (S,) leaves of 1; the mean of the variance is finite if that is positive."""
    if not (persistence < 1.0).all():
        raise InvalidInputError(
            "a series starts at its mean variance, which is finite for coefficients that sum to less than 1 "
            f"(γ counts half); got {persistence.max()}"
        )
    return 1.0 - persistence


def require_days(shocks: Array, burn_in: int) -> None:
    """Complain of shocks (H, ..., S) that are all dropped."""
    if len(shocks) <= burn_in:
        raise InvalidInputError(
            f"no day is left of {len(shocks)} days of shocks with burn_in={burn_in}; draw shocks for burn_in + T"
        )


def _series(
    simulate: Callable[[Orders, Array, Array, Array, Array], Future],
    orders: Orders,
    coefficients: Array,
    level: Array,
    shocks: Array,
    burn_in: int,
) -> Future:
    """Days of the variance ``level`` (S,), as many as the recursion looks back, then the recursion."""
    require_days(shocks, burn_in)
    lags = max(orders)
    h = np.empty((len(shocks), *np.broadcast_shapes(shocks.shape[1:], level.shape)))
    h[:lags] = level
    e = np.empty_like(h)
    e[:lags] = np.sqrt(h[:lags]) * shocks[:lags]
    h[lags:], e[lags:] = simulate(orders, coefficients, e[:lags], h[:lags], shocks[lags:])
    return h[burn_in:], e[burn_in:]
