"""An attempt to evaluate some draws, and what it may come to: values, or a reason why there are none."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.deadline import Deadline, deadline, interrupt
from mgvbp.problem import Needs, Problem

Indices = NDArray[np.intp]
ANYTHING = (BaseException,)
"""What is no worker's end: whatever is raised, as an interrupt there is not the user's."""


class Done(NamedTuple):
    """What an attempt came to: the arrays of `Problem.evaluate_at`, and the seconds it took."""

    arrays: tuple[Array, ...]
    seconds: float


class Failed(NamedTuple):
    """Why there are none: ``raised``, ``timed_out`` or ``lost``, what was raised, and the seconds it took."""

    kind: str
    error: str
    seconds: float = 0.0


Outcome = tuple[Indices, Done | Failed]
"""Some rows of the draws, and what the attempt to evaluate them came to."""


@dataclass
class Failures:
    """Draws that had no value at the second attempt either, by reason; and how often a worker was lost."""

    raised: int = 0
    timed_out: int = 0
    lost: int = 0
    workers_lost: int = 0
    first_error: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """What occurred; ``workers_lost`` counts workers, whose draws may have been evaluated by others."""
        counts = {name: getattr(self, name) for name in ("raised", "timed_out", "lost", "workers_lost")}
        return {reason: count for reason, count in counts.items() if count}

    @property
    def total(self) -> int:
        """All draws without a value."""
        return self.raised + self.timed_out + self.lost

    def __str__(self) -> str:
        reasons = {
            "raised an exception": self.raised,
            "timed out": self.timed_out,
            "lost their worker": self.lost,
        }
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return listed + (f" (the first: {self.first_error})" if self.first_error else "")


def attempt(
    problem: Problem,
    iteration: int,
    theta: Array,
    needs: Needs,
    limit: float | None,
    failing: tuple[type[BaseException], ...] = (Exception, SystemExit),
) -> Done | Failed:
    """Evaluate some draws; exceptions become values."""
    start = time.perf_counter()
    try:
        with deadline(limit):
            arrays = problem.evaluate_at(iteration, theta, needs)
    except Deadline:
        return Failed("timed_out", f"took longer than {limit:g} seconds", time.perf_counter() - start)
    except failing as error:
        return Failed("raised", f"{type(error).__name__}: {error}", time.perf_counter() - start)
    return Done(arrays, time.perf_counter() - start)


def attempt_beside(
    problem: Problem, iteration: int, theta: Array, needs: Needs, limit: float
) -> Done | Failed:
    """The same where no alarm rings, as in the threads of Dask's workers: in a thread that is left behind if it hangs.

    The worker is free again, and the thread is told to end, which it hears as soon as it executes Python.
    """
    found: list[Done | Failed] = []

    def target() -> None:
        with suppress(Deadline):
            found.append(attempt(problem, iteration, theta, needs, limit, ANYTHING))

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(limit)
    if found:
        return found[0]
    interrupt(thread)
    return Failed("timed_out", f"took longer than {limit:g} seconds", limit)
