"""The diagonal covariance: a family array is a (d,) vector and every operation is elementwise."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mgvbp._linalg import Array
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.families.base import Family, Indices


class Diagonal(Family):
    """Independent coordinates (mean field), dimension ``dim``: d parameters.

    Examples
    --------
    >>> Diagonal(3).num_monomials
    7
    """

    name = "diagonal"

    def __init__(self, dim: int) -> None:
        self.dim = dim

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        return np.arange(self.dim), np.arange(self.dim)

    def from_frame(self, L: Array, v: Array) -> Array:
        return v / L

    def to_frame(self, L: Array, v: Array) -> Array:
        return v * L

    def solve(self, L: Array, v: Array) -> Array:
        return v / L

    def times(self, L: Array, v: Array) -> Array:
        return v * L

    def moment(self, eps: Array, weights: Array | None = None) -> Array:
        squares = eps * eps
        return squares.mean(axis=0) if weights is None else weights @ squares / len(eps)

    def cross_moment(self, u: Array, v: Array) -> Array:
        return np.asarray((u * v).mean(axis=0))

    def shift(self, A: Array, c: float | Array) -> Array:
        return A + c

    def retraction(self, A: Array, beta: float) -> Array:
        X = beta * A
        return 1.0 + X * (1.0 + 0.5 * X)

    def exponential(self, A: Array, beta: float) -> Array:
        return np.exp(beta * A)

    def from_pairs(self, coefficients: Array) -> Array:
        return coefficients.copy()

    def from_dense(self, A: Array) -> Array:
        return A.diagonal().copy()

    def precision_tangent(self, L: Array, G: Array) -> Array:
        return L * G * L

    def covariance_tangent(self, L: Array, G: Array) -> Array:
        return G / L / L

    def whiten(self, K: Array, A: Array) -> Array:
        return A / K / K

    def whitened_precision(self, L: Array, other: Family, R: Array) -> Array:
        rows = R if isinstance(other, Diagonal) else np.linalg.norm(other.dense_factor(R), axis=1)
        return np.square(rows / L)

    def factor(self, *, variance: Array | None = None, precision: Array | None = None) -> Array:
        if precision is not None:
            return self.cholesky(self._vector(precision))
        assert variance is not None
        return 1.0 / self.cholesky(self._vector(variance))

    def _vector(self, value: Array) -> Array:
        return value.diagonal() if value.ndim == 2 else np.broadcast_to(value, self.dim)

    def cholesky(self, F: Array) -> Array:
        if not ((F > 0.0) & (np.inf > F)).all():
            raise NotPositiveDefiniteError("the diagonal matrix is not positive definite")
        return np.sqrt(F)

    def cholesky_reversed(self, F: Array) -> Array:
        return self.cholesky(F)

    def product(self, L: Array, K: Array) -> Array:
        return L * K

    def quotient(self, L: Array, W: Array) -> Array:
        return L / W

    def conjugate(self, K: Array, M: Array) -> Array:
        return M

    def conjugate_inverse(self, W: Array, M: Array) -> Array:
        return M

    def diagonal(self, L: Array) -> Array:
        return L

    def dense_factor(self, L: Array) -> Array:
        return np.asfortranarray(np.diag(L))

    def precision_block(self, L: Array, block: Indices) -> Array:
        return np.diag(np.square(L[block]))

    def covariance(self, L: Array) -> Array:
        return np.diag(self.variances(L))

    def variances(self, L: Array) -> Array:
        return 1.0 / np.square(L)
