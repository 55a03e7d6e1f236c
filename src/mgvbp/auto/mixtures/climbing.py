"""The rounds where there are gradients: the bound of the mixture is climbed on the log density itself.

No surrogate is needed. The steps are those of `ascent`, at a few fixed points of each Gaussian, whose values and
gradients are asked for. A climb that has come to its end is measured by fresh draws; then every Gaussian is split and
the next climb begins, on fresh points. A step with K Gaussians takes K S evaluations, and its own time is negligible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mgvbp.auto.mixtures.ascent import Position, halved, paired, points
from mgvbp.auto.mixtures.distance import measuring, weighed
from mgvbp.auto.mixtures.rounds import FEWEST_COMPONENTS, MOST_PARAMETERS, Rounds, measured_by
from mgvbp.auto.mixtures.state import MixtureState, Question
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.families.mixture import GaussianMixture
from mgvbp.methods.optimizer import STREAM
from mgvbp.surfaces.surrogate import log_volume

POINTS_PER_PARAMETER = 4
"""Points for each of the d + 2 coefficients of a Gaussian; with half as many a climb with eight Gaussians fits the
points and not the density (KL 1.2 instead of 0.1 on a funnel with ten parameters) ..."""
FEWEST_POINTS = 64
"""... and at least so many for each Gaussian."""
RISE = 0.005
"""A climb ends when a step gains fewer nats. At a fifth it takes twice the evaluations for a fifth less KL."""
MEASURING = 512
"""Draws that measure a mixture."""
MOST_MEASURING = 4096
"""Most draws that measure the result."""
MOST_GRADIENTS = 2000
"""The rounds make at most this many times d + 10 evaluations."""
SHORTEST = 5
"""Steps that there must be evaluations for, or else a climb is not begun."""
OVERFITTED = 0.25
"""A climb whose bound on its points is too high by this share of the distance has too few of them: the next one takes
twice as many ..."""
MORE_POINTS = 4
"""... and one that brought nothing goes on with so many times as many, before Gaussians are split."""


class Climbing(Rounds):
    """The decisions of the rounds by gradients."""

    def framed(self, state: MixtureState, alone: bool = False) -> MixtureState:
        """Begin the rounds, with more evaluations than those by values."""
        framed = super().framed(state, alone)
        assert framed.anchor is not None
        count, d = framed.anchor.components, framed.anchor.dim
        if state.most is None:
            framed = replace(framed, most=state.spent + MOST_GRADIENTS * (d + 10))
        first = 2 * MEASURING + 2 * SHORTEST * (2 * FEWEST_COMPONENTS - 1) * _fewest_points(d)
        if not alone and (count > self.most_components or framed.room < first):
            if d > MOST_PARAMETERS:
                limit = Ending.of(Outcome.MAX_EVALUATIONS, limit=framed.most)
                return replace(framed, question=None, ending=limit)
            return replace(super().framed(state), climbs=False)  # a surrogate makes more of what is left
        return replace(framed, z=None, here=None)

    def answered(self, state: MixtureState, log_density: Array, gradients: Array | None) -> MixtureState:
        """Take the values and gradients that were asked for."""
        question, frame = state.question, state.frame
        assert question is not None
        assert frame is not None
        assert gradients is not None
        values, z = log_density - log_volume(frame), state.z
        if z is None:
            distance = weighed(question.mixture, question.x, values)
            if state.verified:
                distance = distance.uncertain(self._still_rising(state))
            return measured_by(state, values, distance)
        slopes = frame.family.solve(frame.factor, gradients)
        state = replace(state, question=None, spent=state.spent + len(values))
        if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            if state.here is None and len(slopes[0]) > MOST_PARAMETERS:
                return replace(state, ending=Ending.of(Outcome.NO_REGION))
            if state.here is None:
                return replace(state, climbs=False, z=None)
            return replace(state, here=state.here.shorter())
        if state.here is None:
            return replace(state, here=Position.begun(question.mixture, z, values, slopes))
        return replace(state, here=state.here.told(question.mixture, values, slopes))

    def decided(self, state: MixtureState) -> MixtureState:
        """Go on climbing, measure, or end the search."""
        here = state.here
        if state.z is None or here is None:
            return super().decided(state)
        mixture = here.mixture
        step = mixture.components * len(here.z)
        if not here.over(RISE) and state.room >= step + MEASURING:
            return _asking(state, here.proposed())
        few = min(FEWEST_COMPONENTS, self.most_components)
        if mixture.components < few and state.room >= 2 * SHORTEST * step + MEASURING:
            return self._next(state)
        return self._measuring(replace(state, z=None), mixture, MEASURING)

    def _next(self, state: MixtureState) -> MixtureState:
        """Measure the Gaussian, or climb with twice as many Gaussians as before, or on more points."""
        assert state.anchor is not None
        if not state.tried:
            return self._measuring(state, state.anchor, min(MEASURING, int(state.room)))
        here, d = state.here, state.anchor.dim
        rng = np.random.default_rng(
            (*state.key, len(state.tried), 0 if here is None else here.mixture.components, STREAM)
        )
        count, start = _fewest_points(d), state.anchor
        if here is not None:
            size = min(2 * here.mixture.components, self.most_components)
            count, start = len(here.z) * (2 if self._overfitted(state, 2.0) else 1), halved(here, size)
            if self._misled_by_points(state):
                count, start = MORE_POINTS * len(here.z), here.mixture
        return _asking(replace(state, z=paired(rng, count, d), here=None), start)

    def _refuted(self, state: MixtureState) -> bool:
        """Never: there is no surrogate that fresh draws could surprise, and the climbs are over."""
        return False

    def _still_rising(self, state: MixtureState) -> float:
        """Nats that the result has gained over mixtures of fewer Gaussians.

        Twice as many would gain about half of that, the next doubling a quarter, and so on: as much is still missing,
        and draws of the mixture need not have met it, as in the neck of a funnel. So it counts as an error of the
        evidence, unless the mixture was near enough before there were no more Gaussians.
        """
        assert state.question is not None
        count = state.question.mixture.components
        if count < self.most_components and self._near(state):
            return 0.0
        fewer = [t.distance.lower_bound for t in state.tried[1:] if t.mixture.components < count]
        as_many = [t.distance.lower_bound for t in state.tried if t.mixture.components >= count]
        return max(max(as_many) - max(fewer), 0.0) if fewer and as_many else 0.0

    def _overfitted(self, state: MixtureState, errors: float) -> bool:
        """Whether the last climb has fitted its points rather than the density, by so many standard errors."""
        here, last = state.here, state.tried[-1]
        if here is None or last.mixture is not here.mixture:
            return False
        excess = here.bound - last.distance.lower_bound - errors * last.distance.lower_bound_se
        return excess > OVERFITTED * max(last.distance.kl, self.aim.kl_tol)

    def _near(self, state: MixtureState) -> bool:
        """Whether the best mixture is near enough, as far as it was measured."""
        assert state.best is not None
        return state.best.distance.kl + state.best.distance.kl_se <= 0.5 * self.aim.kl_tol

    def _stuck(self, state: MixtureState) -> bool:
        """Whether the last climb has brought nothing worth mentioning."""
        assert state.best is not None
        bounds = [tried.distance.lower_bound for tried in state.tried]
        least = 0.1 * max(state.best.distance.kl, self.aim.kl_tol)
        return len(bounds) > 2 and bounds[-1] < bounds[-2] + least

    def _misled_by_points(self, state: MixtureState) -> bool:
        """Whether the last climb has brought nothing because it had too few points."""
        return self._stuck(state) and self._overfitted(state, 1.0)

    def _measuring(self, state: MixtureState, mixture: GaussianMixture, count: int) -> MixtureState:
        rng = np.random.default_rng((*state.key, len(state.tried), 1, STREAM))
        return replace(state, question=Question(mixture, measuring(mixture, count, rng), None))

    def _ended(self, state: MixtureState) -> Ending | None:
        if state.best is None:
            enough = state.room >= MEASURING
            return None if enough else Ending.of(Outcome.MAX_EVALUATIONS, limit=state.most)
        best, first = state.best, len(state.tried) == 1
        if first and self.suffices(best) and state.starts.ending is not None:
            return state.starts.ending
        again = self._misled_by_points(state)
        step = _fewest_points(best.mixture.dim)
        if state.here is not None:
            step = (MORE_POINTS if again else 2) * state.here.mixture.components * len(state.here.z)
        full = state.here is not None and state.here.mixture.components >= self.most_components
        short = state.room < SHORTEST * step + 2 * MEASURING
        near = not first and self._near(state)
        fixed = self.aim.components is not None
        ends = short or (not again and (full or ((near or self._stuck(state)) and not fixed)))
        return self.judged(best.distance) if ends else None

    def _verified(self, state: MixtureState) -> MixtureState:
        """Ask for draws of the best mixture, so many that its distance is sure."""
        assert state.best is not None
        distance = state.best.distance
        goal = max(0.2 * self.aim.kl_tol, 0.1 * distance.kl)
        wanted = MEASURING * (distance.kl_se / goal) ** 2 if np.isfinite(distance.kl_se) else MEASURING
        count = int(min(np.clip(wanted, MEASURING, MOST_MEASURING), state.room))
        return replace(self._measuring(state, state.best.mixture, count), verified=True)


def _fewest_points(dim: int) -> int:
    return max(FEWEST_POINTS, POINTS_PER_PARAMETER * (dim + 2))


def _asking(state: MixtureState, mixture: GaussianMixture) -> MixtureState:
    """Ask for the values and gradients at the points of a mixture."""
    assert state.z is not None
    return replace(state, question=Question(mixture, points(mixture, state.z), None))
