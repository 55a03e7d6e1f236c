"""Log densities of single observations on either backend, constants included; nothing is summed."""

from __future__ import annotations

import math
from typing import Any

LOG_2PI = math.log(2.0 * math.pi)


def normal(xp: Any, x: Any, mean: Any = 0.0, log_sd: Any = 0.0) -> Any:
    return -0.5 * ((x - mean) * xp.exp(-log_sd)) ** 2 - log_sd - 0.5 * LOG_2PI


def prior(xp: Any, theta: Any, mean: Any = 0.0, sd: Any = 1.0) -> Any:
    """Independent normals with fixed means and standard deviations, summed over the last axis."""
    z = (theta - mean) / sd
    return (-0.5 * z**2 - xp.log(xp.ones_like(z) * sd) - 0.5 * LOG_2PI).sum(-1)


def student_t(xp: Any, x: Any, mean: Any, log_sd: Any, nu: Any) -> Any:
    half = 0.5 * (nu + 1.0)
    constant = xp.gammaln(half) - xp.gammaln(0.5 * nu) - 0.5 * xp.log(math.pi * nu)
    return constant - log_sd - half * xp.log1p(((x - mean) * xp.exp(-log_sd)) ** 2 / nu)


def softplus(xp: Any, x: Any) -> Any:
    return xp.logaddexp(x, 0.0)


def sigmoid(xp: Any, x: Any) -> Any:
    return 0.5 * (1.0 + xp.tanh(0.5 * x))


def bernoulli(xp: Any, y: Any, logit: Any) -> Any:
    """``y`` is 0 or 1."""
    return -softplus(xp, (1.0 - 2.0 * y) * logit)


def binomial(xp: Any, y: Any, n: Any, logit: Any) -> Any:
    """Without the binomial coefficient."""
    return y * logit - n * softplus(xp, logit)


def poisson(xp: Any, y: Any, log_rate: Any) -> Any:
    """Without the factorial."""
    return y * log_rate - xp.exp(log_rate)


def negative_binomial(xp: Any, y: Any, log_mean: Any, log_size: Any) -> Any:
    """Variance ``mean + mean²/size``; without the factorial of y."""
    size = xp.exp(log_size)
    constant = xp.gammaln(y + size) - xp.gammaln(size)
    return constant - size * softplus(xp, log_mean - log_size) - y * softplus(xp, log_size - log_mean)


def logsumexp(xp: Any, x: Any) -> Any:
    """Over the last axis."""
    top = xp.max(x, axis=-1)
    return top + xp.log(xp.exp(x - top[..., None]).sum(-1))


def log_diff_ndtr(xp: Any, upper: Any, lower: Any) -> Any:
    """``log(Φ(upper) - Φ(lower))`` for upper > lower, in the tail where it is stable."""
    flip = upper + lower > 0.0
    high = xp.log_ndtr(xp.where(flip, -lower, upper))
    low = xp.log_ndtr(xp.where(flip, -upper, lower))
    return high + xp.log1p(-xp.exp(low - high))
