"""The search for a mixture by ask and tell: a Gaussian first, then `scouts`, then the `rounds`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto.mixtures.climbing import Climbing
from mgvbp.auto.mixtures.rounds import MOST_PARAMETERS, Aim, Rounds
from mgvbp.auto.mixtures.scouts import Scouts
from mgvbp.auto.mixtures.state import MixtureState, Place, Tried
from mgvbp.auto.search import Search
from mgvbp.auto.searches.rules import Rules
from mgvbp.auto.state import SearchState
from mgvbp.core.checks import positive_integer
from mgvbp.core.distance import Distance
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check, Ending, Outcome
from mgvbp.core.threads import one_thread
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture, from_frame
from mgvbp.methods.optimizer import STREAM, Info

MOST_WITH_GRADIENTS = 100
"""Most parameters with gradients: beyond that a step takes 7,000 evaluations, and weights do not tell the distance."""
LOOSE = 0.2
"""Tolerance of the Gaussian that a mixture starts from, in nats: it is a frame, not a result."""
FAR = 1.0
"""Standard deviation, in nats, of what a quadratic misses above which the best Gaussian is far from the posterior."""
SCOUTED = 0.25
"""Largest share of the evaluations that are left which scouts may ask for at first."""
NEAR = {False: 6, True: 20}
"""Evaluations of a search where scouts have found something, by values and by gradients, times those of a first
surface: enough for a few leaps."""
UNSEEN = "; a mode that no draw has come near would be missing (starts=8 looks for others)"
"""What the distance of a search with one start does not say."""
GOES_ON = {Outcome.CERTIFIED, Outcome.MAX_EVALUATIONS, Outcome.UNSETTLED, Outcome.NO_REGION}
"""Ends of a search by Gaussians from which mixtures can go on."""


@dataclass(frozen=True)
class Mixture:
    """The family of mixtures of Gaussians.

    Parameters
    ----------
    components : int, optional
        How many Gaussians; by default as many as it takes, and 16 at most.

    Examples
    --------
    >>> import mgvbp
    >>> def banana(theta):
    ...     return -0.5 * theta[:, 0] ** 2 - 2.0 * (theta[:, 1] - theta[:, 0] ** 2) ** 2
    >>> posterior = mgvbp.fit(banana, dim=2, family=mgvbp.Mixture(), rng=4)
    >>> posterior.components > 1, posterior.kl < 0.2  # the best Gaussian is 0.39 away
    (True, True)
    """

    components: int | None = None

    def __post_init__(self) -> None:
        if self.components is not None:
            positive_integer(self.components, "components")


class Best(NamedTuple):
    """The approximation that a search would return now, and what is known about it."""

    q: Gaussian | GaussianMixture
    lower_bound: float
    lower_bound_se: float
    gap: float | None
    gap_se: float | None
    checks: tuple[Check, ...]
    distance: Distance | None


class MixtureSearch:
    """An ask/tell run that ends with a mixture; batches differ in size.

    Parameters
    ----------
    gaussian : Search
        A search for a full Gaussian, not yet begun.
    aim : Aim
    max_evaluations : int, optional
    """

    def __init__(self, gaussian: Search, aim: Aim, max_evaluations: int | None = None) -> None:
        self._search, self._by_values, self._climbing = gaussian, Rounds(aim), Climbing(aim)
        assert isinstance(gaussian.rules, Rules)
        self.rules = gaussian.rules
        self.state = MixtureState(gaussian.state.states[0].key, gaussian.state, max_evaluations)

    def _rounds_of(self, state: MixtureState) -> Rounds:
        """The rounds that a state goes on with."""
        return self._climbing if self.rules.needs_gradients and state.climbs else self._by_values

    @property
    def _rounds(self) -> Rounds:
        return self._rounds_of(self.state)

    @property
    def gaussian(self) -> Gaussian:
        """The approximation so far, or the Gaussian with its moments."""
        state = self.state
        if state.question is None or state.frame is None:
            return state.starts.active.q
        return from_frame(state.frame, state.question.mixture).moments

    @property
    def best(self) -> Best:
        """The approximation that the search would return now."""
        state, found = self.state, self.state.starts.best
        tried = state.best
        if tried is None or state.frame is None or self._better(found, tried):
            distance = tried and _from(found, tried.distance)
            checks = found.checks
            return Best(
                found.q, found.lower_bound, found.lower_bound_se, found.gap, found.gap_se, checks, distance
            )
        d = tried.distance
        mixture = from_frame(state.frame, tried.mixture)
        return Best(mixture, d.lower_bound, d.lower_bound_se, None, None, self._checks(d), d)

    def _checks(self, distance: Distance) -> tuple[Check, ...]:
        """What tried to refute the mixture."""
        passed, rounds = math.isfinite(distance.kl), len(self.state.tried)
        nats = f"{distance.kl:.3f} nats from the posterior (se {distance.kl_se:.3f})"
        climbed = self._rounds is self._climbing
        looked = (
            "draws around all of its Gaussians" if climbed else "draws where the surrogate was least sure"
        )
        return Check("its own fresh draws", passed, nats), Check(looked, passed, f"{rounds} rounds")

    def _better(self, found: SearchState, tried: Tried) -> bool:
        """Whether the Gaussian is the better result: it is near enough, or its bound is higher but for errors."""
        if tried.distance.lower_bound == -math.inf or (
            tried.mixture.components == 1 and self._rounds.suffices(tried)
        ):
            return True
        error = math.hypot(found.lower_bound_se, tried.distance.lower_bound_se)
        return found.lower_bound - tried.distance.lower_bound > 2.0 * error

    @property
    def n_evaluations(self) -> int:
        """Evaluations so far."""
        return self.state.spent

    @property
    def lower_bound(self) -> float:
        """The lower bound of the best approximation; −inf while nothing is known."""
        return self.best.lower_bound

    @property
    def ending(self) -> Ending | None:
        """Why the search ended; None while it goes on."""
        ending = self.state.ending
        if ending is None or ending.outcome not in (Outcome.CONFIRMED, Outcome.UNCONFIRMED):
            return ending
        best = self.best
        if isinstance(best.q, Gaussian) and best.distance is not None:
            ending = self._rounds.judged(best.distance, "Gaussian")
        if ending.outcome is not Outcome.CONFIRMED or self.state.starts.asked_for > 1:
            return ending
        return replace(ending, sentence=ending.sentence + UNSEEN)

    @property
    def stop_reason(self) -> str:
        """Why the search ended, in a sentence; empty while it goes on."""
        return self.ending.sentence if self.ending else ""

    @property
    def converged(self) -> bool:
        """Whether fresh draws confirm the result."""
        return self.ending is not None and self.ending.outcome in (Outcome.CERTIFIED, Outcome.CONFIRMED)

    @property
    def trying(self) -> bool:
        """Whether some of the next draws lie far out, where the function may fail."""
        state = self.state  # searches where scouts have found something are far out, too
        return state.question is not None or state.scouts is not None or self._inner.trying

    def ask(self) -> Array:
        """The draws to evaluate, (n, d); the same ones until `tell`."""
        state = self.state
        if state.scouting:
            assert state.scouts is not None
            return state.scouts.theta
        if state.question is None or state.frame is None:
            return self._inner.ask()
        frame = state.frame
        return np.asarray(frame.mean + frame.family.from_frame(frame.factor, state.question.x))

    def tell(self, values: ArrayLike, gradients: ArrayLike | None = None) -> Info:
        """Take the values (n,) of the draws last asked for; decide what to draw next, or stop."""
        theta, state = self.ask(), self.state
        if state.question is None and not state.scouting:
            return self._told_gaussian(theta, values, gradients)
        with np.errstate(over="ignore", invalid="ignore"):
            log_density, *slopes = self.rules._evaluated(theta, values, gradients)
        finite = np.isfinite(log_density)
        log_density = np.where(finite, log_density, -np.inf)
        with one_thread(theta.shape[1]):
            if state.scouting:
                self.state = self._scouted(state, log_density)
            else:
                answered = self._rounds.answered(state, log_density, slopes[0] if slopes else None)
                self.state = self._rounds_of(answered).decided(answered)
        best = self.best
        return Info(
            lower_bound=best.lower_bound,
            gap=math.inf if best.distance is None else best.distance.kl,
            step_size=0.0,
            dropped=0 if state.scouting else len(theta) - int(np.count_nonzero(finite)),
            reductions=0,
            noise=math.inf if best.distance is None else best.distance.kl_se,
            radius=math.inf,
            num_draws=len(theta),
            phase="mixture",
        )

    # --- the Gaussian -----------------------------------------------------------------------------

    @property
    def _inner(self) -> Search:
        """The search by Gaussians, in the state that we keep for it."""
        if self._search.state is not self.state.starts:
            self._search.state = self.state.starts
        return self._search

    def _told_gaussian(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> Info:
        inner, before = self._inner, self.state.starts.active
        info = inner.tell(values, gradients)
        now, places = inner.state.active, self.state.places
        left = now.visits != before.visits or (before.rival is not None and now.rival is None)
        if before.surface is not None and left:  # an optimum was left, for another or for the one before
            places = (*places, Place.of(before))
        state = replace(self.state, starts=inner.state, places=places, spent=self.state.spent + len(theta))
        ending = inner.ending
        stays = inner.best.surface is None or inner.best.archive.noise > 0.0
        if ending is not None and (ending.outcome not in GOES_ON or stays):
            noisy = inner.best.archive.noise > 0.0 and ending.outcome in GOES_ON
            state = replace(state, ending=Ending.of(Outcome.NOISY) if noisy else ending)
        elif ending is not None or _far(inner):
            state = self._looking(state)
        self.state = state
        return info

    # --- elsewhere --------------------------------------------------------------------------------

    def _looking(self, state: MixtureState) -> MixtureState:
        """Send scouts, or send them on; if they have nothing to look for, begin the rounds."""
        best, scouts = state.starts.best, state.scouts
        known = tuple((other.q, other.lower_bound) for other in state.starts.states)
        if len(known) >= self._rounds.most_components or best.q.dim > MOST_PARAMETERS:
            return self._framed(state)
        if scouts is not None:
            scouts = scouts.resumed(known)
        else:
            rng = np.random.default_rng((*state.key, best.iteration, 3, STREAM))
            scouts = Scouts.start(best.q, known, best.first, rng, gradients=self.rules.needs_gradients)
        if 0 < len(scouts.pending) < SCOUTED * state.room:
            return replace(state, scouts=scouts)
        return self._framed(state)

    def _scouted(self, state: MixtureState, log_density: Array) -> MixtureState:
        """Take what scouts have asked for; where they have found something, search for the best Gaussian."""
        assert state.scouts is not None
        scouts, starts = state.scouts.tell(log_density), state.starts
        state = replace(state, scouts=scouts, spent=state.spent + len(log_density))
        if 0 < len(scouts.pending) < state.room:
            return state
        enough = NEAR[self.rules.needs_gradients] * self.rules.least
        share = int(min(SCOUTED * state.room, starts.budget, enough))
        if scouts.found is None or share < 2 * self.rules.least:
            return self._framed(state)
        count = len(starts.states)
        there = self.rules.near(scouts.found, (*state.key, count), share)
        states = (*starts.states, there)
        more = replace(starts, states=states, current=count, chosen=False, spent=state.spent)
        return replace(state, starts=more)

    def _framed(self, state: MixtureState) -> MixtureState:
        """Begin the rounds."""
        framed = self._rounds.framed(state)
        return self._rounds_of(framed).decided(framed)


def _far(search: Search) -> bool:
    """Whether the best Gaussian is nearly found and clearly not the posterior."""
    state = search.state.active
    if not search.state.chosen or state.archive.noise > 0.0:
        return False
    surface = state.surface
    known = surface is not None and not surface.poor and not surface.clipped and state.far is None
    return bool(known and surface is not None and surface.rest > FAR and state.gap < LOOSE)


def _from(found: SearchState, distance: Distance) -> Distance:
    """The distance of the Gaussian from the posterior, given that of another approximation."""
    return distance._replace(
        kl=max(distance.log_evidence - found.lower_bound, 0.0),
        kl_se=math.hypot(distance.log_evidence_se, found.lower_bound_se),
        lower_bound=found.lower_bound,
        lower_bound_se=found.lower_bound_se,
    )
