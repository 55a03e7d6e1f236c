"""Patterns of sparse precisions: which pairs of parameters may depend on each other given all others."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.core.checks import as_floats, positive_integer, shown
from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError

Indices = NDArray[np.intp]
MANY_NEIGHBOURS = 10.0
"""An entry with more neighbours than this times √d comes last in an order of minimum degree."""
AT_ONCE = 128
"""Columns of a Hessian that are computed at once."""
Edges = tuple[Indices, Indices]
"""Pairs (i, j) with i > j, each once, sorted by j and then by i."""


def edges_of(pattern: Any) -> tuple[int, Edges]:
    """The dimension and the pairs of a SciPy sparse or other square matrix, or of a graph of networkx."""
    from scipy.sparse import coo_array, issparse

    if hasattr(pattern, "edges") and hasattr(pattern, "nodes"):
        names = {node: k for k, node in enumerate(pattern.nodes)}
        pairs = np.array([(names[a], names[b]) for a, b in pattern.edges], dtype=np.intp).reshape(-1, 2)
        return len(names), sorted_edges(len(names), pairs[:, 0], pairs[:, 1])
    if not issparse(pattern):
        matrix = as_floats(pattern, "pattern")
        if matrix.ndim != 2:
            raise InvalidTypeError(
                "pattern must be a SciPy sparse (d, d) matrix, whose non-zeros may be non-zero in the precision; got "
                f"{shown(pattern)}"
            )
        pattern = coo_array(matrix)
    if pattern.shape[0] != pattern.shape[1]:
        raise InvalidInputError(f"pattern must be square, (d, d); got shape {pattern.shape}")
    found = pattern.tocoo()
    known = found.data != 0
    return int(found.shape[0]), sorted_edges(found.shape[0], found.row[known], found.col[known])


def sorted_edges(dim: int, a: ArrayLike, b: ArrayLike) -> Edges:
    """The pairs of different entries, each once."""
    first, second = np.asarray(a, dtype=np.int64).ravel(), np.asarray(b, dtype=np.int64).ravel()
    different = first != second
    low, high = np.minimum(first, second)[different], np.maximum(first, second)[different]
    codes = np.unique(low * dim + high)
    return (codes % dim).astype(np.intp), (codes // dim).astype(np.intp)


def band(dim: int, width: int) -> Edges:
    """Entries at most ``width`` apart."""
    return grouped(np.arange(positive_integer(dim, "dim")), positive_integer(width, "width", least=0))


def arrow(sizes: Sequence[int], hubs: int, order: int = 0) -> tuple[int, Edges]:
    """Blocks of these sizes, one after the other, and at the end so many entries that depend on all.

    Blocks that are at most ``order`` apart depend on each other too.
    """
    lengths = np.array([positive_integer(size, "a block's size") for size in sizes], dtype=np.intp)
    shared = positive_integer(hubs, "hubs", least=0)
    group = np.concatenate([np.repeat(np.arange(len(lengths)), lengths), np.full(shared, -1)])
    return len(group), grouped(group, positive_integer(order, "order", least=0))


def grouped(group: Indices, order: int = 0) -> Edges:
    """Pairs of entries whose groups are at most ``order`` apart; entries of group −1 are in a pair with all."""
    d, hubs, local = len(group), np.flatnonzero(group < 0), np.flatnonzero(group >= 0)
    local = local[np.argsort(group[local], kind="stable")]
    names, starts = np.unique(group[local], return_index=True)
    ends = np.append(starts[1:], len(local))
    a, b = [np.repeat(hubs, d)], [np.tile(np.arange(d), len(hubs))]
    # pairs by how far apart they are in the list of local entries: a group has few
    reach = 0
    if len(names):
        last = np.searchsorted(names, names + order, side="right") - 1
        reach = int((ends[last] - starts).max())
    for k in range(1, reach):
        near = group[local[k:]] - group[local[:-k]] <= order
        a.append(local[k:][near])
        b.append(local[:-k][near])
    return sorted_edges(d, np.concatenate(a), np.concatenate(b))


def groups_by_name(labels: Sequence[str], names: Sequence[str]) -> Indices:
    """The first index of each entry of the named parameters, in labels such as ``effect[3]``, and −1 for all others."""
    group = np.full(len(labels), -1, dtype=np.intp)
    found: set[str] = set()
    for k, label in enumerate(labels):
        match = re.fullmatch(r"(.*?)\[(\d+)(?:,.*)?\]", label)
        if match and match[1] in names:
            group[k], found = int(match[2]), found | {match[1]}
    if missing := [name for name in names if name not in found]:
        raise InvalidInputError(
            f"there is no vector called {missing[0]!r} among the parameters {shown(list(labels[:8]))}"
        )
    return group


def probed(function: Callable[[Any], Any], points: NDArray[np.float64], most: float = 1.0) -> Edges | None:
    """The pattern of the Hessian of a JAX function of one draw, (d,) -> scalar, at ``points`` (K, d).

    An entry that is zero at all of the points is taken for zero. Each column is the derivative of the gradient along
    one axis, `AT_ONCE` of them at once. If a larger share than ``most`` of the first of them is not zero, the pattern
    is not looked for any further: None.
    """
    jax = require("jax", "jax")
    d = points.shape[1]
    rows, columns = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    with jax.enable_x64(True):
        gradient = jax.grad(function)
        along = jax.jit(jax.vmap(lambda x, t: jax.jvp(gradient, (x,), (t,))[1], in_axes=(None, 0)))
        for start in range(0, d, AT_ONCE):
            some = np.arange(start, min(start + AT_ONCE, d))
            units = np.zeros((AT_ONCE, d))
            units[np.arange(len(some)), some] = 1.0
            seen = sum(np.asarray(along(point, units))[: len(some)] != 0.0 for point in points)
            k, i = np.nonzero(seen)
            if len(k) > most * seen.size and not start:
                return None
            rows.append(i)
            columns.append(some[k])
    return sorted_edges(d, np.concatenate(rows), np.concatenate(columns))


def minimum_degree(dim: int, edges: Edges) -> Indices:
    """An order of the entries, (d,), in which a Cholesky factor has few: that of SuperLU."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    i, j = edges
    degree = np.bincount(i, minlength=dim) + np.bincount(j, minlength=dim)
    # those that depend on almost all come last: an order of minimum degree would put them there, slowly
    dense = degree > max(16.0, MANY_NEIGHBOURS * math.sqrt(dim))
    few, last = np.flatnonzero(~dense), np.flatnonzero(dense)
    place = np.cumsum(~dense) - 1
    inside = ~(dense[i] | dense[j])
    i, j, n = place[i[inside]], place[j[inside]], len(few)
    if not len(i):
        return np.concatenate([few, last])
    # dominant diagonal: the factorisation exists, and only its order is used
    size = 1.0 / (1.0 + degree[few].max())
    rows, columns = np.concatenate([i, j, np.arange(n)]), np.concatenate([j, i, np.arange(n)])
    values = np.concatenate([np.full(2 * len(i), -size), np.ones(n)])
    matrix = csc_matrix((values, (rows, columns)), shape=(n, n))
    found = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    order = np.empty(n, np.intp)
    order[found.perm_c] = np.arange(n)
    return np.concatenate([few[order], last])
