r"""Compiled loops over the pattern of a sparse lower triangle L, column by column.

``ptr`` (d + 1,) and ``rows`` (nnz,) list the rows of each column, the diagonal first and then in rising order. Every
matrix on this pattern is an array of values (nnz,). The pattern is closed: two rows of a column are a pair of the
pattern themselves. So the factor of a matrix on the pattern lies on it too, and a pair is found by walking once along a
column. Vectors are columns of (d, S) arrays, so that the innermost loop runs over the draws.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Function = TypeVar("Function", bound=Callable[..., Any])

SINGULAR = 1e-11
"""A pivot of normal equations is zero if it is below this share of its diagonal entry."""


def compiled(function: Function) -> Function:
    """Compile with numba, and keep the result on disk where there is a place for it."""
    for keep in (True, False):
        try:
            decorate: Any = njit(cache=keep, nogil=True, error_model="numpy")
            return cast("Function", decorate(function))
        except RuntimeError:  # no directory can be written to
            continue
    raise AssertionError


@compiled
def closure(ptr: Indices, rows: Indices) -> tuple[Indices, Indices]:
    """The pattern of the Cholesky factor of a matrix whose lower triangle has this pattern, without its diagonal.

    A column has the rows of the matrix and those of its children in the elimination tree, here in any order: numba
    would take longer to compile a sort than all the rest.
    """
    d = len(ptr) - 1
    out_ptr = np.zeros(d + 1, np.intp)
    out = np.empty(max(16, 2 * len(rows) + 2 * d), np.intp)
    first_child, next_child = np.full(d, -1, np.intp), np.full(d, -1, np.intp)
    mark, end = np.full(d, -1, np.intp), 0
    for j in range(d):
        begin = end
        if end + d - j > len(out):
            larger = np.empty(2 * len(out) + d, np.intp)
            for p in range(end):
                larger[p] = out[p]
            out = larger
        out[end] = j
        end += 1
        mark[j] = j
        for p in range(ptr[j], ptr[j + 1]):
            if mark[rows[p]] != j:
                mark[rows[p]] = j
                out[end] = rows[p]
                end += 1
        child = first_child[j]
        while child != -1:
            for p in range(out_ptr[child] + 1, out_ptr[child + 1]):
                if mark[out[p]] != j:
                    mark[out[p]] = j
                    out[end] = out[p]
                    end += 1
            child = next_child[child]
        if end > begin + 1:
            parent = out[begin + 1]
            for p in range(begin + 2, end):
                parent = min(parent, out[p])
            next_child[j] = first_child[parent]
            first_child[parent] = j
        out_ptr[j + 1] = end
    return out_ptr, out[:end]


@compiled
def cholesky(ptr: Indices, rows: Indices, A: Array) -> tuple[Array, bool]:
    """``L`` with ``L Lᵀ = A``, and whether A is positive definite."""
    L = A.copy()
    for j in range(len(ptr) - 1):
        begin, end = ptr[j], ptr[j + 1]
        if not 0.0 < L[begin] < np.inf:
            return L, False
        root = np.sqrt(L[begin])
        L[begin] = root
        for p in range(begin + 1, end):
            L[p] /= root
        for p in range(begin + 1, end):
            x, q = L[p], ptr[rows[p]]
            for p2 in range(p, end):
                while rows[q] != rows[p2]:
                    q += 1
                L[q] -= x * L[p2]
    return L, True


@compiled
def square(ptr: Indices, rows: Indices, L: Array) -> Array:
    """``L Lᵀ``."""
    A = np.zeros(len(L))
    for j in range(len(ptr) - 1):
        for p in range(ptr[j], ptr[j + 1]):
            q = ptr[rows[p]]
            for p2 in range(p, ptr[j + 1]):
                while rows[q] != rows[p2]:
                    q += 1
                A[q] += L[p] * L[p2]
    return A


@compiled
def solve_lower(ptr: Indices, rows: Indices, L: Array, X: Array) -> None:
    """``L⁻¹ X`` in place."""
    n = X.shape[1]
    for j in range(len(ptr) - 1):
        for s in range(n):
            X[j, s] /= L[ptr[j]]
        for p in range(ptr[j] + 1, ptr[j + 1]):
            x, i = L[p], rows[p]
            for s in range(n):
                X[i, s] -= x * X[j, s]


@compiled
def solve_upper(ptr: Indices, rows: Indices, L: Array, X: Array) -> None:
    """``L⁻ᵀ X`` in place."""
    n = X.shape[1]
    for j in range(len(ptr) - 2, -1, -1):
        for p in range(ptr[j] + 1, ptr[j + 1]):
            x, i = L[p], rows[p]
            for s in range(n):
                X[j, s] -= x * X[i, s]
        for s in range(n):
            X[j, s] /= L[ptr[j]]


@compiled
def times_lower(ptr: Indices, rows: Indices, L: Array, X: Array) -> None:
    """``L X`` in place."""
    n = X.shape[1]
    for j in range(len(ptr) - 2, -1, -1):
        for p in range(ptr[j] + 1, ptr[j + 1]):
            x, i = L[p], rows[p]
            for s in range(n):
                X[i, s] += x * X[j, s]
        for s in range(n):
            X[j, s] *= L[ptr[j]]


@compiled
def times_upper(ptr: Indices, rows: Indices, L: Array, X: Array) -> None:
    """``Lᵀ X`` in place."""
    n = X.shape[1]
    for j in range(len(ptr) - 1):
        for s in range(n):
            X[j, s] *= L[ptr[j]]
        for p in range(ptr[j] + 1, ptr[j + 1]):
            x, i = L[p], rows[p]
            for s in range(n):
                X[j, s] += x * X[i, s]


@compiled
def selected_inverse(ptr: Indices, rows: Indices, L: Array) -> Array:
    """The entries of ``(L Lᵀ)⁻¹`` on the pattern, by Takahashi's recursion from the last column to the first."""
    Z, d = np.zeros(len(L)), len(ptr) - 1
    total = np.zeros(d)
    for j in range(d - 1, -1, -1):
        begin, end = ptr[j], ptr[j + 1]
        for p in range(begin + 1, end):
            total[p - begin] = 0.0
        for p in range(begin + 1, end):
            q = ptr[rows[p]]
            total[p - begin] += Z[q] * L[p]
            for p2 in range(p + 1, end):
                while rows[q] != rows[p2]:
                    q += 1
                total[p2 - begin] += Z[q] * L[p]
                total[p - begin] += Z[q] * L[p2]
        rest = 1.0 / L[begin]
        for p in range(begin + 1, end):
            Z[p] = -total[p - begin] / L[begin]
            rest -= L[p] * Z[p]
        Z[begin] = rest / L[begin]
    return Z


