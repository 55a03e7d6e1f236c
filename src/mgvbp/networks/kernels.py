"""Blocks of draws and rows, and what is computed for each of them, in the words that JAX and PyTorch share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]
Rows = np.ndarray[Any, Any]

DRAWS = 64
"""The most draws of a block."""
PAIRS = 2**14
"""The most draws × rows of a block, so that the outputs of a small network stay in or near the cache."""
DERIVATIVES = 2**20
"""The most draws × rows × weights of a block with per-example gradients: 4 MB an array in single precision."""


@dataclass(frozen=True)
class Library:
    """An array library with derivatives."""

    xp: Any
    """The module with its functions of arrays."""
    vmap: Function
    """(function, axes) -> ``function`` mapped over these axes of its arguments."""
    value_and_grad: Function
    """function -> its value and its gradient by the first argument."""
    compiled: Function
    """function -> the same with NumPy arrays as arguments and results."""


@dataclass(frozen=True)
class Kernels:
    """Functions of draws (S, d) and rows; the last argument of the sums, (n,), says which of the rows count."""

    outputs: Function
    """(theta, X) -> (S, n, K)."""
    pointwise: Function
    """(theta, X, y) -> (S, n)."""
    values: Function
    """(theta, X, y, present) -> the sum of the log densities over the rows, (S,), in float64."""
    gradients: Function
    """The same, and the sum of the gradients, (S, d)."""
    squares: Function
    """The same, and the sum of the squares of each row's gradient, (S, d)."""


def kernels(library: Library, outputs: Function, log_densities: Function) -> Kernels:
    """Compile ``outputs(theta, X) -> (n, K)`` and ``log_densities(theta, X, y) -> (n,)`` of one draw for many."""
    xp = library.xp

    def value(theta: Any, X: Any, y: Any, present: Any) -> Any:
        return xp.where(present, log_densities(theta, X, y), 0.0).sum(dtype=xp.float64)

    def one_row(theta: Any, x: Any, y: Any) -> Any:
        return log_densities(theta, x[None], y[None])[0]

    def squares(theta: Any, X: Any, y: Any, present: Any) -> Any:
        of_rows = library.vmap(library.value_and_grad(one_row), (None, 0, 0))
        values, gradients = of_rows(theta, X, y)
        counted, kept = xp.where(present, values, 0.0), xp.where(present[:, None], gradients, 0.0)
        return tuple(terms.sum(0, dtype=xp.float64) for terms in (counted, kept, kept**2))

    def over_draws(function: Function, others: int) -> Function:
        mapped: Function = library.compiled(library.vmap(function, (0, *[None] * others)))
        return mapped

    return Kernels(
        outputs=over_draws(outputs, 1),
        pointwise=over_draws(log_densities, 2),
        values=over_draws(lambda *args: (value(*args),), 3),
        gradients=over_draws(library.value_and_grad(value), 3),
        squares=over_draws(squares, 3),
    )


# --- blocks -------------------------------------------------------------------------------------------


def blocks(number: int, most: int) -> Iterator[tuple[slice, int]]:
    """Cover ``number`` rows by blocks of one size, at most ``most``; each as its rows and the size to fill up to.

    The size is one of 1, ..., 8, 10, 12, 14, 16, 20, ..., four to a doubling: data of any size have blocks of very few
    sizes, and less than a quarter of the work is wasted.

    Examples
    --------
    >>> list(blocks(50, 30))
    [(slice(0, 28, None), 28), (slice(28, 50, None), 28)]
    """
    size = rounded_up(-(-number // -(-number // most)))
    for start in range(0, number, size):
        yield slice(start, min(start + size, number)), size


def rounded_up(number: int) -> int:
    """The next number whose binary digits after the first three are all zero."""
    unit = 1 << max(0, number.bit_length() - 3)
    return -(-number // unit) * unit


def filled_up(rows: Rows, size: int) -> Rows:
    """``rows`` and its last one again and again, ``size`` in all: values that the network can take."""
    if len(rows) == size:
        return rows
    return np.concatenate([rows, np.repeat(rows[-1:], size - len(rows), axis=0)])


def cut(array: Rows, *parts: slice) -> Rows:
    """The array without the rows that filled it up: its leading axes are cut to the lengths of the parts."""
    return array[tuple(slice(part.stop - part.start) for part in parts)]
