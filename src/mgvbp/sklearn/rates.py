"""What regressions of counts and rates with a log link share: checked data, coefficients and the score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin  # type: ignore[import-untyped]
from sklearn.metrics import d2_tweedie_score  # type: ignore[import-untyped]

from mgvbp.core import Array
from mgvbp.errors import InvalidInputError
from mgvbp.models import checked_response
from mgvbp.sklearn.base import BayesianRegression, Data


class RateRegression(RegressorMixin, BayesianRegression):  # type: ignore[misc]
    """A regression whose means are ``ȳ exp(w + xᵀb)``, with ȳ the mean of y, or 1 without an intercept."""

    coef_: Array
    coef_sd_: Array
    intercept_: float
    _offset: float
    """log ȳ"""

    def _checked_rates(self, X: Any, y: Any, sample_weight: Any) -> tuple[Data, float]:
        """The data, y being numbers that are not negative, and ȳ."""
        data = self._checked(X, y, sample_weight, y_numeric=True)
        rates = checked_rates(data.response, len(data.design))
        some = self.fit_intercept and rates.any()
        average = float(np.average(rates, weights=data.weights)) if some else 1.0
        self._offset = float(np.log(average))
        return data._replace(response=rates), average

    def _set_coefficients(self, beta: Array) -> None:
        """Coefficients in the units of X, from the posterior mean ``beta`` (k,) in those of the design."""
        self.coef_, intercept = self._split(beta)
        self.coef_sd_ = self._slope_sd()
        self.intercept_ = float(intercept + self._offset)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D², the share of the Poisson deviance that is explained; 1 is best."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


def checked_rates(y: ArrayLike, n: int) -> Array:
    """``y`` as ``n`` numbers that are not negative."""
    rates = checked_response(y, n)
    if rates.min() < 0.0:
        raise InvalidInputError(f"y must not be negative; got {rates.min():g}")
    return rates
