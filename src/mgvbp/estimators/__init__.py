"""Gradient estimators: score functions (the paper's two) and regression."""

from __future__ import annotations

from mgvbp.errors import InvalidInputError
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.estimators.regression import Regression
from mgvbp.estimators.score import Score
from mgvbp.families import Family

__all__ = ["Control", "Estimate", "Estimator", "Regression", "Sample", "Score", "resolve_estimator"]

REGRESSION_LIMIT = 1000
"""Above this many coefficients (d = 43 for the full family) ``auto`` prefers the score estimator."""


def resolve_estimator(
    estimator: str | Estimator, family: Family, num_draws: int | None, draws: str
) -> Estimator:
    """Return the estimator of that name; ``auto`` is regression where the draws allow it, else h."""
    if isinstance(estimator, Estimator):
        return estimator
    if estimator == "auto":
        regression = Regression()
        least = regression.minimum_draws(family, draws)
        affordable = least <= REGRESSION_LIMIT if num_draws is None else least <= num_draws
        return regression if affordable else Score("h")
    named: dict[str, Estimator] = {"h": Score("h"), "loglik": Score("loglik"), "regression": Regression()}
    if estimator not in named:
        raise InvalidInputError(
            f"estimator must be 'auto', one of {sorted(named)}, or an Estimator; got {estimator!r}"
        )
    return named[estimator]
