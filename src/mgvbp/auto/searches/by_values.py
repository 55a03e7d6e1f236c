r"""The search by values alone.

1. *Approach* (`approach`): a few points show whether the posterior is far away. If so, Newton's steps lead there; they
   go on from a surface that predicts nearly everything and still promises much.
2. *Survey* q with about 1.3 draws per coefficient of a quadratic, and fit the surface.
3. *Evolve* where the surface misses much, or the approach was lost: CMA-ES runs until a Gaussian may fit
   (`evolution`).
4. *Leap*, *refine* and *verify* as every search does (`rules`). A surface that predicts nearly everything
   (leave-one-out) is followed further than the trust radius.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.auto import constants
from mgvbp.auto.arrival.approach import Approach
from mgvbp.auto.arrival.evolution import Evolution, strategy
from mgvbp.auto.searches.far_away import FarAway
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.steps.leap import Leap
from mgvbp.auto.steps.polish import Look
from mgvbp.auto.trial.company import Company
from mgvbp.core.linalg import Array
from mgvbp.core.records import replace
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.families import Family, Full
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.calling import checked_values
from mgvbp.problem.problem import Prior, log_prior
from mgvbp.surfaces.archive import Archive, View
from mgvbp.surfaces.surface import Surface, fit_surface, follow_values

FLOORS = constants.FLOOR * 3.0 ** np.arange(8, -1, -1)
"""Depths of the floors that low values are raised to, in units of d/2 + 1 nats below the best value; lowest first."""


class ByValues(FarAway):
    """Decisions of a search by values; by default it makes at most 3000 draws plus 100 per coefficient."""

    needs_gradients = False
    first_phase = Phase.APPROACH

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        super().__init__(family, prior, tol, labels)
        full = Full(self.dim)
        self._basis = full if full.num_monomials <= constants.FULL_QUADRATIC else family
        count = self._basis.num_monomials
        self.least = count + max(6, math.ceil((constants.DRAWS_PER_COEFFICIENT - 1.0) * count))
        self.most_visits = constants.MOST_VISITS_BY_VALUES
        self.fastest_growth, self.least_gain = constants.GROWTH_BY_VALUES, constants.LEAST_GAIN_BY_VALUES
        self.enough, self.most = max(30.0, constants.CERTIFYING * count), 100 * count + 3000
        self._memory = max(
            2 * self.least, 2 * strategy(self.dim).size, 2 * self.dim
        )  # draws that an evolution keeps

    @property
    def usual(self) -> tuple[int, int]:
        """Evaluations between which half of all searches of this size end."""
        low, high = (factor * (self.dim + 1) * (self.dim + 2) for factor in constants.USUAL)
        return low, high

    def start(
        self, q: Gaussian, key: tuple[int, ...], max_evaluations: int, noise: float | None = None
    ) -> SearchState:
        state = super().start(q, key, max_evaluations, noise)
        if noise or self.dim > constants.MOST_APPROACHED:
            return replace(state, phase=Phase.SURVEY)
        return replace(state, far=Approach.start(self.dim, constants.APPROACH * (self.dim + 2)))

    def near(self, q: Gaussian, key: tuple[int, ...], max_evaluations: int) -> SearchState:
        return replace(self.start(q, key, max_evaluations), phase=Phase.SURVEY, far=None)

    def _draw(self, state: SearchState, count: int, rng: np.random.Generator) -> Array:
        if isinstance(state.far, Evolution):
            return state.far.draw(rng)
        if isinstance(state.far, Approach):
            frame = state.far.frame or state.first
            theta = frame.mean + frame.family.from_frame(frame.factor, state.far.pending)
        else:
            theta = self._sample(state, count, rng)
        return np.concatenate([theta, theta[:1], theta[:1]]) if self._copying(state) else theta

    def _copying(self, state: SearchState) -> bool:
        """Whether the first point is evaluated three times, to see if its values differ."""
        known = state.deterministic or state.archive.noise > 0.0
        return state.iteration == 0 and not known and state.room > self.least + 2

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, ...]:
        if gradients is not None:
            raise InvalidInputError(
                "this search takes values alone: begin it with gradients=True, or a Problem that has a gradient"
            )
        return (checked_values(values, theta, "log_likelihood") + log_prior(self.prior, theta),)

    def _taken(
        self, state: SearchState, theta: Array, finite: NDArray[np.bool_], *evaluated: Array
    ) -> SearchState:
        (values,) = evaluated
        if state.company is not None:
            return self._accompanied(self._counted(state, len(theta)), state.company, values)
        if state.phase in (Phase.TRIAL, Phase.WITNESS):
            return self._testified(state, theta, values)
        archive = state.archive
        met = finite.any() or (state.phase is Phase.APPROACH and state.room > len(theta))
        if not np.isfinite(archive.values.max(initial=-np.inf)) and not met:
            raise DivergenceError(
                f"all {len(theta)} draws so far have non-finite values (nan or inf): start where the "
                "function is finite (initial_mean, initial_variance); the draws are this exception's .theta",
                theta,
            )
        told = self._counted(state, len(theta))
        if isinstance(state.far, Evolution):
            return self._evolved(told, state.far, theta, values, self._generator(state))
        if self._copying(state):
            archive = replace(archive, noise=_spread(values[[0, -2, -1]]))
            if archive.noise:
                told = replace(told, company=Company(theta, values))
            theta, values, finite = theta[:-2], values[:-2], finite[:-2]
        if isinstance(state.far, Approach):
            heard = state.far.tell(np.where(finite, values, -np.inf))
            return self._approached(replace(told, archive=archive), heard)
        return replace(told, archive=archive.add(self._proposal(state), theta, values))

    def _fit(
        self, archive: Archive, view: View, near: Surface | None = None, *, floor: float | None = None
    ) -> Surface | None:
        """The surface of a view; where it predicts little, or if ``floor`` is given, that of values raised to a floor.

        A few values far below the others would dominate least squares. Raised to a floor they still say which way
        is down. The lowest floor is used at which the surface predicts the values, or shows more than its noise.
        """
        values, tol, noise = archive.values, self.tol, archive.noise
        surface = fit_surface(view, self._basis, values, tol, noise, near=near) if floor is None else None
        if surface is not None and (_informative(surface) or surface.noise < tol):
            return surface
        floors = [floor] if floor is not None else values.max() - (0.5 * self.dim + 1.0) * FLOORS
        chosen = None
        for lowest in floors:
            raised = np.where(values > -np.inf, np.maximum(values, lowest), -np.inf)
            if (found := fit_surface(view, self._basis, raised, math.inf, noise)) is not None:
                chosen = replace(found, floor=float(lowest))
                if _informative(found):
                    break
        if chosen is None:
            return surface
        # a surface is flat where values were raised to the floor; this must not pass for a wide posterior
        eigenvalues, U = np.linalg.eigh(chosen.G)
        contracting = (U * np.maximum(eigenvalues, 0.0)) @ U.T
        return replace(chosen, G=contracting)

    def _follow(self, archive: Archive, surface: Surface) -> Look:
        """Follows a surface without its noise, which takes most of the time of a fit."""
        return lambda q: follow_values(archive.view(q), self._basis, archive.values, surface)

    def _glance(self, archive: Archive, surface: Surface) -> Look:
        return lambda q: fit_surface(
            archive.view(q), self._basis, archive.values, math.inf, archive.noise, polynomials=False
        )

    def _gained(
        self, state: SearchState, leap: Leap, view: View, after: Surface | None
    ) -> tuple[SearchState, float, float]:
        before = state.surface
        assert before is not None
        if after and after.floor != before.floor:  # compare at the higher floor
            floor = max(after.floor, before.floor)
            after = self._fit(state.archive, view, floor=floor)
            before = self._fit(state.archive, state.archive.view(state.q), floor=floor) or before
        if after is None:
            return state, -math.inf, 0.0
        # without fresh draws both bounds come from the same draws, and their errors cancel
        se = math.hypot(before.lower_bound_se, after.lower_bound_se) if state.fresh else 0.0
        return state, after.lower_bound - before.lower_bound, se

    def _trying(self, state: SearchState, leap: Leap, surface: Surface) -> SearchState:
        """Far away, an approach goes on from the surface instead.

        Where a verified result gains less than the tolerance by a leap, fresh draws need not verify it again.
        """
        onward = self._onward(state, surface, leap)
        if onward is not None:
            return replace(state, far=onward, onward=state.onward + 1, phase=Phase.APPROACH, verified=False)
        tried = super()._trying(state, leap, surface)
        return replace(tried, verified=state.verified and leap.gain < self.tol)

    def _misleading(self, state: SearchState, surface: Surface) -> bool:
        return surface.clipped and state.phase is Phase.SURVEY and state.escapes == 0

    def _concluded(self, state: SearchState, surface: Surface, leap: Leap) -> SearchState:
        if (
            surface.clipped
            and surface.poor
            and state.blurred == constants.MOST_BLURRED
            and state.escapes < constants.MOST_EVOLUTIONS
        ):
            return self._escaped(state)
        blurred = state.blurred + 1 if surface.clipped else 0
        return super()._concluded(replace(state, blurred=blurred), surface, leap)

    def _limited(self, state: SearchState) -> SearchState:
        if state.room <= 0 and state.leap is not None:
            state = self._trusted(state, state.leap)
        arrived = state.phase is Phase.SURVEY and state.escapes == 0 and state.q is not state.first
        if state.room <= 0 and arrived and state.surface is None:  # q was made narrower for a survey, in vain
            wider = constants.SURVEYED * state.q.factor
            state = replace(state, q=Gaussian.from_factor(state.q.mean, wider, self.family))
        return super()._limited(state)

    def _trusted(self, state: SearchState, leap: Leap) -> SearchState:
        """Take the last leap, which there are too few draws to judge by a surface, if h has gained at its own draws.

        No Gaussian is better than this one by more than its divergence from the posterior, which is about half the
        variance of h.
        """
        archive, before = state.archive, state.surface
        source, count = archive.proposals[-1] if archive.proposals else (None, 0)
        if before is None or source is not leap.q or count < constants.FEW:
            return state
        h = archive.values[-count:] - leap.q.log_density(archive.theta[-count:])
        mean, variance = float(h.mean()), float(h.var(ddof=1))
        se = math.sqrt(variance / count)
        if not mean - constants.CONFIDENCE * se > before.lower_bound:  # or it is not a number
            return state
        there = replace(
            before,
            q=leap.q,
            lower_bound=mean,
            lower_bound_se=se,
            size=float(count),
            gap=0.5 * variance,
            noise=0.5 * variance * math.sqrt(2.0 / (count - 1)),
            floor=-math.inf,
        )
        return replace(state, q=leap.q, surface=there)

    def _num_fresh(self, rest: float) -> int:
        count = self._basis.num_monomials
        least = max(constants.LEAST_FRESH, constants.LOOKED_AT // self.dim)
        return max(least, count // 3 if rest < constants.FAR_FROM_GAUSSIAN else count)


def _informative(surface: Surface) -> bool:
    """Whether a surface predicts the values, or shows more of a way to go than its noise."""
    return not surface.poor or surface.gap > constants.CONFIDENCE * surface.noise


def _spread(values: Array) -> float:
    """The standard deviation of values of the same draw; 0 if they are equal but for round-off, or not finite."""
    if not np.isfinite(values).all():
        return 0.0
    same = constants.SAME_VALUE + constants.ROUNDING * np.abs(values).max()
    return float(values.std(ddof=1)) if np.ptp(values) > same else 0.0