@compiled
def clique(ptr: Indices, rows: Indices, Z: Array, j: int, C: Array) -> int:
    """Write the lower triangle of the matrix ``Z`` at the rows of column j to ``C``; returns their number."""
    begin, end = ptr[j], ptr[j + 1]
    for p in range(begin, end):
        q = ptr[rows[p]]
        for p2 in range(p, end):
            while rows[q] != rows[p2]:
                q += 1
            C[p2 - begin, p - begin] = Z[q]
    return int(end - begin)


@compiled
def root(C: Array, k: int, least: float) -> bool:
    """Replace the lower triangle of ``C`` (k, k) by its Cholesky factor; False if a pivot is too small."""
    for j in range(k):
        before = C[j, j]
        for i in range(j):
            C[j, j] -= C[j, i] * C[j, i]
        if not C[j, j] > least * before:
            return False
        C[j, j] = np.sqrt(C[j, j])
        for a in range(j + 1, k):
            for i in range(j):
                C[a, j] -= C[a, i] * C[j, i]
            C[a, j] /= C[j, j]
    return True


@compiled
def information_root(ptr: Indices, rows: Indices, L: Array, Z: Array, j: int, C: Array) -> int:
    """Write C with ``C Cᵀ = Σ + e eᵀ / L_jj²``, the Fisher information of column j of L; returns its size."""
    k = clique(ptr, rows, Z, j, C)
    C[0, 0] += 1.0 / L[ptr[j]] ** 2
    root(C, k, 0.0)
    return k


@compiled
def forward(C: Array, k: int, x: Array) -> None:
    """``C⁻¹ x`` in place."""
    for a in range(k):
        for b in range(a):
            x[a] -= C[a, b] * x[b]
        x[a] /= C[a, a]


@compiled
def backward(C: Array, k: int, x: Array) -> None:
    """``C⁻ᵀ x`` in place."""
    for a in range(k - 1, -1, -1):
        for b in range(a + 1, k):
            x[a] -= C[b, a] * x[b]
        x[a] /= C[a, a]


@compiled
def widest(ptr: Indices) -> int:
    """The most entries of a column."""
    most = 0
    for j in range(len(ptr) - 1):
        most = max(most, ptr[j + 1] - ptr[j])
    return most


