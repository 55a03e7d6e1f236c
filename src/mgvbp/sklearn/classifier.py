"""Logistic regression, for two classes or more."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils.class_weight import compute_class_weight  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from mgvbp.core import Array
from mgvbp.errors import ConvergenceWarning, InvalidInputError
from mgvbp.families import Family, Full, Gaussian
from mgvbp.models import LogisticRegression, MultinomialRegression, contrast_precision
from mgvbp.sklearn.base import BayesianRegression
from mgvbp.sklearn.exact import Expectations, ExpectedLikelihood, expectations, fit_exact, variances
from mgvbp.sklearn.integrals import NUM_POINTS, SoftmaxMoments, log_mean_expit, row_blocks, sigmoid_moments

COARSE = 128
"""Sobol points of the search for a start, with more than two classes: an eighth of the work, and near the optimum."""
COARSE_GAP = 0.01
"""Nats by which the start may be below its own optimum: less than by the error of so few points."""
MODE_GAP = 0.1
"""Nats by which the start of that search may be below the mode, which is about d/2 nats from the optimum."""
MOST_STEPS = 50
"""Of each of these searches; a few are enough."""


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
        ``"evidence"`` takes the number with the largest lower bound of the log evidence (``prior_variance_``).
    fit_intercept : bool
        If False, features are not centred and are scaled by their root mean squares.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the posterior's covariance. θ is β[j, c], j = 0 for the intercept, c = 1, ..., K − 1
        against the first class; j varies slowest. The labels are the names of the features, for more than two classes
        each with a class, as ``"age[ill]"``.
    tol : float
        How many nats below its optimum the lower bound may be.
    max_iter : int
        Limit on the number of iterations; usually there are fewer than 20.
    class_weight : dict or "balanced", optional
        Weights of the classes, by which those of the rows are multiplied; "balanced" gives all classes the same total.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (1, n_features) or (K, n_features)
        Posterior means in the units of X; with more than two classes they sum to 0 over the classes.
    coef_sd_ : ndarray of the same shape
        Their posterior standard deviations.
    intercept_ : ndarray of shape (1,) or (K,)
    posterior_ : Posterior
        Of θ, for the scaled features.
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
    coef_sd_: Array
    intercept_: Array

    def __init__(
        self,
        *,
        prior_variance: float | str = 6.25,
        fit_intercept: bool = True,
        family: str | Family = "full",
        tol: float = 1e-3,
        max_iter: int = 200,
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        super().__init__(
            prior_variance=prior_variance,
            fit_intercept=fit_intercept,
            family=family,
            tol=tol,
            max_iter=max_iter,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to features X (N, n_features) and labels y (N,) of any type.

        A row with a ``sample_weight`` (N,) of 2 counts as two rows, one of 0 as none.
        """
        design, labels, weights = self._checked(X, y, sample_weight)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        number = len(self.classes_)
        if number < 2:
            raise InvalidInputError(
                f"y has one class only, {self.classes_[:1].tolist()[0]!r}; expected two or more"
            )
        names = self._columns()
        if number == 2:
            likelihood: ExpectedLikelihood = Sigmoid(LogisticRegression(design, codes), weights)
        else:
            likelihood = Softmax(MultinomialRegression(design, codes), weights)
            names = [f"{name}[{label}]" for name in names for label in self.classes_[1:]]

        def prior(variance: float) -> Gaussian:
            contrasts = np.kron(np.eye(design.shape[1]), contrast_precision(number, variance))
            return Gaussian(precision=np.asarray(contrasts, dtype=np.float64))

        posterior = self._fit_posterior(likelihood, prior, names, {})
        beta = posterior.mean.reshape(-1, number - 1)
        if number > 2:
            beta = np.column_stack([np.zeros(len(beta)), beta])
            beta = beta - beta.mean(axis=1, keepdims=True)
        slopes, self.intercept_ = self._split(beta)
        self.coef_ = slopes.T
        self.coef_sd_ = self._slope_sd()[None] if number == 2 else self._centred_sd(number)
        return self

    def _weights(self, sample_weight: Any, response: Any) -> Array:
        """Those of the rows times those of their classes."""
        check_classification_targets(response)
        weights = super()._weights(sample_weight, response)
        if self.class_weight is None:
            return weights
        some = weights > 0.0
        y, w = response[some], weights[some]
        present, codes = np.unique(y, return_inverse=True)
        each = compute_class_weight(self.class_weight, classes=present, y=y, sample_weight=w)
        for label, factor in zip(present, each, strict=True):
            if not 0.0 <= factor < np.inf:
                raise InvalidInputError(
                    f"the class_weight of class {label} must be a finite number that is not negative; got {factor:g}"
                )
        weights = weights.copy()  # they may be the user's
        weights[some] = w * each[codes]
        return weights

    def _centred_sd(self, number: int) -> Array:
        """Standard deviations of the slopes of all K classes, whose sum is 0, (K, n_features)."""
        k = len(self._scaling.scale) + int(self.fit_intercept)
        blocks = self.posterior_.covariance.reshape(k, number - 1, k, number - 1)
        # β_c minus the mean over the classes, of which the first has β = 0
        centre = np.eye(number)[:, 1:] - 1.0 / number
        each = np.einsum("ca,jajb,cb->cj", centre, blocks, centre)
        return np.asarray(np.sqrt(each[:, int(self.fit_intercept) :]) / self._scaling.scale)

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

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        X, y, w = self.model.X, self.model.y, self.weights
        eta = X @ mean
        log_odds, p, weight = sigmoid_moments(eta, variances(X, covariance))
        value = float(w @ (y * eta - log_odds))
        return Expectations(value, X.T @ (w * (y - p)), (X * (w * weight)[:, None]).T @ X)


