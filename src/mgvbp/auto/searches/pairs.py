"""What the searches for structured precisions share: `structured` for sparse ones, `low_rank` for low-rank ones.

All draws come in pairs ±ε from one Gaussian, which they tell about. Steps are compared on the same ε, and once the
gradient is inside its noise, there are more of them. The products of the gradients of eight shares of the draws with
each other estimate the gap without bias; fresh draws certify it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto import constants
from mgvbp.auto.state import Phase
from mgvbp.auto.trial.chords import Chords, contradiction
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check, Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.families import Structured
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods.optimizer import STREAM, Info
from mgvbp.problem.problem import Prior, density_and_gradient

BATCHES = 8
"""Shares of the draws whose gradients are compared with each other."""
FEWEST = 32
"""Fewest pairs of draws."""
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
UNCLEAR, FEW_FAILURES, MOST_FAILURES = 10.0, 3, 12
"""Steps in a row that are taken back before more draws are made: few, if the gradient is so many times its noise."""
HALVINGS = 40
"""Most halvings of a step, or of the initial standard deviations."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What the draws say of a Gaussian."""

    gaussian: Gaussian
    h: Array
    """Half the sum of log p − log q over each pair, (m,)."""
    slope: Array
    """The mean gradient, (d,)."""
    gap: float
    gap_se: float
    """The gap without bias, and its standard error."""
    noise: float
    """The nats that the noise of the gradient costs if a step follows it."""

    @property
    def left(self) -> float:
        """The gap on these very draws."""
        return max(self.gap + self.noise, 0.0)

    def loss_since(self, before: Seen) -> tuple[float, float]:
        """By how much the bound on the same ε is lower than ``before``, and the standard error of it."""
        gain = self.h - before.h
        lost = -float(gain.mean()) - 1e-9 * abs(float(before.h.mean()))
        return lost, float(gain.std(ddof=1)) / math.sqrt(len(gain))


@dataclass(frozen=True, eq=False)
class PairsState:
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
    radius: float = math.inf
    """Trust radius of a step, in nats."""
    stage: int = 0
    beta: float = 1.0
    """The length of the last step, of which 1 is that to the maximum of the quadratic."""
    here: Seen | None = None
    """What is known of the last Gaussian that was accepted."""
    expected: float = math.inf
    """The noise of the last step before a verification."""
    failures: int = 0
    iteration: int = 0
    n_evaluations: int = 0
    checks: tuple[Check, ...] = ()
    chords: Chords | None = None
    """Chords on which the values of a verified result are compared with the gradients; None before that."""
    repeated: tuple[Array, float] | None = None
    """A draw (1, d) that is evaluated again, with the value that it had beside other draws."""
    ending: Ending | None = None
    lower_bound: float = -math.inf
    lower_bound_se: float = math.inf
    gap: float = math.inf
    gap_se: float = math.inf
    climbs: tuple[()] = ()
    archive: None = None

    @property
    def far_out(self) -> bool:
        """Whether some of the next draws lie where the function may fail and nothing is lost."""
        return self.phase.far_out

    @property
    def converged(self) -> bool:
        """Whether the result is certified."""
        return self.ending is not None and self.ending.outcome is Outcome.CERTIFIED


S = TypeVar("S", bound=PairsState)


