"""Group blocks for speed: many small blocks of one size form a `Stack`; other blocks are worked on one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgvbp.families.base import Indices
from mgvbp.families.full import Full
from mgvbp.families.stack import Stack

STACK_UP_TO = 32
"""Largest size of a block for which a stack can be faster than BLAS-3, block by block."""
STACK_FROM = 16
"""Smallest number of blocks of one size for which a stack is faster."""


class Part(NamedTuple):
    """Blocks that are worked on together: a stack of blocks, or a single block."""

    family: Full | Stack
    blocks: Indices
    """The parameters of each block, (B, k); for a single block, (k,)."""
    where: Indices | slice
    """All these parameters, as one index into a vector (d,)."""
    entries: Indices | slice
    """The entries of the blocks' matrices, as one index into a family array."""


def parts_of(blocks: list[Indices]) -> list[Part]:
    """The parts that the blocks form: stacks and single blocks."""
    starts = np.cumsum([0, *(len(block) ** 2 for block in blocks)])
    by_size: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        by_size.setdefault(len(block), []).append(number)
    parts = []
    for size, numbers in by_size.items():
        together = size <= STACK_UP_TO and len(numbers) >= STACK_FROM
        for group in [numbers] if together else [[number] for number in numbers]:
            rows = np.stack([blocks[number] for number in group])
            entries = starts[group][:, None] + np.arange(size**2)
            family = Stack(len(group), size) if together else Full(size)
            parts.append(Part(family, rows if together else rows[0], _as_slice(rows), _as_slice(entries)))
    return parts


def _as_slice(indices: Indices) -> Indices | slice:
    """The indices as one row, or as a slice, which needs no copy, if they are consecutive."""
    flat = indices.ravel()
    run = slice(int(flat[0]), int(flat[0]) + len(flat))
    return run if np.array_equal(flat, np.arange(run.start, run.stop)) else flat


def square(blocks: Indices) -> tuple[Indices, Indices]:
    """The index into a (d, d) matrix of the blocks (..., k, k) with these rows and columns, (..., k)."""
    return blocks[..., :, None], blocks[..., None, :]
