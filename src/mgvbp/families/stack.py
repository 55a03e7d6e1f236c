"""Many small blocks of one size, on which each operation is one NumPy call for all blocks.

The matrices are a stack (B, k, k); the vectors (S, B k) have the blocks' entries one behind the other. Solves
multiply by the inverses of the triangles, which cost B k³/3 multiplications. For few or large blocks BLAS-3, block by
block, is faster; `mgvbp.families.parts` chooses between the two.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mgvbp.core.linalg import (
    Array,
    add_to_diagonal,
    stacked_cholesky,
    stacked_cholesky_reversed,
    stacked_inverse,
    stacked_product,
    symmetric_part,
)
from mgvbp.families.base import Indices


class Stack:
    """``count`` blocks of ``size`` parameters; the operations are those of `Family`, on stacks of matrices.

    Examples
    --------
    >>> two = Stack(count=2, size=3)
    >>> two.moment(np.ones((5, 6))).shape
    (2, 3, 3)
    """

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size, self.dim = count, size, count * size
        self.shape = (count, size, size)

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        """The (i, j) of the products ``ε_i ε_j``, block by block."""
        first = self.size * np.arange(self.count)[:, None]
        i, j = np.triu_indices(self.size)
        return (first + i).ravel(), (first + j).ravel()

    def _rows(self, v: Array) -> Array:
        """Vectors (d,) or (S, d) as a view (B, S, k)."""
        return v.reshape(-1, self.count, self.size).swapaxes(0, 1)

    def _times(self, v: Array, T: Array) -> Array:
        """Each row of ``v``, block by block, times the matrix of the block."""
        out = np.empty(v.shape)
        np.matmul(self._rows(v), T, out=self._rows(out))
        return out

    def from_frame(self, L: Array, v: Array) -> Array:
        return self._times(v, stacked_inverse(L))

    def to_frame(self, L: Array, v: Array) -> Array:
        return self._times(v, L)

    def solve(self, L: Array, v: Array) -> Array:
        return self._times(v, stacked_inverse(L).swapaxes(1, 2))

    def times(self, L: Array, v: Array) -> Array:
        return self._times(v, L.swapaxes(1, 2))

    def moment(self, eps: Array, weights: Array | None = None) -> Array:
        if weights is not None:
            return self.cross_moment(eps * weights[:, None], eps)
        rows = self._rows(eps)
        A: Array = np.matmul(rows.swapaxes(1, 2), rows)  # NumPy sees the symmetry and calls syrk
        A /= len(eps)
        return A.swapaxes(1, 2)

    def cross_moment(self, u: Array, v: Array) -> Array:
        A = symmetric_part(np.matmul(self._rows(u).swapaxes(1, 2), self._rows(v)))
        A /= len(u)
        return A

    def shift(self, A: Array, c: float | Array) -> Array:
        return add_to_diagonal(A.copy(order="K"), np.broadcast_to(c, self.dim).reshape(self.count, self.size))

    def retraction(self, A: Array, beta: float) -> Array:
        X = beta * A
        F = stacked_product(X, X)
        F *= 0.5
        F += X
        return add_to_diagonal(F, 1.0)

    def exponential(self, A: Array, beta: float) -> Array:
        values, Q = np.linalg.eigh(A)
        Q *= np.exp(0.5 * beta * values)[:, None, :]
        return stacked_product(Q, Q.swapaxes(1, 2))

    def from_pairs(self, coefficients: Array) -> Array:
        i, j = np.triu_indices(self.size)
        Q = np.zeros(self.shape)
        Q[:, i, j] = coefficients.reshape(self.count, -1)
        return symmetric_part(Q)

    def precision_tangent(self, L: Array, G: Array) -> Array:
        return symmetric_part(stacked_product(stacked_product(L, G), L.swapaxes(1, 2)))

    def covariance_tangent(self, L: Array, G: Array) -> Array:
        return self.precision_tangent(stacked_inverse(L).swapaxes(1, 2), G)

    def whiten(self, K: Array, A: Array) -> Array:
        return self.precision_tangent(stacked_inverse(K), A)

    def cholesky(self, F: Array) -> Array:
        return stacked_cholesky(F)

    def cholesky_reversed(self, F: Array) -> Array:
        return stacked_cholesky_reversed(F)

    def product(self, L: Array, K: Array) -> Array:
        return stacked_product(L, K)

    def quotient(self, L: Array, W: Array) -> Array:
        return stacked_product(L, stacked_inverse(W))

    def conjugate(self, K: Array, M: Array) -> Array:
        return symmetric_part(stacked_product(stacked_inverse(K), stacked_product(M, K)))

    def conjugate_inverse(self, W: Array, M: Array) -> Array:
        return symmetric_part(stacked_product(stacked_product(W, M), stacked_inverse(W)))

    def diagonal(self, L: Array) -> Array:
        return np.diagonal(L, axis1=1, axis2=2).ravel()

    def precision(self, L: Array) -> Array:
        return stacked_product(L, L.swapaxes(1, 2))

    def covariance(self, L: Array) -> Array:
        X = stacked_inverse(L)
        return stacked_product(X.swapaxes(1, 2), X)

    def variances(self, L: Array) -> Array:
        X = stacked_inverse(L)
        return np.asarray(np.einsum("bij,bij->bj", X, X)).ravel()