class ByPairs(ABC, Generic[S]):
    """Decisions of a search by pairs of draws; ``fewest`` is the least number of pairs."""

    needs_gradients: ClassVar[bool] = True
    family: Structured

    def __init__(self, prior: Prior | None, tol: float, dim: int, fewest: int = FEWEST) -> None:
        self.prior, self.tol, self.dim = prior, tol, dim
        self.fewest = fewest + -fewest % BATCHES
        self.least = 2 * self.fewest
        self.most_pairs = max(self.fewest, int(MOST_NUMBERS / dim) // BATCHES * BATCHES)

    @abstractmethod
    def _gaussian(self, mean: Array, factor: Array) -> Gaussian:
        """The Gaussian of this family."""

    @abstractmethod
    def _first(self, q: Gaussian, key: tuple[int, ...], max_evaluations: int) -> S:
        """The state at ``q``."""

    @abstractmethod
    def _weighed(self, state: S, theta: Array, f: Array, slopes: Array) -> S:
        """Decide by the log densities and their gradients at the draws."""

    @abstractmethod
    def _leapt(self, state: S) -> S:
        """Take a step from the last Gaussian that was accepted."""

    @abstractmethod
    def _shortened(self, state: S) -> S:
        """Take a shorter step than the last one, which was taken back."""

    def start(self, q: Gaussian, key: tuple[int, ...], max_evaluations: int, noise: float | None = None) -> S:
        """Begin at ``q``."""
        if noise:
            raise InvalidInputError(
                "noise= does not go with sparse or low-rank precisions, nor with so many parameters"
            )
        return self._first(q, key, max_evaluations)

    def extended(self, state: S, max_evaluations: int) -> S:
        """Set another limit, and resume the search if the old limit had ended it."""
        exhausted = state.ending is not None and state.ending.outcome is Outcome.MAX_EVALUATIONS
        state = replace(state, max_evaluations=max_evaluations)
        return self._limited(replace(state, ending=None)) if exhausted else state

    def _limited(self, state: S) -> S:
        """Stop if the next draws are more than there are evaluations left."""
        if state.ending is not None or state.n_evaluations + self._asked(state) <= state.max_evaluations:
            return state
        return replace(state, ending=Ending.of(Outcome.MAX_EVALUATIONS, limit=state.max_evaluations))

    def _rng(self, state: S) -> np.random.Generator:
        return np.random.default_rng((*state.key, state.stage, STREAM))

    def ask(self, state: S) -> Array:
        """The draws to evaluate next, in pairs, (2m, d), or the middles of chords."""
        if state.chords is not None:
            middles = state.chords.ask()
            return middles if state.repeated is None else np.concatenate([state.repeated[0], middles])
        q = state.candidate
        half = self._rng(state).standard_normal((state.pairs, self.dim))
        delta = self.family.from_frame(q.factor, half)
        return np.concatenate([q.mean + delta, q.mean - delta])

    def _asked(self, state: S) -> int:
        """How many draws `ask` returns."""
        if state.chords is None:
            return 2 * state.pairs
        return len(state.chords.t) + (state.repeated is not None)

    def tell(self, state: S, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[S, Info]:
        """Take the values and gradients at the draws ``theta`` of `ask`; decide what to draw next, or to stop."""
        with np.errstate(over="ignore", invalid="ignore"):
            f, slopes = self._evaluated(theta, values, gradients)
        finite = np.isfinite(f) & np.isfinite(slopes).all(axis=1)
        dropped = len(f) - int(np.count_nonzero(finite))
        told = replace(state, iteration=state.iteration + 1, n_evaluations=state.n_evaluations + len(theta))
        if state.chords is not None:
            decided = self._compared(told, state.chords, f, slopes)
        else:
            decided = self._failed(told) if dropped else self._weighed(told, theta, f, slopes)
            if decided.converged:  # by gradients: the values have not been asked yet
                chords = Chords.among(theta, f, slopes, self.tol, self._rng(state))
                typical = int(np.argsort(f)[len(f) // 2])
                repeated = theta[[typical]], float(f[typical])
                decided = replace(decided, ending=None, phase=Phase.CHORD, chords=chords, repeated=repeated)
        decided = self._limited(decided)
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

    def _compared(self, state: S, chords: Chords, f: Array, slopes: Array) -> S:
        """Compare values with gradients, and with the value that a draw had before; certify the result or refuse it."""
        if state.repeated is not None:
            known = bool(np.isfinite(f[0]))
            off = abs(float(f[0]) - state.repeated[1])
            if known and off > constants.SAME_VALUE + constants.ROUNDING * abs(state.repeated[1]):
                return self._refused(
                    state, "the same values again", Ending.of(Outcome.INCONSISTENT, nats=off)
                )
            state = replace(state, repeated=None) if known else state  # what failed is asked again
            f, slopes = f[1:], slopes[1:]
        chords = chords.tell(f, slopes)
        if not chords.ended:
            return replace(state, chords=chords)
        if (refused := contradiction(chords)) is not None:
            return self._refused(state, "gradients", refused)
        again = "a draw had the same value again" if state.repeated is None else "not known: the draw failed"
        checks = (
            Check("the same values again", passed=True, found=again),
            Check("gradients", passed=True, found="the values agree with them"),
        )
        ending = Ending.of(Outcome.CERTIFIED, tol=self.tol)
        return replace(state, checks=(*state.checks, *checks), ending=ending)

    def _refused(self, state: S, name: str, ending: Ending) -> S:
        check = Check(name, passed=False, found=ending.sentence)
        return replace(state, checks=(*state.checks, check), ending=ending, gap=math.inf, gap_se=math.inf)

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, Array]:
        return density_and_gradient(self.prior, theta, values, gradients)

    def _failed(self, state: S) -> S:
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

    def _taken_back(self, state: S) -> S:
        """Return to the last Gaussian, and take a shorter step from there, or make more draws."""
        here = state.here
        assert here is not None
        unclear = here.left < UNCLEAR * here.noise
        if state.failures >= (FEW_FAILURES if unclear else MOST_FAILURES):
            return self._grown(state, here)
        return self._shortened(replace(state, failures=state.failures + 1))

    def _accepted(self, state: S, now: Seen) -> S:
        """Make the Gaussian that the draws came from the best so far."""
        bound, error = float(now.h.mean()), float(now.h.std(ddof=1)) / math.sqrt(len(now.h))
        return replace(
            state, here=now, q=now.gaussian, candidate=now.gaussian, failures=0, lower_bound=bound,
            lower_bound_se=error, gap=now.left + now.noise, gap_se=now.gap_se,
        )  # fmt: skip

    def _far(self, now: Seen) -> bool:
        """Whether a step promises more than the noise of these draws, and than the tolerance."""
        return now.left > max(CLEAR * now.noise, 0.5 * SAFE * self.tol)

    def _settled(self, state: S, now: Seen) -> S:
        """Verify the last Gaussian, if its noise is below the tolerance; look at it by more draws, if not."""
        if now.noise < SAFE * self.tol:
            return replace(state, phase=Phase.VERIFY, stage=state.stage + 1, expected=now.noise)
        return self._grown(state, now)

    def _grown(self, state: S, here: Seen) -> S:
        """Look at the last Gaussian again, by more draws."""
        if state.pairs >= self.most_pairs:
            return self._too_noisy(state)
        factor = min(GROWTH, max(1.5, 1.2 * here.noise / (SAFE * self.tol)))
        return replace(
            state, candidate=here.gaussian, stage=state.stage + 1, phase=Phase.REFINE, failures=0,
            pairs=self._rounded(factor * state.pairs),
        )  # fmt: skip

    def _rounded(self, pairs: float) -> int:
        return min(math.ceil(pairs / BATCHES) * BATCHES, self.most_pairs)

    def _too_noisy(self, state: S) -> S:
        return replace(state, ending=Ending.of(Outcome.TOO_NOISY, draws=f"{2 * state.pairs:,}"))

    def _verified(self, state: S, now: Seen) -> S:
        """Certify, if fresh draws show a gap below the tolerance; otherwise twice as many draws decide."""
        shown = max(state.expected, now.gap)
        if shown < self.tol and now.gap_se < 0.5 * self.tol:
            found = (
                f"{now.gap:.2g} nats (se {now.gap_se:.2g}) from the gradients of {2 * state.pairs:,} draws"
            )
            checks = (Check("fresh draws", True, found),)
            ending = Ending.of(Outcome.CERTIFIED, tol=self.tol)
            return replace(state, gap=shown, checks=checks, ending=ending)
        if state.pairs >= self.most_pairs:
            return self._too_noisy(state)
        more = replace(state, stage=state.stage + 1, pairs=self._rounded(2.0 * state.pairs))
        return more if shown < self.tol else replace(self._leapt(more), phase=Phase.REFINE)


def compared(gram: Array) -> tuple[float, float, float]:
    """The gap, its standard error and the noise, from the inner products of the gradients of the batches."""
    cross = gram[np.triu_indices(BATCHES, 1)]
    gap = 0.5 * float(cross.mean())
    error = 0.5 * float(cross.std(ddof=1)) / math.sqrt(len(cross))
    noise = 0.5 * (float(gram.trace()) / BATCHES - float(cross.mean())) / BATCHES
    return gap, error, max(noise, 0.0)
