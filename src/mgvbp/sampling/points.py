"""What walkers exchange with the engine: they ask for a position and are sent the point that is there."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from mgvbp.core.linalg import Array

T = TypeVar("T")


class Point(NamedTuple):
    """A position ε in the frame of the fit, (d,), with the target's log density there and its gradient by ε.

    The log density is −inf where it is zero or could not be evaluated. The gradient is None for a sampler that does
    without.
    """

    position: Array
    value: float
    gradient: Array | None = None


Asking = Generator[Array, Point, T]
"""A computation that yields the positions it wants evaluated, is sent the points, and returns a T."""


class Move(NamedTuple):
    """What came of one step of a kernel."""

    point: Point
    acceptance: float
    """The probability with which the proposals were accepted, on average."""
    diverged: bool = False
    """Whether the integrator lost the trajectory."""


class Kernel(Protocol):
    """One step of a Markov chain that leaves the target invariant."""

    def move(self, point: Point, rng: np.random.Generator) -> Asking[Move]:
        """Step from ``point``."""
