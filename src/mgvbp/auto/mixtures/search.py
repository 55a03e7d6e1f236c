"""The search for a mixture by ask and tell: a Gaussian first, then rounds of surrogate, mixture and new draws.

A round ends with the true values at draws of its mixture, which no fit has seen, so that every mixture is measured
before it is believed. Components are doubled once the surrogate is no longer what keeps the mixture from the posterior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto.mixtures.ascent import ascended, clustered
from mgvbp.auto.mixtures.distance import expected, log_mass, measured
from mgvbp.auto.mixtures.exploration import informative, walked
from mgvbp.auto.mixtures.state import MixtureState, Place, Question, Tried, from_frame, to_frame
from mgvbp.auto.mixtures.surrogate import Surrogate, fitted
from mgvbp.auto.search import Search
from mgvbp.auto.state import SearchState
from mgvbp.core.checks import positive_integer, positive_number
from mgvbp.core.distance import Distance
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check, Ending, Outcome
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.methods.optimizer import STREAM, Info
from mgvbp.surfaces.process import usual

MOST_PARAMETERS = 40
"""Most parameters for which a mixture is tried: beyond that a surrogate takes more draws than it can hold."""
MOST_COMPONENTS = 16
"""Most Gaussians: twice as many lower the KL by a third or less and double the time."""
ROUNDS = 6
"""Rounds that the evaluations are meant for."""
FEWEST_ROUNDS = 2
"""Fewest rounds: the first has looked only where the Gaussian was."""
MOST_ROUNDS = 12
"""Most rounds."""
BATCHES = (16, 64)
"""Fewest and most draws of each kind in a round."""
LOOKING = 1.5
"""Draws where the surrogate is least sure, for each draw of the mixture."""
EXTRA = 30
"""The rounds may make as many evaluations as the Gaussian did, and this many times d + 2 at least."""
SURE = 0.25
"""The distance is sure if its error is at most this share of it, or half of what is near enough."""
PATIENCE = 3
"""Rounds without a nearer mixture after which the search ends."""
LOOSE = 0.2
"""Tolerance of the Gaussian that a mixture starts from, in nats: it is a frame, not a result."""
FAR = 1.0
"""Standard deviation, in nats, of what a quadratic misses above which the best Gaussian is far from the posterior."""
NEGLIGIBLE = 12.0
"""Other optima whose bound is this many nats lower are left out."""
APART = 1.0
"""Optima are different if a mean differs by this many standard deviations."""


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
    >>> posterior = mgvbp.fit(banana, dim=2, family=mgvbp.Mixture())
    >>> posterior.components > 1, posterior.kl < 0.05
    (True, True)
    """

    components: int | None = None

    def __post_init__(self) -> None:
        if self.components is not None:
            positive_integer(self.components, "components")


