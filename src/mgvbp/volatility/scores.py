"""How good are variances and predictive densities: losses against a proxy, log scores, leave-one-out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from mgvbp.core import Array, as_floats
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.likelihood import Likelihood
from mgvbp.volatility.risk import mixture_log_density

DAYS = 64
"""Days that are smoothed at once: about 1 MB an array, which stays in cache."""


def mse(x: ArrayLike, h: ArrayLike) -> float:
    """``mean((x_t − h_t)²)`` of variances h (T,) against a proxy x (T,) of the variance; smaller is better.

    Examples
    --------
    >>> mse([1.0, 4.0], [2.0, 2.0])
    2.5
    """
    proxy, variance = _checked(x, h)
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
    proxy, variance = _checked(x, h)
    ratio = (proxy / variance)[proxy > 0.0]
    if not len(ratio):
        raise InvalidInputError("the proxy is zero on all days: QLIKE is not defined")
    return float(np.mean(ratio - np.log(ratio) - 1.0))


def log_scores(likelihood: Likelihood, theta: ArrayLike) -> Array:
    """``log mean_s p(y_t | y_1, ..., y_{t−1}, ψ_s)`` of each return that is not known; larger is better.

    Parameters
    ----------
    likelihood : Likelihood
        With ``known=n`` the first n returns have no score. Draws of the posterior given these make all other
        scores out of sample: the parameters stay as they are, while the filter goes on.
    theta : array_like of shape (S, d)
        Draws of ψ.

    Returns
    -------
    ndarray of shape (n_obs,)
    """
    paths, days = likelihood.paths(theta), slice(likelihood.first, -1)
    sigma = np.sqrt(paths.variance[days])
    return mixture_log_density(likelihood.sample.y[likelihood.first :], paths.mean[days], sigma, paths.nu)


class LeaveOneOut(NamedTuple):
    """Result of `leave_one_out`."""

    elpd: Array
    """``log p(y_t | all others)`` of each observation, (T,)."""
    khat: Array
    """Pareto shapes of the weights, (T,): a value above 0.7 is not to be trusted."""


def leave_one_out(log_likelihood: ArrayLike, log_weights: ArrayLike) -> LeaveOneOut:
    """Leave-one-out predictive densities by Pareto-smoothed importance sampling, from draws of a posterior.

    A draw ψ_s from the approximation q has the weight ``p(ψ_s, y)/q(ψ_s)`` in the posterior and, divided by
    ``p(y_t | ψ_s)``, in that without observation t (Magnusson et al. 2019). Smoothing is that of Vehtari et
    al. (2024), for all t at once. For a time series the densities are those given the past: y_t is left out
    as an outcome, and stays the past of later days.

    Parameters
    ----------
    log_likelihood : array_like of shape (S, T)
        ``log p(y_t | y_1, ..., y_{t−1}, ψ_s)``.
    log_weights : array_like of shape (S,)
        ``log p(ψ_s, y) − log q(ψ_s)``, up to a constant.

    Examples
    --------
    A mean with a flat prior and unit variance: without y_t it is N(m_t, 1/7), m_t the mean of the others.

    >>> y, z = np.arange(8.0) / 2.0, np.random.default_rng(0).standard_normal(1000)
    >>> densities = -0.5 * (np.log(2.0 * np.pi) + (y - (y.mean() + z[:, None] / np.sqrt(8.0))) ** 2)
    >>> leave_one_out(densities, np.zeros(1000)).elpd.sum().round(1)
    np.float64(-13.8)
    >>> others = (y.sum() - y) / 7.0
    >>> (-0.5 * (np.log(2.0 * np.pi * 8.0 / 7.0) + (y - others) ** 2 * 7.0 / 8.0)).sum().round(1)
    np.float64(-13.9)
    """
    values, weights = as_floats(log_likelihood, "log_likelihood"), as_floats(log_weights, "log_weights")
    if values.ndim != 2 or weights.shape != values.shape[:1] or len(weights) < 25:
        raise InvalidInputError(
            f"log_likelihood has shape {values.shape} and log_weights {weights.shape}; expected (S, T) and "
            "(S,), with 25 draws or more"
        )
    elpd, khat = np.empty(values.shape[1]), np.empty(values.shape[1])
    for start in range(0, len(elpd), DAYS):
        days = slice(start, start + DAYS)
        some = values[:, days].T
        smooth, khat[days] = _smoothed(weights - some)
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


def _checked(x: ArrayLike, h: ArrayLike) -> tuple[Array, Array]:
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
