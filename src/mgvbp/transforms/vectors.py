"""Constraints on whole vectors and matrices: increasing numbers, probabilities, Cholesky factors of correlations."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import helmert
from scipy.special import log_softmax

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.transforms.base import Transform, just_inside

TOLERANCE = 1e-8
"""How far from one the sum of given probabilities, or the norm of a row of a given factor, may be."""
TINY = np.finfo(np.float64).tiny
"""The smallest normal float: what is left of a row of a factor stays at least as large."""


class Ordered(Transform):
    """``n`` increasing numbers: ``v_0 = x_0``, ``v_i = v_{i−1} + exp(x_i)``.

    The Jacobian is triangular: its log-determinant is ``x_1 + … + x_{n−1}``.

    Examples
    --------
    >>> Ordered(3).constrain([[-1.0, 0.0, 0.0]])
    array([[-1.,  0.,  1.]])
    """

    def __init__(self, n: int) -> None:
        n = positive_integer(n, "n")
        super().__init__((n,), (n,), n)

    def _constrain(self, x: Array) -> Array:
        value = x.copy()
        with np.errstate(over="ignore"):
            steps = np.exp(x)
            for i in range(1, self.size):
                before = value[:, i - 1]
                # a step below the resolution still goes up by one float, so that the order stays strict
                value[:, i] = np.maximum(before + steps[:, i], np.nextafter(before, np.inf))
        return value

    def _unconstrain(self, value: Array) -> Array:
        self._require(value[:, 1:] > value[:, :-1], value, "strictly increasing numbers")
        return np.concatenate([value[:, :1], np.log(np.diff(value, axis=1))], axis=1)

    def _log_jacobian(self, x: Array) -> Array:
        return np.asarray(x[:, 1:].sum(axis=1))


class Simplex(Transform):
    """``n`` positive numbers with sum one, from n − 1 real numbers: ``p = softmax(x H)``.

    The rows of the Helmert matrix ``H`` (n − 1, n) are an orthonormal basis of the vectors with sum zero:
    ``x`` is the isometric log-ratio of ``p`` (Egozcue et al. 2003), and a Gaussian ``x`` is Aitchison's
    logistic-normal. We prefer it to breaking a stick because another order of the categories is an orthogonal
    map of ``x``: the Gaussian approximation of the full family does not depend on the order. Also, the log
    density of a Dirichlet is concave in ``x``.

    The Jacobian is that of the first n − 1 probabilities, to which the density of a Dirichlet refers as well:
    ``log |J| = Σ log p_i + ½ log n``.

    Examples
    --------
    >>> Simplex(3).constrain([[0.0, 0.0], [1.0, 0.0]]).round(3)
    array([[0.333, 0.333, 0.333],
           [0.576, 0.14 , 0.284]])
    """

    def __init__(self, n: int) -> None:
        n = positive_integer(n, "n", least=2)
        super().__init__((n,), (n,), n - 1)

    def _constrain(self, x: Array) -> Array:
        return just_inside(np.exp(self._log_probabilities(x)), 0.0, 1.0)

    def _unconstrain(self, value: Array) -> Array:
        inside = (value > 0.0).all(axis=1) & (np.abs(value.sum(axis=1) - 1.0) < TOLERANCE)
        self._require(inside, value, "positive numbers with sum one")
        return np.asarray(np.log(value) @ helmert(self.shape[0]).T)

    def _log_jacobian(self, x: Array) -> Array:
        return np.asarray(self._log_probabilities(x).sum(axis=1) + 0.5 * math.log(self.shape[0]))

    def _log_probabilities(self, x: Array) -> Array:
        return np.asarray(log_softmax(x @ helmert(self.shape[0]), axis=1))


class CorrelationCholesky(Transform):
    """The lower Cholesky factor ``L`` of an n×n correlation matrix ``R = L Lᵀ``, from n(n−1)/2 real numbers.

    Each number is the inverse hyperbolic tangent of a canonical partial correlation (Lewandowski, Kurowicka
    and Joe 2009), row after row below the diagonal. With ``z = tanh x``, row i is built by breaking a stick:

        ``L_ij = z_ij r_ij``,  ``r_{i,j+1} = r_ij √(1 − z_ij²)``,  ``r_i0 = 1``,  ``L_ii = r_ii``.

    The Jacobian is that of the map to the entries of ``L`` below its diagonal. For a density π of the
    correlation matrix, give ``L`` the prior ``π(L Lᵀ) Π_i L_ii^(n−i)``, i = 1..n, where the product is the
    Jacobian from ``L`` to ``R``; the LKJ(η) distribution is ``Π_i L_ii^(n−i+2η−2)`` up to its constant.

    Examples
    --------
    >>> L = CorrelationCholesky(2).constrain([[0.5]])[0]
    >>> (L @ L.T).round(3)
    array([[1.   , 0.462],
           [0.462, 1.   ]])
    """

    def __init__(self, n: int) -> None:
        n = positive_integer(n, "n", least=2)
        super().__init__((n,), (n, n), n * (n - 1) // 2)

    def _constrain(self, x: Array) -> Array:
        n = self.shape[0]
        X = np.zeros((len(x), n, n))
        X[:, *np.tril_indices(n, -1)] = x
        L, Z, sech = np.zeros_like(X), np.tanh(X), np.exp(log_sech(X))
        r = np.ones((len(x), n))
        for j in range(n):
            L[:, j, j] = r[:, j]
            L[:, j + 1 :, j] = Z[:, j + 1 :, j] * r[:, j + 1 :]
            r[:, j + 1 :] = np.maximum(r[:, j + 1 :] * sech[:, j + 1 :, j], TINY)
        return L

    def _unconstrain(self, value: Array) -> Array:
        n = self.shape[0]
        diagonal = np.diagonal(value, axis1=1, axis2=2)
        inside = (
            (diagonal > 0.0).all(axis=1)
            & (np.triu(value, 1) == 0.0).all(axis=(1, 2))
            & (np.abs(np.linalg.norm(value, axis=2) - 1.0) < TOLERANCE).all(axis=1)
        )
        self._require(inside, value, "a lower triangular matrix with positive diagonal and rows of norm one")
        x, r = np.zeros_like(value), diagonal.copy()
        for j in reversed(range(n - 1)):
            column = value[:, j + 1 :, j]
            # z/√(1−z²) = sinh x is L_ij / r_{i,j+1}: no cancellation for correlations near ±1
            x[:, j + 1 :, j] = np.arcsinh(column / r[:, j + 1 :])
            r[:, j + 1 :] = np.hypot(r[:, j + 1 :], column)
        return x[:, *np.tril_indices(n, -1)]

    def _log_jacobian(self, x: Array) -> Array:
        # The Jacobian is triangular with ∂L_ij/∂x_ij = r_ij (1 − z_ij²). √(1 − z_ij²) is also a factor of r for the
        # i−1−j entries after it in the row.
        i, j = np.tril_indices(self.shape[0], -1)
        return log_sech(x) @ (2.0 + (i - 1 - j))


def log_sech(x: Array) -> Array:
    """``log(1/cosh x) = ½ log(1 − tanh² x)``."""
    a = np.abs(x)
    return math.log(2.0) - a - np.log1p(np.exp(-2.0 * a))
