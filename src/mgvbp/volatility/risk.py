"""Tomorrow's return: an equal mixture over posterior draws, its quantiles and its tail.

Given draw s the return is ``μ_s + σ_s z`` with z standard normal, or Student t of ν_s degrees of freedom scaled to
variance 1. Arrays μ, σ and ν have the draws as the last axis, and the days, if any, before it: (S,) or (T, S).
Points and levels broadcast with the days: a number and (T, S) give (T,); (M,) and (S,) give (M,);
(M, 1) and (T, S) give (M, T).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, logsumexp, ndtr, ndtri, stdtr, stdtrit

from mgvbp.core import Array
from mgvbp.families import LOG_2PI

ROUNDS = 200
"""The most rounds of a search. Newton's method needs 3 to 8; with bisection in every other round it is about 120."""
ACCURACY, LAST_NEWTON = 1e-12, 1e-7
"""A quantile is accurate to the first, in units of the widest component. A Newton step shorter than the second, in
units of the narrowest, leaves a smaller error than that, since it squares the error."""


def mixture_log_density(x: ArrayLike, mu: Array, sigma: Array, nu: Array | None = None) -> Array:
    """``log p(x) = log mean_s f((x − μ_s)/σ_s)/σ_s``: the log predictive score, if x is what came.

    Examples
    --------
    >>> mixture_log_density([0.0, 40.0], np.zeros(2), np.array([1.0, 2.0])).round(4)
    array([  -1.2066, -202.3052])
    """
    terms = standard_log_density((np.asarray(x)[..., None] - mu) / sigma, nu) - np.log(sigma)
    return np.asarray(logsumexp(terms, axis=-1) - math.log(terms.shape[-1]))


def mixture_quantile(p: ArrayLike, mu: Array, sigma: Array, nu: Array | None = None) -> Array:
    """The x with ``P(r ≤ x) = p``, for levels p between 0 and 1.

    Examples
    --------
    >>> mixture_quantile([0.01, 0.05], np.zeros(2), np.array([1.0, 2.0])).round(4)
    array([-4.1083, -2.6148])
    """
    return _solve(np.asarray(p)[..., None], mu, sigma, nu)


def mixture_tail_mean(p: ArrayLike, mu: Array, sigma: Array, nu: Array | None = None) -> Array:
    """``E[r | r ≤ q]`` with q the quantile of level p: ``mean_s [μ_s F(z_s) + σ_s ∫_{−∞}^{z_s} u f(u) du] / p``.

    Here ``z_s = (q − μ_s)/σ_s``. The integral is ``−f(z)`` for normal errors and ``−(ν − 2 + z²)/(ν − 1) f(z)`` for
    those of the t distribution with variance 1 (McNeil, Frey and Embrechts 2015, ch. 2).

    Examples
    --------
    >>> mixture_tail_mean([0.01, 0.05], np.zeros(2), np.array([1.0, 2.0])).round(4)
    array([-4.842 , -3.5251])
    """
    levels = np.asarray(p)[..., None]
    z = (_solve(levels, mu, sigma, nu)[..., None] - mu) / sigma
    weight = 1.0 if nu is None else (nu - 2.0 + z**2) / (nu - 1.0)
    parts = mu * _cdf(z, nu) - sigma * weight * np.exp(standard_log_density(z, nu))
    return np.asarray(parts.mean(axis=-1) / levels[..., 0])


@np.errstate(
    divide="ignore", invalid="ignore", over="ignore"
)  # between components far apart the density is 0
def _solve(levels: Array, mu: Array, sigma: Array, nu: Array | None) -> Array:
    """The quantiles, by Newton's method on ``log P(r ≤ x)``: nearly straight far out, where the probability is not.

    The quantile lies between the least and the largest of the components' quantiles. That bracket shrinks as the
    search goes on, and is halved where a step of Newton's method would leave it or is not half as long as the last.
    """
    # the upper half is the lower half of −r, where small probabilities keep their digits
    lower = levels <= 0.5
    sign, level, mu = (
        np.where(lower, 1.0, -1.0),
        np.where(lower, levels, 1.0 - levels),
        np.where(lower, mu, -mu),
    )
    components = mu + sigma * standard_quantile(level, nu)
    low, high, x = components.min(axis=-1), components.max(axis=-1), components.mean(axis=-1)
    tolerance = ACCURACY * sigma.max(axis=-1) + 4.0 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    close = np.maximum(LAST_NEWTON * sigma.min(axis=-1), tolerance)
    sign, level, last = sign[..., 0], level[..., 0], high - low
    for _ in range(ROUNDS):
        z = (x[..., None] - mu) / sigma
        probability = _cdf(z, nu).mean(axis=-1)
        density = (np.exp(standard_log_density(z, nu)) / sigma).mean(axis=-1)
        low, high = np.where(probability <= level, x, low), np.where(probability >= level, x, high)
        newton = x - np.log(probability / level) * probability / density
        good = (newton >= low) & (newton <= high) & (np.abs(newton - x) <= 0.5 * last)
        x, before = np.where(good, newton, 0.5 * (low + high)), x
        last = np.abs(x - before)
        # a Newton step squares the error; steps that only halve the range must go on to the end
        if (last <= np.where(good, close, tolerance)).all():
            break
    return np.asarray(sign * x)


# --- the errors: standard normal, or Student t of variance 1 ------------------------------------------


def _cdf(z: Array, nu: Array | None) -> Array:
    return np.asarray(ndtr(z) if nu is None else stdtr(nu, z * np.sqrt(nu / (nu - 2.0))))


def standard_log_density(z: Array, nu: Array | None) -> Array:
    """Log density of errors with variance 1: standard normal, or Student t of ``nu`` degrees of freedom."""
    if nu is None:
        return -0.5 * (LOG_2PI + z**2)
    constant = -betaln(0.5 * nu, 0.5) - 0.5 * np.log(nu - 2.0)
    return np.asarray(constant - 0.5 * (nu + 1.0) * np.log1p(z**2 / (nu - 2.0)))


def standard_quantile(p: Array, nu: float | Array | None) -> Array:
    """Quantiles of the standard normal distribution, or of Student's t of variance 1."""
    return np.asarray(ndtri(p) if nu is None else stdtrit(nu, p) * np.sqrt((nu - 2.0) / nu))
