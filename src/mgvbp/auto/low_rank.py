r"""The search by gradients for low-rank precisions: natural gradient steps, and directions that are asked for.

In the frame of the Gaussian at hand the expected Hessian leaves :math:`R = -L^{-1} E[\nabla^2 f] L^{-\top} - I`, which
is zero for the best Gaussian of all. Pairs :math:`\pm\varepsilon` of draws show the products :math:`R\varepsilon`.

1. *Leap*: the precisions of the family have the tangents :math:`N\,\mathrm{diag}(a)\,N + x Q^\top + Q x^\top`, with
   :math:`N = I - QQ^\top`. The part of R among them is the natural gradient; it needs :math:`RQ` and the solution of
   :math:`(N \circ N)\,a = \mathrm{diag}(NRN)`, by conjugate gradients. The mean goes by :math:`\Sigma^+ E[\nabla f]`.
   The same ε in the new Gaussian show whether the bound has fallen; then the step is halved.
2. *Look*: gradients at :math:`\mu \pm L^{-\top} x`, for an orthonormal basis x of the residuals :math:`NR\varepsilon`,
   are products of R with chosen vectors. The eigenvalues λ of R in their span, after one power iteration, show new
   columns of U, which are worth about :math:`\tfrac12 (\lambda - \log(1 + \lambda))` nats each.
3. *Refine*, if the gradient is inside its noise: more draws, until the noise is below the tolerance.
4. *Verify* by fresh draws: the products of the gradients of eight shares of them with each other estimate the gap
   without bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto.state import Phase
from mgvbp.auto.structured import (
    BATCHES,
    CLEAR,
    FARTHEST,
    FEW_FAILURES,
    FEWEST,
    GROWTH,
    HALVINGS,
    LOSS,
    MOST_FAILURES,
    MOST_NUMBERS,
    SAFE,
    UNCLEAR,
    WIDER,
    compared,
)
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Check, Ending, Outcome
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.families import Family, LowRank
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.low_rank import Parts
from mgvbp.methods.optimizer import STREAM, Info
from mgvbp.problem.problem import Prior, density_and_gradient

MOST_RANK = 64
"""Largest rank that is chosen by itself."""
LEAST_SEEN = 24
"""Least directions that are asked for, and otherwise twice as many as columns are wanted."""
EXPLAINED = 0.25
"""What a look has left serves as a control variate if all but this share of the products with R is explained by it."""
NODE = math.sqrt(3.0)
"""Outer node of the quadrature by three points."""
BASES = 2
"""Pairs of draws through which the lines of a look go."""
EARLY, STANDS_OUT = 3, 3.0
"""Steps between two looks before the optimum is reached; they add eigenvalues above so many times the median only."""
FAST, ROUND_OFF = 0.5, 1e-12
"""Steps that make gap and noise smaller by this factor go on down to so many nats per parameter: they cost little."""
SLOW = 0.8
"""Whole steps that leave more than this share of the gap call for more columns."""
WORTH, LEAST_WORTH = 1.0, 0.2
"""New columns are worth it if they promise this share of the tolerance together; the second, if a rank was given."""
NEGLIGIBLE = 1e-3
"""A column that is worth less than this share of the tolerance is left out."""
MOST_EARLY, MOST_LOOKS = 12, 30
"""Most looks before the optimum is reached, and in all."""
PER_COLUMN = 8
"""Fewest pairs of draws for each column of a family array: with fewer, steps follow their noise."""
KEPT = 0.1
"""The least share of the smallest eigenvalue of U that a step leaves."""
DAMPING = 0.03
"""Added to N∘N in a step: where almost all is known by U, D is hardly defined, and would take wild steps."""
SOLVED, MOST_PRODUCTS = 1e-6, 50
"""Accuracy, and most products, of the conjugate gradients."""


class Rest(NamedTuple):
    """The eigenvalues of R that a look has shown and that did not become columns of U: a control variate."""

    W: Array
    """Their vectors, in θ, (d, k): the precision lacks ``W diag(weights) Wᵀ``."""
    weights: Array

    def times(self, v: Array) -> Array:
        """The products with the rows of ``v``."""
        return np.asarray((v @ self.W * self.weights) @ self.W.T)


class Pull(NamedTuple):
    """What the draws say of a Gaussian."""

    gaussian: Gaussian
    h: Array
    """Half the sum of log p − log q over each pair, (m,)."""
    slope: Array
    """The mean gradient, (d,)."""
    a: Array
    """The part of R by the diagonal, (d,)."""
    RQ: Array
    """The product of R and Q, (d, rank)."""
    gap: float
    gap_se: float
    """The gap without bias, and its standard error."""
    noise: float
    """The nats that the noise of the gradient costs if a step follows it."""

    @property
    def left(self) -> float:
        """The gap on these very draws."""
        return max(self.gap + self.noise, 0.0)


@dataclass(frozen=True, eq=False)
class LowRankState:
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
    stage: int = 0
    beta: float = 1.0
    """The length of the last step."""
    here: Pull | None = None
    """What is known of the last Gaussian that was accepted."""
    directions: Array | None = None
    """What is asked for in a look: orthonormal rows in the frame, (k, d)."""
    again: bool = False
    """Whether the look is a power iteration, after which there is another."""
    rest: Rest | None = None
    """What the last look has left."""
    steps: int = 0
    """Steps since the last look."""
    looks: int = 0
    complete: bool = False
    """Whether a look at the optimum has found no column that is worth it."""
    thorough: bool = False
    """Whether a look takes all columns that are worth it: steps make little progress, or the optimum is reached."""
    grown: bool = False
    """Whether the candidate has new columns."""
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


class ByLowRank:
    """Decisions of a search for a `LowRank` precision."""

    needs_gradients: ClassVar[bool] = True

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        assert isinstance(family, LowRank)
        self.family, self.prior, self.tol, self.dim = family, prior, tol, family.dim
        self.most_rank = min(MOST_RANK if family.rank is None else family.rank, self.dim - 1)
        self.least = 2 * FEWEST
        self.most_pairs = max(FEWEST, int(MOST_NUMBERS / self.dim) // BATCHES * BATCHES)
        self.most = 400_000

    def start(
        self, q: Gaussian, key: tuple[int, ...], max_evaluations: int, noise: float | None = None
    ) -> LowRankState:
        """Begin at ``q``."""
        if noise:
            raise InvalidInputError("noise= does not go with a low-rank precision")
        first = self._gaussian(q.mean, q.factor[:, :1].copy())
        return LowRankState(key, first, first, first, Phase.SURVEY, FEWEST, max_evaluations)

    def extended(self, state: LowRankState, max_evaluations: int) -> LowRankState:
        """Set another limit, and resume the search if the old limit had ended it."""
        exhausted = state.ending is not None and state.ending.outcome is Outcome.MAX_EVALUATIONS
        return replace(state, max_evaluations=max_evaluations, ending=None if exhausted else state.ending)

    def _gaussian(self, mean: Array, factor: Array) -> Gaussian:
        return Gaussian.from_factor(mean, factor, LowRank.of(self.dim, factor.shape[1] - 1))

    def ask(self, state: LowRankState) -> Array:
        """The draws to evaluate next, in pairs, (2m, d)."""
        q = state.candidate
        rng = np.random.default_rng((*state.key, state.stage, STREAM))
        if state.directions is None:
            half = rng.standard_normal((state.pairs, self.dim))
        else:  # on a line through a draw, at the outer nodes of a quadrature by three
            x, bases = state.directions, self._bases(state)
            base = rng.standard_normal((bases, self.dim))
            base = np.concatenate([base, -base]) if bases else np.zeros((1, self.dim))
            base = base[:, None] - (base @ x.T)[:, :, None] * x
            half = (base + NODE * x).reshape(-1, self.dim)
            other = (base - NODE * x).reshape(-1, self.dim)
            delta = self.family.from_frame(q.factor, np.concatenate([half, other]))
            return np.asarray(q.mean + delta)
        delta = self.family.from_frame(q.factor, half)
        return np.concatenate([q.mean + delta, q.mean - delta])

    @staticmethod
    def _bases(state: LowRankState) -> int:
        """Pairs of draws through which the lines of a look go; a power iteration goes through the mean."""
        return 0 if state.again else BASES

    def tell(
        self, state: LowRankState, theta: Array, values: ArrayLike, gradients: ArrayLike | None
    ) -> tuple[LowRankState, Info]:
        """Take the values and gradients at the draws ``theta`` of `ask`; decide what to draw next, or to stop."""
        with np.errstate(over="ignore", invalid="ignore"):
            f, slopes = self._evaluated(theta, values, gradients)
        finite = np.isfinite(f) & np.isfinite(slopes).all(axis=1)
        dropped = len(f) - int(np.count_nonzero(finite))
        told = replace(state, iteration=state.iteration + 1, n_evaluations=state.n_evaluations + len(theta))
        if dropped:
            decided = self._failed(told)
        elif state.directions is not None:
            decided = self._seen(told, state.directions, slopes)
        else:
            decided = self._weighed(told, theta, f, slopes)
        decided = self._limited(decided)
        return decided, Info(
            lower_bound=decided.lower_bound,
            gap=decided.gap,
            step_size=state.beta,
            dropped=dropped,
            reductions=0,
            noise=decided.gap_se,
            radius=math.inf,
            num_draws=len(theta),
            phase=state.phase.value,
        )

    def _evaluated(self, theta: Array, values: ArrayLike, gradients: ArrayLike | None) -> tuple[Array, Array]:
        return density_and_gradient(self.prior, theta, values, gradients)

    def _limited(self, state: LowRankState) -> LowRankState:
        pairs = state.pairs
        if state.directions is not None:
            pairs = len(state.directions) * max(2 * self._bases(state), 1)
        if state.ending is None and state.n_evaluations + 2 * pairs > state.max_evaluations:
            return replace(state, ending=Ending.of(Outcome.MAX_EVALUATIONS, limit=state.max_evaluations))
        return state

    # --- what the draws say -----------------------------------------------------------------------

    def _pull(self, state: LowRankState, theta: Array, f: Array, slopes: Array) -> tuple[Pull, Array]:
        """The natural gradient, and the products of R with the draws, (m, d)."""
        q, m, family = state.candidate, state.pairs, self.family
        parts = family.parts(q.factor)
        Q = parts.Q
        eps = family.to_frame(q.factor, theta[:m] - q.mean)
        even, odd = 0.5 * (slopes[:m] + slopes[m:]), 0.5 * (slopes[:m] - slopes[m:])
        by_mean = family.solve(q.factor, even).reshape(BATCHES, -1, self.dim).mean(axis=1)
        R = -family.solve(q.factor, odd) - eps
        rest = self._rest(state, eps, R)
        r = R if rest is None else R - rest.times(eps)
        # what a diagonal and a product with Q explain has no noise, as in a regression
        N = 1.0 - np.square(Q).sum(axis=1)
        e = _outside(Q, eps)
        c = N * (_outside(Q, r) * e).sum(axis=0) / np.square(e).sum(axis=0)
        a = _solved(Q, c, DAMPING)
        r = r - _outside(Q, e * a)
        x = _symmetric(Q, r.T @ (eps @ Q) / m)
        r = r - (eps @ Q) @ x.T - _outside(Q, eps) @ x @ Q.T
        share = m // BATCHES
        parted = (BATCHES, share, self.dim)
        by_Q = np.swapaxes(r.reshape(parted), 1, 2) @ (eps @ Q).reshape(BATCHES, share, -1) / share
        RQ = np.array([x + _symmetric(Q, some) for some in by_Q])
        outside = _squared(Q, a) + (_outside(Q, r) * e).reshape(parted).mean(axis=1)
        if rest is not None:
            RQ = RQ + rest.times(Q.T).T
            outside = outside + np.square(_outside(Q, rest.W.T).T) @ rest.weights
        a = np.array([_solved(Q, c) for c in outside])
        QRQ = (Q.T @ RQ).reshape(BATCHES, -1)
        flat = RQ.reshape(BATCHES, -1)
        gram = by_mean @ by_mean.T + flat @ flat.T - 0.5 * QRQ @ QRQ.T
        gram += 0.25 * (outside @ a.T + a @ outside.T)
        h = f - q.log_density_at(theta)
        pull = Pull(
            q,
            0.5 * (h[:m] + h[m:]),
            even.mean(axis=0),
            _solved(Q, outside.mean(axis=0), DAMPING),
            RQ.mean(axis=0),
            *compared(gram),
        )
        return pull, R

    def _rest(self, state: LowRankState, eps: Array, R: Array) -> Rest | None:
        """What the last look has left, in the frame; None if it does not explain the products R of the draws."""
        if state.rest is None:
            return None
        rest = Rest(self.family.solve(state.candidate.factor, state.rest.W.T).T, state.rest.weights)
        left = R - rest.times(eps)
        return rest if np.vdot(left, left) < EXPLAINED * np.vdot(R, R) else None

    # --- decisions --------------------------------------------------------------------------------

    def _failed(self, state: LowRankState) -> LowRankState:
        """A value is not finite: narrow the initial Gaussian, or take the step back."""
        if state.directions is not None:
            return self._leapt(replace(state, directions=None, complete=True))
        if state.here is not None:
            return self._taken_back(state)
        if state.failures >= HALVINGS:
            raise DivergenceError(
                "no region was found where all draws have finite values and gradients: give initial_mean= and a "
                "smaller initial_variance="
            )
        q = self._gaussian(state.candidate.mean, 2.0 * state.candidate.factor)
        return replace(state, candidate=q, failures=state.failures + 1)

    def _weighed(self, state: LowRankState, theta: Array, f: Array, slopes: Array) -> LowRankState:
        now, R = self._pull(state, theta, f, slopes)
        m, here = state.pairs, state.here
        left = now.left
        slow = here is not None and state.beta == 1.0 and left > SLOW * here.left
        if here is not None and state.phase is Phase.LEAP:
            gain = now.h - here.h
            lost = -float(gain.mean()) - 1e-9 * abs(float(here.h.mean()))
            # the step follows the noise of these very draws, which lowers the bound on them: its gradient tells more
            allowed = LOSS * gain.std(ddof=1) / math.sqrt(m) + here.left
            if (lost > allowed and left > 0.5 * here.left) or (lost > 0.0 and left > here.left):
                return self._taken_back(state)
        state = replace(
            state, here=now, q=now.gaussian, candidate=now.gaussian, gap=left + now.noise, gap_se=now.gap_se,
            failures=0, steps=state.steps + 1, grown=False, beta=min(1.0, 2.0 * state.beta),
            lower_bound=float(now.h.mean()), lower_bound_se=float(now.h.std(ddof=1)) / math.sqrt(m),
        )  # fmt: skip
        if state.phase is Phase.VERIFY:
            return self._verified(state, now)
        fast = (
            here is not None
            and state.phase is Phase.LEAP
            and now.noise + left > ROUND_OFF * self.dim
            and now.noise + left < FAST * (here.noise + here.left)
        )
        far = fast or left > max(CLEAR * now.noise, 0.5 * SAFE * self.tol)
        early = far and state.steps >= EARLY and state.looks < MOST_EARLY
        if early or (not far and not state.complete and state.looks < MOST_LOOKS):
            looking = self._looking(state, R, again=True)
            if looking is not None:
                return replace(looking, complete=not far, thorough=slow or not far)
        if far:
            return self._leapt(state)
        if now.noise < SAFE * self.tol:
            return replace(state, phase=Phase.VERIFY, stage=state.stage + 1, expected=now.noise)
        return self._grown(state, now)

    def _looking(self, state: LowRankState, seen: Array, *, again: bool) -> LowRankState | None:
        """Ask for products of R with a basis of the vectors ``seen``; None if there is no room for a column."""
        Q = self.family.parts(state.q.factor).Q
        room = self.most_rank - Q.shape[1]
        wanted = room if self.family.rank is not None else min(room, max(16, Q.shape[1]))
        _, sizes, rows = np.linalg.svd(_outside(Q, seen), full_matrices=False)
        most = min(max(2 * wanted, LEAST_SEEN), self.dim - Q.shape[1])
        rows = rows[:most][sizes[:most] > 1e-10 * max(sizes[0], 1e-300)]
        if not len(rows):
            return None
        rows = np.concatenate([Q.T, rows])
        return replace(state, phase=Phase.HESSIAN, directions=rows, again=again)

    def _seen(self, state: LowRankState, directions: Array, slopes: Array) -> LowRankState:
        """Take the products of R with the directions; add columns to U, or go on without."""
        family, q, count = self.family, state.q, len(directions)
        odd = (
            (slopes[: len(slopes) // 2] - slopes[len(slopes) // 2 :])
            .reshape(-1, count, self.dim)
            .mean(axis=0)
        )
        R = -family.solve(q.factor, 0.5 / NODE * odd) - directions
        state = replace(state, directions=None, steps=0, looks=state.looks + (not state.again))
        if state.again and (more := self._looking(state, R, again=False)) is not None:
            return more
        root, _, s, k = family.parts(q.factor)
        # the precision in the span of the directions, in units of D: Q comes first among them
        B, k = directions @ R.T, np.concatenate([k, np.ones(count - len(k))])
        core = (np.eye(count) + 0.5 * (B + B.T)) * k * k[:, None]
        now = float((core.diagonal() / (k * k) + 2.0 * np.log(k)).sum())
        values, vectors = np.linalg.eigh(core - np.eye(count))
        values, W = values[::-1], root[:, None] * (directions.T @ vectors[:, ::-1])
        # as long as D is wrong, all eigenvalues are: only those that stand out are columns
        least = 0.0 if state.thorough else STANDS_OUT * (1.0 + max(float(np.median(values)), 0.0))
        kept = (values > 0.0) & (_worth(values) > NEGLIGIBLE * self.tol)
        kept[len(s) :] &= values[len(s) :] > least
        kept[self.most_rank :] = False
        state = replace(state, rest=Rest(W[:, ~kept], values[~kept]))
        then = float((1.0 + np.log1p(values[kept])).sum() + (1.0 + values[~kept]).sum())
        if 0.5 * (now - then) < (WORTH if self.family.rank is None else LEAST_WORTH) * self.tol:
            return self._leapt(state)
        factor = np.column_stack([root, W[:, kept] * np.sqrt(values[kept])])
        candidate = self._gaussian(q.mean, factor)
        state = replace(state, candidate=candidate, grown=True, complete=False)
        pairs = self._rounded(PER_COLUMN * factor.shape[1])
        if pairs > state.pairs:
            return replace(state, phase=Phase.REFINE, pairs=pairs, stage=state.stage + 1)
        return replace(state, phase=Phase.LEAP)

    def _grown(self, state: LowRankState, here: Pull) -> LowRankState:
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

    def _verified(self, state: LowRankState, now: Pull) -> LowRankState:
        """Certify, if fresh draws show a gap below the tolerance."""
        shown = max(state.expected, now.gap)
        sure = now.gap_se < 0.5 * self.tol
        if shown < self.tol and sure:
            found = (
                f"{now.gap:.2g} nats (se {now.gap_se:.2g}) from the gradients of {2 * state.pairs:,} draws"
            )
            checks = (Check("fresh draws", True, found),)
            ending = Ending.of(Outcome.CERTIFIED, tol=self.tol)
            return replace(state, gap=shown, checks=checks, ending=ending)
        if state.pairs >= self.most_pairs:
            return replace(state, ending=Ending.of(Outcome.TOO_NOISY, draws=f"{2 * state.pairs:,}"))
        more = replace(state, stage=state.stage + 1, pairs=self._rounded(2.0 * state.pairs))
        return more if shown < self.tol else replace(self._leapt(more), phase=Phase.REFINE)

    def _taken_back(self, state: LowRankState) -> LowRankState:
        """Return to the last Gaussian, and take a shorter step from there."""
        here = state.here
        assert here is not None
        if state.grown:
            return self._leapt(replace(state, grown=False, complete=state.thorough))
        unclear = here.left < UNCLEAR * here.noise
        if state.failures >= (FEW_FAILURES if unclear else MOST_FAILURES):
            return self._grown(state, here)
        return self._leapt(replace(state, beta=0.5 * state.beta, failures=state.failures + 1))

    def _leapt(self, state: LowRankState) -> LowRankState:
        """Take the longest step, up to ``beta``, after which no entry has moved or widened too much."""
        here, family, beta = state.here, self.family, state.beta
        assert here is not None
        q, sd = here.gaussian, here.gaussian.std
        parts = family.parts(q.factor)
        for _ in range(HALVINGS):
            L = self._moved(parts, here, beta)
            mean = q.mean + beta * family.from_frame(L, family.solve(L, here.slope))
            new = np.sqrt(family.variances(L))
            far = np.abs(mean - q.mean) > FARTHEST * np.maximum(sd, new)
            if np.isfinite(new).all() and not far.any() and (new < WIDER * sd).all():
                candidate = self._gaussian(mean, L)
                return replace(state, candidate=candidate, beta=beta, phase=Phase.LEAP)
            beta *= 0.5
        return replace(state, ending=Ending.of(Outcome.NO_REGION))

    def _moved(self, parts: Parts, here: Pull, beta: float) -> Array:
        r"""The factor after a step β: :math:`D^+ = D(1 + \beta a)`, and the best U of its rank in D's metric."""
        root, Q, s, k = parts
        x = beta * here.a
        grown = root * np.sqrt(np.where(x > 0.0, 1.0 + x, 1.0 / (1.0 - np.minimum(x, 0.0))))
        rank = len(s)
        if rank == 0:
            return grown[:, None]
        KRQ = here.RQ + Q @ ((k - 1.0)[:, None] * (Q.T @ here.RQ))
        BQ = KRQ * k - here.a[:, None] * Q
        b = BQ - 0.5 * Q @ (Q.T @ BQ)
        basis, T = np.linalg.qr(np.column_stack([Q, b]))
        step = beta * np.eye(rank)
        core = T @ np.block([[np.diag(s * s), step], [step, np.zeros((rank, rank))]]) @ T.T
        values, vectors = np.linalg.eigh(core)
        values = np.maximum(values[::-1][:rank], KEPT * s[-1] ** 2)
        kept = _worth(values) > NEGLIGIBLE * self.tol
        V = basis @ vectors[:, ::-1][:, :rank][:, kept] * np.sqrt(values[kept])
        return np.column_stack([grown, root[:, None] * V])


