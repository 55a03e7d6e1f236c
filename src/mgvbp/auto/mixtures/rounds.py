"""The rounds of mixtures: fit the surrogate and the mixture, ask, measure, and decide whether to go on.

A round ends with the true values at draws of its mixture, which no fit has seen, so that every mixture is measured
before it is believed. Each round may double the number of components.
Every function takes a state and returns a new one; states never change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mgvbp.auto.mixtures.ascent import ascended, clustered, split
from mgvbp.auto.mixtures.distance import expected, log_mass, measured, measuring
from mgvbp.auto.mixtures.exploration import informative, walked
from mgvbp.auto.mixtures.scouts import NEGLIGIBLE
from mgvbp.auto.mixtures.state import MixtureState, Place, Question, Tried
from mgvbp.core.checks import positive_number
from mgvbp.core.distance import Distance
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.families.mixture import GaussianMixture, to_frame
from mgvbp.methods.optimizer import STREAM
from mgvbp.surfaces.process import usual
from mgvbp.surfaces.surrogate import Surrogate, axes_of, fitted, log_volume, reach

MOST_PARAMETERS = 40
"""Most parameters for which a mixture is tried by values: beyond that a surrogate takes more draws than it can hold."""
FEWEST_COMPONENTS = 4
"""Gaussians that the first round may end with."""
MOST_COMPONENTS = 16
"""Most Gaussians: twice as many lower the KL by a third or less and double the time."""
ROUNDS = 10
"""Rounds that the evaluations are meant for."""
FEWEST_ROUNDS = 2
"""Fewest rounds: the first has looked only where the Gaussian was."""
MOST_ROUNDS = 14
"""Most rounds."""
BATCHES = (8, 64)
"""Fewest and most draws of each kind in a round."""
LEAST = 16
"""Fewest draws that are worth a round or a last measurement."""
MEASURING = 64
"""Draws that measure the result, at least, where there are evaluations left; else four batches."""
LOOKING = 1.5
"""Draws where the surrogate is least sure, for each draw of the mixture."""
EXTRA = 60
"""The rounds may make as many evaluations as the Gaussian did, and this many times d + 2 at least."""
MORE = 0.5
"""Where the distance of the result is not sure, they may make this share of that once more."""
SURE = 0.25
"""The distance is sure if its error is at most this share of it, or half of what is near enough."""
PATIENCE = 3
"""Rounds without a nearer mixture after which the search ends."""
APART = 1.0
"""Optima are different if a mean differs by this many standard deviations."""
MISLED = 1.0
"""Nats, beyond the errors, by which a first mixture of several optima may be worse than the best of them."""
GOAL = 0.4
"""A mixture that is this share of ``kl_tol`` from the surrogate is good enough."""
SLACK = 0.1
"""More Gaussians must bring the mixture nearer by this share of ``kl_tol``."""
JUDGED = 2000
"""Draws under the surrogate by which mixtures are compared."""


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


class Rounds:
    """The decisions of the rounds, as functions of the state."""

    def __init__(self, aim: Aim) -> None:
        self.aim = aim

    def framed(self, state: MixtureState, alone: bool = False) -> MixtureState:
        """Begin the rounds: the frame, the anchor and all draws in it; ``alone`` leaves other optima out."""
        found = state.starts.best
        others = [Place.of(other) for other in state.starts.states if other is not found]
        places = [Place.of(found)]
        known = [] if alone else sorted([*others, *state.places], key=lambda place: -place.lower_bound)
        for place in known:
            near = any(
                np.abs((place.gaussian.mean - other.gaussian.mean) / other.gaussian.std).max() < APART
                for other in places
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
        theta, values = drawn(places, others)
        spent = state.spent
        gaussian = sum(other.n_evaluations for other in state.starts.states)
        extra = max(gaussian, EXTRA * (frame.dim + 2))
        return replace(
            state,
            frame=frame,
            anchor=to_frame(frame, together),
            x=frame.family.to_frame(frame.factor, theta - frame.mean),
            values=values - log_volume(frame),
            numbers=usual(frame.dim),
            axes=axes_of(frame),
            tried=(),
            most=spent + extra if state.most is None else state.most,
            reserve=int(MORE * extra) if state.most is None else state.reserve,
            batch=int(np.clip(extra // (2.5 * ROUNDS), *BATCHES)),
        )

    def answered(self, state: MixtureState, log_density: Array, gradients: Array | None) -> MixtureState:
        """Take the values of the draws that were asked for, and measure the mixture by those that are its own."""
        question, frame = state.question, state.frame
        assert question is not None
        assert question.known is not None
        assert frame is not None
        values = log_density - log_volume(frame)
        n = len(question.known.log_weights)
        log_weights = values[:n] - question.mixture.log_density_at(question.x[:n])
        return measured_by(state, values, measured(question.known, log_weights))

    def suffices(self, tried: Tried) -> bool:
        """Whether one Gaussian is near enough."""
        return self.aim.or_gaussian and tried.distance.kl <= self.aim.kl_tol

    def decided(self, state: MixtureState) -> MixtureState:
        """End the search, or begin another round."""
        if state.verified:
            return self._concluded(state)
        if _misled(state):
            state = self.framed(state, alone=True)
        ending = self._ended(state)
        if ending is None:
            return self._next(state)
        chosen = ending.outcome in (Outcome.CONFIRMED, Outcome.UNCONFIRMED)
        if chosen and state.room >= LEAST:
            return self._verified(state)
        return replace(state, ending=ending, question=None)

    def _concluded(self, state: MixtureState) -> MixtureState:
        """End the search, or begin another round, if the distance of the result is not sure or refuted.

        The next surrogate goes through its draws, which have shown where the last one was wrong.
        """
        judged = self.judged(state.tried[-1].distance)
        if judged.outcome is Outcome.CONFIRMED and not self._refuted(state):
            return replace(state, ending=judged)
        if state.most is not None:
            state = replace(state, most=state.most + state.reserve, reserve=0)
        if len(state.tried) < MOST_ROUNDS and state.room >= 2 * LEAST + 2 * state.batch:
            return self._next(replace(state, verified=False))
        return replace(state, ending=judged)

    def _refuted(self, state: MixtureState) -> bool:
        """Whether fresh draws of the chosen mixture have met what the rounds did not know.

        Their distance is then larger than that by which it was chosen, and too large, beyond the errors of both.
        """
        chosen, now = replace(state, tried=state.tried[:-1], verified=False).best, state.tried[-1].distance
        assert chosen is not None
        before = chosen.distance
        error = math.hypot(before.kl_se, now.kl_se)
        return now.kl - error > max(self.aim.kl_tol, before.kl + error)

    def judged(self, distance: Distance, what: str = "mixture") -> Ending:
        """Whether the distance of the result is sure enough."""
        sure = math.isfinite(distance.kl) and distance.kl_se <= max(self.aim.kl_tol, 2.0 * SURE * distance.kl)
        outcome = Outcome.CONFIRMED if sure else Outcome.UNCONFIRMED
        return Ending.of(outcome, what=what, kl=distance.kl, se=distance.kl_se)

    def _ended(self, state: MixtureState) -> Ending | None:
        tried, best = state.tried, state.best
        if best is None:
            if state.room >= 2 * LEAST:
                return None
            return Ending.of(Outcome.MAX_EVALUATIONS, limit=state.most)
        first = len(tried) == 1 and self.aim.or_gaussian and best.mixture.components == 1
        if first and best.distance.kl <= self.aim.kl_tol and state.starts.ending is not None:
            return state.starts.ending
        finite = math.isfinite(best.distance.kl)
        sure = finite and best.distance.kl_se <= max(0.5 * self.aim.kl_tol, SURE * best.distance.kl)
        near = best.distance.kl + best.distance.kl_se <= 0.5 * self.aim.kl_tol and len(tried) >= FEWEST_ROUNDS
        last = tried[-1]
        least = 0.1 * max(best.distance.kl, self.aim.kl_tol)
        stuck = _gained(tried, PATIENCE) < least
        full = (
            last.mixture.components >= self.most_components
            and last.mixture is best.mixture
            and _confirmed(last.distance)
            and _gained(tried, 1) < least
        )
        if sure and (near or full or (stuck and _confirmed(best.distance))):
            return self.judged(best.distance)
        reserved = max(2 * LEAST, 2 * state.batch)
        if state.room < 2 * LEAST + reserved or len(tried) >= MOST_ROUNDS:
            return self.judged(best.distance)
        return None

    @property
    def most_components(self) -> int:
        """Most Gaussians."""
        return self.aim.components or MOST_COMPONENTS

    def _next(self, state: MixtureState) -> MixtureState:
        """Fit the surrogate and the mixture, and ask for draws."""
        assert state.anchor is not None
        rng = np.random.default_rng((*state.key, len(state.tried), 1, STREAM))
        last = state.best.mixture if state.best else state.anchor
        surrogate = _surrogate(state, last, rng)
        mixture = self._fitted(state, surrogate, last, rng)
        n = min(state.batch, int(state.room) // 2)
        fresh = mixture.sample(n, rng)
        known = expected(surrogate, mixture, fresh, rng)
        more = min(int(LOOKING * n), int(state.room) - n)
        x = np.concatenate([fresh, informative(surrogate, mixture, more, rng)])
        process = surrogate.process
        return replace(
            state,
            numbers=process.numbers,
            axes=(process.axes,),
            question=Question(mixture, x, known),
        )

    def _verified(self, state: MixtureState) -> MixtureState:
        """Ask for draws of the best mixture, and others around it: by those that chose it, it looks too good."""
        assert state.best is not None
        rng = np.random.default_rng((*state.key, len(state.tried), 2, STREAM))
        mixture = state.best.mixture
        surrogate = _surrogate(state, mixture, rng)
        fresh = measuring(mixture, int(min(max(MEASURING, 4 * state.batch), state.room)), rng)
        known = expected(surrogate, mixture, fresh, rng, measures=True)
        return replace(state, question=Question(mixture, fresh, known), verified=True)

    def _fitted(
        self, state: MixtureState, surrogate: Surrogate, last: GaussianMixture, rng: np.random.Generator
    ) -> GaussianMixture:
        """The best mixture on the surrogate, of those with the numbers of Gaussians that are tried."""
        if not state.tried and self.aim.or_gaussian and last.components == 1:
            return last  # is the Gaussian near enough?
        fixed, most = self.aim.components, self.most_components
        mass, best, nearest = log_mass(surrogate, last, rng), last, math.inf

        def consider(start: GaussianMixture) -> None:
            nonlocal best, nearest
            candidate = ascended(start, surrogate, rng)
            kl = mass - _bound(surrogate, candidate, rng)
            if kl < nearest - SLACK * self.aim.kl_tol or best.components < (fixed or 0):
                best, nearest = candidate, kl

        if last.components <= most:
            consider(last)
        size = min(fixed or max(FEWEST_COMPONENTS, 2 * last.components), most)
        while best.components < size and (fixed or nearest > GOAL * self.aim.kl_tol):
            before = best
            consider(split(best, surrogate, min(2 * best.components, size), rng))
            if best is before:
                break
        if nearest > GOAL * self.aim.kl_tol and (best.components < size or self._surprised(state)):
            consider(clustered(walked(surrogate, last, rng), size, rng))
        return best

    def _surprised(self, state: MixtureState) -> bool:
        """Whether the surrogate is new: its mass may lie where halves of the last mixture do not get."""
        if len(state.tried) < FEWEST_ROUNDS:
            return True
        last = state.tried[-1].distance
        return last.misfit > max(self.aim.kl_tol, last.kl)


def _surrogate(state: MixtureState, mixture: GaussianMixture, rng: np.random.Generator) -> Surrogate:
    """The surrogate through all draws so far."""
    assert state.anchor is not None
    assert state.x is not None
    assert state.values is not None
    assert state.numbers is not None
    anchors = [state.anchor]
    if state.tried:  # what is known of the posterior's moments makes better tails than the best Gaussian
        moments = GaussianMixture.of(mixture.moments)
        anchors = [moments] if state.anchor.components == 1 else [state.anchor, moments]
    return fitted(anchors, mixture, state.x, state.values, state.numbers, state.axes, rng)


def _bound(surrogate: Surrogate, mixture: GaussianMixture, rng: np.random.Generator) -> float:
    """The lower bound of a mixture under the surrogate."""
    x = mixture.sample(JUDGED, rng)
    return float((surrogate.cautious(x) - mixture.log_density_at(x)).mean())


def drawn(places: Sequence[Place], others: Sequence[Place]) -> tuple[Array, Array]:
    """The draws (N, d) around the ``places``, and those around ``others`` whose values matter; and all values (N,).

    A start that ended at the same optimum may have come by another mode on its way. How low the density is where
    others have been is of no use.
    """
    least = max(float(place.values.max()) for place in places) - reach(places[0].gaussian.dim)
    parts = [(place.theta, place.values) for place in places]
    parts += [(place.theta[place.values > least], place.values[place.values > least]) for place in others]
    theta, values = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    once = np.sort(np.unique(theta, axis=0, return_index=True)[1])
    return theta[once], values[once]


def measured_by(state: MixtureState, values: Array, distance: Distance) -> MixtureState:
    """The state with the values (n,) of the draws that were asked for, and the distance that they gave."""
    assert state.question is not None
    assert state.x is not None
    assert state.values is not None
    return replace(
        state,
        question=None,
        x=np.concatenate([state.x, state.question.x]),
        values=np.concatenate([state.values, values]),
        tried=(*state.tried, Tried(state.question.mixture, distance)),
        spent=state.spent + len(values),
    )


def _misled(state: MixtureState) -> bool:
    """Whether the first mixture is clearly worse than the Gaussian, because of other optima that are none."""
    if len(state.tried) != 1 or state.anchor is None or state.anchor.components == 1:
        return False
    found, first = state.starts.best, state.tried[0].distance
    error = math.hypot(found.lower_bound_se, first.lower_bound_se)
    return first.lower_bound == -math.inf or first.lower_bound < found.lower_bound - 3.0 * error - MISLED


def _gained(tried: Sequence[Tried], rounds: int) -> float:
    """Nats by which the last rounds have raised the lower bound."""
    bounds = [t.distance.lower_bound for t in tried]
    return max(bounds[-rounds:]) - max(bounds[:-rounds], default=-math.inf)


def _confirmed(distance: Distance) -> bool:
    """Whether the surrogate knew all but a small part of the distance."""
    return distance.misfit < 0.25 * max(distance.kl, 0.02)