@compiled
def whitened_gradient(
    ptr: Indices, rows: Indices, L: Array, Z: Array, delta: Array, v: Array, batches: int
) -> Array:
    """The gradient of the bound by the columns of L, whitened by their Fisher information, (batches, nnz).

    ``−C⁻¹ mean(δ v_j)`` for column j, where δ are the entries of θ − μ at its rows, v the gradient of h in the frame,
    and ``C Cᵀ = Σ + e eᵀ / L_jj²`` at these rows. Each batch is a share of the draws, (d, S).
    """
    k = widest(ptr)
    C, x, share = np.empty((k, k)), np.empty(k), v.shape[1] // batches
    T = np.empty((batches, len(L)))
    for j in range(len(ptr) - 1):
        begin = ptr[j]
        k = information_root(ptr, rows, L, Z, j, C)
        for b in range(batches):
            for a in range(k):
                i, total = rows[begin + a], 0.0
                for s in range(b * share, (b + 1) * share):
                    total += delta[i, s] * v[j, s]
                x[a] = -total / share
            forward(C, k, x)
            for a in range(k):
                T[b, begin + a] = x[a]
    return T


@compiled
def natural(ptr: Indices, rows: Indices, L: Array, Z: Array, t: Array) -> Array:
    """The direction ``C⁻ᵀ t`` of each column of L that a whitened direction ``t`` (nnz,) stands for."""
    k = widest(ptr)
    C, x, out = np.empty((k, k)), np.empty(k), np.empty(len(L))
    for j in range(len(ptr) - 1):
        begin = ptr[j]
        k = information_root(ptr, rows, L, Z, j, C)
        for a in range(k):
            x[a] = t[begin + a]
        backward(C, k, x)
        for a in range(k):
            out[begin + a] = x[a]
    return out


@compiled
def whitened(ptr: Indices, rows: Indices, L: Array, Z: Array, x: Array) -> Array:
    """``Cᵀ x`` of each column: the inverse of `natural`."""
    k = widest(ptr)
    C, out = np.empty((k, k)), np.empty(len(L))
    for j in range(len(ptr) - 1):
        begin = ptr[j]
        k = information_root(ptr, rows, L, Z, j, C)
        for a in range(k):
            total = 0.0
            for b in range(a, k):
                total += C[b, a] * x[begin + b]
            out[begin + a] = total
    return out


@compiled
def factor_of_covariance(ptr: Indices, rows: Indices, Z: Array) -> tuple[Array, bool]:
    """``L`` of the Gaussian on the pattern whose covariance has the entries ``Z`` there.

    Column j is the regression of entry j on the later rows: ``Σ⁻¹ e / √(eᵀ Σ⁻¹ e)`` at the rows of the column.
    """
    k = widest(ptr)
    C, x, L = np.empty((k, k)), np.empty(k), np.empty(len(Z))
    for j in range(len(ptr) - 1):
        begin = ptr[j]
        k = clique(ptr, rows, Z, j, C)
        if not root(C, k, SINGULAR):
            return L, False
        for a in range(k):
            x[a] = 1.0 if a == 0 else 0.0
        forward(C, k, x)
        backward(C, k, x)
        for a in range(k):
            L[begin + a] = x[a] / np.sqrt(x[0])
    return L, True


@compiled
def regress_rows(
    ptr: Indices, near: Indices, hub: NDArray[np.bool_], delta: Array, y: Array, H: Array, hubs: bool
) -> bool:
    """Regress each row of ``y`` on the rows of ``delta`` (both (d, S)) that are its neighbours, into ``H``.

    ``ptr`` and ``near`` list the neighbours of each row, itself included. With ``hubs`` the rows of hubs are regressed
    on hubs, after what ``H`` explains by other neighbours was taken off; without, all other rows. Returns whether the
    draws determine all coefficients.
    """
    n, most = y.shape[1], 0
    for i in range(len(ptr) - 1):
        if hub[i] == hubs:
            k = 0
            for p in range(ptr[i], ptr[i + 1]):
                k += 1 if hub[near[p]] or not hubs else 0
            most = max(most, k)
    C, x, left = np.empty((most, most)), np.empty(most), np.empty(n)
    where = np.empty(most, np.intp)
    for i in range(len(ptr) - 1):
        if hub[i] != hubs:
            continue
        for s in range(n):
            left[s] = y[i, s]
        k = 0
        for p in range(ptr[i], ptr[i + 1]):
            if hubs and not hub[near[p]]:
                for s in range(n):
                    left[s] -= H[p] * delta[near[p], s]
            else:
                where[k] = p
                k += 1
        for a in range(k):
            u = delta[near[where[a]]]
            for b in range(a + 1):
                C[a, b] = np.dot(u, delta[near[where[b]]])
            x[a] = np.dot(u, left)
        if not root(C, k, SINGULAR):
            return False
        forward(C, k, x)
        backward(C, k, x)
        for a in range(k):
            H[where[a]] = x[a]
    return True
