"""Logistic regression, and the sum of log-sigmoids that it spends its time in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import Gaussian, frozen
from mgvbp.models.base import SmoothRegression, blocks, checked_response, refuse
from mgvbp.models.default_prior import standardised_prior


class LogisticRegression(SmoothRegression):
    """Labels 0 and 1 with ``P(y_i = 1) = 1 / (1 + exp(−x_iᵀβ))``; θ = β.

    See `RegressionModel` for the arguments. `predictive` gives the probabilities of label 1.

    A fit without a prior takes N(0, 6.25), a standard deviation of 2.5, for the coefficients of columns that are
    centred and scaled to standard deviation 1, and for the intercept at the means of the columns.

    Examples
    --------
    >>> model = LogisticRegression([[1.0, -1.0], [1.0, 0.0], [1.0, 2.0]], [0, 1, 1])
    >>> model([[0.5, 1.0], [0.0, 0.0]]).round(4)
    array([-1.027 , -2.0794])
    >>> model.predictive([[0.5, 1.0]], [[1.0, 1.0]]).round(3)
    array([[0.818]])
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, names: Sequence[str] | None = None) -> None:
        super().__init__(X, y, names)
        self._signed = frozen((2.0 * self.y - 1.0)[:, None] * self.X)

    def _checked_response(self, y: ArrayLike, n: int, *, new: bool = False) -> Array:
        labels = checked_response(y, n)
        refuse((labels != 0.0) & (labels != 1.0), labels, "be 0 or 1")
        if not new and labels.min() == labels.max():
            raise InvalidInputError(f"y has one class only: all {n} labels are {labels[0]:g}; expected both")
        return labels

    @property
    def default_prior(self) -> Gaussian:
        """N(0, 6.25) for standardised coefficients."""
        return standardised_prior(self.X)

    def _log_likelihood(self, theta: Array) -> Array:
        return sum_log_expit(self._signed, theta)

    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        return np.asarray(log_expit((theta @ X.T) * (2.0 * y - 1.0)))

    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        return np.asarray((y - expit(theta @ X.T)) @ X)

    def _predictive(self, theta: Array, X: Array) -> Array:
        return np.asarray(expit(theta @ X.T))

    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        return (rng.random(means.shape) < means).astype(np.float64)


def sum_log_expit(A: Array, theta: Array) -> Array:
    """``Σ_i log expit(a_iᵀθ_s)`` without one logarithm for each term; (N, k) and (S, k) -> (S,).

    ``log expit(z) = min(z, 0) − log(1 + exp(−|z|))``, and the sum of the logarithms is that of a product. A
    block of z, rows by draws, stays in cache, and all passes over it are vector instructions over the draws.
    """
    total = np.zeros(len(theta))
    for draws, rows in blocks(len(theta), len(A)):
        z = A[rows] @ theta[draws].T
        w = np.minimum(z, 0.0)
        total[draws] += np.ones(len(w)) @ w
        z -= w  # max(z, 0)
        w -= z  # −|z|
        np.exp(w, out=w)
        w += 1.0
        total[draws] -= sum_log(w, largest=2.0)
    return total


def sum_log(factors: Array, largest: float) -> Array:
    """``Σ_i log f_is`` of factors between 1 and ``largest``, (n, S) -> (S,): one log for a long product."""
    length = int(1000 / np.log2(largest))  # 2¹⁰⁰⁰ does not overflow
    if len(factors) <= length:
        return np.asarray(np.log(np.multiply.reduce(factors, axis=0)))
    starts = np.arange(0, len(factors), length)
    return np.asarray(np.log(np.multiply.reduceat(factors, starts, axis=0)).sum(axis=0))
