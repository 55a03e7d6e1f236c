"""The diagonal covariance: a family array is a (d,) vector and every operation is elementwise."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.families.base import Family, Indices, positive_roots


class Diagonal(Family):
    """Independent coordinates (mean field), dimension ``dim``: d parameters.

    Examples
    --------
    >>> Diagonal(3).num_monomials
    7
    """

    name = "diagonal"

    def __init__(self, dim: int) -> None:
        self.dim = positive_integer(dim, "dim")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dim,)

    @property
    def num_monomials(self) -> int:
        return 1 + 2 * self.dim

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
        if isinstance(other, Diagonal):
            return np.square(R / L)
        return other.precision_blocks(R, np.arange(self.dim)[:, None]).ravel() / np.square(L)

    def cholesky(self, F: Array) -> Array:
        return positive_roots(F)

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

    def precision_blocks(self, L: Array, blocks: Indices) -> Array:
        return np.square(L[blocks])[..., None] * np.eye(blocks.shape[-1])

    def covariance(self, L: Array) -> Array:
        return np.diag(self.variances(L))

    def variances(self, L: Array) -> Array:
        return 1.0 / np.square(L)
