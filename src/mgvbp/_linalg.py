"""The two Cholesky factorisations of the frame, and the symmetric part.

Matrices are float64 in Fortran order (any other order costs a copy). Triangular factors are lower,
with exact zeros above the diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from mgvbp.errors import NotPositiveDefiniteError

Array = NDArray[np.float64]


def cholesky(A: Array) -> Array:
    """Lower ``K`` with ``K Kᵀ = A``; only the lower triangle of ``A`` (d, d) is read."""
    K, info = dpotrf(A, lower=1, clean=1)
    return _checked(K, info)


def cholesky_reversed(A: Array) -> Array:
    """Lower ``W`` with ``Wᵀ W = A``; only the lower triangle of ``A`` (d, d) is read."""
    V, info = dpotrf(np.asfortranarray(A[::-1, ::-1]), lower=0, clean=1, overwrite_a=1)
    return np.asfortranarray(_checked(V, info)[::-1, ::-1])


def _checked(K: Array, info: int) -> Array:
    if info != 0 or not np.isfinite(K.diagonal()).all():
        raise NotPositiveDefiniteError("the matrix is not symmetric positive definite")
    return K


def symmetric_part(A: Array) -> Array:
    """``½ (A + Aᵀ)`` in Fortran order."""
    B = A + A.T
    B *= 0.5
    return B if B.flags.f_contiguous else B.T
