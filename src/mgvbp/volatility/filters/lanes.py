"""How the compiled kernels work: draws side by side in SIMD lanes, a day at a time.

A kernel works on a block of `LANES` draws. Its inner loops run over the draws, and everything that such a loop
writes but the variances lies in one flat array, in rows of `LANES` numbers: LLVM then sees that no row overlaps
another and vectorises without checks at run time. The number of lanes is handed over as the length of an
array, as loops of a known small length are unrolled before they can be vectorised.

A draw whose variance leaves the `WINDOW`, or the bounds of its day, is marked and computed once more by itself, with
the safeguards. Such draws are rare, and the other draws do not pay for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mgvbp.core import Array

LANES = 32
"""Draws of a block: enough to hide the latency of a day, few enough that 1,700 days stay in the L2 cache.

Measured on 150 draws of 1,698 days: 16 took 1.2 to 1.3 times as long, 64 as long.
"""
WINDOW = (1e-17, 1e17)
"""The variances that the lanes take: a product of 16 of them (`score.RUN`) lies between 1e-272 and 1e272, which a float
can hold."""

Flags = NDArray[np.bool_]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile with numba; kept on disk where there is a place for it.

    Products and sums may be contracted to one rounding; nothing else of "fast math" is used, as infinities and
    NaN must remain what they are.
    """
    try:
        return _jit(function, keep=True)
    except RuntimeError:  # neither the package's directory nor the user's can be written to
        return _jit(function, keep=False)


def _jit(function: Function, *, keep: bool) -> Function:
    decorate: Any = njit(cache=keep, nogil=True, error_model="numpy", fastmath={"contract"})
    return cast("Function", decorate(function))


@compiled
def bits_of(value: float) -> np.int64:
    """The 64 bits of a float, as an integer."""
    return np.float64(value).view(np.int64)


@compiled
def float_of(bits: np.int64) -> np.float64:
    """The float that these 64 bits are."""
    return np.int64(bits).view(np.float64)


@compiled
def residuals_of_day(y: Array, X: Array, mean: Array, t: int, out: Array) -> None:
    """Write ``y_t − x_tᵀ b`` of every draw to ``out``; ``mean`` (m, LANES) holds the b, m ≥ 1."""
    n = mean.shape[1]
    x = X[t, 0]
    for w in range(n):
        out[w] = y[t] - x * mean[0, w]
    for j in range(1, X.shape[1]):
        x = X[t, j]
        for w in range(n):
            out[w] -= x * mean[j, w]


@compiled
def residual(y: Array, X: Array, mean: Array, t: int, w: int) -> float:
    """``y_t − x_tᵀ b`` of one draw."""
    e: float = y[t]
    for j in range(X.shape[1]):
        e -= X[t, j] * mean[j, w]
    return e
