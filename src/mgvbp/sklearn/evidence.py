r"""The prior variance of the coefficients that the data choose: the one with the largest lower bound of the evidence.

For a fixed variance v the best Gaussian has the lower bound :math:`L(v)`, a smooth function, as nothing in it is drawn
at random. It is computed on a grid of decades, and then maximised between the neighbours of the grid's best by Brent's
method. Each fit begins at the result of the one before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from mgvbp.errors import ConvergenceWarning
from mgvbp.families import Gaussian
from mgvbp.sklearn.exact import ExpectedLikelihood, fit_exact

SMALLEST, LARGEST = 1e-4, 1e4
"""The range of variances: from effects that cannot be seen to those of a hundred units a standard deviation."""
PRECISION = 0.01
"""The variance is found to about one percent; its own uncertainty is many times larger."""
ACCURACY = 1e-6
"""Nats by which the bounds that are compared may be off, so that the maximum is one of L and not of its errors."""


def best_variance(
    likelihood: ExpectedLikelihood, prior: Callable[[float], Gaussian], *, tol: float, **options: Any
) -> tuple[float, Gaussian]:
    """The variance v of ``prior(v)`` with the largest lower bound, and the Gaussian that was found for it."""
    found: dict[float, Any] = {}

    def loss(log_variance: float) -> float:
        last = list(found.values())[-1] if found else None
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # the fit with the chosen one speaks for itself
            fit = fit_exact(
                likelihood, prior(float(np.exp(log_variance))), tol=min(tol, ACCURACY), start=last, **options
            )
        found[log_variance] = Gaussian.from_factor(fit.mean, fit.factor, fit.family)
        return -fit.lower_bound

    decades = np.log(np.geomspace(SMALLEST, LARGEST, round(np.log10(LARGEST / SMALLEST)) + 1))
    # from large to small: the fit under a vague prior is the easiest to begin with
    losses = [loss(x) for x in decades[::-1]][::-1]
    best = int(np.argmin(losses))
    bounds = decades[max(best - 1, 0)], decades[min(best + 1, len(decades) - 1)]
    chosen = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": PRECISION})
    at = float(chosen.x) if chosen.fun < losses[best] else float(decades[best])
    return float(np.exp(at)), found[at]
