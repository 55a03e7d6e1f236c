"""Block-diagonal covariance: a family array holds the blocks, each in Fortran order, end to end.

The structure is the direct sum of parts: stacks of small blocks of one size, and single blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.base import Family, Indices
from mgvbp.families.partition import named_partition, names_of, partition
from mgvbp.families.parts import parts_of, square

SHOWN = 30
"""Largest number of parameters for which the blocks are shown in full."""


class BlockDiagonal(Family):
    """Independent blocks of parameters with a full covariance inside each (the paper's Algorithm 2).

    Parameters
    ----------
    blocks : sequence of int, or sequence of sequences of int or str
        Sizes of consecutive blocks, or the parameter indices of each block. Blocks need not be
        contiguous; together they must hold each of 0, ..., d-1 once. For a model with named parameters, blocks can
        also be lists of names: ``"beta"`` stands for all of its entries, ``"beta[0]"`` for one.

    Examples
    --------
    >>> BlockDiagonal([8, 1]).dim
    9
    >>> BlockDiagonal([[0, 2], [1]]).num_monomials
    8
    >>> BlockDiagonal([["sigma"], ["beta"]]).resolved(["beta[0]", "beta[1]", "sigma"])
    BlockDiagonal([[2], [0, 1]])
    >>> BlockDiagonal([10] * 10_000)
    <BlockDiagonal of 10,000 blocks, d = 100,000>
    """

    name = "block"

    def __init__(self, blocks: Sequence[int] | Sequence[Sequence[int]] | Sequence[Sequence[str]]) -> None:
        self.names = names_of(blocks)
        self.blocks = [] if self.names else partition(blocks)
        self.dim = sum(len(block) for block in self.blocks)
        self._parts = parts_of(self.blocks)

    def resolved(self, labels: Sequence[str] | None) -> BlockDiagonal:
        """The same blocks by index, if they were given by name; ``labels`` are those of the parameters."""
        if self.names is None:
            return self
        if labels is None:
            raise InvalidInputError(
                f"{self!r} has names, but the parameters have none: give indices, as in "
                "BlockDiagonal([[0, 1], [2]]), or fit a model that has named parameters, such as a mgvbp.Model"
            )
        return BlockDiagonal(named_partition(self.names, labels))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return (sum(len(block) ** 2 for block in self.blocks),)

    @property
    def num_monomials(self) -> int:
        return 1 + self.dim + (self.shape[0] + self.dim) // 2

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        i, j = (np.concatenate([p.blocks.ravel()[p.family.pairs[k]] for p in self._parts]) for k in (0, 1))
        return i, j

    # --- from family arrays to the parts' matrices, and back ---------------------------------------

    def _views(self, A: Array) -> list[Array]:
        return [A[part.entries].reshape(part.family.shape).swapaxes(-1, -2) for part in self._parts]

    def _pack(self, matrices: Iterable[Array]) -> Array:
        flat = (matrix.swapaxes(-1, -2).reshape(-1) for matrix in matrices)
        if len(self._parts) == 1:
            return next(flat)
        out = np.empty(self.shape)
        for part, entries in zip(self._parts, flat, strict=True):
            out[part.entries] = entries
        return out

    def _blockwise(self, operation: Callable[..., Array], *arrays: Array) -> Array:
        views = zip(self._parts, *map(self._views, arrays), strict=True)
        return self._pack(operation(part.family, *view) for part, *view in views)

    def _rowwise(self, operation: Callable[..., Array], L: Array, v: Array) -> Array:
        parts = zip(self._parts, self._views(L), strict=True)
        return self._joined(
            (operation(part.family, view, np.ascontiguousarray(v[..., part.where])) for part, view in parts),
            v.shape,
        )

    def _vector(self, operation: Callable[..., Array], L: Array) -> Array:
        parts = zip(self._parts, self._views(L), strict=True)
        return self._joined((operation(part.family, view) for part, view in parts), (self.dim,))

    def _joined(self, vectors: Iterable[Array], shape: tuple[int, ...]) -> Array:
        """Vectors (d,) or (S, d) joined from those of the parts; that of a single part in order is not copied."""
        first = self._parts[0]
        if len(self._parts) == 1 and isinstance(first.where, slice):
            return next(iter(vectors))
        out = np.empty(shape)
        for part, vector in zip(self._parts, vectors, strict=True):
            out[..., part.where] = vector
        return out

    def _dense(self, matrices: Iterable[Array]) -> Array:
        out = np.zeros((self.dim, self.dim), order="F")
        for part, matrix in zip(self._parts, matrices, strict=True):
            out[square(part.blocks)] = matrix
        return out

    # --- the operations ---------------------------------------------------------------------------

    def from_frame(self, L: Array, v: Array) -> Array:
        return self._rowwise(lambda f, L, v: f.from_frame(L, v), L, v)

    def to_frame(self, L: Array, v: Array) -> Array:
        return self._rowwise(lambda f, L, v: f.to_frame(L, v), L, v)

    def solve(self, L: Array, v: Array) -> Array:
        return self._rowwise(lambda f, L, v: f.solve(L, v), L, v)

    def times(self, L: Array, v: Array) -> Array:
        return self._rowwise(lambda f, L, v: f.times(L, v), L, v)

    def moment(self, eps: Array, weights: Array | None = None) -> Array:
        return self._pack(part.family.moment(eps[:, part.where], weights) for part in self._parts)

    def cross_moment(self, u: Array, v: Array) -> Array:
        return self._pack(p.family.cross_moment(u[:, p.where], v[:, p.where]) for p in self._parts)

    def shift(self, A: Array, c: float | Array) -> Array:
        c = np.broadcast_to(c, self.dim)
        parts = zip(self._parts, self._views(A), strict=True)
        return self._pack(part.family.shift(view, c[part.where]) for part, view in parts)

    def retraction(self, A: Array, beta: float) -> Array:
        return self._blockwise(lambda f, A: f.retraction(A, beta), A)

    def exponential(self, A: Array, beta: float) -> Array:
        return self._blockwise(lambda f, A: f.exponential(A, beta), A)

    def from_pairs(self, coefficients: Array) -> Array:
        splits = np.cumsum([len(part.family.pairs[0]) for part in self._parts])[:-1]
        parts = zip(self._parts, np.split(coefficients, splits), strict=True)
        return self._pack(part.family.from_pairs(its_own) for part, its_own in parts)

    def from_dense(self, A: Array) -> Array:
        return self._pack(A[square(part.blocks)] for part in self._parts)

    def precision_tangent(self, L: Array, G: Array) -> Array:
        return self._blockwise(lambda f, L, G: f.precision_tangent(L, G), L, G)

    def covariance_tangent(self, L: Array, G: Array) -> Array:
        return self._blockwise(lambda f, L, G: f.covariance_tangent(L, G), L, G)

    def whiten(self, K: Array, A: Array) -> Array:
        return self._blockwise(lambda f, K, A: f.whiten(K, A), K, A)

    def whitened_precision(self, L: Array, other: Family, R: Array) -> Array:
        return self.whiten(L, self._pack(other.precision_blocks(R, part.blocks) for part in self._parts))

    def cholesky(self, F: Array) -> Array:
        return self._blockwise(lambda f, F: f.cholesky(F), F)

    def cholesky_reversed(self, F: Array) -> Array:
        return self._blockwise(lambda f, F: f.cholesky_reversed(F), F)

    def product(self, L: Array, K: Array) -> Array:
        return self._blockwise(lambda f, L, K: f.product(L, K), L, K)

    def quotient(self, L: Array, W: Array) -> Array:
        return self._blockwise(lambda f, L, W: f.quotient(L, W), L, W)

    def conjugate(self, K: Array, M: Array) -> Array:
        return self._blockwise(lambda f, K, M: f.conjugate(K, M), K, M)

    def conjugate_inverse(self, W: Array, M: Array) -> Array:
        return self._blockwise(lambda f, W, M: f.conjugate_inverse(W, M), W, M)

    def diagonal(self, L: Array) -> Array:
        return self._vector(lambda f, L: f.diagonal(L), L)

    def dense_factor(self, L: Array) -> Array:
        return self._dense(self._views(L))

    def precision(self, L: Array) -> Array:
        return self._dense(self._views(self._precision(L)))

    def _precision(self, L: Array) -> Array:
        return self._blockwise(lambda f, L: f.precision(L), L)

    def precision_blocks(self, L: Array, blocks: Indices) -> Array:
        block, size, start, position = self._places
        i, j = blocks[..., :, None], blocks[..., None, :]
        inside = block[i] == block[j]
        at = np.where(inside, start[i] + size[i] * position[j] + position[i], 0)
        return np.where(inside, self._precision(L)[at], 0.0)

    @cached_property
    def _places(self) -> tuple[Indices, Indices, Indices, Indices]:
        """For each parameter: its block, the block's size and start in a family array, its position in the block."""
        sizes = np.array([len(block) for block in self.blocks])
        starts = np.cumsum(sizes**2) - sizes**2
        back = np.argsort(np.concatenate(self.blocks))
        block = np.repeat(np.arange(len(sizes)), sizes)[back]
        position = np.concatenate([np.arange(size) for size in sizes])[back]
        return block, sizes[block], starts[block], position

    def covariance(self, L: Array) -> Array:
        parts = zip(self._parts, self._views(L), strict=True)
        return self._dense(part.family.covariance(view) for part, view in parts)

    def variances(self, L: Array) -> Array:
        return self._vector(lambda f, L: f.variances(L), L)

    def __repr__(self) -> str:
        if self.dim > SHOWN:
            return f"<BlockDiagonal of {len(self.blocks):,} blocks, d = {self.dim:,}>"
        return f"BlockDiagonal({self.names or [block.tolist() for block in self.blocks]})"
