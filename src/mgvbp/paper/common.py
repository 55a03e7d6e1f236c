"""What experiments have in common: the paper's methods and prior, when a run has arrived, and how it is followed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

import mgvbp

Array = NDArray[np.float64]
Method = mgvbp.MGVBP | mgvbp.MGVB | mgvbp.QBVI
Seen = TypeVar("Seen")

METHODS: dict[str, type[Method]] = {"MGVBP": mgvbp.MGVBP, "MGVB": mgvbp.MGVB, "QBVI": mgvbp.QBVI}
COLOURS = {"MGVBP": "C0", "MGVB": "C1", "QBVI": "C2"}
PRIOR_VARIANCE = 5.0
"""The paper's prior is N(0, 5 I) in every experiment except the non-differentiable model."""
ARRIVED = 0.05
"""A run has arrived when its exact bound is at most 0.05 nats below the exact optimum."""


@contextmanager
def quietly() -> Iterator[None]:
    """Hide the library's warnings: the stored outcome shows shortened steps and runs that end early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        yield


class Path(Generic[Seen]):
    """A callback of ``mgvbp.fit`` that looks at the first iteration and at every ``every``-th after it.

    Parameters
    ----------
    look : callable
        Takes the Gaussian of an iteration; what it returns is kept.
    every : int

    Attributes
    ----------
    iterations : list of int
        The iterations that were looked at: 1, 1 + every, 1 + 2 every and so on.
    seen : list
        What ``look`` returned at each of them.
    """

    def __init__(self, look: Callable[[mgvbp.Gaussian], Seen], every: int) -> None:
        self.look, self.every = look, every
        self.iterations: list[int] = []
        self.seen: list[Seen] = []

    def __call__(self, iteration: Any) -> None:
        """Look at an iteration, if it is its turn."""
        if iteration.iteration % self.every == 1:
            self.iterations.append(iteration.iteration)
            self.seen.append(self.look(iteration.gaussian))

    def first(self, reached: Callable[[Seen], bool]) -> float | None:
        """The first iteration at which ``reached`` is true of what was seen; None if there is none."""
        pairs = zip(self.iterations, self.seen, strict=True)
        return next((float(t) for t, seen in pairs if reached(seen)), None)
