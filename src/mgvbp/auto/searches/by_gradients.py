r"""The search by gradients: climb, see the curvature, then leap, refine and verify (`rules`).

1. *Ascent* (`ascent`) from the initial mean, until a step promises less than about d/4 nats.
2. *Curvature*: a few narrow draws there show the Hessian, which gives Laplace's approximation (`laplace`).
3. *Survey* this approximation. If its surface misses much, the mode is no place for a Gaussian (as in a funnel, or in
   a hierarchy whose groups are nearly equal): *retreat* to the initial Gaussian, and halve its standard deviations
   until its surface predicts the values. Near enough to a point any density is quadratic.
4. *Leap*, *refine* and *verify* as every search does, on surfaces that gradients give (`gradient_surface`): these
   need about 1.3 draws per parameter instead of 1.3 per coefficient. Where they stay poor, `strides` lead on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.auto import constants
from mgvbp.auto.arrival.ascent import Ascent, Point
from mgvbp.auto.arrival.laplace import laplace, narrow, place
from mgvbp.auto.searches.court import leaving, near, refuted
from mgvbp.auto.searches.elsewhere import LATE, affordable_climbs, scattered
from mgvbp.auto.searches.rules import refined
from mgvbp.auto.searches.strides import Strides
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.steps.leap import Leap, propose
from mgvbp.auto.steps.polish import Look, polish, slope
from mgvbp.auto.trial.chords import contradiction
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check, Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.errors import DivergenceError
from mgvbp.estimators.draws import balanced
from mgvbp.families import Family, Full
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Prior, density_and_gradient
from mgvbp.surfaces.archive import Archive, View
from mgvbp.surfaces.gradient_surface import fit_gradients, follow_gradients
from mgvbp.surfaces.surface import Surface, fit_surface


class ByGradients(Strides):
    """Decisions of a search by values and gradients; a prior must have ``grad_log_density``.

    A value with its gradient counts as one evaluation. By default there are at most 600 (d + 10) of them.
    """

    needs_gradients = True
    first_phase = Phase.ASCENT

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        super().__init__(family, prior, tol, labels)
        count = self.dim + 1
        self._fewest = count + max(6, math.ceil((constants.DRAWS_PER_COEFFICIENT - 1.0) * count))
        self._pairs_only = isinstance(family, Full) and self.dim > constants.PAIRS_ONLY_ABOVE
        self.least = 2 * self._fewest if self._pairs_only else self._fewest
        self.fastest_growth = constants.GROWTH_BY_GRADIENTS
        self.least_gain = constants.LEAST_GAIN_BY_GRADIENTS
        self.most_visits = constants.MOST_VISITS_BY_GRADIENTS
        self._promise = constants.PROMISE * self.dim + 0.5
        self.enough, self.most = (
            max(60.0, 2.0 * constants.CERTIFYING * count),
            constants.MOST_GRADIENTS * (self.dim + 10),
        )
        self._last: tuple[Archive, Gaussian, Surface | None] | None = None

    def _paired(self, state: SearchState) -> bool:
        if self._pairs_only:
            return state.phase not in (Phase.HESSIAN, Phase.WITNESS)
        return self.dim > constants.PAIRED_ABOVE and state.phase in (Phase.REFINE, Phase.VERIFY)

    def _draw(self, state: SearchState, count: int, rng: np.random.Generator) -> Array:
        if isinstance(state.far, Ascent):
            return place(state.first, state.far.ask())[None]
        if state.phase is Phase.LOOKOUT:
            climbing = [ascent for ascent in state.lookouts if not ascent.arrived]
            x = [a.here.x if a.here.value == -math.inf else a.ask() for a in climbing]
            return np.array([place(state.first, point) for point in x])
        if state.phase is Phase.CHORD and state.chords is not None:
            return state.chords.ask()
        if state.phase is Phase.CLIMB:
            points = np.concatenate([climb.ask() for climb in state.climbs if not climb.arrived])
            return state.first.mean + state.first.family.from_frame(state.first.factor, points)
        if state.phase is Phase.STRIDE and state.strides is not None:
            return self._strider.ask(state.strides)
        if not state.iteration:
            return place(state.first, np.zeros(self.dim))[None]
        q = self._proposal(state)
        if not self._paired(state):
            return self._sample(state, count, rng)
        eps = [balanced(rng, int(pairs), self.dim) for pairs in self._batches(state, count)]
        return q.mean + q.family.from_frame(q.factor, np.concatenate(eps))

    def _batches(self, state: SearchState, count: int) -> NDArray[np.intp]:
        """The numbers of pairs of the batches that ``count`` draws or a few more consist of."""
        pairs, least = -(-count // 2), math.ceil(constants.BALANCED * self.dim)
        if state.phase is Phase.REFINE and not self._pairs_only:
            pairs = max(pairs, least)
        if pairs < least:
            return np.ones(pairs, dtype=np.intp)
        number = pairs // least
        return np.diff(np.arange(number + 1) * pairs // number)

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, ...]:
        return density_and_gradient(self.prior, theta, values, gradients)

    def _taken(
        self, state: SearchState, theta: Array, finite: NDArray[np.bool_], *evaluated: Array
    ) -> SearchState:
        values, gradients = evaluated
        told = self._counted(state, len(theta))
        if state.company is not None:
            return self._accompanied(told, state.company, values)
        if state.phase is Phase.ASCENT:
            return self._ascended(told, theta, finite, values, gradients)
        if state.phase is Phase.LOOKOUT:
            return self._looked(told, theta, values, gradients)
        if state.phase is Phase.CLIMB:
            return self._climbed(told, values, gradients)
        if state.phase is Phase.STRIDE:
            return self._strode(told, theta, values, gradients)
        if state.phase is Phase.CHORD and state.chords is not None:
            return self._halved(told, state.chords.tell(values, gradients))
        if state.phase in (Phase.TRIAL, Phase.WITNESS):
            return self._testified(state, theta, values, gradients)
        source, groups = self._proposal(state), None
        if self._paired(state):
            sizes = 2 * self._batches(state, len(theta))
            groups = np.repeat(np.arange(len(sizes)), sizes)[: len(theta)]
        archive = state.archive.add(source, theta, values, gradients, groups=groups)
        return replace(
            told, archive=archive.recent(constants.KEPT * self.dim) if self._pairs_only else archive
        )

    def _fit(self, archive: Archive, view: View, near: Surface | None = None) -> Surface | None:
        """The surface at a Gaussian. The last one is remembered: each doubt that is settled leads back to it."""
        if self._last is None or self._last[0] is not archive or self._last[1] is not view.q:
            self._last = archive, view.q, self._fitted(archive, view)
        return self._last[2]

    def _fitted(self, archive: Archive, view: View) -> Surface | None:
        """The surface of the gradients or, where it has less noise or the values jump, that of the values alone.

        Gradients do not show a jump, and of a steep wall they are more extreme than the values.
        """
        surface = fit_gradients(view, archive.values, archive.gradients, archive.groups, self.tol)
        basis = Full(self.dim)
        few = min(view.size / constants.CERTIFYING, constants.MOST_BY_BOTH) < basis.num_monomials
        if surface is None or few:
            return surface
        rough = _rough(surface, view, archive, self.tol)
        if not rough and (surface.noise < self.tol or len(archive.values) > constants.MOST_VALUED):
            return surface
        other = fit_surface(
            view, basis, archive.values, math.inf, archive.noise
        )  # kriging takes too long here
        if other is None:
            return surface
        jumps = rough and other.rest**2 - archive.noise**2 > self.tol + (constants.JUMP * surface.rest) ** 2
        return other if jumps or other.cautious.noise < surface.noise else surface

    def _look(self, archive: Archive, surface: Surface) -> Look:
        """Follows a surface of gradients without its noise, which takes most of the time of a fit."""
        if not surface.slopes:
            return super()._look(archive, surface)
        return lambda q: follow_gradients(archive.view(q), archive.values, archive.gradients, surface)

    def _glance(self, archive: Archive, surface: Surface) -> Look:
        return self._look(archive, replace(surface, degree=2))

    def _polished(
        self, state: SearchState, surface: Surface, leap: Leap
    ) -> tuple[SearchState, Surface, Leap, bool] | None:
        """Once the optimum of the draws at hand is reached, it need not be sought again on the same draws."""
        drawn = len(state.archive.values)
        if state.optimum is not None and state.optimum[0] is state.q and state.optimum[1] == drawn:
            return state, surface, leap, True
        polished = super()._polished(state, surface, leap)
        if polished is None or not polished[-1]:
            return polished
        return replace(polished[0], optimum=(polished[0].q, drawn)), *polished[1:]

    def _gained(
        self, state: SearchState, leap: Leap, view: View, after: Surface | None
    ) -> tuple[SearchState, float, float]:
        before, overlap = state.surface, 0.0
        assert before is not None
        if state.fresh:  # fit both bounds to the same draws: where the Gaussians overlap, errors cancel
            before = self._fit(state.archive, state.archive.view(state.q)) or before
            state, overlap = replace(state, surface=before), math.sqrt(min(1.0, leap.kl))
        if after is None:
            return state, -math.inf, 0.0
        se = overlap * math.hypot(before.lower_bound_se, after.lower_bound_se)
        gain = after.lower_bound - before.lower_bound
        # on a poor surface, a gain whose error is comparable to what was promised is a guess, but for a clear loss
        error = math.sqrt(min(1.0, leap.kl)) * after.lower_bound_se
        guess = after.poor and error > 0.25 * leap.gain and gain > -constants.CONFIDENCE * se
        return state, -math.inf if guess else gain, se

    def _misleading(self, state: SearchState, surface: Surface) -> bool:
        return surface.poor and state.phase in (Phase.HESSIAN, Phase.SURVEY)

    def _settled(self, state: SearchState, surface: Surface | None) -> SearchState:
        rival = state.rival
        if state.phase is Phase.HESSIAN and surface is not None and not surface.poor:
            q = laplace(surface, state.scale)
            if rival is not None and hopeless(surface, rival):
                return self._returned(replace(state, q=q), rival)
            return self._begun_anew(state, q)
        if rival is not None and surface is not None and self._in_vain(state, surface, rival):
            return self._returned(state, rival)
        if rival is not None and state.phase is Phase.SURVEY and surface is not None:
            doubt = (
                constants.LAPLACE_DOUBT + 0.1 * self.dim + constants.BETTER * (surface.gap + surface.noise)
            )
            if surface.lower_bound + doubt < rival.lower_bound:
                return self._returned(state, rival)
        if self._doubtful(state, surface):
            return self._begin_climbs(replace(state, surface=surface), 1)
        if surface is not None and self._stuck(state, surface):
            state = replace(state, surface=surface)
            if not state.lookouts:
                return self._looking(state)
            if state.rival is None and (lead := self._lead(state, surface)) is not None:
                return self._followed_lead(state, lead)
            if state.strides is None and self.may_stride:
                return self._striding(state)
        if surface is not None and self._near_the_top(surface):
            return self._followed(state, surface)
        return super()._settled(state, surface)

    def _in_vain(self, state: SearchState, surface: Surface, rival: SearchState) -> bool:
        """Whether a visit leads back to the result that was left, or is far below it and has taken long.

        A concave bound rises towards the result by at least what that is higher. Where it rises by less than half of
        that, there is a valley between them.
        """
        if surface.poor:
            return False
        if near(state.q, rival.q):
            return True
        higher = rival.lower_bound - surface.lower_bound
        far = higher > constants.BETTER * (surface.gap + surface.noise)
        if surface.slopes and far and slope(surface, rival.q) > 0.5 * higher:
            return True
        long = state.n_evaluations > (1.0 + constants.VISIT_SHARE) * rival.n_evaluations
        return long and self._cannot_be_better(
            surface, replace(state, surface=surface).gap, rival.lower_bound
        )

    def _stuck(self, state: SearchState, surface: Surface) -> bool:
        """Whether very many draws would be needed here, at the best place so far: others are looked at first."""
        late = state.n_evaluations > constants.STUCK * (self.dim + 10)
        higher = state.rival is None or surface.lower_bound > state.rival.lower_bound
        return late and surface.poor and higher and state.phase is Phase.REFINE

    def _near_the_top(self, surface: Surface) -> bool:
        """Whether the draws at hand know the bound around q better than a leap, which may overshoot."""
        noise = surface.noise + constants.CONFIDENCE * surface.noise_sd
        return (
            surface.slopes
            and not (surface.poor or surface.ridge)
            and surface.rest > self.many * constants.FAR_FROM_GAUSSIAN
            and surface.size >= self.enough
            and max(noise, self.least_gain * self.tol) < surface.gap < constants.NEAR_THE_TOP
        )

    def _followed(self, state: SearchState, surface: Surface) -> SearchState:
        """Go to the optimum of the bound on the draws at hand, and make more draws there."""
        least = max(constants.POLISHED_GAP * self.least_gain * self.tol, constants.FOLLOWED * surface.noise)
        best, _, gained = polish(surface, self._look(state.archive, surface), least, self.tol)
        if best is surface:
            return super()._settled(state, surface)
        if state.rival is not None and near(best.q, state.rival.q):
            return self._returned(state, state.rival)
        more = max(self.least, math.ceil(constants.FOLLOWED * surface.size))
        stretch = gained / max(surface.gap, surface.noise)
        moved = replace(
            state,
            q=best.q,
            surface=best,
            leap=None,
            verified=False,
            want=more,
            stretch=max(state.least_stretch, stretch),
        )
        return refined(moved, surface.size)

    def _doubtful(self, state: SearchState, surface: Surface | None) -> bool:
        """Whether the mode seems to be no place for a Gaussian, so that the bound is to be climbed instead."""
        if state.climbed or state.rival is not None or state.phase is Phase.HESSIAN:
            return False
        if surface is None or self._misleading(state, surface):
            return True
        early = state.phase is Phase.SURVEY and surface.rest > self.many * constants.FAR_FROM_GAUSSIAN
        return early or state.n_evaluations > constants.STUCK * (self.dim + 10)

    def _trying(self, state: SearchState, leap: Leap, surface: Surface) -> SearchState:
        """Make fresh draws too where the target is far from Gaussian: old ones are not enough to judge a new q."""
        fresh = (
            surface.slopes
            and surface.rest > self.many * constants.FAR_FROM_GAUSSIAN
            and leap.gain > constants.CONFIDENCE * self.tol
        )
        state = super()._trying(state, leap, surface)
        return replace(state, fresh=fresh, want=self.least if fresh else 0)

    def _num_fresh(self, rest: float) -> int:
        least = max(20, constants.LOOKED_AT // self.dim, self.dim + 1)
        return least if rest < self.many * constants.FAR_FROM_GAUSSIAN else max(60, 6 * (self.dim + 1))

    def _charged(self, state: SearchState, surface: Surface) -> SearchState:
        far = surface.slopes and surface.rest > self.many * constants.FAR_FROM_GAUSSIAN
        if far and state.cleared < len(state.archive.values):
            return self._slowed(state, surface)
        unsettled = state.chords is None or contradiction(state.chords) is not None
        if surface.slopes and unsettled and not state.archive.noise:  # noise would look like jumps
            return self._compared(state, surface)
        if not state.lookouts:
            if surface.slopes and (axis := self._contradicted(state, surface)) is not None:
                where = f"most along {self._name(axis)}"
                return refuted(state, "gradients", Outcome.DISAGREE, where=where)
            return self._looking(state)
        if (lead := self._lead(state, surface)) is not None:
            return self._followed_lead(state, lead)
        if state.climbed < LATE and scattered(state, surface):
            return self._begin_climbs(replace(state, climbed=LATE - 1), affordable_climbs(state))
        if (climb := self._higher_climb(state, surface)) is not None:
            rest_of_them = tuple(other for other in state.climbs if other is not climb)
            return self._begun_anew(replace(leaving(state), climbs=rest_of_them), climb.gaussian(state.first))
        return super()._charged(state, surface)

    def _followed_lead(self, state: SearchState, lead: Array) -> SearchState:
        """Leave this place for the end of an ascent, (d,)."""
        rest = tuple(other for other in state.leads if other[0] is not lead)
        return self._visited(replace(leaving(state), leads=rest), lead)

    def _checks(self, state: SearchState, surface: Surface) -> tuple[Check, ...]:
        count = constants.LOOKOUTS + constants.AROUND
        elsewhere = f"{count} ascents from elsewhere found no mode with a higher bound"
        return (
            *super()._checks(state, surface),
            Check("gradients", passed=True, found="the values agree with them"),
            Check("a higher mode", passed=True, found=elsewhere),
        )

    def _axes(self, state: SearchState) -> NDArray[np.intp]:
        """Some parameters: all of them would cost more evaluations than the search itself if there are many."""
        count = max(constants.LEAST_AXES, math.ceil(constants.TRIAL_SHARE * state.n_evaluations))
        if count >= self.dim:
            return super()._axes(state)
        return np.sort(self._generator(state).choice(self.dim, count, replace=False))

    # --- finding a region for a Gaussian ----------------------------------------------------------

    def _ascended(
        self, state: SearchState, theta: Array, finite: NDArray[np.bool_], values: Array, gradients: Array
    ) -> SearchState:
        """Take the next step of the ascent.

        It begins at the initial mean or, if the function is not finite there, at the best of some draws.
        """
        first, d = state.first, self.dim
        ascent = state.far if isinstance(state.far, Ascent) else None
        slopes = first.family.solve(first.factor, gradients)
        if ascent is not None:
            ascent = ascent.tell(float(values[0]), slopes[0])
        elif finite.any():
            best = int(np.argmax(np.where(finite, values, -np.inf)))
            x = first.family.to_frame(first.factor, theta[best] - first.mean)
            start = Point(x, float(values[best]), slopes[best])
            ascent = Ascent.start(start, promise=self._promise, budget=5 * (d + 10))
        elif state.iteration > 1:
            raise DivergenceError(
                f"all {state.n_evaluations} draws so far have non-finite values or gradients: start where the "
                "function is finite (initial_mean, initial_variance); the draws are this exception's .theta",
                theta,
            )
        if ascent is None or not ascent.arrived:
            return replace(state, far=ascent)
        q, scale = narrow(first, ascent)
        return replace(
            state, q=q, scale=scale, far=None, phase=Phase.HESSIAN, want=0, target_size=float(self._fewest)
        )

    def _escaped(self, state: SearchState) -> SearchState:
        """Retreat: first to the initial Gaussian, then each time to one with half the standard deviations."""
        if state.rival is not None and state.escapes - state.rival.escapes == constants.FEW_RETREATS:
            return self._returned(state, state.rival)
        if state.escapes == constants.MOST_RETREATS:
            return replace(state, ending=Ending.of(Outcome.NO_REGION))
        if state.climbed and state.rival is None and state.surface is not None:
            more = refined(replace(state, escapes=state.escapes + 1, failures=0), 2.0 * state.surface.size)
            return replace(more, want=self.least)
        if state.escapes == 0 and not state.climbed and state.q is not state.first:
            q = state.first
        else:
            archive = state.archive
            weights = archive.view(state.q).weights
            best = int(np.argmax(np.where(weights > 0.0, archive.values, -np.inf)))
            keeps = state.escapes < constants.ABOUT_THE_MEAN or not np.isfinite(archive.values[best])
            mean = state.q.mean if keeps else archive.theta[best].copy()
            q = Gaussian.from_factor(mean, 2.0 * state.q.factor, self.family)
        return self._begun_anew(replace(state, escapes=state.escapes + 1), q)


def hopeless(surface: Surface, rival: SearchState) -> bool:
    """Whether Laplace's approximation, by a narrow surface at another mode, is far below the bound of the rival."""
    leap = propose(surface, math.inf, extrapolate=False)
    doubt = constants.LAPLACE_DOUBT + 0.1 * surface.q.dim
    return leap is not None and surface.lower_bound + leap.gain + doubt < rival.lower_bound


def _rough(surface: Surface, view: View, archive: Archive, tol: float) -> bool:
    """Whether values vary more about the quadratic than their gradients allow, so that they may jump.

    The rest u of the quadratic has degree three or more. By Poincaré's inequality for N(0, I) its variance is at most
    E‖∇u‖²/3, the square of `Surface.rest`. It is larger where the values jump.
    """
    left = archive.values - surface.predicted(view.eps)
    missed = float(view.weights @ np.square(np.where(view.weights > 0.0, left, 0.0)))
    return missed - archive.noise**2 > tol + (constants.JUMP * surface.rest) ** 2
