"""Cholesky factors, products of triangles and symmetric parts: the few matrix routines of the frame.

Matrices are float64 in Fortran order (any other order costs a copy). Triangular factors are lower,
with exact zeros above the diagonal. A stack (B, k, k) holds B matrices one after the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.linalg.lapack import dpotrf

from mgvbp.errors import NotPositiveDefiniteError

Array = NDArray[np.float64]

PANEL = 96
"""Columns per panel, for products of triangles that BLAS has no routine for."""

SINGULAR = 1e-9
"""Regressors are independent if the smallest pivot of their QR decomposition is more than this, relative to the
largest. Rounding leaves pivots of about 1e-15 if they are dependent, so that the last digits do not decide."""
COLLINEAR = 1e-6
"""A regressor is independent of earlier ones if these leave more than this share of its length unexplained. Normal
equations contain the square of the share, 1e-12; rounding leaves about 1e-15 of a dependent regressor."""

NOT_POSITIVE_DEFINITE = "the matrix is not symmetric positive definite"


def cholesky(A: Array, *, overwrite: bool = False) -> Array:
    """Lower ``K`` with ``K Kᵀ = A``; only the lower triangle of ``A`` (d, d) is read."""
    K, info = dpotrf(A, lower=1, clean=1, overwrite_a=overwrite)
    return _checked(K, info)


def cholesky_reversed(A: Array) -> Array:
    """Lower ``W`` with ``Wᵀ W = A``; only the lower triangle of ``A`` (d, d) is read."""
    V, info = dpotrf(np.array(A[::-1, ::-1], order="F"), lower=0, clean=1, overwrite_a=1)
    return np.asfortranarray(_checked(V, info)[::-1, ::-1])


def _checked(K: Array, info: int) -> Array:
    if info != 0 or not np.isfinite(K.diagonal()).all():
        raise NotPositiveDefiniteError(NOT_POSITIVE_DEFINITE)
    return K


def collinear(root: Array, squares: Array) -> bool:
    """Whether a column of X is a combination of earlier ones, but for rounding.

    ``root`` is the Cholesky factor (either triangle) of ``XᵀX``, and ``squares`` the diagonal of that matrix.
    """
    return bool((np.square(root.diagonal()) <= COLLINEAR**2 * squares).any())


def triangular_product(L: Array, K: Array) -> Array:
    """``L K`` of two lower triangles, by panels of columns, which take half the work of one dtrmm."""
    d = len(L)
    if d <= PANEL:
        return dtrmm(1.0, L, K, lower=1)
    out = np.zeros((d, d), order="F")
    for s in range(0, d, PANEL):
        e = s + PANEL
        out[s:, s:e] = dtrmm(1.0, L[s:, s:], K[s:, s:e], lower=1)
    return out


def symmetric_conjugate(K: Array, M: Array) -> Array:
    """``K⁻¹ M K``, which must be symmetric: computed by panels, only on and above the diagonal."""
    d = len(M)
    if d <= PANEL:
        return symmetric_part(dtrsm(1.0, K, dtrmm(1.0, K, M, side=1, lower=1), lower=1, overwrite_b=1))
    out = np.empty((d, d), order="F")
    for s in range(0, d, PANEL):
        e = min(s + PANEL, d)
        MK = (K[s:, s:e].T @ M[:e, s:].T).T  # rows 0..e of M K, in Fortran order
        X = dtrsm(1.0, K[:e, :e], MK, lower=1, overwrite_b=1)
        out[:s, s:e] = X[:s]
        out[s:e, :s] = X[:s].T
        out[s:e, s:e] = symmetric_part(X[s:])
    return out


def symmetric_part(A: Array) -> Array:
    """``½ (A + Aᵀ)`` in Fortran order; of each matrix, if ``A`` is a stack."""
    B = A + A.swapaxes(-1, -2)
    B *= 0.5
    return B.swapaxes(-1, -2) if B.flags.c_contiguous else B


def add_to_diagonal(A: Array, c: float | Array) -> Array:
    """``A + diag(c)`` in place, c a number, (d,), or (B, k) for a stack (B, k, k); returns ``A``."""
    np.einsum("...ii->...i", A)[...] += c
    return A


def stacked_product(A: Array, B: Array) -> Array:
    """``A B`` for each pair of matrices of two stacks, in Fortran order, computed as ``(Bᵀ Aᵀ)ᵀ``."""
    C: Array = np.matmul(B.swapaxes(1, 2), A.swapaxes(1, 2))
    return C.swapaxes(1, 2)


def stacked_inverse(L: Array) -> Array:
    """``L⁻¹`` for each of a stack of lower triangles, by forward substitution.

    The matrices go along the last axis, so that each step is one operation on vectors as long as the stack.
    LAPACK, called once for each matrix, takes five times as long for matrices of 10×10.
    """
    T = np.array(L.transpose(1, 2, 0), order="C")
    for i in range(len(T)):
        row = np.einsum("jb,jkb->kb", T[i, :i], T[:i, :i])  # rows above i are already those of the inverse
        T[i, i] = 1.0 / T[i, i]
        T[i, :i] = row * -T[i, i]
    return np.ascontiguousarray(T.transpose(2, 1, 0)).swapaxes(1, 2)


def stacked_cholesky(A: Array) -> Array:
    """`cholesky` of each matrix of a stack."""
    return _stacked_upper(A.swapaxes(1, 2)).swapaxes(1, 2)


def stacked_cholesky_reversed(A: Array) -> Array:
    """`cholesky_reversed` of each matrix of a stack."""
    return _stacked_upper(A[:, ::-1, ::-1])[:, ::-1, ::-1]


def _stacked_upper(A: Array) -> Array:
    """Upper ``U`` with ``Uᵀ U = A``; only the upper triangles are read."""
    try:
        U = np.asarray(np.linalg.cholesky(A, upper=True), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(NOT_POSITIVE_DEFINITE) from None
    if not np.isfinite(np.einsum("bii->bi", U)).all():
        raise NotPositiveDefiniteError(NOT_POSITIVE_DEFINITE)
    return U
