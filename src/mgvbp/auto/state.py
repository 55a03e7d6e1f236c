"""The state of a search: an immutable record of all that the search needs to go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mgvbp.auto import constants
from mgvbp.auto.arrival.approach import Approach
from mgvbp.auto.arrival.ascent import Ascent
from mgvbp.auto.arrival.climb import Climb
from mgvbp.auto.arrival.evolution import Evolution
from mgvbp.auto.steps.leap import Leap
from mgvbp.auto.trial.chords import Chords
from mgvbp.auto.trial.company import Company
from mgvbp.auto.trial.trial import Trial
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import REFUTED, Check, Ending, Outcome
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive
from mgvbp.surfaces.moments import Moments
from mgvbp.surfaces.surface import Surface

if TYPE_CHECKING:
    from mgvbp.auto.searches.structured import StructuredState


class Phase(StrEnum):
    """What the next draws are for."""

    ASCENT = "ascent"
    """They climb, with gradients, to where a Gaussian may fit."""
    HESSIAN = "hessian"
    """They show the curvature where the ascent has ended."""
    APPROACH = "approach"
    """They find, by Newton's steps on values alone, where a Gaussian may fit."""
    EVOLVE = "evolve"
    """They find, by ranks of values alone, where a Gaussian may fit."""
    SURVEY = "survey"
    """They serve to fit a first surface at q."""
    LEAP = "leap"
    """They judge the Gaussian that a leap leads to."""
    REFINE = "refine"
    """They make the noise of the gradient smaller than the tolerance."""
    VERIFY = "verify"
    """They confirm the result: no decision has depended on them."""
    TRIAL = "trial"
    """They try to refute the result: the same draws again, and points far out in the tails."""
    LOOKOUT = "lookout"
    """They climb, with gradients, from elsewhere: is there a higher mode?"""
    CLIMB = "climb"
    """They climb, with gradients, the bound of diagonal Gaussians on fixed points."""
    STRIDE = "stride"
    """They are the same ±ε in one Gaussian after another, where surfaces are poor."""
    WITNESS = "witness"
    """They show tails that the surface does not predict."""
    CHORD = "chord"
    """They halve chords between draws, in search of jumps that gradients do not show."""

    @property
    def far_out(self) -> bool:
        """Whether they lie where q has hardly any mass, so that the function may fail there and nothing is lost."""
        return self in (Phase.TRIAL, Phase.LOOKOUT, Phase.WITNESS)


