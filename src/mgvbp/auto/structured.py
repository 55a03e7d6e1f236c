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

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto import constants
from mgvbp.auto.state import Phase
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check, Ending, Outcome
from mgvbp.errors import DivergenceError, InvalidInputError, NotPositiveDefiniteError
from mgvbp.families import Family, SparsePrecision
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods.optimizer import STREAM, Info
from mgvbp.problem.problem import Prior, density_and_gradient

BATCHES = 8
"""Shares of the draws whose gradients are compared with each other."""
FEWEST = 32
"""Fewest pairs of draws."""
PER_NEIGHBOUR = 3
"""Fewest pairs per coefficient of a regression."""
MOST_NUMBERS = 4e7
"""Most numbers of a batch of pairs: 0.3 GB."""
CLEAR = 1.0
"""A step is taken with the same draws as long as it promises this many times what their noise costs."""
SAFE = 0.7
"""The noise is below the tolerance if it is this share of it."""
GROWTH = 4.0
"""Largest factor by which the draws grow."""
FARTHEST, WIDER = 4.0, 4.0
"""Longest step of a mean, in the larger of its standard deviations before and after, and the largest factor on them."""
LOSS = 2.0
"""A step that loses more than this many standard errors of the difference is taken back."""
MISSED = 4.0
"""What a regression leaves has a part in the gradient if it is this many times the standard error."""
MOST_RADIUS = 100.0
"""Largest trust radius, in nats per parameter."""
SIGNIFICANT = 4.0
"""A step tells how the gradient changes if the gradient was this many times its noise."""
REMEMBERED = 6
"""Steps that `Ritz` combines."""
UNCLEAR, FEW_FAILURES, MOST_FAILURES = 10.0, 3, 12
"""Steps in a row that are taken back before more draws are made: few, if the gradient is so many times its noise."""
DISTINCT = 0.03
"""Directions of the last moves whose singular value, of moves of length 1, is below this are noise."""
MOST_STRETCH, FASTEST = 64.0, 4.0
"""The largest factor, and one over the smallest, by which a step is stretched in some direction."""
HALVINGS = 40
"""Most halvings of a step, or of the initial standard deviations."""


class Sums(NamedTuple):
    """What the draws say of a Gaussian."""

    gaussian: Gaussian
    h: Array
    """Half the sum of log p − log q over each pair, (m,)."""
    slope: Array
    """The mean gradient, (d,)."""
    curvature: Array | None
    """The expected Hessian on the pattern."""
    missed: Array | None
    """The whitened gradient by the factor of what the regression leaves; None if it is noise."""
    gap: float
    gap_se: float
    """The gap without bias, and its standard error."""
    noise: float
    """The nats that the noise of the gradient costs if a step follows it."""


class Ritz(NamedTuple):
    """Directions, and how fast the natural gradient falls along each: 1 where one step leads to the maximum."""

    weights: Array
    """The directions as sums of the moves of the secants, (k, secants)."""
    vectors: Array
    """The directions in whitened coordinates, (k, d + nnz)."""
    rates: Array


class Secant(NamedTuple):
    """A move of the mean (d,) and the factor, and by how much the natural gradient fell along it."""

    mean: Array
    factor: Array
    mean_fall: Array
    factor_fall: Array


@dataclass(frozen=True, eq=False)
class StructuredState:
    """One start of a search; the draws are a function of ``key`` and ``stage``."""

    key: tuple[int, ...]
    first: Gaussian
    q: Gaussian
    """The best Gaussian so far."""
    candidate: Gaussian
    """The Gaussian that the next draws come from."""
    phase: Phase
    pairs: int
    max_evaluations: int
    radius: float
    stage: int = 0
    beta: float = 1.0
    """The length of the last step, of which 1 is that to the maximum of the quadratic."""
    secants: tuple[Secant, ...] = ()
    """What the last steps have shown of how the natural gradient changes."""
    reach: float = 4.0
    """The largest factor by which a step is stretched in directions of slow progress."""
    accelerated: bool = False
    """Whether the last step was."""
    full: tuple[Array, Array] | None = None
    """The Gaussian that the whole step from ``here`` leads to, as a mean and a factor; None if it is out of reach."""
    here: Sums | None = None
    """What is known of the last Gaussian that was accepted."""
    known_at: int = -1
    """The stage by whose draws ``here`` is known: other draws cannot be compared with it."""
    expected: float = math.inf
    """The noise of the last step before a verification."""
    failures: int = 0
    iteration: int = 0
    n_evaluations: int = 0
    checks: tuple[Check, ...] = ()
    ending: Ending | None = None
    lower_bound: float = -math.inf
    lower_bound_se: float = math.inf
    gap: float = math.inf
    gap_se: float = math.inf
    climbs: tuple[()] = ()
    archive: None = None

    @property
    def converged(self) -> bool:
        """Whether the result is certified."""
        return self.ending is not None and self.ending.outcome is Outcome.CERTIFIED