@dataclass(frozen=True)
class Aim:
    """What a search for a mixture is to reach."""

    kl_tol: float = 0.05
    """Nats from the posterior that are near enough."""
    components: int | None = None
    """How many Gaussians, if that is fixed."""
    or_gaussian: bool = False
    """Whether one Gaussian will do if it is near enough."""

    def __post_init__(self) -> None:
        positive_number(self.kl_tol, "kl_tol")


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
        self._search, self.aim = gaussian, aim
        self.rules = gaussian.rules
        self.state = MixtureState(gaussian.state.states[0].key, gaussian.state, max_evaluations)

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
        return Best(mixture, d.lower_bound, d.lower_bound_se, None, None, _checks(state, d), d)

    def _better(self, found: SearchState, tried: Tried) -> bool:
        """Whether the Gaussian is the better result: it is near enough, or its bound is higher but for errors."""
        if tried.distance.lower_bound == -math.inf or (
            tried.mixture.components == 1 and self._suffices(tried)
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
        return self.state.ending

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
        return self.state.question is not None or self._inner.trying

    def ask(self) -> Array:
        """The draws to evaluate, (n, d); the same ones until `tell`."""
        state = self.state
        if state.question is None or state.frame is None:
            return self._inner.ask()
        frame = state.frame
        return np.asarray(frame.mean + frame.family.from_frame(frame.factor, state.question.x))

    def tell(self, values: ArrayLike, gradients: ArrayLike | None = None) -> Info:
        """Take the values (n,) of the draws last asked for; decide what to draw next, or stop."""
        theta = self.ask()
        if self.state.question is None:
            return self._told_gaussian(theta, values, gradients)
        with np.errstate(over="ignore", invalid="ignore"):
            log_density = self.rules._evaluated(theta, values, gradients)[0]
        finite = np.isfinite(log_density)
        self.state = self._decided(_answered(self.state, np.where(finite, log_density, -np.inf)))
        best = self.best
        return Info(
            lower_bound=best.lower_bound,
            gap=math.inf if best.distance is None else best.distance.kl,
            step_size=0.0,
            dropped=len(theta) - int(np.count_nonzero(finite)),
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
        elif ending is not None or (self.aim.or_gaussian and _far(inner)):
            state = self._decided(self._framed(state))
        self.state = state
        return info

    def _framed(self, state: MixtureState) -> MixtureState:
        """Begin the rounds: the frame, the anchor and all draws in it."""
        found = state.starts.best
        others = [Place.of(other) for other in state.starts.states if other is not found]
        places = [Place.of(found)]
        for place in sorted([*others, *state.places], key=lambda place: -place.lower_bound):
            near = any(
                np.abs((place.gaussian.mean - known.gaussian.mean) / known.gaussian.std).max() < APART
                for known in places
            )
            if place.lower_bound > found.lower_bound - NEGLIGIBLE and not near:
                places.append(place)
        bounds = np.array([place.lower_bound for place in places])
        single = [GaussianMixture.of(place.gaussian) for place in places]
        together = GaussianMixture(
            np.exp(bounds - bounds.max()),
            np.concatenate([one.means for one in single]),
            np.concatenate([one.factors for one in single]),
        )
        frame = together.moments
        theta = np.concatenate([place.theta for place in places])
        values = np.concatenate([place.values for place in places])
        spent = state.spent
        extra = max(spent, EXTRA * (frame.dim + 2))
        return replace(
            state,
            frame=frame,
            anchor=to_frame(frame, together),
            x=frame.family.to_frame(frame.factor, theta - frame.mean),
            values=values - _log_volume(frame),
            numbers=usual(frame.dim),
            most=spent + extra if state.most is None else state.most,
            batch=int(np.clip(extra // (2.5 * ROUNDS), *BATCHES)),
        )

    # --- rounds -----------------------------------------------------------------------------------

    def _suffices(self, tried: Tried) -> bool:
        """Whether one Gaussian is near enough."""
        return self.aim.or_gaussian and tried.distance.kl <= self.aim.kl_tol

    def _decided(self, state: MixtureState) -> MixtureState:
        """End the search, or begin another round."""
        if state.verified:
            return replace(state, ending=self._judged(state.tried[-1].distance))
        ending = self._ended(state)
        if ending is None:
            return self._next(state)
        chosen = ending.outcome in (Outcome.CONFIRMED, Outcome.UNCONFIRMED)
        if chosen and state.room >= BATCHES[0]:
            return self._verified(state)
        return replace(state, ending=ending, question=None)

    def _judged(self, distance: Distance) -> Ending:
        """Whether the distance of the result is sure enough."""
        sure = math.isfinite(distance.kl) and distance.kl_se <= max(self.aim.kl_tol, 2.0 * SURE * distance.kl)
        outcome = Outcome.CONFIRMED if sure else Outcome.UNCONFIRMED
        return Ending.of(outcome, kl=distance.kl, se=distance.kl_se)

    def _ended(self, state: MixtureState) -> Ending | None:
        tried, best = state.tried, state.best
        if best is None:
            if state.room >= 2 * BATCHES[0]:
                return None
            return Ending.of(Outcome.MAX_EVALUATIONS, limit=state.most)
        first = len(tried) == 1 and self.aim.or_gaussian
        if first and best.distance.kl <= self.aim.kl_tol and state.starts.ending is not None:
            return state.starts.ending
        finite = math.isfinite(best.distance.kl)
        sure = finite and best.distance.kl_se <= max(0.5 * self.aim.kl_tol, SURE * best.distance.kl)
        near = best.distance.kl + best.distance.kl_se <= 0.5 * self.aim.kl_tol and len(tried) >= FEWEST_ROUNDS
        last = tried[-1]
        full = (
            last.mixture.components >= self._most_components
            and last.mixture is best.mixture
            and _confirmed(last.distance)
        )
        bounds = [t.distance.lower_bound for t in tried]
        gained = max(bounds[-PATIENCE:]) - max(bounds[:-PATIENCE], default=-math.inf)
        stuck = gained < 0.1 * max(best.distance.kl, self.aim.kl_tol)
        if sure and (near or full or (stuck and _confirmed(best.distance))):
            return Ending.of(Outcome.CONFIRMED, kl=best.distance.kl, se=best.distance.kl_se)
        reserved = 2 * state.batch
        if state.room < 2 * BATCHES[0] + reserved or len(tried) >= MOST_ROUNDS:
            return self._judged(best.distance)
        return None

    @property
    def _most_components(self) -> int:
        return self.aim.components or MOST_COMPONENTS

    def _next(self, state: MixtureState) -> MixtureState:
        """Fit the surrogate and the mixture, and ask for draws."""
        assert state.anchor is not None
        assert state.x is not None
        assert state.values is not None
        assert state.numbers is not None
        rng = np.random.default_rng((*state.key, len(state.tried), 1, STREAM))
        last = state.best.mixture if state.best else state.anchor
        surrogate = fitted(state.anchor, last, state.x, state.values, state.numbers, rng)
        mixture = self._fitted(state, surrogate, last, rng)
        n = min(state.batch, int(state.room) // 2) if state.room < math.inf else state.batch
        fresh = mixture.sample(n, rng)
        known = expected(surrogate, mixture, fresh, rng)
        more = min(int(LOOKING * n), int(state.room) - n) if state.room < math.inf else int(LOOKING * n)
        x = np.concatenate([fresh, informative(surrogate, mixture, more, rng)])
        return replace(state, numbers=surrogate.process.numbers, question=Question(mixture, x, known))

    def _verified(self, state: MixtureState) -> MixtureState:
        """Ask for draws of the best mixture: by which it was chosen among others, it looks better than it is."""
        assert state.best is not None
        assert state.anchor is not None
        assert state.x is not None
        assert state.values is not None
        assert state.numbers is not None
        rng = np.random.default_rng((*state.key, len(state.tried), 2, STREAM))
        mixture = state.best.mixture
        surrogate = fitted(state.anchor, mixture, state.x, state.values, state.numbers, rng)
        fresh = mixture.sample(int(min(2 * state.batch, state.room)), rng)
        known = expected(surrogate, mixture, fresh, rng)
        return replace(state, question=Question(mixture, fresh, known), verified=True)

    def _fitted(
        self, state: MixtureState, surrogate: Surrogate, last: GaussianMixture, rng: np.random.Generator
    ) -> GaussianMixture:
        """The best mixture on the surrogate, of those with the numbers of Gaussians that are tried."""
        if not state.tried and self.aim.or_gaussian and last.components == 1:
            return last  # is the Gaussian near enough?
        mass, nearest, best, draws = log_mass(surrogate, last, rng), math.inf, last, None
        fixed = self.aim.components
        if (state.tried or last.components > 1 or fixed == 1) and fixed in (None, last.components):
            best = ascended(last, surrogate, rng)
            nearest = mass - _bound(surrogate, best, rng)
        for components in self._sizes(state):
            if nearest < GOAL * self.aim.kl_tol:
                break
            draws = walked(surrogate, last, rng) if draws is None else draws
            candidate = ascended(clustered(draws, components, rng), surrogate, rng)
            kl = mass - _bound(surrogate, candidate, rng)
            if kl < nearest - SLACK * self.aim.kl_tol or components == fixed:
                best, nearest = candidate, kl
        return best

    def _sizes(self, state: MixtureState) -> list[int]:
        """Numbers of Gaussians to try in the next round."""
        if self.aim.components is not None:
            return [self.aim.components]
        if not state.tried or state.tried[-1].mixture.components == 1:
            return [1, 2, 4] if not state.tried else [2, 4]
        last = state.tried[-1]
        if last.distance.misfit > max(self.aim.kl_tol, last.distance.kl):
            return [max(4, last.mixture.components)]  # the surrogate has changed: begin afresh too
        return [min(2 * last.mixture.components, MOST_COMPONENTS)]


GOAL = 0.4
"""A mixture that is this share of ``kl_tol`` from the surrogate is good enough."""
SLACK = 0.1
"""More Gaussians must bring the mixture nearer by this share of ``kl_tol``."""
JUDGED = 2000
"""Draws under the surrogate by which mixtures are compared."""
GOES_ON = {Outcome.CERTIFIED, Outcome.MAX_EVALUATIONS, Outcome.UNSETTLED, Outcome.NO_REGION}
"""Ends of a search by Gaussians from which mixtures can go on."""


def _bound(surrogate: Surrogate, mixture: GaussianMixture, rng: np.random.Generator) -> float:
    """The lower bound of a mixture under the surrogate."""
    x = mixture.sample(JUDGED, rng)
    return float((surrogate.cautious(x) - mixture.log_density_at(x)).mean())


def _answered(state: MixtureState, log_density: Array) -> MixtureState:
    """Take the values of the draws that were asked for, and measure the mixture by those that are its own."""
    question, frame = state.question, state.frame
    assert question is not None
    assert frame is not None
    assert state.x is not None
    assert state.values is not None
    values = log_density - _log_volume(frame)
    n = len(question.known.log_weights)
    log_weights = values[:n] - question.mixture.log_density_at(question.x[:n])
    distance = measured(question.known, log_weights)
    return replace(
        state,
        question=None,
        x=np.concatenate([state.x, question.x]),
        values=np.concatenate([state.values, values]),
        tried=(*state.tried, Tried(question.mixture, distance)),
        spent=state.spent + len(values),
    )


def _log_volume(frame: Gaussian) -> float:
    """Log density of θ less that of its place in the frame."""
    return float(np.log(frame.family.diagonal(frame.factor)).sum())


def _confirmed(distance: Distance) -> bool:
    """Whether the surrogate knew all but a small part of the distance."""
    return distance.misfit < 0.25 * max(distance.kl, 0.02)


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


def _checks(state: MixtureState, distance: Distance) -> tuple[Check, ...]:
    """What tried to refute the mixture."""
    passed, rounds = math.isfinite(distance.kl), len(state.tried)
    nats = f"{distance.kl:.3f} nats from the posterior (se {distance.kl_se:.3f})"
    return (
        Check("its own fresh draws", passed, nats),
        Check("draws where the surrogate was least sure", passed, f"{rounds} rounds"),
    )
