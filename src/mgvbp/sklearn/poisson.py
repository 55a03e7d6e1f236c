"""Poisson regression with a log link, and what it shares with other regressions of counts and rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln
from sklearn.metrics import d2_tweedie_score  # type: ignore[import-untyped]

from mgvbp.core import Array
from mgvbp.errors import InvalidInputError
from mgvbp.models import PoissonRegression, checked_response
from mgvbp.sklearn.base import BayesianRegressor, Data
from mgvbp.sklearn.exact import Expectations, ExpectedLikelihood, variances


class RateRegression(BayesianRegressor):
    """A regression whose means are ``ȳ exp(w + xᵀb)``, with ȳ the mean of y, or 1 without an intercept."""

    _offset: float
    """log ȳ"""

    def _average(self, data: Data) -> float:
        """ȳ, once y is known not to be negative; sets the offset."""
        rates = checked_rates(data.response, len(data.design))
        some = self.fit_intercept and rates.any()
        average = float(np.average(rates, weights=data.weights)) if some else 1.0
        self._offset = float(np.log(average))
        return average

    def _set_coefficients(self, beta: Array) -> None:
        self.coef_, intercept = self._split(beta)
        self.coef_sd_ = self._slope_sd()
        self.intercept_ = float(intercept + self._offset)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means (M,) of new counts; with ``return_std`` also the counts' standard deviations."""
        eta, variance = self._predictor(X)
        log_mean = self._offset + eta + 0.5 * variance  # of a log-normal rate
        # far out inf is the answer, and log 0 where there is no variance
        with np.errstate(over="ignore", divide="ignore"):
            mean = np.exp(log_mean)
            if not return_std:
                return mean
            log_spread = 2.0 * log_mean + variance + np.log(-np.expm1(-variance))  # of the rate's variance
            log_variance = np.logaddexp(log_mean, self._log_extra(X, eta, variance))  # of counts given rates
            return mean, np.exp(0.5 * np.logaddexp(log_variance, log_spread))

    def _log_extra(self, X: Any, eta: Array, variance: Array) -> Array:
        """The logarithm of what the variance of a count given its mean m has beyond m: nothing for Poisson's."""
        return np.full(len(eta), -np.inf)

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


class BayesianPoissonRegressor(RateRegression):
    """Poisson regression that averages its means over the posterior.

    ``y ~ Poisson(ȳ exp(w + xᵀb))`` with ȳ the mean of y. The prior of each coefficient, for features scaled to
    unit standard deviation, and of the intercept w, that at the means of the features, is normal with mean 0 and
    variance ``prior_variance``. As in scikit-learn's ``PoissonRegressor``, y may be any numbers that are not
    negative, such as counts over a time; those that are no counts make the likelihood a quasi-likelihood.

    Parameters
    ----------
    prior_variance : float
        6.25 by default (a standard deviation of 2.5): a feature that is one standard deviation higher is not
        expected to change the mean by more than a factor of 150. ``"evidence"`` takes the number with the largest lower
        bound of the log evidence (``prior_variance_``).
    fit_intercept : bool
        If False, there is neither w nor ȳ, and features are not centred but scaled by their root mean squares.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the posterior's covariance. θ is the intercept and the coefficients.
    tol : float
        How many nats below its optimum the lower bound may be.
    max_iter : int
        Limit on the number of iterations; usually there are fewer than 20.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Posterior means in the units of X.
    coef_sd_ : ndarray of shape (n_features,)
        Their posterior standard deviations.
    intercept_ : float
        It includes log ȳ.
    posterior_ : Posterior
        Of θ, for the scaled features, under their names.
    lower_bound_ : float
        Lower bound of the log evidence.
    prior_variance_ : float
        The prior variance that was used.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has names of type str.

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> regressor = BayesianPoissonRegressor().fit(X, [1, 0, 2, 3, 2, 6, 9, 11])
    >>> mean, std = regressor.predict([[8.0]], return_std=True)
    >>> mean.round(), std.round()
    (array([19.]), array([7.]))
    """

    def _likelihood(self, data: Data) -> LogNormalRates:
        average = self._average(data)
        rates = Rates(data.design, data.response, exposure=average)
        return LogNormalRates(rates, average, data.weights)


class Rates(PoissonRegression):
    """`PoissonRegression` without the demand for whole numbers."""

    def _checked_response(self, y: ArrayLike, n: int, *, new: bool = False) -> Array:
        return checked_rates(y, n)


class LogNormalRates(ExpectedLikelihood):
    """Under a Gaussian the rates ``exposure × exp(xᵀβ)`` are log-normal, and all expectations are known."""

    def __init__(self, model: Rates, exposure: float, weights: Array | None = None) -> None:
        super().__init__(model, weights)
        self.exposure = exposure
        self.constant = float(self.weights @ (model.y * np.log(exposure) - gammaln(model.y + 1.0)))

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        X, y, w = self.model.X, self.model.y, self.weights
        eta = X @ mean
        rates = self.exposure * np.exp(eta + 0.5 * variances(X, covariance))
        value = float(w @ (y * eta - rates)) + self.constant
        return Expectations(value, X.T @ (w * (y - rates)), (X * (w * rates)[:, None]).T @ X)
