"""Blocks of draws and rows: bounded memory, and few sizes, since JAX compiles once for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

DRAWS = 64
"""The most draws of a block."""
PAIRS = 2**14
"""The most draws × rows of a block, so that the outputs of a small network stay in or near the cache."""
DERIVATIVES = 2**20
"""The most draws × rows × weights of a block with per-example gradients: 4 MB an array in single precision."""


def blocks(number: int, most: int) -> Iterator[tuple[slice, int]]:
    """Cover ``number`` rows by blocks of one size; each as the rows it has and the size it is to be filled up to.

    There are as few blocks as ``most`` rows in each of them allow, and their size is rounded up to the next of 1, ...,
    8, 10, 12, 14, 16, 20, ..., four to a doubling. So data of any size have blocks of one of very few sizes, and less
    than a quarter of the work is wasted.

    Examples
    --------
    >>> list(blocks(50, 30))
    [(slice(0, 28, None), 28), (slice(28, 50, None), 28)]
    """
    size = rounded_up(-(-number // -(-number // most)))
    for start in range(0, number, size):
        yield slice(start, min(start + size, number)), size


def rounded_up(number: int) -> int:
    """The next number with at most three leading binary digits that are not zero."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit


def filled_up(rows: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """``rows`` and its last one again and again, ``size`` in all: values that the network can take."""
    if len(rows) == size:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)])
