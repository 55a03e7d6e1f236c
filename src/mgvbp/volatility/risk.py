"""Tomorrow's return: an equal mixture over posterior draws, its quantiles and its tail.

Given draw s the return is ``μ_s + σ_s z``, where z has a law with mean 0 and variance 1. Arrays μ and σ have the draws
as the last axis, and the days, if any, before it: (S,) or (T, S); the shape parameters of the law are (S,).
Points and levels broadcast with the days: a number and (T, S) give (T,); (M,) and (S,) give (M,);
(M, 1) and (T, S) give (M, T).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from mgvbp.core import Array
from mgvbp.volatility.laws import Law, Normal

NORMAL = Normal()
ROUNDS = 200
"""The most rounds of a search. Newton's method needs 3 to 8; with bisection in every other round it is about 120."""
ACCURACY, LAST_NEWTON = 1e-12, 1e-7
"""A quantile is accurate to the first, in units of the widest component. A Newton step shorter than the second, in
units of the narrowest, leaves a smaller error than that, since it squares the error."""


def mixture_log_density(x: ArrayLike, mu: Array, sigma: Array, law: Law = NORMAL) -> Array:
    """``log p(x) = log mean_s f((x − μ_s)/σ_s)/σ_s``: the log predictive score, if x is what came.

    Examples
    --------
    >>> mixture_log_density([0.0, 40.0], np.zeros(2), np.array([1.0, 2.0])).round(4)
    array([  -1.2066, -202.3052])
    """
    terms = law.log_density((np.asarray(x)[..., None] - mu) / sigma) - np.log(sigma)
    return np.asarray(logsumexp(terms, axis=-1) - math.log(terms.shape[-1]))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")  # far from all components the density is 0
def mixture_quantile(p: ArrayLike, mu: Array, sigma: Array, law: Law = NORMAL) -> Array:
    """The x with ``P(r ≤ x) = p``, for levels p between 0 and 1.

    It is found by Newton's method on ``log P(r ≤ x)``, which is nearly straight far out, where the probability is not.
    The quantile lies between the least and the largest of the components' quantiles. That bracket shrinks as the
    search goes on, and is halved where a step of Newton's method would leave it or is not half as long as the last.

    Examples
    --------
    >>> mixture_quantile([0.01, 0.05], np.zeros(2), np.array([1.0, 2.0])).round(4)
    array([-4.1083, -2.6148])
    """
    levels = np.asarray(p)[..., None]
    # the upper half is the lower half of −r, where small probabilities keep their digits
    lower = levels <= 0.5
    sign = np.where(lower, 1.0, -1.0)
    level, mu, law = np.where(lower, levels, 1.0 - levels), sign * mu, law.mirrored(~lower)
    components = mu + sigma * law.quantile(level)
    low, high, x = components.min(axis=-1), components.max(axis=-1), components.mean(axis=-1)
    tolerance = ACCURACY * sigma.max(axis=-1) + 4.0 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
    close = np.maximum(LAST_NEWTON * sigma.min(axis=-1), tolerance)
    sign, level, last = sign[..., 0], level[..., 0], high - low
    for _ in range(ROUNDS):
        z = (x[..., None] - mu) / sigma
        probability = law.cdf(z).mean(axis=-1)
        density = (np.exp(law.log_density(z)) / sigma).mean(axis=-1)
        low, high = np.where(probability <= level, x, low), np.where(probability >= level, x, high)
        newton = x - np.log(probability / level) * probability / density
        good = (newton >= low) & (newton <= high) & (np.abs(newton - x) <= 0.5 * last)
        x, before = np.where(good, newton, 0.5 * (low + high)), x
        last = np.abs(x - before)
        # a Newton step squares the error; steps that only halve the range must go on to the end
        if (last <= np.where(good, close, tolerance)).all():
            break
    return np.asarray(sign * x)


def mixture_tail_mean(p: ArrayLike, mu: Array, sigma: Array, law: Law = NORMAL) -> Array:
    """``E[r | r ≤ q]`` with q the quantile of level p: ``mean_s [μ_s F(z_s) + σ_s ∫_{−∞}^{z_s} u f(u) du] / p``.

    Here ``z_s = (q − μ_s)/σ_s``.

    Examples
    --------
    >>> mixture_tail_mean([0.01, 0.05], np.zeros(2), np.array([1.0, 2.0])).round(4)
    array([-4.842 , -3.5251])
    """
    z = (mixture_quantile(p, mu, sigma, law)[..., None] - mu) / sigma
    parts = mu * law.cdf(z) + sigma * law.partial_mean(z)
    return np.asarray(parts.mean(axis=-1) / np.asarray(p))
