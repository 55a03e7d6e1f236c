"""Looking elsewhere by gradients: ascents of the density from other points, and climbs of the bound itself.

An ascent (`ascent`) that ends at another mode is a *lead*. A climb (`climb`) ends where a diagonal Gaussian has a high
bound, also where the density has no useful mode. What may be better than the result is visited.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.arrival.ascent import Ascent, Line, Point
from mgvbp.auto.arrival.climb import Climb
from mgvbp.auto.arrival.laplace import narrow, place
from mgvbp.auto.searches.court import Court
from mgvbp.auto.searches.rules import refined
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.trial.rivals import inside, peak, top
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.surfaces.surface import Surface

LATE = 2
"""The round of climbs that comes before a certificate."""


class Elsewhere(Court):
    """Decisions about other places than where the search is."""

    _promise: float
    """Nats that a step of an ascent has to promise."""
    _fewest: int
    """Fewest draws of a surface."""

    # --- looking elsewhere ------------------------------------------------------------------------

    def _looking(self, state: SearchState) -> SearchState:
        """Begin ascents from points around the initial mean, and around the result."""
        rng, q, first = self._generator(state), state.q, state.first
        points = constants.DISPERSED * rng.standard_normal((constants.LOOKOUTS, self.dim))
        around = 2.0 * constants.DISPERSED * rng.standard_normal((constants.AROUND, self.dim))
        near = q.mean + q.family.from_frame(q.factor, around)
        others = first.family.to_frame(first.factor, near - first.mean)
        return self._climbing(state, np.concatenate([points, others]))

    def _lead(self, state: SearchState, surface: Surface) -> Array | None:
        """The highest end of an ascent at which a Gaussian may be better than q; None if there is none."""
        if state.visits >= self.most_visits:
            return None
        # the mode there may be as wide as the initial Gaussian: the logarithm of the ratio of the volumes
        volume = max(0.0, top(state.q) - top(state.first))
        for point, value in state.leads:
            score = float(peak(state.q, np.array([value]), surface.lower_bound)[0])
            known = any(inside(other, point[None])[0] for other in state.seen)
            within = bool(inside(state.q, point[None])[0])
            if not known and score > (constants.PEAK_BY_GRADIENTS if within else -volume):
                return point
        return None

    def _climbing(self, state: SearchState, points: Array) -> SearchState:
        """Begin ascents at points (k, d) of the first frame, whose values are not known yet."""
        lookouts = tuple(
            Ascent(Point(x, -math.inf, np.zeros(self.dim)), self._promise, 5 * (self.dim + 10), Line(x, 0.0))
            for x in points
        )
        return replace(state, lookouts=lookouts, phase=Phase.LOOKOUT, want=len(lookouts))

    def _looked(self, state: SearchState, theta: Array, values: Array, gradients: Array) -> SearchState:
        """Take the values at the next points of the ascents; where one ends at another mode, go there."""
        first = state.first
        slopes, moved, k = first.family.solve(first.factor, gradients), [], 0
        for ascent in state.lookouts:
            if ascent.arrived:
                moved.append(ascent)
                continue
            if ascent.here.value == -math.inf:
                start = Point(ascent.here.x, float(values[k]), slopes[k])
                ascent = (
                    Ascent.start(start, promise=self._promise, budget=ascent.budget)
                    if start.is_finite
                    else replace(ascent, arrived=True)
                )
            else:
                ascent = ascent.tell(float(values[k]), slopes[k])
            moved.append(ascent)
            k += 1
        state = replace(state, lookouts=tuple(moved))
        if waiting := sum(not ascent.arrived for ascent in moved):
            return replace(state, want=waiting)
        moved.sort(key=lambda ascent: -ascent.here.value)
        if state.surface is None:
            return self._arrived(state, moved[0])
        ends = [(place(first, end.here.x), end.here) for end in moved if end.here.is_finite]
        leads = tuple(
            (point, end.value)
            for point, end in ends
            if inside(state.q, point[None])[0] or _at_another_mode(state, state.surface, end)
        )
        return refined(replace(state, leads=leads), state.surface.size)

    def _arrived(self, state: SearchState, ascent: Ascent) -> SearchState:
        """Look at the curvature where an ascent has ended."""
        q, scale = narrow(state.first, ascent)
        anew = self._begun_anew(state, q)
        return replace(anew, scale=scale, phase=Phase.HESSIAN, target_size=float(self._fewest))

    def _visited(self, state: SearchState, point: Array) -> SearchState:
        """Climb from the point."""
        first = state.first
        x = first.family.to_frame(first.factor, point - first.mean)
        return self._climbing(replace(state, surface=None), x[None])

    # --- climbing the bound -----------------------------------------------------------------------

    def _begin_climbs(self, state: SearchState, count: int) -> SearchState:
        """Begin climbs of the bound: the first at the initial Gaussian, others dispersed around it."""
        rng, d = self._generator(state), self.dim
        means = rng.standard_normal((count, d))
        means[0] = 0.0
        climbs = tuple(Climb.start(mean, np.full(d, -float(k > 0)), rng) for k, mean in enumerate(means))
        climbing = replace(state, climbs=climbs, climbed=state.climbed + 1, phase=Phase.CLIMB, leap=None)
        return replace(climbing, want=count * len(climbs[0].points))

    def _climbed(self, state: SearchState, values: Array, gradients: Array) -> SearchState:
        """Take the values at the next points of the climbs; once all have ended, go to the best or stay."""
        first, moved, start = state.first, [], 0
        slopes = first.family.solve(first.factor, gradients)
        for climb in state.climbs:
            if not climb.arrived:
                rows = slice(start, start := start + len(climb.points))
                climb = climb.tell(values[rows], slopes[rows])
            moved.append(climb)
        state = replace(state, climbs=tuple(moved))
        if waiting := sum(len(climb.points) for climb in moved if not climb.arrived):
            return replace(state, want=waiting)
        ended = sorted((c for c in moved if c.value > -math.inf), key=lambda climb: -climb.value)
        state, surface = replace(state, climbs=tuple(ended), phase=Phase.REFINE), state.surface
        if ended and ended[0].is_improper:
            return replace(state, ending=Ending.of(Outcome.IMPROPER))
        if state.climbed == LATE:
            assert surface is not None
            return refined(state, surface.size)
        level = -math.inf if surface is None or surface.poor else surface.lower_bound
        if not ended or level > ended[0].lower_bound(first):
            return super()._settled(state, surface)
        return self._begun_anew(replace(state, climbs=tuple(ended[1:])), ended[0].gaussian(first))

    def _higher_climb(self, state: SearchState, surface: Surface) -> Climb | None:
        """The highest end of a climb elsewhere from which a Gaussian may become better than q; None if none."""
        doubt = constants.DIAGONAL_DOUBT + 0.1 * self.dim
        if state.visits >= self.most_visits:
            return None
        for climb in (climb for climb in state.climbs if not climb.is_improper):
            mean = climb.gaussian(state.first).mean[None]
            known = any(inside(other, mean)[0] for other in (state.q, *state.seen))
            if not known and climb.lower_bound(state.first) + doubt > surface.lower_bound:
                return climb
        return None


def _at_another_mode(state: SearchState, surface: Surface, end: Point) -> bool:
    """Whether an ascent that has ended outside of q is at another mode.

    A concave function rises towards q by at least the difference of the values. Where it rises by less than half of
    that, there is a valley between the end and q.
    """
    first, top = state.first, float(surface.predicted(np.zeros((1, state.q.dim)))[0])
    centre = first.family.to_frame(first.factor, state.q.mean - first.mean)
    rise = float(end.gradient @ (centre - end.x))
    return end.is_finite and rise < 0.5 * abs(top - end.value)


def scattered(state: SearchState, surface: Surface) -> bool:
    """Whether ascents from elsewhere have ended at other modes."""
    return any(
        not inside(state.q, place(state.first, end.here.x)[None])[0]
        and _at_another_mode(state, surface, end.here)
        for end in state.lookouts
    )


def affordable_climbs(state: SearchState) -> int:
    """How many climbs take about a third of the evaluations so far; two at least if none was made at the start."""
    affordable = round(constants.CLIMB_SHARE * state.n_evaluations / constants.CLIMB_COST)
    return min(max(affordable, 1 if state.climbed else 2), constants.LATE_CLIMBS)