@dataclass(frozen=True, eq=False)
class SearchState:
    """One start of a search. The draws of an iteration are a function of ``key`` and ``iteration``."""

    key: tuple[int, ...]
    first: Gaussian
    """The initial Gaussian."""
    q: Gaussian
    """The best Gaussian so far."""
    archive: Archive
    phase: Phase
    radius: float
    """Trust radius of a leap, in nats."""
    target_size: float
    """Effective draws that the next surface should have."""
    want: int
    """Draws to ask for next; 0 while the next decision needs no draws."""
    max_evaluations: int
    iteration: int = 0
    n_evaluations: int = 0
    far: Evolution | Approach | Ascent | None = None
    """The evolution, approach or ascent that looks for a region where a Gaussian may fit; None once it has ended."""
    onward: int = 0
    """How often an approach has gone on from a surface."""
    surface: Surface | None = None
    """The surface at q; None if none has been fitted."""
    best: Surface | None = None
    """The surface whose bound is surely the highest so far: where a search without a certificate ends."""
    leap: Leap | None = None
    """The leap that is being judged."""
    failures: int = 0
    """Leaps in a row that did not gain enough."""
    fills: int = 0
    """Batches in a row that were meant to reach ``target_size``."""
    fresh: bool = False
    """Whether draws were made since the last leap was proposed."""
    verified: bool = False
    """Whether fresh draws for a verification have been made at q."""
    expected: float = math.inf
    """What a quadratic missed (nats) before the last verification."""
    surprises: int = 0
    """Verifications after which it missed much more."""
    stretch: float = 1.0
    """Factor on the gap that the surface states; more than 1 only where the target is far from Gaussian."""
    least_stretch: float = 1.0
    """Smallest value of ``stretch``; more than 1 where the tails are heavy."""
    escapes: int = 0
    """How often the search has looked for another region."""
    blurred: int = 0
    """Refinements in a row of a surface whose low values were raised."""
    trial: Trial | None = None
    """The last trial of a result."""
    suspects: tuple[tuple[int, int], ...] = ()
    """Directions of the trial in which the next draws are witnesses, and how many each."""
    steep: Array | None = None
    """The last suspect direction: one standard deviation along it, (d,)."""
    charges: int = 0
    """Trials so far, of this result or earlier ones."""
    lookouts: tuple[Ascent, ...] = ()
    """Ascents from elsewhere, which look for a higher mode; empty until the first result."""
    climbs: tuple[Climb, ...] = ()
    """Climbs of the bound of diagonal Gaussians; once they have ended, those whose ends are yet to be visited."""
    climbed: int = 0
    """How many rounds of climbs there were: one at the start, and one before a certificate."""
    strides: StructuredState | None = None
    """The strides, while they go on and afterwards; None if there were none."""
    optimum: tuple[Gaussian, int] | None = None
    """The last optimum of the draws at hand, by gradients, and how many draws there were."""
    cleared: int = 0
    """The draws of the archive when slow directions were last found to hide nothing."""
    chords: Chords | None = None
    """Chords on which values and gradients of this result are compared; None until that has begun."""
    rival: SearchState | None = None
    """The state of an earlier result, which was left to look at another mode."""
    leads: tuple[tuple[Array, float], ...] = ()
    """Points (d,) elsewhere where ascents have ended, and their values, the highest first; those yet to be followed."""
    seen: tuple[Gaussian, ...] = ()
    """Results that were left, or that were no better: modes that need no other visit."""
    record: float = -math.inf
    """The highest lower bound that was met on visits to other modes, less three standard errors."""
    wide: bool = False
    """Whether a much wider Gaussian has been looked at."""
    visits: int = 0
    """How often the search has left a result to look at another mode."""
    deterministic: bool = False
    """Whether the values are known to have no noise."""
    random: bool = False
    """Whether they are known to have noise, which does not come from the company of other draws."""
    company: Company | None = None
    """Draws to evaluate together again, to see whether two values differed because of their company."""
    checks: tuple[Check, ...] = ()
    """What tried to refute the result, and what came of it."""
    scale: float = 1.0
    """Factor on the standard deviations of the initial Gaussian that narrowed it to show the curvature."""
    moments: Moments | None = None
    """Sums over the draws from q, in a search for many parameters."""
    by_draws: bool = False
    """Whether a search for many parameters has begun anew in the way that keeps its draws."""
    ending: Ending | None = None

    @property
    def far_out(self) -> bool:
        """Whether some of the next draws lie where the function may fail and nothing is lost, as on all visits."""
        return self.phase.far_out or self.rival is not None

    @property
    def converged(self) -> bool:
        """Whether the result is certified."""
        return self.ending is not None and self.ending.outcome is Outcome.CERTIFIED

    @property
    def lower_bound(self) -> float:
        """The lower bound of q according to its surface; −inf without one, or if the density is zero where q is not."""
        if self.surface is None or (self.ending is not None and self.ending.outcome is Outcome.OUTSIDE):
            return -math.inf
        return self.surface.lower_bound

    @property
    def lower_bound_se(self) -> float:
        """The standard error of `lower_bound`."""
        return self.surface.lower_bound_se if self.surface else math.inf

    @property
    def gap(self) -> float:
        """Expected distance of the lower bound of q from the family's optimum, in nats.

        Before the result is certified it is what the surface promises and what its noise may hide. It is infinite where
        the surface cannot be believed. A search that has ended without a certificate adds a part of the divergence of q
        from the posterior, which is about half the variance of what the quadratic misses: no Gaussian is better by more
        than all of it, and none was looked for elsewhere.
        """
        surface = self.surface
        if surface is None:
            return math.inf
        stated = surface.cautious
        if self.converged:
            return self.stretch * stated.noise
        if surface.clipped or surface.poor or (self.ending is not None and self.ending.outcome in REFUTED):
            return math.inf
        missed = max(surface.rest**2 - self.archive.noise**2, 0.0) if self.ending is not None else 0.0
        return self.stretch * (surface.gap + stated.noise + stated.noise_sd) + constants.UNTRIED * missed

    @property
    def gap_se(self) -> float:
        """Standard deviation of `gap`."""
        return (
            self.stretch * self.surface.cautious.noise_sd
            if self.surface and self.gap < math.inf
            else math.inf
        )

    @property
    def centre(self) -> Gaussian:
        """The Gaussian that draws are made from: that of a leap while it is judged, else q."""
        return self.leap.q if self.leap else self.q

    @property
    def room(self) -> int:
        """Evaluations that are left."""
        return self.max_evaluations - self.n_evaluations