def _worth(values: Array) -> Array:
    """The nats that columns of U with these eigenvalues are worth."""
    positive = np.maximum(values, 0.0)
    return np.asarray(0.5 * (positive - np.log1p(positive)))


def _outside(Q: Array, v: Array) -> Array:
    """The parts of the rows of ``v`` that are orthogonal to the columns of ``Q``."""
    return np.asarray(v - (v @ Q) @ Q.T)


def _symmetric(Q: Array, RQ: Array) -> Array:
    """The product of a symmetric R with Q, of which ``Qᵀ R Q`` is not symmetric because of noise."""
    inside = Q.T @ RQ
    return np.asarray(RQ + 0.5 * Q @ (inside.T - inside))


def _squared(Q: Array, x: Array) -> Array:
    r"""The product :math:`(N \circ N)\,x`, which is the diagonal of :math:`N\,\mathrm{diag}(x)\,N`."""
    share = np.square(Q).sum(axis=1)
    return np.asarray(x - 2.0 * share * x + ((Q @ (Q.T @ (x[:, None] * Q))) * Q).sum(axis=1))


def _solved(Q: Array, c: Array, damping: float = 0.0) -> Array:
    r"""The solution a of :math:`(N \circ N + \text{damping})\,a = c` by conjugate gradients."""
    scale = 1.0 / np.maximum(np.square(1.0 - np.square(Q).sum(axis=1)) + damping, 1e-8)
    a, left = np.zeros_like(c), c
    z = scale * left
    p, size = z, float(left @ z)
    first = size
    for _ in range(MOST_PRODUCTS):
        if size <= SOLVED**2 * first:
            break
        Ap = _squared(Q, p) + damping * p
        curvature = float(p @ Ap)
        if curvature <= 0.0:
            break
        step = size / curvature
        a, left = a + step * p, left - step * Ap
        z = scale * left
        size, before = float(left @ z), size
        p = z + (size / before) * p
    return a
