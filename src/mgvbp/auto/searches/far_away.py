"""Far away by values: where an approach ends, when an evolution begins, and what the search goes on with after it.

An approach (`approach`) is tried first; from a surface that promises much it goes on. An evolution (`evolution`) begins
where an approach is lost, where a surface misleads, or to look at another mode.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.arrival.approach import Approach, highest
from mgvbp.auto.arrival.evolution import Evolution, moments, project
from mgvbp.auto.searches.court import Court
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.steps.leap import Leap
from mgvbp.auto.trial.rivals import inside, peak
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive, equal_view
from mgvbp.surfaces.surface import Surface, fit_surface


class FarAway(Court):
    """Decisions about where a Gaussian may fit."""

    _basis: Family
    """The family whose monomials a surface is fitted to."""
    _memory: int
    """Draws that an evolution keeps."""

    def _approached(self, state: SearchState, approach: Approach) -> SearchState:
        """Take a step of the approach; it ends where a Gaussian may fit, and begins only if that is far away."""
        if approach is state.far:  # the limit has cut its first points short
            return state
        beginning = approach.frame is None and len(approach.values) == 2 * self.dim + 1
        much = constants.FAR * (0.5 * self.dim + 1.0)
        near = beginning and not approach.far(much)
        if near or approach.endless or state.archive.noise:  # noise would mislead it
            return self._surveying(replace(state, far=None))
        arrived = approach.arrived(constants.PROMISE * self.dim + 0.5)
        if not (arrived or approach.lost) and state.room > 0:
            return replace(state, far=approach)
        q = approach.gaussian(approach.frame or state.first, self.family)
        if arrived or approach.frame is not None or (approach.lost and approach.climbing(much)):
            narrower = Gaussian.from_factor(q.mean, q.factor / constants.SURVEYED, self.family)
            # a surface that it went on from is lower than where it has led
            return self._begun_anew(replace(state, far=None, best=None), narrower)
        if approach.lost:
            evolution = Evolution.start(state.first, q.mean, self._memory)
            state = replace(state, far=evolution, escapes=1, phase=Phase.EVOLVE)
        else:
            state = replace(state, far=approach)
        return replace(state, q=q) if state.room <= 0 else state

    def _onward(self, state: SearchState, surface: Surface, leap: Leap) -> Approach | None:
        """An approach that goes on from a surface which predicts nearly everything; None if the leap is as good.

        A leap takes a surface's worth of draws and goes no further than the surface is believed. Steps of an approach
        take one evaluation each, and correct the surface on their way.
        """
        q, archive = surface.q, state.archive
        unsure = surface.clipped or surface.r2 < constants.PREDICTED or bool(archive.noise)
        if (
            unsure
            or state.onward == constants.MOST_ONWARD
            or state.rival
            or self.dim > constants.MOST_APPROACHED
        ):
            return None
        H = np.eye(self.dim) + 2.0 * surface.G
        radius = constants.ONWARD_RADIUS * math.sqrt(self.dim)
        _, promise = highest(radius * surface.g, -(radius**2) * H)
        if promise < max(constants.FAR * (0.5 * self.dim + 1.0), leap.gain / constants.ONWARD_SHARE):
            return None
        finite = np.isfinite(archive.values)
        points = q.family.to_frame(q.factor, archive.theta[finite] - q.mean)
        return Approach.onward(q, points, archive.values[finite], -H, constants.ONWARD * (self.dim + 2))

    def _escaped(self, state: SearchState) -> SearchState:
        """Begin an evolution."""
        if state.escapes == constants.MOST_EVOLUTIONS:
            return replace(state, ending=Ending.of(Outcome.NO_REGION))
        values = state.archive.values
        best = int(np.argmax(values))
        mean = state.archive.theta[best] if np.isfinite(values[best]) else state.q.mean
        return replace(
            state,
            far=Evolution.start(state.q, mean, self._memory),
            escapes=state.escapes + 1,
            phase=Phase.EVOLVE,
            surface=None,
            leap=None,
            blurred=0,
        )

    def _visited(self, state: SearchState, point: Array) -> SearchState:
        """Begin an evolution at the point, which is narrow if the point is a peak inside of q.

        A mode that is higher by k nats than q explains must have more than exp(−k) of its volume to be better.
        """
        rival = state.rival
        assert rival is not None
        excess = float(peak(rival.q, state.archive.values.max(), rival.lower_bound))
        scale = math.exp(-max(excess, 0.0) / self.dim) if inside(rival.q, point[None])[0] else 1.0
        narrower = Gaussian.from_factor(state.q.mean, 2.0 * state.q.factor / scale, self.family)
        evolution = Evolution.start(narrower, point, self._memory)
        return replace(
            state, far=evolution, phase=Phase.EVOLVE, surface=None, leap=None, blurred=0, verified=False
        )

    def _evolved(
        self, state: SearchState, evolution: Evolution, theta: Array, values: Array, rng: np.random.Generator
    ) -> SearchState:
        """Take the values of a generation; if the evolution ends with it, begin a survey there."""
        complete = len(values) == evolution.size
        if complete:
            evolution = evolution.tell(theta, np.where(np.isfinite(values), values, -np.inf), rng)
        if not complete or state.room <= 0 or evolution.arrived:
            q = project(evolution.gaussian, self.family)
        elif (predictable := self._predictable(evolution)) is not None:
            q = predictable
        else:
            return replace(state, far=evolution)
        archive = Archive.empty(self.dim, state.archive.noise)
        for generation in evolution.last(2 * self.least):
            archive = archive.add(*generation)
        return self._begun_anew(replace(state, far=None, archive=archive), q)

    def _predictable(self, evolution: Evolution) -> Gaussian | None:
        """The Gaussian with the moments of the last generations, if a surface there predicts their values."""
        recent = evolution.last(self.least)
        if sum(len(generation.values) for generation in recent) < self.least:
            return None
        theta = np.concatenate([generation.theta for generation in recent])
        values = np.concatenate([generation.values for generation in recent])
        point = not np.ptp(theta, axis=0).all()  # but for round-off, where the density has no upper bound
        if point or not np.isfinite(values).all():
            return None
        q = moments(theta, self.family)
        surface = fit_surface(equal_view(q, theta), self._basis, values, math.inf)
        return q if surface is not None and not surface.poor else None
