"""Multinomial (softmax) regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import Gaussian
from mgvbp.models.base import SmoothRegression, blocks, checked_response, refuse
from mgvbp.models.default_prior import VARIANCE, standardisation
from mgvbp.models.logistic import sum_log
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.predictive import one_of_classes
from mgvbp.transforms import Real


class MultinomialRegression(SmoothRegression):
    """Labels 0, ..., K − 1 with ``P(y_i = c) ∝ exp(x_iᵀβ_c)``; θ = β, whose columns are β_1, ..., β_{K−1}.

    Class 0 is the reference, ``β_0 = 0``: the coefficients are identified, and with two classes the model is
    `LogisticRegression`. See `RegressionModel` for the arguments. `predictive` gives the probabilities of all
    classes, (S, M, K).

    A fit without a prior takes N(0, 6.25), a standard deviation of 2.5, for the difference of any two classes'
    coefficients of columns that are centred and scaled to standard deviation 1, and of their intercepts at the means
    of the columns.

    Attributes
    ----------
    num_classes : int
        The number of classes K: the largest label is K − 1.

    Examples
    --------
    >>> model = MultinomialRegression([[1.0], [1.0], [1.0], [1.0]], [0, 1, 2, 2])
    >>> model.parameters.labels
    ('beta[0,0]', 'beta[0,1]')
    >>> model.predictive([[0.0, np.log(2.0)]], [[1.0]])
    array([[[0.25, 0.25, 0.5 ]]])
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, names: Sequence[str] | None = None) -> None:
        super().__init__(X, y, names)
        # Σ_i x_iᵀβ_{y_i} = Σ_c β_cᵀ Σ_i x_i 1[y_i = c]
        self._sums = (self.X.T @ (self.y[:, None] == np.arange(1, self.num_classes))).ravel()

    @property
    def num_classes(self) -> int:
        """The number of classes K."""
        return int(self.y.max()) + 1

    @property
    def default_prior(self) -> Gaussian:
        """N(0, 6.25) for differences of standardised coefficients."""
        T, _ = standardisation(self.X)
        precision = np.kron(T.T @ T, contrast_precision(self.num_classes, VARIANCE))
        return Gaussian(precision=np.asarray(precision, dtype=np.float64))

    def _parameters(self) -> Parameters:
        return Parameters(beta=Real(self.X.shape[1], self.num_classes - 1))

    def _checked_response(self, y: ArrayLike, n: int, *, new: bool = False) -> Array:
        labels = checked_response(y, n)
        bad = (labels < 0.0) | (labels != np.floor(labels))
        if new:
            last = self.num_classes - 1
            refuse(bad | (labels > last), labels, f"hold labels 0, 1, ..., {last}")
            return labels
        refuse(bad, labels, "hold labels 0, 1, ..., K − 1")
        present = np.unique(labels)
        if len(present) == 1:
            raise InvalidInputError(f"y has one class only: all {n} labels are {labels[0]:g}")
        if present[-1] != len(present) - 1:
            raise InvalidInputError(
                f"y has {len(present)} different labels, the largest {present[-1]:g}: each of 0, ..., K − 1 "
                "must occur; np.unique(y, return_inverse=True)[1] relabels"
            )
        return labels

    def _log_likelihood(self, theta: Array) -> Array:
        total = np.asarray(theta @ self._sums)
        beta = theta.reshape(len(theta), self.X.shape[1], -1)
        for draws, rows in blocks(len(theta), len(self.y), self.num_classes - 1):
            total[draws] -= sum_log_normaliser(self.X[rows], beta[draws])
        return total

    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        logs = log_softmax(self._scores(theta, X), axis=2)
        return np.asarray(logs[:, np.arange(len(y)), y.astype(np.intp)])

    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        classes = y[:, None] == np.arange(1, self.num_classes)
        missed = classes - softmax(self._scores(theta, X), axis=2)[:, :, 1:]
        return np.asarray(np.matmul(X.T, missed).reshape(theta.shape))

    def _predictive(self, theta: Array, X: Array) -> Array:
        return np.asarray(softmax(self._scores(theta, X), axis=2))

    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        return one_of_classes(means, rng)

    def _scores(self, theta: Array, X: Array) -> Array:
        """``x_iᵀβ_c`` for all classes, (S, n, K); 0 for the reference."""
        scores = X @ theta.reshape(len(theta), X.shape[1], -1)
        return np.concatenate([np.zeros((*scores.shape[:2], 1)), scores], axis=2)


def contrast_precision(number: int, variance: float) -> Array:
    """Inverse of the prior covariance of ``β_c − β_0``, c = 1, ..., K − 1, for one column.

    With independent β_c of variance v/2 each contrast has variance v, and two of them covariance v/2. So the
    prior does not depend on which class comes first.
    """
    others = number - 1
    return np.asarray(np.linalg.inv(0.5 * variance * (np.eye(others) + np.ones((others, others)))))


def sum_log_normaliser(X: Array, beta: Array) -> Array:
    """``Σ_i log(1 + Σ_c exp(x_iᵀβ_c))``, (n, k) and (S, k, K − 1) -> (S,); see `sum_log_expit`."""
    S, k, others = beta.shape
    scores = (X @ beta.transpose(1, 2, 0).reshape(k, others * S)).reshape(len(X), others, S)
    top = np.maximum(scores.max(axis=1), 0.0)
    scores -= top[:, None]
    np.exp(scores, out=scores)
    # the largest of the K terms is 1
    terms = scores.sum(axis=1) + np.exp(-top)
    return np.asarray(top.sum(axis=0) + sum_log(terms, largest=others + 1.0))
