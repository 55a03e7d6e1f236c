"""The state of a search on a stream of batches: an immutable record of all that the search needs to go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mgvbp.auto.stream.adam import Adam
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending
from mgvbp.families.gaussian import Gaussian


class Stage(StrEnum):
    """What the draws of an iteration are for."""

    POINT = "point"
    """They climb to a mode, one point at a time."""
    CURVE = "curve"
    """They show the curvature at the mode, whose mean stays where it is."""
    STEP = "step"
    """They move the Gaussian."""
    CHECK = "check"
    """They measure the lower bound of what a round of steps has led to."""
    VERIFY = "verify"
    """They measure the start and the result once more: no decision has depended on them."""


class Measured(NamedTuple):
    """A Gaussian, and h = log prior + log-likelihood − log q of all data at its draws."""

    q: Gaussian
    h: Array
    """(S,), the second half at the mirror images of the first."""

    @property
    def pairs(self) -> Array:
        """The means over each draw and its mirror image, (S/2,), which are independent."""
        half = len(self.h) // 2
        return 0.5 * (self.h[:half] + self.h[half:])

    @property
    def lower_bound(self) -> float:
        """The lower bound of q."""
        return float(self.h.mean())

    @property
    def lower_bound_se(self) -> float:
        """Its standard error."""
        return standard_error(self.pairs)

    def gain_over(self, other: Measured) -> tuple[float, float]:
        """How much higher the bound is than that of another Gaussian at the same ε, and the standard error of that."""
        difference = self.pairs - other.pairs
        return float(difference.mean()), standard_error(difference)


def standard_error(values: Array) -> float:
    """The standard error of the mean of independent values."""
    return float(values.std(ddof=1)) / math.sqrt(len(values))


@dataclass(frozen=True, eq=False)
class StreamState:
    """How far a search has come. The draws of an iteration are a function of ``key`` and the iteration."""

    key: tuple[int, ...]
    q: Gaussian
    """The current iterate; before the curvature is known its mean is the start's."""
    point: Adam
    """Where ADAM is."""
    stage: Stage = Stage.POINT
    iteration: int = 0
    evaluations: int = 0
    done: int = 0
    """Iterations of this round, or batches of this check."""
    momentum: Array | None = None
    """The average of past gradients by the mean, (d,)."""
    step: float = 0.0
    """Step of the mean, in natural gradients."""
    longest: float = math.inf
    """Longest step: half of the last one that lowered the bound."""
    rate: float = 0.0
    """Share of the new curvature in the precision."""
    average: Array | None = None
    """Sum of the means of the last half of the round, (d,)."""
    totals: Array | None = None
    """Sums over the batches of an epoch: of the log-likelihoods at the draws of a check, or of ADAM's values, (1,)."""
    start: Measured | None = None
    """The Gaussian at the mode."""
    best: Measured | None = None
    """The best Gaussian so far."""
    rounds: int = 0
    length: int = 1
    """How many times as long as the first round the next one is: shorter steps take longer rounds."""
    stale: int = 0
    """Rounds in a row that gained no more than the tolerance."""
    undone: int = 0
    """Rounds that lowered the bound beyond its noise, and were undone."""
    ending: Ending | None = None
