r"""Independence Metropolis: propose draws of a distribution that resembles the target, wherever the chain is.

With g the density of the proposals, a draw y is accepted at x with probability
:math:`\min\{1, p(y) g(x) / (p(x) g(y))\}` (Tierney 1994). One evaluation a step; where g is within a nat of the
target, most draws are accepted and the chain forgets at once where it was, across modes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.sampling.points import Asking, Move, Point


class Proposal(Protocol):
    """A distribution of positions."""

    def sample(self, rng: np.random.Generator, /) -> Array:
        """One draw, (d,)."""

    def log_density(self, position: Array, /) -> float:
        """The log density at a position (d,)."""


@dataclass(frozen=True, eq=False)
class Independence:
    """The kernel of independence Metropolis with these proposals."""

    proposal: Proposal

    def move(self, point: Point, rng: np.random.Generator) -> Asking[Move]:
        """Propose one draw."""
        drawn = self.proposal.sample(rng)
        new = yield drawn
        before = point.value - self.proposal.log_density(point.position)
        log_ratio = new.value - self.proposal.log_density(drawn) - before
        acceptance = math.exp(min(0.0, log_ratio))
        return Move(new if rng.random() < acceptance else point, acceptance)
