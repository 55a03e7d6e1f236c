r"""What every search decides: leap on quadratic surfaces, refine until certain, verify, certify.

*Leap* to the best point of the surface within a trust radius (KL divergence in nats), and fit the surface
there. A leap that gains at least a tenth of what was promised is kept; the radius grows when leaps succeed
and shrinks when they fail. *Refine* once the gradient is inside its noise: make more draws until the noise itself is
below the tolerance. *Verify* at the end with some fresh draws, which no decision has depended on. Then the result is
tried (`court`).

Certificate: to second order the bound of a nearly Gaussian target is :math:`\tfrac12\|g\|^2 + \|G\|^2` nats below
its maximum. At the end the gradient of the surface is zero, so that only its error is left, and the regression gives
the covariance of this error. ``gap`` is the mean of the expression over the error, ``gap_se`` its standard deviation.
Where the target is far from Gaussian, `polish` looks for the optimum on the draws at hand. ``gap`` and ``gap_se`` are
then multiplied by the ratio of what polishing gained to what the surface had promised.

Every function takes a state and returns a new one; states never change.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.auto import constants
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.steps.leap import Leap, propose
from mgvbp.auto.steps.polish import Look, polish
from mgvbp.auto.trial.witnesses import stratified, widened
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods.optimizer import STREAM, Info
from mgvbp.problem.problem import Prior
from mgvbp.surfaces.archive import Archive, View
from mgvbp.surfaces.surface import Surface


class Rules(ABC):
    """The decisions of a search, as functions of its state.

    Parameters
    ----------
    family : Family
    prior : Prior or None
        Its log density is added to the values that the search is told.
    tol : float
        How many nats below the optimum are good enough.
    labels : sequence of str, optional
        What a sentence calls the parameters.
    """

    needs_gradients: ClassVar[bool]
    first_phase: ClassVar[Phase]

    fastest_growth: float
    """Largest factor by which the effective sample size grows before the noise is estimated again."""
    least_gain: float
    """Gain, in units of the tolerance, below which a leap is not worth its draws."""
    least: int
    """Fewest draws for a surface."""
    enough: float
    """Fewest effective draws for a certificate."""
    most_visits: int
    """How often the search leaves a result to look at another mode."""
    most: int
    """Default of the largest number of evaluations."""

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        self.family, self.prior, self.tol, self.dim = family, prior, tol, family.dim
        self._labels = labels
        self.first_radius = constants.FIRST_RADIUS * self.dim + 1.0
        # what a quadratic misses of many parameters adds up, and matters to none of them
        self.many = math.sqrt(max(1.0, self.dim / constants.MANY))

    def start(
        self, q: Gaussian, key: tuple[int, ...], max_evaluations: int, noise: float | None = None
    ) -> SearchState:
        """Begin at ``q``; ``noise`` is the standard deviation of the noise in the values, if it is known."""
        return SearchState(
            key=key,
            first=q,
            q=q,
            archive=Archive.empty(self.dim, noise or 0.0),
            deterministic=noise == 0.0,
            random=bool(noise),
            phase=self.first_phase,
            radius=self.first_radius,
            target_size=float(self.least),
            want=self.least,
            max_evaluations=max_evaluations,
        )

    def near(self, q: Gaussian, key: tuple[int, ...], max_evaluations: int) -> SearchState:
        """Begin at ``q``, which is known to be near an optimum."""
        return self.start(q, key, max_evaluations)

    def ask(self, state: SearchState) -> Array:
        """The draws to evaluate next, (n, d)."""
        return self._draw(state, min(state.want, state.room), self._generator(state))[: state.room]

    def tell(
        self, state: SearchState, theta: Array, values: ArrayLike, gradients: ArrayLike | None
    ) -> tuple[SearchState, Info]:
        """Take the values (and gradients) at the draws ``theta`` of `ask`; decide what to draw next, or to stop."""
        with np.errstate(over="ignore", invalid="ignore"):
            evaluated = self._evaluated(theta, values, gradients)
            finite = np.asarray(np.isfinite(np.column_stack(evaluated)).all(axis=1))
            before = state if _away(state) else replace(state, want=0)
            decided = self.decide(self._taken(before, theta, finite, *evaluated))
        return decided, Info(
            lower_bound=decided.lower_bound,
            gap=decided.gap,
            step_size=decided.leap.beta if decided.leap else 0.0,
            dropped=0 if state.phase.far_out else len(theta) - int(np.count_nonzero(finite)),
            reductions=0,
            noise=decided.gap_se,
            radius=decided.radius,
            num_draws=len(theta),
            phase=state.phase.value,
        )

    def extended(self, state: SearchState, max_evaluations: int) -> SearchState:
        """Set another limit, and resume the search if the old limit had ended it."""
        exhausted = state.ending is not None and state.ending.outcome is Outcome.MAX_EVALUATIONS
        state = replace(state, max_evaluations=max_evaluations)
        return self.decide(replace(state, ending=None)) if exhausted and state.room > 0 else state

    # --- what differs -----------------------------------------------------------------------------

    @abstractmethod
    def _draw(self, state: SearchState, count: int, rng: np.random.Generator) -> Array:
        """The draws to evaluate next, at most about ``count``."""

    @abstractmethod
    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, ...]:
        """The log density (n,) at the draws and, in a search by gradients, its gradient (n, d)."""

    @abstractmethod
    def _taken(
        self, state: SearchState, theta: Array, finite: NDArray[np.bool_], *evaluated: Array
    ) -> SearchState:
        """The state with draws whose densities (and gradients) `_evaluated` gave; ``finite`` marks usable ones."""

    @abstractmethod
    def _fit(self, archive: Archive, view: View, near: Surface | None = None) -> Surface | None:
        """The surface through the draws of a view; a surface ``near`` may help."""

    @abstractmethod
    def _gained(
        self, state: SearchState, leap: Leap, view: View, after: Surface | None
    ) -> tuple[SearchState, float, float]:
        """The new state, the leap's gain of the lower bound (−inf if it is unreliable) and its standard error."""

    @abstractmethod
    def _misleading(self, state: SearchState, surface: Surface) -> bool:
        """Whether this surface is so poor that the search should look for another region."""

    @abstractmethod
    def _escaped(self, state: SearchState) -> SearchState:
        """Look for another region."""

    @abstractmethod
    def _charged(self, state: SearchState, surface: Surface) -> SearchState:
        """Try to refute a result that the surface certifies; certify it if that fails."""

    @abstractmethod
    def _num_fresh(self, rest: float) -> int:
        """How many draws to verify with: more where the target is far from Gaussian (``rest`` is large)."""

    # --- how it decides ---------------------------------------------------------------------------

    def _generator(self, state: SearchState) -> np.random.Generator:
        return np.random.default_rng((*state.key, state.iteration, STREAM))

    def _proposal(self, state: SearchState) -> Gaussian:
        """The Gaussian to draw from. To verify it is wider than q, to show the tails; weights correct for that."""
        if state.phase is Phase.REFINE and state.steep is not None and state.iteration % 2:
            direction = state.q.family.to_frame(state.q.factor, state.steep)
            return widened(state.q, direction / np.linalg.norm(direction))
        clipped = state.surface is not None and state.surface.clipped
        if not (state.phase is Phase.VERIFY or (clipped and state.phase is Phase.REFINE)):
            return state.centre
        wider = state.q.factor / (1.0 + 1.0 / math.sqrt(self.dim))
        return Gaussian.from_factor(state.q.mean, wider, self.family)

    def _sample(self, state: SearchState, count: int, rng: np.random.Generator) -> Array:
        """Draws from `_proposal`; those that verify are stratified, so that they leave no part of a line out."""
        q = self._proposal(state)
        if state.phase is not Phase.VERIFY:
            return q.sample(count, rng)
        return q.mean + q.family.from_frame(q.factor, stratified(count, self.dim, rng))

    def decide(self, state: SearchState) -> SearchState:
        """Take decisions until draws are needed or the search ends."""
        decisions = 0
        while not (state.want or _away(state) or state.ending):
            decisions += 1
            view = state.archive.view(state.centre)
            missing = state.target_size - view.size
            if decisions > constants.MOST_DECISIONS:
                state = replace(state, want=self.least)
            elif missing > constants.ROUND_OFF * state.target_size and state.fills < constants.MOST_FILLS:
                want = max(4, math.ceil(1.05 * missing))
                state = replace(state, want=want, fresh=True, fills=state.fills + 1)
            else:
                state = replace(state, fills=0)
                if state.leap:
                    state = self._judged(state, state.leap, view)
                else:
                    state = self._settled(state, self._fit(state.archive, view, state.surface))
        return state if state.ending else self._limited(state)

    def _limited(self, state: SearchState) -> SearchState:
        """Stop if there are no evaluations left."""
        whole = state.phase in (
            Phase.TRIAL,
            Phase.LOOKOUT,
            Phase.CLIMB,
            Phase.CHORD,
            Phase.STRIDE,
        )  # a part of these points would say nothing
        if state.room <= 0 or (whole and state.want > state.room):
            ending = Ending.of(Outcome.MAX_EVALUATIONS, limit=state.max_evaluations)
            if state.rival is not None and state.rival.lower_bound > state.lower_bound:
                state = in_time(state.rival, state)
                whole = False
            if (best := self._higher(state)) is not None:
                there = replace(state, q=best.q, surface=best, trial=None, suspects=(), chords=None)
                state, whole = refined(replace(there, verified=False), best.size), False
            # what was to be evaluated as a whole still waits for a larger limit
            return replace(state, want=state.want if whole else 0, leap=None, ending=ending)
        return replace(state, verified=False) if state.want > state.room else state

    def _higher(self, state: SearchState) -> Surface | None:
        """The best surface so far, if its bound is surely higher than where the search is."""
        best = state.best
        if best is None or state.surface is None:
            return best
        few = best.size < self.enough  # these may misjudge their bound by a nat and more
        doubt = constants.FEW_DOUBT + 0.5 * self.dim if few else 0.0
        level = state.lower_bound + constants.CONFIDENCE * state.lower_bound_se
        return best if _surely(best) - doubt > level else None

    def _judged(self, state: SearchState, leap: Leap, view: View) -> SearchState:
        """Keep the leap that led to this view, or go back."""
        after = self._fit(state.archive, view, state.surface)
        state, gain, se = self._gained(replace(state, leap=None), leap, view, after)
        excused = min(constants.CONFIDENCE * se, constants.DOUBT * leap.gain)
        if after and gain > constants.ACCEPTED * leap.gain - excused:
            further = gain > constants.GOOD * leap.gain and leap.kl > constants.GOOD * state.radius
            radius = constants.WIDENING * state.radius if further else state.radius
            return self._settled(replace(state, radius=radius, failures=0, q=leap.q), after)
        before = state.surface
        assert before is not None
        state = replace(state, failures=state.failures + 1, radius=constants.NARROWING * leap.kl)
        if state.failures > constants.MOST_FAILURES and before.poor:
            return self._escaped(state)
        noise = constants.CONFIDENCE * se
        lost = -math.inf < gain < -noise  # which is no noise
        if state.radius < constants.SMALLEST_RADIUS or (leap.gain < noise and not lost):
            return refined(state, max(self.least, constants.MORE_DRAWS * before.size))
        if state.fresh and not (lost and self.needs_gradients):
            return self._surveying(state)
        return self._settled(state, before)

    def _settled(self, state: SearchState, surface: Surface | None) -> SearchState:
        """With the surface at q, decide to stop, refine, leap or look for another region."""
        state = replace(state, surface=surface)
        if surface is None or self._misleading(state, surface):
            return self._escaped(state)
        if not surface.clipped and _surely(surface) > (
            -math.inf if state.best is None else _surely(state.best)
        ):
            state = replace(state, best=surface)
        certain = state.failures == 0 and (
            surface.r2 > constants.PREDICTED or surface.residual < constants.SMALL_RESIDUAL
        )
        leap = propose(surface, state.radius, extrapolate=certain)
        if leap is None:
            return self._escaped(state)
        within_noise = surface.gap < surface.noise + constants.CONFIDENCE * surface.noise_sd
        if within_noise or leap.gain < self.least_gain * self.tol:
            return self._concluded(state, surface, leap)
        if (leap.q.std > constants.WIDEST * state.first.std).any():
            return replace(state, ending=Ending.of(Outcome.IMPROPER))
        return self._trying(state, leap, surface)

    def _trying(self, state: SearchState, leap: Leap, surface: Surface) -> SearchState:
        """Try the leap: the next surface is fitted where it leads."""
        size = max(self.least, constants.REUSED * min(state.target_size, surface.size))
        return replace(state, leap=leap, phase=Phase.LEAP, fresh=False, verified=False, target_size=size)

    def _concluded(self, state: SearchState, surface: Surface, leap: Leap) -> SearchState:
        """Finish, or make the draws that a certificate still needs; the gradient is inside its noise."""
        surface = surface.cautious
        state, fresh = replace(state, surface=surface), self._num_fresh(surface.rest)
        left = surface.size / (surface.size + fresh)  # share of the noise that fresh draws would leave
        unknown = surface.ridge or surface.clipped
        if surface.rest < self.many * constants.POLISH_ABOVE:
            state = replace(state, stretch=state.least_stretch)
        elif surface.noise * left < self.tol and not unknown:
            polished = self._polished(state, surface, leap)
            if polished is None:
                return self._escaped(state)
            state, surface, leap, arrived = polished
            if not arrived:
                return refined(replace(state, verified=False), max(self.least, surface.size) * 1.1)
        uncertain = math.inf if unknown else state.stretch * (surface.noise + 0.5 * surface.noise_sd)
        after = uncertain * left
        if uncertain < self.tol and state.verified:
            return self._charged(state, surface)
        if after < self.tol and surface.size + fresh < self.enough:
            return refined(state, self.enough - fresh)
        if after < self.tol and not state.verified:
            ready = replace(state, q=leap.q, phase=Phase.VERIFY, verified=True, want=fresh)
            return replace(ready, expected=surface.rest)
        growth = min(self.fastest_growth, max(1.1, 1.05 * uncertain / self.tol))
        return refined(state, max(self.least, surface.size) * growth)

    def _polished(
        self, state: SearchState, surface: Surface, leap: Leap
    ) -> tuple[SearchState, Surface, Leap, bool] | None:
        """Follow the surfaces of these draws to their own optimum, where the target is far from Gaussian.

        For a Gaussian target polishing gains what a leap promises. For others the ratio of the two gains says how
        much more the errors of the gradient cost than the surface states. If the noise is more than the promise,
        the gain is divided by the noise. ``stretch`` is the ratio, or 1 if that is more. It stays as it was if
        polishing hardly gains anything.

        Returns the state, its surface, the leap from there, and whether the optimum of these draws was reached.
        """
        archive = state.archive
        least = max(
            constants.POLISHED_GAP * self.least_gain * self.tol, constants.POLISHED_NOISE * surface.noise
        )
        best, arrived, gained = polish(surface, self._follow(archive, surface), least, self.tol)
        if best is not surface:
            best = self._fit(archive, archive.view(best.q), surface) or surface
        best = best.cautious
        last = propose(best, state.radius, extrapolate=False)
        if last is None:
            return None
        promised = max(surface.gap, surface.noise)
        if not surface.slopes:
            gained = best.lower_bound - surface.lower_bound
        known = gained < constants.TELLING * promised  # q was at the optimum before: nothing new is learnt
        polished = replace(
            state,
            stretch=state.stretch if known else max(state.least_stretch, gained / promised),
            verified=state.verified and best.size > constants.STILL_SEEN * surface.size,
            q=best.q,
            surface=best,
        )
        return polished, best, last, arrived

    def _look(self, archive: Archive, surface: Surface) -> Look:
        """Fits surfaces to the draws of an archive, from what is known of ``surface``."""
        return lambda q: self._fit(archive, archive.view(q), surface)

    def _follow(self, archive: Archive, surface: Surface) -> Look:
        """The same, to compare their bounds with each other only."""
        return self._look(archive, surface)

    def _glance(self, archive: Archive, surface: Surface) -> Look:
        """The same, as cheap as it can be: to see whether the bound is much higher somewhere."""
        return self._look(archive, surface)

    def _certified(self, state: SearchState, surface: Surface, leap: Leap) -> SearchState:
        """Take the last, small leap and certify.

        The surface is as uncertain after the leap as before it. If it has less noise than the leap gains, the gain
        (at most the least gain of a leap) is stated as the noise, since it shows how much may be left.
        """
        there = replace(
            surface,
            q=leap.q,
            lower_bound=surface.lower_bound + leap.gain,
            noise=max(surface.noise, min(leap.gain, self.least_gain * self.tol)),
        )
        return replace(state, q=leap.q, surface=there, ending=Ending.of(Outcome.CERTIFIED, tol=self.tol))

    def _counted(self, state: SearchState, count: int) -> SearchState:
        """The state after another iteration with so many evaluations."""
        return replace(state, iteration=state.iteration + 1, n_evaluations=state.n_evaluations + count)

    def _surveying(self, state: SearchState) -> SearchState:
        """Fit a surface at q with the fewest draws that a surface needs."""
        return replace(state, phase=Phase.SURVEY, target_size=float(self.least))

    def _begun_anew(self, state: SearchState, q: Gaussian) -> SearchState:
        """Begin again with a survey of ``q``, where the bound is not known."""
        return self._surveying(
            replace(
                state,
                q=q,
                surface=None,
                leap=None,
                chords=None,
                radius=self.first_radius,
                failures=0,
                fills=0,
                verified=False,
            )
        )


def _surely(surface: Surface) -> float:
    """What the bound of a surface is at least, but for rare errors."""
    return surface.lower_bound - constants.CONFIDENCE * surface.lower_bound_se


def in_time(earlier: SearchState, now: SearchState) -> SearchState:
    """An earlier state, with what has been counted since."""
    counted = (
        "iteration",
        "n_evaluations",
        "max_evaluations",
        "visits",
        "charges",
        "lookouts",
        "leads",
        "climbs",
        "climbed",
        "strides",
        "onward",
        "seen",
        "wide",
        "record",
        "best",
        "random",
    )
    return replace(earlier, want=0, **{name: getattr(now, name) for name in counted})


def _away(state: SearchState) -> bool:
    """Whether the search is an ascent, approach or evolution, which still looks for a region to fit a surface in."""
    return state.phase in (Phase.ASCENT, Phase.APPROACH, Phase.EVOLVE)


def refined(state: SearchState, size: float) -> SearchState:
    """Make draws until there are ``size`` effective ones, then fit the surface again."""
    return replace(
        state, phase=Phase.REFINE, target_size=size, radius=max(state.radius, constants.RESTORED_RADIUS)
    )
