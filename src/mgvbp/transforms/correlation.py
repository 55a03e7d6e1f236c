"""Cholesky factors of correlation matrices."""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.transforms.base import Transform

TOLERANCE = 1e-8
"""How far from one the norm of a row of a given factor may be."""
TINY = np.finfo(np.float64).tiny


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
