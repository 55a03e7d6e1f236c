"""Negative-binomial regression with a log link: counts that vary more than Poisson's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, expit, gammaln, log_expit, polygamma

from mgvbp.core import Array
from mgvbp.families import Gaussian
from mgvbp.models import LOG_DISPERSION, NegativeBinomialRegression
from mgvbp.sklearn.base import Data
from mgvbp.sklearn.poisson import RateRegression, checked_rates
from mgvbp.sklearn.shared import Derivatives, SharedLikelihood
from mgvbp.transforms import Positive


class BayesianNegativeBinomialRegressor(RateRegression):
    """Negative-binomial regression that averages its means over the posterior.

    ``y`` has the mean ``m = ȳ exp(w + xᵀb)``, with ȳ the mean of y, and the variance ``m + φ m²``. The prior of each
    coefficient, for features scaled to unit standard deviation, and of the intercept w, that at the means of the
    features, is normal with mean 0 and variance ``prior_variance``; that of log φ is N(0, 4), which puts φ between 1/50
    and 50 with 95%. As for `BayesianPoissonRegressor`, y may be any numbers that are not negative.

    Parameters
    ----------
    prior_variance : float or "evidence"
        6.25 by default (a standard deviation of 2.5): a feature that is one standard deviation higher is not
        expected to change the mean by more than a factor of 150. ``"evidence"`` takes the number with the largest lower
        bound of the log evidence (``prior_variance_``).
    fit_intercept : bool
        If False, there is neither w nor ȳ, and features are not centred but scaled by their root mean squares.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the posterior's covariance. θ is the intercept, the coefficients, log φ.
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
        Of θ, for the scaled features, under their names; ``posterior_["dispersion"]`` is that of φ.
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
    >>> regressor = BayesianNegativeBinomialRegressor().fit(X, [1, 0, 2, 9, 0, 6, 19, 4])
    >>> mean, std = regressor.predict([[3.0]], return_std=True)
    >>> bool(std[0] > 1.5 * mean[0] ** 0.5)  # of Poisson counts it would be little more than the root of the mean
    True
    """

    _others: ClassVar = {"dispersion": (Positive(), *LOG_DISPERSION)}

    def _likelihood(self, data: Data) -> Dispersed:
        rates = DispersedRates(data.design, data.response, exposure=self._average(data))
        return Dispersed(rates, self._offset, data.weights)

    def _log_extra(self, X: Any, eta: Array, variance: Array) -> Array:
        """``log E[φ m²]``."""
        q = self.posterior_
        rho, spread = q.mean[-1], q.std[-1] ** 2
        joint = self._new_design(X) @ q.covariance[:-1, -1]  # Cov(η, log φ)
        return np.asarray(rho + 2.0 * (self._offset + eta) + 0.5 * (spread + 4.0 * joint + 4.0 * variance))


class DispersedRates(NegativeBinomialRegression):
    """`NegativeBinomialRegression` without the demand for whole numbers."""

    def _checked_response(self, y: ArrayLike, n: int, *, new: bool = False) -> Array:
        return checked_rates(y, n)


class Dispersed(SharedLikelihood):
    """The likelihood of counts with means ``exp(offset + η)``."""

    num_shared = 1

    def __init__(self, model: DispersedRates, offset: float, weights: Array | None = None) -> None:
        super().__init__(model, weights)
        self.offset = offset

    def start(self, prior: Gaussian) -> tuple[Array, Array]:
        """No effects and the dispersion of the moments; the information without what mixes."""
        X, y, w = self.model.X, self.model.y, self.weights
        m = float(np.exp(self.offset))
        excess = float(np.average((y - m) ** 2, weights=w)) - m
        phi = float(np.clip(excess / m**2, 0.05, 20.0))
        information = np.zeros((prior.dim, prior.dim))
        information[:-1, :-1] = (X.T * w) @ X * (m / (1.0 + phi * m))
        # of log φ, for one row: about ½ where counts are large, (φm)²/2 where they are small
        information[-1, -1] = 0.5 * float(w.sum()) * (phi * m / (1.0 + phi * m)) ** 2
        return np.append(np.zeros(X.shape[1]), np.log(phi)), information

    def derivatives(self, eta: Array, shared: Array, y: Array) -> Derivatives:
        """With ``r = 1/φ``, ``p = φm/(1 + φm)`` and ρ = log φ; the coefficient once for each different count."""
        rho = shared[:, 0, None]
        r = np.exp(-rho)
        counts, index = np.unique(y, return_inverse=True)
        c = counts[:, None, None]
        coefficient = (gammaln(c + r) - gammaln(r) - gammaln(c + 1.0))[index]
        first = (digamma(c + r) - digamma(r))[index]  # by r
        second = (polygamma(1, c + r) - polygamma(1, r))[index]
        logit = self.offset + rho + eta
        p, log_rest = expit(logit), log_expit(-logit)
        counted = y[:, None, None]
        by_eta = counted * (1.0 - p) - r * p
        by_eta_twice = -(counted + r) * p * (1.0 - p)
        return Derivatives(
            coefficient + counted * log_expit(logit) + r * log_rest,
            eta=by_eta,
            shared=[by_eta - r * (first + log_rest)],
            eta_eta=by_eta_twice,
            eta_shared=[by_eta_twice + r * p],
            shared_shared={(0, 0): r * (first + r * second + log_rest + 2.0 * p) + by_eta_twice},
        )
