"""Linear regression with normal errors."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from mgvbp.core import Array
from mgvbp.families import LOG_2PI, Gaussian
from mgvbp.models import LOG_NOISE_VARIANCE, LinearRegression
from mgvbp.sklearn.base import BayesianRegressor, Data, Scaling
from mgvbp.sklearn.exact import Expectations, ExpectedLikelihood
from mgvbp.transforms import Positive

NOISE_FLOOR = 1e-4
"""Residuals below this share of y's standard deviation count as rounding, so that an exact fit has a posterior."""


class ScaledRegression(BayesianRegressor):
    """A linear regression whose response is scaled too."""

    _response: Scaling

    def _set_coefficients(self, beta: Array) -> None:
        slopes, intercept = self._split(beta)
        self.coef_ = slopes * self._response.scale
        self.coef_sd_ = self._slope_sd() * self._response.scale
        self.intercept_ = float(self._response.location + intercept * self._response.scale)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means (M,) of new responses; with ``return_std`` also their standard deviations, noise included."""
        mean, variance = self._predictor(X)
        predicted = self._response.location + self._response.scale * mean
        if not return_std:
            return predicted
        return predicted, self._response.scale * np.sqrt(variance + self._noise())

    @abstractmethod
    def _noise(self) -> float:
        """The expected variance of the errors, on the scale of the scaled response."""


class BayesianLinearRegression(ScaledRegression):
    """Linear regression with a posterior of the coefficients and of the noise.

    ``y = w + xᵀb + σε``. The priors are on scaled data, features and y having mean 0 and standard deviation 1:
    normal with variance ``prior_variance`` for each coefficient and the intercept, standard normal for log σ,
    which puts σ between 1/7 and 7 standard deviations of y with 95%. (Residuals below 1e-4 of it are taken for
    rounding, so that an exact fit has a posterior, too.)

    Parameters
    ----------
    prior_variance : float
        6.25 by default, which is vague: on scaled data, a feature that explains y alone has the coefficient 1.
        ``"evidence"`` takes the number with the largest lower bound of the log evidence (``prior_variance_``).
    fit_intercept : bool
        If False, data are not centred and are scaled by their root mean squares.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the posterior's covariance. θ is the intercept, the coefficients, log σ.
    tol : float
        How many nats below its optimum the lower bound may be.
    max_iter : int
        Limit on the number of iterations; usually there are fewer than 20.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Posterior means in the units of X and y.
    coef_sd_ : ndarray of shape (n_features,)
        Their posterior standard deviations.
    intercept_ : float
    posterior_ : Posterior
        Of θ, for the scaled data, under the names of the features.
    lower_bound_ : float
        Lower bound of the log evidence of the scaled y.
    prior_variance_ : float
        The prior variance that was used.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has names of type str.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = BayesianLinearRegression().fit(X, y)
    >>> mean, std = regressor.predict(X[:2], return_std=True)
    >>> mean.round(), std.round()
    (array([206.,  68.]), array([55., 55.]))
    """

    _others: ClassVar = {"sigma": (Positive(), 0.0, LOG_NOISE_VARIANCE)}

    def _likelihood(self, data: Data) -> NormalErrors:
        self._response = Scaling.of(data.response, data.weights, centre=self.fit_intercept)
        return NormalErrors(LinearRegression(data.design, self._response(data.response)), data.weights)

    def _noise(self) -> float:
        psi, std = self.posterior_.mean[-1], self.posterior_.std[-1]
        return float(np.exp(2.0 * psi + 2.0 * std**2))  # E[σ²], log σ being normal


class NormalErrors(ExpectedLikelihood):
    """The likelihood, and a factor ``exp(−½ (1e-4 / σ)²)`` that is 1 unless the fit is exact.

    There the likelihood by itself grows without bound as σ goes to 0. With ψ = log σ and the weight
    ``w = E[exp(−2ψ)]``, ``E[exp(−2ψ) f(β)] = w E[f(β̃)]``, where β̃ is β with its mean moved by −2 Cov(β, ψ).
    """

    def __init__(self, model: LinearRegression, weights: Array | None = None) -> None:
        super().__init__(model, weights)
        self.weighted = model.X.T * self.weights
        self.gram = self.weighted @ model.X
        self.number = float(self.weights.sum())

    def __call__(self, theta: Array) -> Array:
        with np.errstate(over="ignore"):
            return super().__call__(theta) - 0.5 * NOISE_FLOOR**2 * np.exp(-2.0 * theta[:, -1])

    def start(self, prior: Gaussian) -> tuple[Array, Array]:
        """Ridge regression and its noise, in turns, and the Fisher information, in which β and ψ do not mix."""
        X, y = self.model.X, self.model.y
        variance = 1.0
        for _ in range(10):
            ridge = self.gram + variance * prior.precision[:-1, :-1]
            beta = np.linalg.solve(ridge, self.weighted @ y)
            variance = float(np.average((y - X @ beta) ** 2, weights=self.weights)) + NOISE_FLOOR**2
        information = np.diag(np.append(np.zeros(len(beta)), 2.0 * self.number))
        information[:-1, :-1] = self.gram / variance
        return np.append(beta, 0.5 * np.log(variance)), information

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        X, y = self.model.X, self.model.y
        psi, weight = mean[-1], np.exp(2.0 * covariance[-1, -1] - 2.0 * mean[-1])
        residual = y - X @ (mean[:-1] - 2.0 * covariance[:-1, -1])
        spread = np.einsum("ij,ij->", self.gram, covariance[:-1, :-1])
        squares = weight * (self.weights @ residual**2 + spread + NOISE_FLOOR**2)
        slope = weight * (self.weighted @ residual)
        curvature = np.empty_like(covariance)
        curvature[:-1, :-1] = weight * self.gram
        curvature[-1, :-1] = curvature[:-1, -1] = 2.0 * slope
        curvature[-1, -1] = 2.0 * squares
        value = -0.5 * squares - self.number * (psi + 0.5 * LOG_2PI)
        return Expectations(value, np.append(slope, squares - self.number), curvature)