class ByStructure:
    """Decisions of a search for a `SparsePrecision`, or a `Diagonal` of many parameters."""

    needs_gradients: ClassVar[bool] = True

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        self.shown, self.prior, self.tol, self.dim = family, prior, tol, family.dim
        # without any pair the arrays of a sparse family are those of the diagonal one
        bare = SparsePrecision.banded(self.dim, 0)
        self.family = family if isinstance(family, SparsePrecision) else bare
        self.pairs = max(FEWEST, PER_NEIGHBOUR * self.family.hubs[1])
        self.pairs += -self.pairs % BATCHES
        self.least = 2 * self.pairs
        self.most_pairs = max(self.pairs, int(MOST_NUMBERS / self.dim) // BATCHES * BATCHES)
        self.most = 200 * max(self.least, 1000)

    def start(
        self, q: Gaussian, key: tuple[int, ...], max_evaluations: int, noise: float | None = None
    ) -> StructuredState:
        """Begin at ``q``."""
        if noise:
            raise InvalidInputError("noise= does not go with a sparse precision, nor with so many parameters")
        first = self._gaussian(q.mean, q.factor)
        return StructuredState(
            key, first, first, first, Phase.SURVEY, self.pairs, max_evaluations,
            constants.FIRST_RADIUS * self.dim + 1.0,
        )  # fmt: skip

    def extended(self, state: StructuredState, max_evaluations: int) -> StructuredState:
        """Set another limit, and resume the search if the old limit had ended it."""
        exhausted = state.ending is not None and state.ending.outcome is Outcome.MAX_EVALUATIONS
        return replace(state, max_evaluations=max_evaluations, ending=None if exhausted else state.ending)

    def _gaussian(self, mean: Array, factor: Array) -> Gaussian:
        return Gaussian.from_factor(mean, factor, self.shown)

    def _eps(self, state: StructuredState) -> Array:
        rng = np.random.default_rng((*state.key, state.stage, STREAM))
        half = rng.standard_normal((state.pairs, self.dim))
        return np.concatenate([half, -half])

    def ask(self, state: StructuredState) -> Array:
        """The draws to evaluate next, in pairs, (2m, d)."""
        q = state.candidate
        return np.asarray(q.mean + self.family.from_frame(q.factor, self._eps(state)))

    def tell(
        self, state: StructuredState, theta: Array, values: ArrayLike, gradients: ArrayLike | None
    ) -> tuple[StructuredState, Info]:
        """Take the values and gradients at the draws ``theta`` of `ask`; decide what to draw next, or to stop."""
        with np.errstate(over="ignore", invalid="ignore"):
            f, slopes = self._evaluated(theta, values, gradients)
        finite = np.isfinite(f) & np.isfinite(slopes).all(axis=1)
        dropped = len(f) - int(np.count_nonzero(finite))
        told = replace(state, iteration=state.iteration + 1, n_evaluations=state.n_evaluations + len(theta))
        decided = self._limited(self._failed(told) if dropped else self._weighed(told, theta, f, slopes))
        return decided, Info(
            lower_bound=decided.lower_bound,
            gap=decided.gap,
            step_size=state.beta,
            dropped=dropped,
            reductions=0,
            noise=decided.gap_se,
            radius=decided.radius,
            num_draws=len(theta),
            phase=state.phase.value,
        )

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, Array]:
        return density_and_gradient(self.prior, theta, values, gradients)

    def _limited(self, state: StructuredState) -> StructuredState:
        if state.ending is None and state.n_evaluations + 2 * state.pairs > state.max_evaluations:
            ending = Ending.of(Outcome.MAX_EVALUATIONS, limit=state.max_evaluations)
            return replace(state, ending=ending)
        return state

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
        ritz = self._ritz(q, state.secants)
        if ritz is not None:
            along = ritz.vectors @ np.concatenate([mean, by_factor], axis=1).T
            gram = gram + (along.T * (1.0 / np.clip(ritz.rates, 1.0 / MOST_STRETCH, 1.0) - 1.0)) @ along
        gap, gap_se, noise = compared(gram)
        H = family.curvature(delta, odd)
        missed = None
        if H is not None:
            left = odd - _product(family, H, delta)
            rest = family.gradient(L, delta, family.solve(L, left), BATCHES)
            part, part_se, _ = compared(rest @ rest.T)
            if part > max(MISSED * part_se, 0.1 * self.tol):
                missed = rest.mean(axis=0)
        pairs = 0.5 * (h[:m] + h[m:])
        return Sums(q, pairs, even.mean(axis=0), H, missed, gap, gap_se, noise)

    def _ritz(self, q: Gaussian, secants: tuple[Secant, ...]) -> Ritz | None:
        """The curvature of the bound in the plane of the secants, in units of the Fisher information at ``q``."""
        if not secants:
            return None
        moves = np.array([self._whitened(q, s.mean, s.factor) for s in secants])
        falls = np.array([self._whitened(q, s.mean_fall, s.factor_fall) for s in secants])
        lengths = np.linalg.norm(moves, axis=1, keepdims=True)
        U, sizes, Q = np.linalg.svd(moves / lengths, full_matrices=False)
        kept = sizes > DISTINCT
        combined = (U[:, kept] / sizes[kept]).T / lengths.T  # (k', k): the orthonormal Q of the moves
        A = (combined @ falls) @ Q[kept].T
        rates, V = np.linalg.eigh(0.5 * (A + A.T))
        return Ritz(V.T @ combined, V.T @ Q[kept], rates)

    def _whitened(self, q: Gaussian, mean: Array, factor: Array) -> Array:
        """A change of the mean and the factor in whitened coordinates, (d + nnz,)."""
        return np.concatenate([self.family.to_frame(q.factor, mean), self.family.whitened(q.factor, factor)])

    # --- decisions --------------------------------------------------------------------------------

    def _failed(self, state: StructuredState) -> StructuredState:
        """A value is not finite: narrow the initial Gaussian, or take the step back."""
        if state.here is not None:
            return self._taken_back(state)
        if state.failures >= HALVINGS:
            raise DivergenceError(
                "no region was found where all draws have finite values and gradients: give initial_mean= and a "
                "smaller initial_variance="
            )
        q = self._gaussian(state.candidate.mean, 2.0 * state.candidate.factor)
        return replace(state, candidate=q, failures=state.failures + 1)

    def _weighed(self, state: StructuredState, theta: Array, f: Array, slopes: Array) -> StructuredState:
        now = self._sums(state, theta, f, slopes)
        m, here = state.pairs, state.here
        same = state.phase is Phase.LEAP and state.known_at == state.stage
        if here is not None and same:
            gain = now.h - here.h
            lost = -float(gain.mean()) - 1e-9 * abs(float(here.h.mean()))
            astray = lost > 0.0 and now.gap + now.noise > here.gap + here.noise
            if astray or lost > LOSS * gain.std(ddof=1) / math.sqrt(m):
                return self._taken_back(state)
        full = self._step(now, self.family.entries(now.gaussian.factor), 1.0)
        clear = here is not None and here.gap + here.noise > SIGNIFICANT * here.noise
        if here is not None and clear and same and full and state.full:
            state = replace(
                state, secants=(*state.secants, _secant(here, state.full, now, full))[-REMEMBERED:]
            )
            if state.accelerated:
                state = replace(state, reach=min(2.0 * state.reach, MOST_STRETCH))
        bound, error = float(now.h.mean()), float(now.h.std(ddof=1)) / math.sqrt(m)
        widening = constants.WIDENING if state.beta > 0.5 else 1.0
        wider = min(widening * state.radius, MOST_RADIUS * self.dim)
        left = max(now.gap + now.noise, 0.0)
        state = replace(
            state, here=now, known_at=state.stage, full=full, q=now.gaussian, candidate=now.gaussian, lower_bound=bound,
            lower_bound_se=error, gap=left + now.noise, gap_se=now.gap_se, failures=0, radius=wider,
        )  # fmt: skip
        if state.phase is Phase.VERIFY:
            return self._verified(state, now)
        known = now.noise < SAFE * self.tol
        if left > max(CLEAR * now.noise, 0.5 * SAFE * self.tol):
            return self._leapt(state, Phase.LEAP)
        if known:
            return replace(state, phase=Phase.VERIFY, stage=state.stage + 1, expected=now.noise)
        return self._grown(state, now)

    def _grown(self, state: StructuredState, here: Sums) -> StructuredState:
        """Look at the last Gaussian again, by more draws."""
        if state.pairs >= self.most_pairs:
            return replace(state, ending=Ending.of(Outcome.TOO_NOISY, draws=f"{2 * state.pairs:,}"))
        factor = min(GROWTH, max(1.5, 1.2 * here.noise / (SAFE * self.tol)))
        return replace(
            state, candidate=here.gaussian, stage=state.stage + 1, phase=Phase.REFINE, failures=0,
            pairs=self._rounded(factor * state.pairs),
        )  # fmt: skip

    def _rounded(self, pairs: float) -> int:
        return min(math.ceil(pairs / BATCHES) * BATCHES, self.most_pairs)

    def _verified(self, state: StructuredState, now: Sums) -> StructuredState:
        """Certify, if fresh draws show a gap below the tolerance."""
        shown = max(state.expected, now.gap)
        sure = now.gap_se < 0.5 * self.tol
        if shown < self.tol and not sure and state.pairs < self.most_pairs:
            return replace(state, stage=state.stage + 1, pairs=self._rounded(2.0 * state.pairs))
        if shown < self.tol and sure:
            found = (
                f"{now.gap:.2g} nats (se {now.gap_se:.2g}) from the gradients of {2 * state.pairs:,} draws"
            )
            checks = (Check("fresh draws", True, found),)
            ending = Ending.of(Outcome.CERTIFIED, tol=self.tol)
            return replace(state, gap=shown, checks=checks, ending=ending)
        if state.pairs >= self.most_pairs:
            return replace(state, ending=Ending.of(Outcome.TOO_NOISY, draws=f"{2 * state.pairs:,}"))
        more = self._leapt(state, Phase.REFINE)
        return replace(more, stage=state.stage + 1, pairs=self._rounded(2.0 * state.pairs))

    def _taken_back(self, state: StructuredState) -> StructuredState:
        """Return to the last Gaussian, and take a shorter step from there."""
        assert state.here is not None
        unclear = state.here.gap + state.here.noise < UNCLEAR * state.here.noise
        if state.failures >= (FEW_FAILURES if unclear else MOST_FAILURES):
            return self._grown(state, state.here)
        if state.accelerated:
            slower = replace(state, reach=max(0.25 * state.reach, 1.0), failures=state.failures + 1)
            return self._leapt(slower, Phase.LEAP, accelerate=False)
        shorter = replace(state, radius=0.25 * state.radius, failures=state.failures + 1)
        return self._leapt(shorter, Phase.LEAP, 0.5 * state.beta, accelerate=False)

    def _leapt(
        self, state: StructuredState, phase: Phase, longest: float = 1.0, *, accelerate: bool = True
    ) -> StructuredState:
        """Take the accelerated step, or else the longest plain one, that the trust radius allows."""
        here, family = state.here, self.family
        assert here is not None
        q, L = here.gaussian, here.gaussian.factor
        P, sd = family.entries(L), np.sqrt(family.variances(L))
        ritz = self._ritz(q, state.secants) if accelerate else None
        reach = state.reach
        while ritz is not None and state.full is not None and reach >= 1.0:
            step = self._accelerated(state, ritz, q, state.full, reach)
            if step is not None and self._within(q, P, sd, *step, state.radius):
                return replace(
                    state, candidate=self._gaussian(*step), beta=1.0, phase=phase, accelerated=True
                )
            reach *= 0.5
        beta = longest
        for _ in range(HALVINGS):
            step = self._step(here, P, beta)
            if step is not None and self._within(q, P, sd, *step, state.radius):
                return replace(
                    state, candidate=self._gaussian(*step), beta=beta, phase=phase, accelerated=False
                )
            beta *= 0.5
        return replace(state, ending=Ending.of(Outcome.NO_REGION))

    def _accelerated(
        self, state: StructuredState, ritz: Ritz, q: Gaussian, full: tuple[Array, Array], reach: float
    ) -> tuple[Array, Array] | None:
        """The whole step, stretched by up to ``reach`` in directions of slow progress, and shortened in fast ones."""
        dm, dL = full[0] - q.mean, full[1] - q.factor
        along = ritz.vectors @ self._whitened(q, dm, dL)
        factors = 1.0 / np.clip(ritz.rates, 1.0 / reach, FASTEST) - 1.0
        for w, s in zip((factors * along) @ ritz.weights, state.secants, strict=True):
            dm, dL = dm + w * s.mean, dL + w * s.factor
        factor = q.factor + dL
        return (q.mean + dm, factor) if (self.family.diagonal(factor) > 0.0).all() else None

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


def _secant(before: Sums, full_before: tuple[Array, Array], now: Sums, full: tuple[Array, Array]) -> Secant:
    """What the move from one Gaussian to the next shows; ``full`` are the ends of whole steps from each."""
    old, new = before.gaussian, now.gaussian
    mean_fall = (full_before[0] - old.mean) - (full[0] - new.mean)
    factor_fall = (full_before[1] - old.factor) - (full[1] - new.factor)
    return Secant(new.mean - old.mean, new.factor - old.factor, mean_fall, factor_fall)


def _product(family: SparsePrecision, H: Array, delta: Array) -> Array:
    """``H δ`` for the rows of ``delta`` (m, d)."""
    return np.asarray((family.matrix(H) @ delta.T).T)


def compared(gram: Array) -> tuple[float, float, float]:
    """The gap, its standard error and the noise, from the inner products of the gradients of the batches."""
    cross = gram[np.triu_indices(BATCHES, 1)]
    gap = 0.5 * float(cross.mean())
    error = 0.5 * float(cross.std(ddof=1)) / math.sqrt(len(cross))
    noise = 0.5 * (float(gram.trace()) / BATCHES - float(cross.mean())) / BATCHES
    return gap, error, max(noise, 0.0)
