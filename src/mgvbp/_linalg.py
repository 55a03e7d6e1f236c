"""Cholesky factors, products of triangles and symmetric parts: the few matrix routines of the frame.

Matrices are float64 in Fortran order (any other order costs a copy). Triangular factors are lower,
with exact zeros above the diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.linalg.lapack import dpotrf

from mgvbp.errors import NotPositiveDefiniteError

Array = NDArray[np.float64]

PANEL = 96
"""Columns that are worked on together where a structure that BLAS does not know saves work."""


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
        raise NotPositiveDefiniteError("the matrix is not symmetric positive definite")
    return K


def triangular_product(L: Array, K: Array) -> Array:
    """``L K`` of two lower triangles: by panels of columns, half the work of a dtrmm."""
    d = len(L)
    if d <= PANEL:
        return dtrmm(1.0, L, K, lower=1)
    out = np.zeros((d, d), order="F")
    for s in range(0, d, PANEL):
        e = s + PANEL
        out[s:, s:e] = dtrmm(1.0, L[s:, s:], K[s:, s:e], lower=1)
    return out


def symmetric_conjugate(K: Array, M: Array) -> Array:
    """``K⁻¹ M K`` where that is symmetric: by panels, and only on and above the diagonal."""
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
    """``½ (A + Aᵀ)`` in Fortran order."""
    B = A + A.T
    B *= 0.5
    return B if B.flags.f_contiguous else B.T
