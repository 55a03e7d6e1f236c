"""Blocks of few sizes, for functions that JAX compiles anew for every size of a batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array

SIZES = (1024, 256, 64, 16)
"""Sizes of the blocks of draws. JAX compiles a function once for each size, and batches change their size at every
iteration."""


def blocks(number: int) -> Iterator[tuple[int, int]]:
    """Starts and sizes of blocks that cover ``number`` rows, largest first; 0 rows get one, to show the shapes."""
    start = 0
    if number == 1:  # a line search evaluates one draw at a time
        yield 0, 1
        return
    for size in SIZES:
        while number - start >= size:
            yield start, size
            start += size
    if start < number or number == 0:
        yield start, SIZES[-1]


def is_jitted(function: object) -> bool:
    """Whether `jax.jit` made this function. JAX is not imported to find out: before its import there is none.

    The class is a protocol, which takes 20 µs to check at every batch, so one of its methods is looked for first.
    """
    jax = sys.modules.get("jax") if hasattr(function, "lower") else None
    return jax is not None and isinstance(function, jax.stages.Wrapped)


def called_in_blocks(function: Callable[[Array], Any], theta: Array) -> Any:
    """What the function returns for all rows of ``theta`` (S, d), called with blocks of the `SIZES`.

    The last block is filled up with its last row, and what comes of these copies is cut off.
    """
    parts = []
    for start, size in blocks(len(theta)):
        rows = theta[start : start + size]
        values = np.asarray(function(np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)])))
        if values.shape[:1] != (size,):
            return function(theta)  # not one value for each row, which is explained elsewhere
        parts.append(values[: len(rows)])
    return np.concatenate(parts)
