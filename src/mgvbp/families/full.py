"""The full covariance: a family array is a (d, d) matrix in Fortran order, and every operation is BLAS-3."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk, dtrmm, dtrsm

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import (
    Array,
    add_to_diagonal,
    cholesky,
    cholesky_reversed,
    symmetric_conjugate,
    symmetric_part,
    triangular_product,
)
from mgvbp.families.base import Family, Indices


class Full(Family):
    """Unrestricted covariance of dimension ``dim``: d(d+1)/2 parameters.

    Examples
    --------
    >>> Full(3).num_monomials
    10
    """

    name = "full"

    def __init__(self, dim: int) -> None:
        self.dim = positive_integer(dim, "dim")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim, self.dim)

    @property
    def num_monomials(self) -> int:
        return (self.dim + 1) * (self.dim + 2) // 2

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        i, j = np.triu_indices(self.dim)
        return i, j

    # Rows of v are vectors, so v.T is the (d, S) matrix in Fortran order that BLAS needs.

    def from_frame(self, L: Array, v: Array) -> Array:
        return dtrsm(1.0, L, np.atleast_2d(v).T, lower=1, trans_a=1).T.reshape(v.shape)

    def to_frame(self, L: Array, v: Array) -> Array:
        return dtrmm(1.0, L, np.atleast_2d(v).T, lower=1, trans_a=1).T.reshape(v.shape)

    def solve(self, L: Array, v: Array) -> Array:
        return dtrsm(1.0, L, np.atleast_2d(v).T, lower=1).T.reshape(v.shape)

    def times(self, L: Array, v: Array) -> Array:
        return dtrmm(1.0, L, np.atleast_2d(v).T, lower=1).T.reshape(v.shape)

    def moment(self, eps: Array, weights: Array | None = None) -> Array:
        if weights is None:
            A = eps.T @ eps  # NumPy sees the symmetry and calls syrk
            A /= len(eps)
            return A.T
        A = symmetric_part((eps * weights[:, None]).T @ eps)
        A /= len(eps)
        return A

    def cross_moment(self, u: Array, v: Array) -> Array:
        A = symmetric_part(u.T @ v)
        A /= len(u)
        return A

    def shift(self, A: Array, c: float | Array) -> Array:
        return add_to_diagonal(A.copy(order="K"), c)

    def retraction(self, A: Array, beta: float) -> Array:
        return add_to_diagonal(dsyrk(0.5 * beta * beta, A, beta=beta, c=A, lower=1), 1.0)

    def exponential(self, A: Array, beta: float) -> Array:
        values, Q = eigh(A, check_finite=False)
        return dsyrk(1.0, Q * np.exp(0.5 * beta * values), lower=1)

    def from_pairs(self, coefficients: Array) -> Array:
        Q = np.zeros((self.dim, self.dim), order="F")
        Q[self.pairs] = coefficients
        return symmetric_part(Q)

    def from_dense(self, A: Array) -> Array:
        return np.array(A, order="F")

    def precision_tangent(self, L: Array, G: Array) -> Array:
        X = dtrmm(1.0, L, G, lower=1)
        return symmetric_part(dtrmm(1.0, L, X, side=1, lower=1, trans_a=1, overwrite_b=1))

    def covariance_tangent(self, L: Array, G: Array) -> Array:
        X = dtrsm(1.0, L, G, lower=1, trans_a=1)
        return symmetric_part(dtrsm(1.0, L, X, side=1, lower=1, overwrite_b=1))

    def whiten(self, K: Array, A: Array) -> Array:
        X = dtrsm(1.0, K, A, lower=1)
        return symmetric_part(dtrsm(1.0, K, X, side=1, lower=1, trans_a=1, overwrite_b=1))

    def whitened_precision(self, L: Array, other: Family, R: Array) -> Array:
        X = dtrsm(1.0, L, other.dense_factor(R), lower=1)
        return (X @ X.T).T

    def cholesky(self, F: Array) -> Array:
        return cholesky(F, overwrite=True)

    def cholesky_reversed(self, F: Array) -> Array:
        return cholesky_reversed(F)

    def product(self, L: Array, K: Array) -> Array:
        return triangular_product(L, K)

    def quotient(self, L: Array, W: Array) -> Array:
        return dtrsm(1.0, W, L, side=1, lower=1)

    def conjugate(self, K: Array, M: Array) -> Array:
        return symmetric_conjugate(K, M)

    def conjugate_inverse(self, W: Array, M: Array) -> Array:
        X = dtrmm(1.0, W, M, lower=1)
        return symmetric_part(dtrsm(1.0, W, X, side=1, lower=1, overwrite_b=1))

    def diagonal(self, L: Array) -> Array:
        return L.diagonal()

    def dense_factor(self, L: Array) -> Array:
        return L

    def precision_blocks(self, L: Array, blocks: Indices) -> Array:
        rows = L[blocks]
        return np.asarray(rows @ rows.swapaxes(-1, -2))

    def covariance(self, L: Array) -> Array:
        X = self._inverse(L)
        return X.T @ X

    def variances(self, L: Array) -> Array:
        X = self._inverse(L)
        return np.asarray(np.einsum("ij,ij->j", X, X))

    def _inverse(self, L: Array) -> Array:
        return dtrsm(1.0, L, np.eye(self.dim, order="F"), lower=1, overwrite_b=1)
