r"""The search by gradients for structured precisions of thousands of parameters.

For a fixed set of pairs ±ε the bound of a structured Gaussian is a deterministic function of its coordinates.

1. *Survey* the initial Gaussian by a few pairs. The differences of the two gradients of each pair, regressed on the few
   neighbours of each parameter, are the expected Hessian H on the pattern (`SparsePrecision.curvature`).
2. *Leap*: :math:`P^+ = (1-\beta) P - \beta H`, :math:`\mu^+ = \mu + \beta\,\Sigma^+ \bar g`, the natural gradient
   step of the family, with the largest β ≤ 1 for which :math:`P^+` is positive definite and within a trust radius.
   What the regression leaves has no part in the gradient if the Hessian is on the pattern. If it has, beyond its noise,
   the pattern is too small for the target, and the columns of the factor move along this part too.
3. The same ε in the new Gaussian show whether the bound has fallen, beyond the noise of the difference. If so, the step
   was too long.
   In a hierarchy the scale of the effects and the effects themselves move together along a ridge, a little at each
   step, and elsewhere steps overshoot. The last steps show by how much the gradient changes along them (`Ritz`), and
   the next step is stretched or shortened in these directions. So is the gap that a gradient stands for.
4. *Refine*: if the gradient is inside its noise, there are more draws, until the noise is below the tolerance.
5. *Verify* by fresh draws: the products of the gradients of eight shares of them with each other estimate the gap
   without bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.searches.pairs import (
    BATCHES,
    FARTHEST,
    FEWEST,
    HALVINGS,
    LOSS,
    WIDER,
    ByPairs,
    PairsState,
    Seen,
    compared,
)
from mgvbp.auto.state import Phase
from mgvbp.auto.steps.secants import MOST_STRETCH, Ritz, Secant
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.families import Family, SparsePrecision
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Prior

PER_NEIGHBOUR = 3
"""Fewest pairs per coefficient of a regression."""
MISSED = 4.0
"""What a regression leaves has a part in the gradient if it is this many times the standard error."""
MOST_RADIUS = 100.0
"""Largest trust radius, in nats per parameter."""
SIGNIFICANT = 4.0
"""A step tells how the gradient changes if the gradient was this many times its noise."""
REMEMBERED = 6
"""Steps that `Ritz` combines."""


@dataclass(frozen=True, eq=False)
class Sums(Seen):
    """What the draws say of a Gaussian."""

    curvature: Array | None
    """The expected Hessian on the pattern."""
    missed: Array | None
    """The whitened gradient by the factor of what the regression leaves; None if it is noise."""


@dataclass(frozen=True, eq=False)
class StructuredState(PairsState):
    """One start of a search."""

    here: Sums | None = None
    secants: tuple[Secant, ...] = ()
    """What the last steps have shown of how the natural gradient changes."""
    reach: float = 4.0
    """The largest factor by which a step is stretched in directions of slow progress."""
    accelerated: bool = False
    """Whether the last step was."""
    full: tuple[Array, Array] | None = None
    """The Gaussian that the whole step from ``here`` leads to, as a mean and a factor; None if it is out of reach."""
    known_at: int = -1
    """The stage by whose draws ``here`` is known: other draws cannot be compared with it."""


class ByStructure(ByPairs[StructuredState]):
    """Decisions of a search for a `SparsePrecision`, or a `Diagonal` of many parameters."""

    family: SparsePrecision

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        self.shown = family
        # without any pair the arrays of a sparse family are those of the diagonal one
        bare = SparsePrecision.banded(family.dim, 0)
        self.family = family if isinstance(family, SparsePrecision) else bare
        super().__init__(prior, tol, family.dim, max(FEWEST, PER_NEIGHBOUR * self.family.neighbours.hubs[1]))
        self.most = 200 * max(self.least, 1000)

    def _first(self, q: Gaussian, key: tuple[int, ...], max_evaluations: int) -> StructuredState:
        first = self._gaussian(q.mean, q.factor)
        radius = constants.FIRST_RADIUS * self.dim + 1.0
        return StructuredState(key, first, first, first, Phase.SURVEY, self.fewest, max_evaluations, radius)

    def _gaussian(self, mean: Array, factor: Array) -> Gaussian:
        return Gaussian.from_factor(mean, factor, self.shown)

    # --- what the draws say -----------------------------------------------------------------------

    def _sums(self, state: StructuredState, theta: Array, f: Array, slopes: Array) -> Sums:
        q, m = state.candidate, state.pairs
        family, L = self.family, q.factor
        h = f - q.log_density_at(theta)
        delta = theta[:m] - q.mean
        even, odd = 0.5 * (slopes[:m] + slopes[m:]), 0.5 * (slopes[:m] - slopes[m:])
        mean = family.solve(L, even).reshape(BATCHES, -1, self.dim).mean(axis=1)
        v = family.solve(L, odd) + family.to_frame(L, delta)
        by_factor = family.gradient(L, delta, v, BATCHES)
        gram = mean @ mean.T + by_factor @ by_factor.T
        ritz = Ritz.of(family, q, state.secants)
        if ritz is not None:
            along = ritz.vectors @ np.concatenate([mean, by_factor], axis=1).T
            gram = gram + (along.T * (1.0 / np.clip(ritz.rates, 1.0 / MOST_STRETCH, 1.0) - 1.0)) @ along
        gap, gap_se, noise = compared(gram)
        H = family.curvature(delta, odd)
        missed = None
        if H is not None:
            left = odd - (family.matrix(H) @ delta.T).T
            rest = family.gradient(L, delta, family.solve(L, left), BATCHES)
            part, part_se, _ = compared(rest @ rest.T)
            if part > max(MISSED * part_se, 0.1 * self.tol):
                missed = rest.mean(axis=0)
        pairs = 0.5 * (h[:m] + h[m:])
        return Sums(q, pairs, even.mean(axis=0), gap, gap_se, noise, H, missed)

    # --- decisions --------------------------------------------------------------------------------

    def _weighed(self, state: StructuredState, theta: Array, f: Array, slopes: Array) -> StructuredState:
        now, here = self._sums(state, theta, f, slopes), state.here
        same = state.phase is Phase.LEAP and state.known_at == state.stage
        if here is not None and same:
            lost, error = now.loss_since(here)
            if (lost > 0.0 and now.left > here.left) or lost > LOSS * error:
                return self._taken_back(state)
        full = self._step(now, self.family.entries(now.gaussian.factor), 1.0)
        clear = here is not None and here.left > SIGNIFICANT * here.noise
        if here is not None and clear and same and full and state.full:
            secant = Secant.between(here.gaussian, state.full, now.gaussian, full)
            state = replace(state, secants=(*state.secants, secant)[-REMEMBERED:])
            if state.accelerated:
                state = replace(state, reach=min(2.0 * state.reach, MOST_STRETCH))
        widening = constants.WIDENING if state.beta > 0.5 else 1.0
        wider = min(widening * state.radius, MOST_RADIUS * self.dim)
        state = replace(self._accepted(state, now), known_at=state.stage, full=full, radius=wider)
        if state.phase is Phase.VERIFY:
            return self._verified(state, now)
        return self._leapt(state) if self._far(now) else self._settled(state, now)

    def _shortened(self, state: StructuredState) -> StructuredState:
        if state.accelerated:
            return self._leapt(replace(state, reach=max(0.25 * state.reach, 1.0)), accelerate=False)
        return self._leapt(replace(state, radius=0.25 * state.radius), 0.5 * state.beta, accelerate=False)

    def _leapt(
        self, state: StructuredState, longest: float = 1.0, *, accelerate: bool = True
    ) -> StructuredState:
        """Take the accelerated step, or else the longest plain one, that the trust radius allows."""
        here, family = state.here, self.family
        assert here is not None
        q, L = here.gaussian, here.gaussian.factor
        P, sd = family.entries(L), np.sqrt(family.variances(L))
        ritz = Ritz.of(family, q, state.secants) if accelerate else None
        reach = state.reach
        while ritz is not None and state.full is not None and reach >= 1.0:
            step = ritz.stretched(family, q, state.full, state.secants, reach)
            if step is not None and self._within(q, P, sd, *step, state.radius):
                return replace(
                    state, candidate=self._gaussian(*step), beta=1.0, phase=Phase.LEAP, accelerated=True
                )
            reach *= 0.5
        beta = longest
        for _ in range(HALVINGS):
            step = self._step(here, P, beta)
            if step is not None and self._within(q, P, sd, *step, state.radius):
                return replace(
                    state, candidate=self._gaussian(*step), beta=beta, phase=Phase.LEAP, accelerated=False
                )
            beta *= 0.5
        return replace(state, ending=Ending.of(Outcome.NO_REGION))

    def _step(self, here: Sums, P: Array, beta: float) -> tuple[Array, Array] | None:
        """The mean and the factor after a plain step; None if the precision is not positive definite."""
        family, q = self.family, here.gaussian
        target = P if here.curvature is None else -here.curvature
        try:
            L = family.cholesky((1.0 - beta) * P + beta * target)
        except NotPositiveDefiniteError:
            return None
        if here.missed is not None:
            L = family.moved(L, here.missed, beta)
        return q.mean + beta * family.from_frame(L, family.solve(L, here.slope)), L

    def _within(self, q: Gaussian, P: Array, sd: Array, mean: Array, L: Array, radius: float) -> bool:
        """Whether the step is within the trust radius, in nats, and no entry moves or widens too much."""
        family = self.family
        Z = family.covariances(L)
        new = np.sqrt(family.diagonal(Z))
        far = np.abs(mean - q.mean) > FARTHEST * np.maximum(sd, new)
        if far.any() or (new > WIDER * sd).any() or not np.isfinite(new).all():
            return False
        first = family._pattern[0][:-1]
        trace = family.inner(P, Z)
        move = family.to_frame(q.factor, mean - q.mean)
        volume = float(np.log(L[first]).sum() - np.log(q.factor[first]).sum())
        return 0.5 * (trace - self.dim + float(move @ move)) + volume <= radius
