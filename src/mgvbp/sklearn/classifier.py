"""Logistic regression, for two classes or more."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from mgvbp.core import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families import Gaussian
from mgvbp.models import LogisticRegression, MultinomialRegression, contrast_precision
from mgvbp.sklearn.base import BayesianRegression
from mgvbp.sklearn.exact import Expectations, ExpectedLikelihood, variances
from mgvbp.sklearn.integrals import SoftmaxMoments, log_mean_expit, sigmoid_moments


class BayesianLogisticRegression(ClassifierMixin, BayesianRegression):  # type: ignore[misc]
    """Logistic (softmax) regression that averages its probabilities over the posterior.

    ``P(y = c) ∝ exp(w_c + xᵀb_c)``. The prior treats all classes alike: the difference of the coefficients of
    two classes has mean 0 and variance ``prior_variance``, for each feature scaled to unit standard deviation
    and for the intercept, which is that at the means of the features.

    Parameters
    ----------
    prior_variance : float
        6.25 by default (a standard deviation of 2.5): a feature that is one standard deviation higher is not
        expected to change the odds by more than a factor of 150. It also keeps separable classes finite.
    fit_intercept : bool
        If False, features are not centred and are scaled by their root mean squares.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the posterior's covariance. θ is β[j, c], j = 0 for the intercept, c = 1, ..., K − 1
        against the first class; j varies slowest.
    tol : float
        How many nats below its optimum the lower bound may be.
    max_iter : int
        Limit on the number of iterations; usually there are fewer than 20.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (1, n_features) or (K, n_features)
        Posterior means in the units of X; with more than two classes they sum to 0 over the classes.
    intercept_ : ndarray of shape (1,) or (K,)
    posterior_ : Posterior
        Of θ, for the scaled features.
    lower_bound_ : float
        Lower bound of the log evidence.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has names of type str.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> classifier = BayesianLogisticRegression().fit(X, y)
    >>> classifier.score(X, y) > 0.95
    True
    >>> classifier.predict_proba(X[70:71]).round(2)
    array([[0.01, 0.38, 0.61]])
    """

    classes_: Any
    coef_: Array
    intercept_: Array

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to features X (N, n_features) and labels y (N,) of any type."""
        design, labels = self._checked(X, y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        number = len(self.classes_)
        if number < 2:
            raise InvalidInputError(f"y has one class only, {self.classes_[0]!r}; expected two or more")
        contrasts = contrast_precision(number, self.prior_variance)
        precision = np.asarray(np.kron(np.eye(design.shape[1]), contrasts), dtype=np.float64)
        likelihood = (
            Sigmoid(LogisticRegression(design, codes))
            if number == 2
            else Softmax(MultinomialRegression(design, codes))
        )
        posterior = self._fit_posterior(likelihood, Gaussian(precision=precision))
        beta = posterior.mean.reshape(-1, number - 1)
        if number > 2:
            beta = np.column_stack([np.zeros(len(beta)), beta])
            beta = beta - beta.mean(axis=1, keepdims=True)
        slopes, self.intercept_ = self._split(beta)
        self.coef_ = slopes.T
        return self

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`."""
        check_is_fitted(self)
        if len(self.classes_) == 2:
            mean, variance = self._predictor(X)
            return np.column_stack([log_mean_expit(-mean, variance), log_mean_expit(mean, variance)])
        moments = softmax_moments(self._new_design(X), self.posterior_.mean, self.posterior_.covariance)
        with np.errstate(divide="ignore"):  # log 0 is the answer there
            return np.log(moments.p)

    def predict_proba(self, X: Any) -> Array:
        """``E[P(y = c | x, θ)]`` over the posterior of θ, (M, K)."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class (M,), or log probabilities (M, K) of more: of `predict_proba`."""
        scores = self.predict_log_proba(X)
        return scores if len(self.classes_) > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    def predict(self, X: Any) -> Any:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]


class Sigmoid(ExpectedLikelihood):
    """Two classes: expectations over the distribution of each row's log odds."""

    def __init__(self, model: LogisticRegression) -> None:
        self.model = model

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        X, y = self.model.X, self.model.y
        eta = X @ mean
        log_odds, probability, weight = sigmoid_moments(eta, variances(X, covariance))
        return Expectations(y @ eta - log_odds.sum(), X.T @ (y - probability), (X * weight[:, None]).T @ X)


class Softmax(ExpectedLikelihood):
    """More classes: expectations over the joint distribution of each row's scores."""

    def __init__(self, model: MultinomialRegression) -> None:
        self.model = model
        self.indicators = model.y[:, None] == np.arange(1, model.num_classes)
        self.error = 1e-3 * len(model.y)  # Sobol points: the gradients are not exactly those of the bound

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        X, others = self.model.X, self.indicators.shape[1]
        moments = softmax_moments(X, mean, covariance)
        score = X.T @ self.indicators
        curvature = np.empty((X.shape[1], others, X.shape[1], others))
        for c in range(others):
            for e in range(c + 1):
                block = (X * moments.weight[:, c, e, None]).T @ X
                curvature[:, c, :, e] = curvature[:, e, :, c] = block
        return Expectations(
            mean @ score.ravel() - moments.log_normaliser.sum(),
            (score - X.T @ moments.p[:, 1:]).ravel(),
            curvature.reshape(covariance.shape),
        )


def softmax_moments(X: Array, mean: Array, covariance: Array) -> SoftmaxMoments:
    """For the scores ``x_iᵀβ_c`` of each row, β being N(mean, covariance)."""
    beta = mean.reshape(X.shape[1], -1)
    k, others = beta.shape
    blocks = covariance.reshape(k, others, k, others)
    spread = np.empty((len(X), others, others))
    for c in range(others):
        for e in range(c + 1):
            spread[:, c, e] = spread[:, e, c] = variances(X, blocks[:, c, :, e])
    return SoftmaxMoments(X @ beta, spread)
