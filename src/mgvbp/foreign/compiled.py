"""A JAX function of one draw, compiled for any number of draws, in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mgvbp._linalg import Array
from mgvbp.optional import require

SIZES = (1024, 256, 64, 16)
"""Draws in a block. JAX compiles once for each size it meets, and batches change theirs at every iteration."""


def compiled(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``function`` mapped over the leading axis of its argument: NumPy arrays, or a dict of them, in and out.

    The draws are taken in blocks of the `SIZES`, the last one filled up with zeros whose values are cut off: at most
    five compilations whatever comes, 15 evaluations wasted, and the memory of 1,024 draws.
    """
    jax = require("jax", "jax")
    mapped = jax.jit(jax.vmap(function))

    def of_rows(rows: Any) -> Any:
        number = len(jax.tree.leaves(rows)[0])
        parts = []
        # the switch for 64 bits holds within this block alone, and is part of the key of JAX's cache
        with jax.enable_x64(True):
            for start, size in blocks(number):
                block = mapped(jax.tree.map(lambda array, s=start, n=size: filled(array[s : s + n], n), rows))
                parts.append(jax.tree.map(lambda out, n=number - start: np.asarray(out)[:n], block))
        return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)

    return of_rows


def blocks(number: int) -> Iterator[tuple[int, int]]:
    """Starts and sizes of blocks that cover ``number`` rows, largest first; one for no row, to show the shapes."""
    start = 0
    if number == 1:  # steps along a line come one by one
        yield 0, 1
        return
    for size in SIZES:
        while number - start >= size:
            yield start, size
            start += size
    if start < number or number == 0:
        yield start, SIZES[-1]


def filled(block: Array, size: int) -> Array:
    """``block`` with rows of zeros behind it, ``size`` rows in all."""
    return np.concatenate([block, np.zeros((size - len(block), *block.shape[1:]))])
