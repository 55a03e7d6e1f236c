"""Turn blocks as the user gives them (sizes, parameter indices or names) into index arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from reprlib import repr as shortened
from typing import Any

import numpy as np

from mgvbp.core.checks import require_memory
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.families.base import Indices


def names_of(blocks: object) -> list[list[str]] | None:
    """``blocks`` as lists of names; None if they are not names."""
    if not isinstance(blocks, Sequence) or any(
        isinstance(b, str) or not isinstance(b, Sequence) for b in blocks
    ):
        return None
    names = [list(block) for block in blocks]
    texts = [isinstance(name, str) for block in names for name in block]
    return names if texts and all(texts) and all(names) else None


def partition(blocks: Any) -> list[Indices]:
    """The parameter indices of each block, (k,), from sizes or lists of indices."""
    if isinstance(blocks, list | tuple) and blocks and all(isinstance(name, str) for name in blocks):
        raise InvalidInputError(
            f"each block is a list of names: got {shortened(blocks)}, try {shortened([[name] for name in blocks])}"
        )
    try:
        if isinstance(blocks, bytes | set):
            raise TypeError  # the order of a set is none, and bytes are numbers by accident
        arrays = [np.array(block) for block in blocks]
    except (TypeError, ValueError):
        raise InvalidTypeError(
            f"blocks must be a list of sizes or of index lists, not {shortened(blocks)}"
        ) from None
    if not arrays or any(a.size == 0 or a.dtype.kind not in "iu" for a in arrays):
        raise InvalidInputError(
            f"blocks must be non-empty lists of integers or of names, or integer sizes; got {shortened(blocks)}"
        )
    if all(a.ndim == 0 for a in arrays):
        if min(int(a) for a in arrays) < 1:
            raise InvalidInputError(f"block sizes must be positive; got {shortened(blocks)}")
        sizes = [int(a) for a in arrays]
        require_memory(
            sum(size**2 for size in sizes), f"blocks of up to {max(sizes):,} parameters", "give smaller ones"
        )
        return np.split(np.arange(np.sum(arrays)), np.cumsum(arrays)[:-1])
    if any(a.ndim != 1 for a in arrays):
        raise InvalidInputError("blocks must be all sizes (integers) or all lists of parameter indices")
    indices = np.sort(np.concatenate(arrays))
    if not np.array_equal(indices, np.arange(len(indices))):
        missing = np.setdiff1d(np.arange(len(indices)), indices).tolist()
        twice = sorted({int(i) for i in indices[:-1][np.diff(indices) == 0]})
        raise InvalidInputError(
            "the blocks must hold each parameter index from 0 once: "
            f"missing {shortened(missing)}, repeated {shortened(twice)}"
            + (", negative indices are not allowed" if indices[0] < 0 else "")
        )
    return [a.astype(np.intp, copy=False) for a in arrays]


def named_partition(names: list[list[str]], labels: Sequence[str]) -> list[list[int]]:
    """The parameter indices of each block of names, for parameters with these labels."""
    indices: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        for name in {label, label.partition("[")[0]}:
            indices.setdefault(name, []).append(i)
    if unknown := [name for block in names for name in block if name not in indices]:
        raise InvalidInputError(f"no parameter is called {', '.join(unknown)}; there are {', '.join(labels)}")
    blocks = [[i for name in block for i in indices[name]] for block in names]
    times = Counter(labels[i] for block in blocks for i in block)
    missing = [label for label in labels if label not in times]
    twice = [label for label in times if times[label] > 1]
    if missing or twice:
        raise InvalidInputError(
            "the blocks must hold each parameter once: "
            f"missing {', '.join(missing) or 'none'}, repeated {', '.join(twice) or 'none'}"
        )
    return blocks
