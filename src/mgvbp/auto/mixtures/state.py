"""The state of a search for a mixture: an immutable record of all that the search needs to go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from mgvbp.auto.mixtures.ascent import Position
from mgvbp.auto.mixtures.distance import Expected
from mgvbp.auto.mixtures.scouts import Scouts
from mgvbp.auto.search import Starts
from mgvbp.auto.state import SearchState
from mgvbp.core.distance import Distance
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture


class Place(NamedTuple):
    """A Gaussian that the search was at, with its lower bound and the draws around it."""

    gaussian: Gaussian
    lower_bound: float
    theta: Array
    values: Array

    @classmethod
    def of(cls, state: SearchState) -> Place:
        """Where a search by Gaussians stands."""
        return cls(state.q, state.lower_bound, state.archive.theta, state.archive.values)


class Tried(NamedTuple):
    """A mixture, in the frame, and how far it is from the posterior."""

    mixture: GaussianMixture
    distance: Distance


class Question(NamedTuple):
    """Draws that were asked for, in the frame: first those that measure the ``mixture``, then those that inform."""

    mixture: GaussianMixture
    x: Array
    known: Expected | None
    """What the surrogate says about the draws that measure the mixture; None by gradients."""


@dataclass(frozen=True, eq=False)
class MixtureState:
    """A search by Gaussians, and from its end on the rounds of mixtures."""

    key: tuple[int, ...]
    starts: Starts
    """The search by Gaussians."""
    most: int | None
    """Most evaluations in all; None if the user set no limit."""
    places: tuple[Place, ...] = ()
    """Other optima that the search by Gaussians has left."""
    scouts: Scouts | None = None
    """Those who look for mass elsewhere, once the search by Gaussians has ended; None before."""
    frame: Gaussian | None = None
    """The Gaussian in whose frame the rounds work; None before the first."""
    anchor: GaussianMixture | None = None
    """The Gaussians that were found, in the frame."""
    x: Array | None = None
    """All draws, in the frame, (N, d)."""
    values: Array | None = None
    """The log density of these in the frame, (N,)."""
    numbers: Array | None = None
    """The numbers of the last process."""
    axes: tuple[Array, ...] = ()
    """The axes that the process may have; the first round chooses."""
    question: Question | None = None
    """What is asked for now."""
    tried: tuple[Tried, ...] = ()
    """The mixtures of all rounds."""
    batch: int = 0
    """Draws of each kind in a round."""
    climbs: bool = True
    """Whether gradients, if there are some, serve to climb the bound; not where the density is zero."""
    z: Array | None = None
    """The points of a climb, (S, d)."""
    here: Position | None = None
    """Where the climb has come to."""
    verified: bool = False
    """Whether the last question is about draws of the best mixture alone, after it was chosen."""
    reserve: int = 0
    """Evaluations that the rounds may make beyond ``most``, where the distance is not sure."""
    spent: int = 0
    ending: Ending | None = None

    @property
    def best(self) -> Tried | None:
        """The newest mixture, unless an earlier one is clearly better; its distance is that from the newest evidence.

        Later ones know more. The largest of several measured bounds would often be the luckiest.
        """
        if not self.tried:
            return None
        if self.verified and self.question is None:
            return self.tried[-1]
        usable = [t for t in self.tried if math.isfinite(t.distance.lower_bound)] or list(self.tried)
        best = usable[-1]
        for earlier in reversed(usable):
            ahead = earlier.distance.lower_bound - best.distance.lower_bound
            if ahead > earlier.distance.lower_bound_se + best.distance.lower_bound_se:
                best = earlier
        newest = self.tried[-1].distance
        if best is self.tried[-1] or not math.isfinite(newest.log_evidence):
            return best
        mine = best.distance
        return best._replace(
            distance=mine._replace(
                kl=max(newest.log_evidence - mine.lower_bound, 0.0),
                kl_se=math.hypot(newest.log_evidence_se, mine.lower_bound_se),
                log_evidence=newest.log_evidence,
                log_evidence_se=newest.log_evidence_se,
            )
        )

    @property
    def scouting(self) -> bool:
        """Whether scouts are under way."""
        return self.scouts is not None and len(self.scouts.pending) > 0 and self.frame is None

    @property
    def room(self) -> float:
        """Evaluations that are left."""
        return math.inf if self.most is None else self.most - self.spent
