"""Block-diagonal covariance: a family array holds the blocks end to end; each block is a `Full` family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from mgvbp._linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.families.base import Family, Indices
from mgvbp.families.full import Full


class BlockDiagonal(Family):
    """Independent blocks of parameters with a full covariance inside each (the paper's Algorithm 2).

    Parameters
    ----------
    blocks : sequence of int, or sequence of sequences of int or str
        Sizes of consecutive blocks, or the parameter indices of each block. Blocks need not be
        contiguous; together they must hold each of 0, ..., d-1 once. Or names, where the model has named
        parameters: all of ``"beta"``, or one entry, ``"beta[0]"``.

    Examples
    --------
    >>> BlockDiagonal([8, 1]).dim
    9
    >>> BlockDiagonal([[0, 2], [1]]).num_monomials
    8
    >>> BlockDiagonal([["sigma"], ["beta"]]).resolved(["beta[0]", "beta[1]", "sigma"])
    BlockDiagonal([[2], [0, 1]])
    """

    name = "block"

    def __init__(self, blocks: Sequence[int] | Sequence[Sequence[int]] | Sequence[Sequence[str]]) -> None:
        self.names = _names(blocks)
        self.blocks = [] if self.names else _partition(blocks)
        self.dim = sum(len(block) for block in self.blocks)
        self._families = [Full(len(block)) for block in self.blocks]
        self._offsets = np.cumsum([0, *(len(block) ** 2 for block in self.blocks)])

    def resolved(self, labels: Sequence[str] | None) -> BlockDiagonal:
        """The blocks as indices, where they were given as names; ``labels`` are those of the parameters."""
        if self.names is None:
            return self
        if labels is None:
            raise InvalidInputError(
                f"{self!r} has names, but the parameters have none: give indices, as in "
                "BlockDiagonal([[0, 1], [2]]), or fit a model that has named parameters, such as a mgvbp.Model"
            )
        indices: dict[str, list[int]] = {}
        for i, label in enumerate(labels):
            for name in {label, label.partition("[")[0]}:
                indices.setdefault(name, []).append(i)
        if unknown := [name for block in self.names for name in block if name not in indices]:
            raise InvalidInputError(
                f"no parameter is called {', '.join(unknown)}; there are {', '.join(labels)}"
            )
        blocks = [[i for name in block for i in indices[name]] for block in self.names]
        times = Counter(labels[i] for block in blocks for i in block)
        missing = [label for label in labels if label not in times]
        twice = [label for label in times if times[label] > 1]
        if missing or twice:
            raise InvalidInputError(
                "the blocks must hold each parameter once: "
                f"missing {', '.join(missing) or 'none'}, repeated {', '.join(twice) or 'none'}"
            )
        return BlockDiagonal(blocks)

    @cached_property
    def pairs(self) -> tuple[Indices, Indices]:
        i, j = (np.concatenate([block[f.pairs[k]] for block, f in self._parts()]) for k in (0, 1))
        return i, j

    def _parts(self) -> Iterator[tuple[Indices, Full]]:
        return zip(self.blocks, self._families, strict=True)

    def _views(self, A: Array) -> list[Array]:
        return [
            A[a : a + f.dim**2].reshape((f.dim, f.dim), order="F")
            for a, f in zip(self._offsets[:-1], self._families, strict=True)
        ]

    def _pack(self, matrices: Iterator[Array]) -> Array:
        out = np.empty(self._offsets[-1])
        for view, matrix in zip(self._views(out), matrices, strict=True):
            view[...] = matrix
        return out

    def _blockwise(self, operation: Callable[..., Array], *arrays: Array) -> Array:
        views = zip(self._families, *(self._views(A) for A in arrays), strict=True)
        return self._pack(operation(*block) for block in views)

    def _rowwise(self, operation: Callable[[Full, Array, Array], Array], L: Array, v: Array) -> Array:
        out = np.empty_like(v)
        for (block, family), view in zip(self._parts(), self._views(L), strict=True):
            out[..., block] = operation(family, view, np.ascontiguousarray(v[..., block]))
        return out

    def from_frame(self, L: Array, v: Array) -> Array:
        return self._rowwise(Full.from_frame, L, v)

    def to_frame(self, L: Array, v: Array) -> Array:
        return self._rowwise(Full.to_frame, L, v)

    def solve(self, L: Array, v: Array) -> Array:
        return self._rowwise(Full.solve, L, v)

    def times(self, L: Array, v: Array) -> Array:
        return self._rowwise(Full.times, L, v)

    def moment(self, eps: Array, weights: Array | None = None) -> Array:
        return self._pack(family.moment(eps[:, block], weights) for block, family in self._parts())

    def cross_moment(self, u: Array, v: Array) -> Array:
        return self._pack(f.cross_moment(u[:, block], v[:, block]) for block, f in self._parts())

    def shift(self, A: Array, c: float | Array) -> Array:
        c = np.broadcast_to(c, self.dim)
        parts = zip(self._parts(), self._views(A), strict=True)
        return self._pack(family.shift(view, c[block]) for (block, family), view in parts)

    def retraction(self, A: Array, beta: float) -> Array:
        return self._blockwise(partial(Full.retraction, beta=beta), A)

    def exponential(self, A: Array, beta: float) -> Array:
        return self._blockwise(partial(Full.exponential, beta=beta), A)

    def from_pairs(self, coefficients: Array) -> Array:
        splits = np.cumsum([len(f.pairs[0]) for f in self._families])[:-1]
        parts = zip(self._families, np.split(coefficients, splits), strict=True)
        return self._pack(family.from_pairs(part) for family, part in parts)

    def from_dense(self, A: Array) -> Array:
        return self._pack(A[np.ix_(block, block)] for block in self.blocks)

    def precision_tangent(self, L: Array, G: Array) -> Array:
        return self._blockwise(Full.precision_tangent, L, G)

    def covariance_tangent(self, L: Array, G: Array) -> Array:
        return self._blockwise(Full.covariance_tangent, L, G)

    def whiten(self, K: Array, A: Array) -> Array:
        return self._blockwise(Full.whiten, K, A)

    def whitened_precision(self, L: Array, other: Family, R: Array) -> Array:
        return self.whiten(L, self._pack(other.precision_block(R, block) for block in self.blocks))

    def factor(self, *, variance: Array | None = None, precision: Array | None = None) -> Array:
        return self._pack(
            family.factor(variance=_restrict(variance, block), precision=_restrict(precision, block))
            for block, family in self._parts()
        )

    def cholesky(self, F: Array) -> Array:
        return self._blockwise(Full.cholesky, F)

    def cholesky_reversed(self, F: Array) -> Array:
        return self._blockwise(Full.cholesky_reversed, F)

    def product(self, L: Array, K: Array) -> Array:
        return self._blockwise(Full.product, L, K)

    def quotient(self, L: Array, W: Array) -> Array:
        return self._blockwise(Full.quotient, L, W)

    def conjugate(self, K: Array, M: Array) -> Array:
        return self._blockwise(Full.conjugate, K, M)

    def conjugate_inverse(self, W: Array, M: Array) -> Array:
        return self._blockwise(Full.conjugate_inverse, W, M)

    def diagonal(self, L: Array) -> Array:
        out = np.empty(self.dim)
        for block, view in zip(self.blocks, self._views(L), strict=True):
            out[block] = view.diagonal()
        return out

    def dense_factor(self, L: Array) -> Array:
        return self._dense(iter(self._views(L)))

    def covariance(self, L: Array) -> Array:
        parts = zip(self._families, self._views(L), strict=True)
        return self._dense(family.covariance(view) for family, view in parts)

    def _dense(self, matrices: Iterator[Array]) -> Array:
        out = np.zeros((self.dim, self.dim), order="F")
        for block, matrix in zip(self.blocks, matrices, strict=True):
            out[np.ix_(block, block)] = matrix
        return out

    def __repr__(self) -> str:
        return f"BlockDiagonal({self.names or [block.tolist() for block in self.blocks]})"


def _restrict(value: Array | None, block: Indices) -> Array | None:
    if value is None or value.ndim == 0:
        return value
    return value[block] if value.ndim == 1 else value[np.ix_(block, block)]


def _names(blocks: object) -> list[list[str]] | None:
    """``blocks`` as lists of names, if that is what they are."""
    if not isinstance(blocks, Sequence) or any(
        isinstance(b, str) or not isinstance(b, Sequence) for b in blocks
    ):
        return None
    names = [list(block) for block in blocks]
    texts = [isinstance(name, str) for block in names for name in block]
    return names if texts and all(texts) and all(names) else None


def _partition(blocks: Any) -> list[Indices]:
    if isinstance(blocks, list | tuple) and blocks and all(isinstance(name, str) for name in blocks):
        raise InvalidInputError(
            f"each block is a list of names: got {blocks!r}, try {[[name] for name in blocks]}"
        )
    try:
        arrays = [np.array(block) for block in blocks]
    except (TypeError, ValueError):
        raise InvalidTypeError(f"blocks must be a list of sizes or of index lists, not {blocks!r}") from None
    if not arrays or any(a.size == 0 or a.dtype.kind not in "iu" for a in arrays):
        raise InvalidInputError(
            f"blocks must be non-empty lists of integers or of names, or integer sizes; got {blocks!r}"
        )
    if all(a.ndim == 0 for a in arrays):
        if min(int(a) for a in arrays) < 1:
            raise InvalidInputError(f"block sizes must be positive; got {blocks!r}")
        return np.split(np.arange(np.sum(arrays)), np.cumsum(arrays)[:-1])
    if any(a.ndim != 1 for a in arrays):
        raise InvalidInputError("blocks must be all sizes (integers) or all lists of parameter indices")
    indices = np.sort(np.concatenate(arrays))
    if not np.array_equal(indices, np.arange(len(indices))):
        missing = np.setdiff1d(np.arange(len(indices)), indices).tolist()
        twice = sorted({int(i) for i in indices[:-1][np.diff(indices) == 0]})
        raise InvalidInputError(
            f"the blocks must hold each parameter index from 0 once: missing {missing}, repeated {twice}"
            + (", negative indices are not allowed" if indices[0] < 0 else "")
        )
    return arrays