class Softmax(ExpectedLikelihood):
    """More classes: expectations over the joint distribution of each row's scores."""

    def __init__(
        self, model: MultinomialRegression, weights: Array | None = None, num_points: int = NUM_POINTS
    ) -> None:
        super().__init__(model, weights)
        self.multinomial = model
        self.num_points = num_points
        indicators = model.y[:, None] == np.arange(1, model.num_classes)
        self.score = model.X.T @ (indicators * self.weights[:, None])
        # of Sobol points: gradients are not exactly those of the bound
        self.error = 1e-3 * float(self.weights.sum())

    def start(self, prior: Gaussian) -> tuple[Array, Array]:
        """The optimum for fewer points, whose search starts from the mode."""
        if self.num_points > COARSE:
            coarse = Softmax(self.multinomial, self.weights, COARSE)
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # it is a start
                q = fit_exact(coarse, prior, family=Full(prior.dim), tol=COARSE_GAP, max_iter=MOST_STEPS)
            return q.mean, q.precision - prior.precision
        return self.mode(prior)

    def mode(self, prior: Gaussian) -> tuple[Array, Array]:
        """The mode, by Newton's method, and the information there: without a covariance nothing is integrated."""
        mean, nothing = np.zeros(prior.dim), np.zeros((prior.dim, prior.dim))
        at = expectations(self, prior, mean, nothing)
        for _ in range(MOST_STEPS):
            step = np.linalg.solve(at.curvature, at.gradient)
            if 0.5 * at.gradient @ step < MODE_GAP:
                break
            following = expectations(self, prior, mean + step, nothing)
            while following.value < at.value:
                step = 0.5 * step
                following = expectations(self, prior, mean + step, nothing)
            mean, at = mean + step, following
        return mean, at.curvature - prior.precision

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        X, w = self.model.X, self.weights
        moments = softmax_moments(X, mean, covariance, self.num_points)
        return Expectations(
            mean @ self.score.ravel() - w @ moments.log_normaliser,
            (self.score - X.T @ (w[:, None] * moments.p[:, 1:])).ravel(),
            curvature(X, w[:, None, None] * moments.weight),
        )


def softmax_moments(X: Array, mean: Array, covariance: Array, num_points: int = NUM_POINTS) -> SoftmaxMoments:
    """For the scores ``x_iᵀβ_c`` of each row, β being N(mean, covariance)."""
    return SoftmaxMoments(X @ mean.reshape(X.shape[1], -1), spread(X, covariance), num_points)


def spread(X: Array, covariance: Array) -> Array:
    """``x_iᵀ Σ_ce x_i`` of each row and pair of classes, Σ_ce being their block of the covariance: (n, K − 1, K − 1).

    Both this and `curvature` are one product of matrices, with a column for each pair of entries of x.
    """
    k = X.shape[1]
    others = len(covariance) // k
    blocks = covariance.reshape(k, others, k, others)
    c, e = np.tril_indices(others)
    a, b = np.tril_indices(k)
    twice = np.where(a == b, 0.5, 1.0)[:, None]
    both = blocks[a[:, None], c, b[:, None], e] + blocks[b[:, None], c, a[:, None], e]
    result = np.empty((len(X), others, others))
    for rows, products in pairs(X):
        result[rows, c, e] = result[rows, e, c] = products @ (twice * both)
    return result


def curvature(X: Array, weight: Array) -> Array:
    """``Σ_i w_i ⊗ x_i x_iᵀ`` for weights (n, K − 1, K − 1) of the pairs of classes, (d, d)."""
    k, others = X.shape[1], weight.shape[1]
    c, e = np.tril_indices(others)
    a, b = np.tril_indices(k)
    sums = np.zeros((len(a), len(c)))
    for rows, products in pairs(X):
        sums += products.T @ weight[rows, c, e]
    result = np.empty((k, others, k, others))
    a, b = a[:, None], b[:, None]
    result[a, c, b, e] = result[b, c, a, e] = result[a, e, b, c] = result[b, e, a, c] = sums
    return result.reshape(k * others, k * others)


def pairs(X: Array) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows with the products ``x_a x_b``, a ≥ b, of their entries."""
    a, b = np.tril_indices(X.shape[1])
    for rows in row_blocks(len(X), len(a)):
        yield rows, X[rows][:, a] * X[rows][:, b]
