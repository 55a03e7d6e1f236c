"""An attempt to evaluate some draws, and what may come of it: values, or a reason why there are none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run.evaluation.deadline import Deadline, deadline

Indices = NDArray[np.intp]
Keep = Callable[[Indices, tuple[Array, ...]], None]
"""A function that is given the numbers of some draws and their values, as soon as these are known."""

CHUNK = 0.05
"""Seconds that draws evaluated together should take.

A pool answers within 10 ms, so that half of this would spend a third of the time on messages. Twice as much would let
workers wait longer for the last one of an iteration, and more draws would be repeated when one of them fails.
"""


class Done(NamedTuple):
    """The arrays of `Problem.evaluate_at`, and the seconds that they took."""

    arrays: tuple[Array, ...]
    seconds: float


class Failed(NamedTuple):
    """The reason why there are no values, ``raised``, ``timed_out``, ``lost`` or ``unready``, and the error.

    A worker that is not ready could not unpack the model.
    """

    reason: str
    error: str


Answer = tuple[Indices, Done | Failed]
"""The numbers of some draws, and what came of the attempt to evaluate them."""


def attempt(
    problem: Problem,
    iteration: int,
    theta: Array,
    needs: Needs,
    limit: float | None,
    failing: tuple[type[BaseException], ...] = (Exception, SystemExit),
) -> Done | Failed:
    """Evaluate some draws within ``limit`` seconds; the ``failing`` exceptions are returned as a `Failed`."""
    start = time.perf_counter()
    try:
        with deadline(limit):
            arrays = problem.evaluate_at(iteration, theta, needs)
    except Deadline:
        return Failed("timed_out", f"took longer than {limit:g} seconds")
    except failing as error:
        return Failed("raised", f"{type(error).__name__}: {error}")
    return Done(arrays, time.perf_counter() - start)


def slices(rows: Indices) -> Iterator[Indices]:
    """Split draws into slices of about `CHUNK` seconds, while the caller evaluates one after the other.

    The first slice is one draw. The next is twice as long if the caller took less than `CHUNK` seconds for the last
    one, else half as long.

    Examples
    --------
    >>> [len(rows) for rows in slices(np.arange(100))]
    [1, 2, 4, 8, 16, 32, 37]
    """
    size = 1
    while len(rows):
        start = time.perf_counter()
        yield rows[:size]
        rows = rows[size:]
        size = 2 * size if time.perf_counter() - start < CHUNK else max(1, size // 2)
