"""Poisson regression with a log link."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from mgvbp.core import Array
from mgvbp.families import Gaussian
from mgvbp.models import PoissonRegression
from mgvbp.sklearn.exact import Expectations, ExpectedLikelihood, variances
from mgvbp.sklearn.rates import RateRegression, checked_rates


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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to features X (N, n_features) and counts or rates y (N,).

        A row with a ``sample_weight`` (N,) of 2 counts as two rows, one of 0 as none.
        """
        (design, response, weights), average = self._checked_rates(X, y, sample_weight)
        posterior = self._fit_posterior(
            LogNormalRates(Rates(design, response, exposure=average), average, weights),
            lambda v: Gaussian(variance=v, dim=design.shape[1]),
            self._columns(),
        )
        self._set_coefficients(posterior.mean)
        return self

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
            return mean, np.exp(0.5 * np.logaddexp(log_mean, log_spread))


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
