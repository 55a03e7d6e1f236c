r"""The prior variance of the coefficients that the data choose: the one with the largest lower bound of the evidence.

For a fixed variance v let q be the best Gaussian and :math:`L(v)` its lower bound, a smooth function, as nothing in it
is drawn at random. By the envelope theorem :math:`L'(v)` is the derivative of :math:`E_q[\log p(θ; v)]` for a fixed q,
the only place where v occurs. Its root is bracketed by decades from v = 1 on, and then found by Brent's method. Each
fit begins at the result of the one before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from mgvbp.errors import ConvergenceWarning
from mgvbp.families import Gaussian
from mgvbp.sklearn.exact import ExpectedLikelihood, fit_exact

SMALLEST, LARGEST = 1e-4, 1e4
"""The range of variances: from effects that cannot be seen to those of a hundred units a standard deviation."""
PRECISION = 0.005
"""Of log v, whose own uncertainty is many times larger."""
ACCURACY = 1e-6
"""Nats by which a bound may be below its maximum. The error of the derivative is of the order of the root of that."""
DIFFERENCE = 1e-4
"""Of log v, for the derivative of the expected log prior, which is known to 15 digits and almost linear in it."""


def best_variance(
    likelihood: ExpectedLikelihood, prior: Callable[[float], Gaussian], *, tol: float, **options: Any
) -> tuple[float, Gaussian]:
    """The variance v of ``prior(v)`` with the largest lower bound, and a Gaussian to start the fit with it from."""
    last: Gaussian | None = None

    def slope(x: float) -> float:
        """The derivative of L by x = log v."""
        nonlocal last
        at, above, below = (prior(float(np.exp(x + h))) for h in (0.0, DIFFERENCE, -DIFFERENCE))
        # the fit with the chosen variance gives its own warnings
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            fit = fit_exact(likelihood, at, tol=min(tol, ACCURACY), start=last, **options)
        last = Gaussian.from_factor(fit.mean, fit.factor, fit.family)
        return (expected_log_density(above, last) - expected_log_density(below, last)) / (2.0 * DIFFERENCE)

    at, decade = 0.0, float(np.log(10.0))
    first = slope(at)
    step = decade if first > 0.0 else -decade
    limit = float(np.log(LARGEST if first > 0.0 else SMALLEST))
    while abs(at - limit) > 0.5 * decade:
        at += step
        if slope(at) * first <= 0.0:
            low, high = sorted((at - step, at))
            at = float(brentq(slope, low, high, xtol=PRECISION))
            break
    assert last is not None
    return float(np.clip(np.exp(at), SMALLEST, LARGEST)), last


def expected_log_density(p: Gaussian, q: Gaussian) -> float:
    """``E_q[log p]`` of two Gaussians."""
    return float(p.log_density(q.mean[None])[0] - 0.5 * np.einsum("ij,ij->", p.precision, q.covariance))
