"""Gradient estimators: score functions (the paper's two), regression, and two that use gradients of the log density.

An estimator takes draws ε and the values of the log density, and returns g, G and the lower bound, all in the frame
(`base`). This package may import `problem` and lower layers. Begin with `score`, which has the paper's estimators,
then `regression`; `draws` makes the ε.
"""

from __future__ import annotations

from mgvbp.core.checks import one_of, positive_integer
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.estimators.draws import sobol as sobol
from mgvbp.estimators.fisher import EmpiricalFisher
from mgvbp.estimators.gradient import Gradient
from mgvbp.estimators.regression import Regression
from mgvbp.estimators.score import Score
from mgvbp.families import Family

__all__ = [
    "Control",
    "EmpiricalFisher",
    "Estimate",
    "Estimator",
    "Gradient",
    "Regression",
    "Sample",
    "Score",
    "resolve_estimator",
]

REGRESSION_LIMIT = 1000
"""Above this many coefficients (d = 43 for the full family) ``auto`` prefers the score estimator."""


def resolve_estimator(
    estimator: str | Estimator, family: Family, num_draws: int | None, draws: str, has_gradient: bool
) -> Estimator:
    """Return the estimator of that name.

    ``auto`` is the gradient estimator if the problem has a gradient, else regression if the draws suffice, else h.
    """
    if isinstance(estimator, Estimator):
        return estimator
    if isinstance(estimator, str) and estimator == "auto":
        if has_gradient:
            return Gradient()
        regression = Regression()
        least = regression.minimum_draws(family, draws)
        affordable = least <= (
            REGRESSION_LIMIT if num_draws is None else positive_integer(num_draws, "num_draws")
        )
        return regression if affordable else Score("h")
    named: dict[str, Estimator] = {
        "h": Score("h"),
        "loglik": Score("loglik"),
        "regression": Regression(),
        "gradient": Gradient(),
        "fisher": EmpiricalFisher(),
    }
    return named[one_of(estimator, ["auto", *named], "estimator", " or an Estimator")]
