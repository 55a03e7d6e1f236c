"""How good were variances, densities and value at risk: losses against a proxy, leave-one-out, tests of exceedances.

The tests are likelihood ratios. The log-likelihood of n₁ exceedances and n₀ other days at probability π is
``n₀ log(1 − π) + n₁ log π``. With ``0 log 0 = 0`` a series without exceedances, or without any other day, is no special
case. The p-values hold for long series: with less than about 5 expected exceedances take them as a hint.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, logsumexp, xlog1py, xlogy

from mgvbp.core import Array, as_floats, positive_number
from mgvbp.errors import InvalidInputError

DAYS = 64
"""Days that are smoothed at once: about 1 MB an array, which stays in cache."""


# --- losses -------------------------------------------------------------------------------------------


def mse(x: ArrayLike, h: ArrayLike) -> float:
    """``mean((x_t − h_t)²)`` of variances h (T,) against a proxy x (T,) of the variance; smaller is better.

    Examples
    --------
    >>> mse([1.0, 4.0], [2.0, 2.0])
    2.5
    """
    proxy, variance = _same_days(x, h)
    return float(np.mean((proxy - variance) ** 2))


def qlike(x: ArrayLike, h: ArrayLike) -> float:
    """``mean(x_t/h_t − log(x_t/h_t) − 1)`` of variances h (T,) against a proxy x (T,); smaller is better.

    With `mse` it is one of the losses that rank forecasts by an unbiased proxy as the true variance would
    (Patton 2011). Days with x = 0, such as a return of exactly nothing, would count as infinite and are left
    out.

    Examples
    --------
    >>> round(qlike([1.0, 4.0, 0.0], [2.0, 2.0, 2.0]), 6)
    0.25
    """
    proxy, variance = _same_days(x, h)
    ratio = (proxy / variance)[proxy > 0.0]
    if not len(ratio):
        raise InvalidInputError("the proxy is zero on all days: QLIKE is not defined")
    return float(np.mean(ratio - np.log(ratio) - 1.0))


def _same_days(x: ArrayLike, h: ArrayLike) -> tuple[Array, Array]:
    """A proxy and variances of the same days."""
    proxy, variance = as_floats(x, "x"), as_floats(h, "h")
    if proxy.ndim != 1 or proxy.shape != variance.shape or not len(proxy):
        raise InvalidInputError(
            f"x has shape {proxy.shape} and h {variance.shape}; expected vectors of one length"
        )
    if proxy.min() < 0.0:
        raise InvalidInputError(f"x must be variances, none negative; the least is {proxy.min()}")
    if not variance.min() > 0.0:
        raise InvalidInputError(f"h must be positive variances; the least is {variance.min()}")
    return proxy, variance


# --- leave-one-out ------------------------------------------------------------------------------------


class LeaveOneOut(NamedTuple):
    """Result of `leave_one_out`."""

    elpd: Array
    """``log p(y_t | all others)`` of each observation, (T,)."""
    khat: Array
    """Pareto shapes of the weights, (T,): a value above 0.7 is not to be trusted."""


def leave_one_out(log_likelihood: Array, log_weights: Array) -> LeaveOneOut:
    """Leave-one-out predictive densities by Pareto-smoothed importance sampling, from draws of a posterior.

    A draw ψ_s from the approximation q has the weight ``p(ψ_s, y)/q(ψ_s)`` in the posterior and, divided by
    ``p(y_t | ψ_s)``, in that without observation t (Magnusson et al. 2019). Smoothing is that of Vehtari et al. (2024),
    for all t at once, which takes a sixth of the time of ArviZ's. For a time series the densities are those given the
    past: y_t is left out as an outcome, and stays the past of later days.

    ``log_likelihood`` (S, T) has ``log p(y_t | y_1, ..., y_{t−1}, ψ_s)`` of 25 draws or more, and ``log_weights`` (S,)
    has ``log p(ψ_s, y) − log q(ψ_s)``, up to a constant.
    """
    elpd, khat = np.empty((2, log_likelihood.shape[1]))
    for start in range(0, len(elpd), DAYS):
        days = slice(start, start + DAYS)
        some = log_likelihood[:, days].T
        smooth, khat[days] = _smoothed(log_weights - some)
        elpd[days] = logsumexp(smooth + some, axis=1)
    return LeaveOneOut(elpd, khat)


def _smoothed(log_ratios: Array) -> tuple[Array, Array]:
    """Normalised log weights (n, S) and k̂ (n,): the largest become quantiles of a fitted Pareto tail."""
    x = log_ratios - log_ratios.max(axis=1, keepdims=True)
    draws = x.shape[1]
    size = int(min(draws / 5.0, 3.0 * math.sqrt(draws)))
    order = np.argpartition(x, draws - size - 1, axis=1)
    edge = np.exp(np.take_along_axis(x, order[:, [draws - size - 1]], axis=1))
    tail = order[:, draws - size :]
    tail = np.take_along_axis(tail, np.take_along_axis(x, tail, axis=1).argsort(axis=1), axis=1)
    raw = np.take_along_axis(x, tail, axis=1)
    # a tail of equal ratios has no shape: it stays as it is
    with np.errstate(divide="ignore", invalid="ignore"):
        k, sigma = _pareto_fit(np.exp(raw) - edge)
        p = (np.arange(size) + 0.5) / size
        quantiles = np.log(edge + sigma[:, None] * np.expm1(-k[:, None] * np.log1p(-p)) / k[:, None])
    smooth = np.where(np.isfinite(quantiles), np.minimum(quantiles, 0.0), raw)
    np.put_along_axis(x, tail, smooth, axis=1)
    return x - logsumexp(x, axis=1, keepdims=True), k


def _pareto_fit(excess: Array) -> tuple[Array, Array]:
    """Shape and scale of generalised Pareto tails (n, M) in increasing order (Zhang and Stephens 2009).

    The posterior mean of b = −k/σ over a grid, whose prior has the lower quartile for its scale; then k is
    drawn towards 1/2 with the weight of ten observations (Vehtari et al. 2024, appendix C).
    """
    size = excess.shape[1]
    points = 30 + int(math.sqrt(size))
    quartile, largest = excess[:, [int(size / 4.0 + 0.5) - 1]], excess[:, -1:]
    steps = 1.0 - np.sqrt(points / (np.arange(points) + 0.5))
    b = 1.0 / largest + steps / (3.0 * quartile)
    k = np.log1p(-b[:, :, None] * excess[:, None, :]).mean(axis=2)
    profile = size * (np.log(-b / k) - k - 1.0)
    weights = np.exp(profile - logsumexp(profile, axis=1, keepdims=True))
    best = (b * weights).sum(axis=1, keepdims=True)
    shape = np.log1p(-best * excess).mean(axis=1)
    return (size * shape + 5.0) / (size + 10.0), -shape / best[:, 0]


# --- exceedances of value at risk ---------------------------------------------------------------------


class Kupiec(NamedTuple):
    """Result of `kupiec`."""

    statistic: float
    """Twice the log of the likelihood ratio."""
    p_value: float
    exceedances: int
    expected: float
    """``alpha`` times the number of days."""


class Christoffersen(NamedTuple):
    """Result of `christoffersen`."""

    independence: float
    """The statistic of: the probability is the same after an exceedance as after another day."""
    independence_p_value: float
    conditional: float
    """The statistic of: the probability is ``alpha`` after either."""
    conditional_p_value: float
    transitions: tuple[tuple[int, int], tuple[int, int]]
    """``transitions[i][j]`` days of kind j after one of kind i; 1 is an exceedance."""


def kupiec(exceedances: ArrayLike, alpha: float) -> Kupiec:
    """Test that exceedances have probability ``alpha`` (Kupiec 1995); χ² with 1 degree of freedom.

    Parameters
    ----------
    exceedances : array_like of shape (T,)
        True, or 1, for each day whose loss was above its value at risk.
    alpha : float
        The probability of it: 0.01 for value at risk "at 99%".

    Examples
    --------
    >>> test = kupiec(np.arange(250) % 50 == 0, alpha=0.01)
    >>> test.exceedances, test.expected, round(test.statistic, 3), round(test.p_value, 3)
    (5, 2.5, 1.957, 0.162)
    """
    hits, alpha = _checked(exceedances, alpha, least=1)
    n1 = int(hits.sum())
    n0 = hits.size - n1
    ratio = 2.0 * (_at_best(n0, n1) - _log_likelihood(n0, n1, alpha))
    return Kupiec(*_chi_squared(ratio, 1), exceedances=n1, expected=alpha * hits.size)


def christoffersen(exceedances: ArrayLike, alpha: float) -> Christoffersen:
    """Test that exceedances do not cluster, and have probability ``alpha`` (Christoffersen 1998); χ² with 1 and 2.

    All likelihoods are those of the days 2, ..., T given day 1. So the conditional statistic is the one of
    independence plus `kupiec`'s of these days.

    Parameters
    ----------
    exceedances : array_like of shape (T,)
        True, or 1, for each day whose loss was above its value at risk; T is at least 2.
    alpha : float

    Examples
    --------
    >>> test = christoffersen(np.arange(250) % 50 < 2, alpha=0.04)
    >>> test.transitions
    ((235, 4), (5, 5))
    >>> round(test.independence_p_value, 6), round(test.conditional_p_value, 6)
    (2e-06, 1e-05)
    """
    hits, alpha = _checked(exceedances, alpha, least=2)
    counts = np.bincount(2 * hits[:-1] + hits[1:], minlength=4).reshape(2, 2)
    (n00, n01), (n10, n11) = counts.tolist()
    markov = _at_best(n00, n01) + _at_best(n10, n11)
    n0, n1 = n00 + n10, n01 + n11
    independence = _chi_squared(2.0 * (markov - _at_best(n0, n1)), 1)
    conditional = _chi_squared(2.0 * (markov - _log_likelihood(n0, n1, alpha)), 2)
    return Christoffersen(*independence, *conditional, transitions=((n00, n01), (n10, n11)))


def _log_likelihood(n0: int, n1: int, probability: float) -> float:
    return float(xlog1py(n0, -probability) + xlogy(n1, probability))


def _at_best(n0: int, n1: int) -> float:
    """The log-likelihood at its maximum, the share of exceedances; 0 if there are no days."""
    return _log_likelihood(n0, n1, n1 / max(n0 + n1, 1))


def _chi_squared(ratio: float, degrees: int) -> tuple[float, float]:
    """A likelihood-ratio statistic and its p-value."""
    statistic = max(ratio, 0.0)  # the difference of equal likelihoods may round below
    return statistic, float(chdtrc(degrees, statistic))


def _checked(exceedances: ArrayLike, alpha: float, least: int) -> tuple[NDArray[np.int64], float]:
    hits = as_floats(exceedances, "exceedances")
    if hits.ndim != 1 or len(hits) < least:
        raise InvalidInputError(
            f"exceedances must be a series of at least {least} days; got shape {hits.shape}"
        )
    if not np.isin(hits, (0.0, 1.0)).all():
        raise InvalidInputError(
            "exceedances must be True or False, or 1 or 0: compare losses with value at risk first"
        )
    if positive_number(alpha, "alpha") >= 1.0:
        raise InvalidInputError(f"alpha must be a probability between 0 and 1; got {alpha}: 1% is 0.01")
    return hits.astype(np.int64), float(alpha)
