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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mgvbp.auto.searches.pairs import (
    BATCHES,
    FARTHEST,
    HALVINGS,
    LOSS,
    WIDER,
    ByPairs,
    PairsState,
    Seen,
    compared,
)
from mgvbp.auto.state import Phase
from mgvbp.auto.steps.tangents import outside, solved, squared, symmetric, worth
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.core.records import replace
from mgvbp.families import Family, LowRank
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.low_rank import Parts
from mgvbp.problem.problem import Prior

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


class Rest(NamedTuple):
    """The eigenvalues of R that a look has shown and that did not become columns of U: a control variate."""

    W: Array
    """Their vectors, in θ, (d, k): the precision lacks ``W diag(weights) Wᵀ``."""
    weights: Array

    def times(self, v: Array) -> Array:
        """The products with the rows of ``v``."""
        return np.asarray((v @ self.W * self.weights) @ self.W.T)


@dataclass(frozen=True, eq=False)
class Pull(Seen):
    """What the draws say of a Gaussian."""

    a: Array
    """The part of R by the diagonal, (d,)."""
    RQ: Array
    """The product of R and Q, (d, rank)."""


@dataclass(frozen=True, eq=False)
class LowRankState(PairsState):
    """One start of a search."""

    here: Pull | None = None
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


class ByLowRank(ByPairs[LowRankState]):
    """Decisions of a search for a `LowRank` precision."""

    family: LowRank

    def __init__(
        self, family: Family, prior: Prior | None, tol: float, labels: Sequence[str] | None = None
    ) -> None:
        assert isinstance(family, LowRank)
        super().__init__(prior, tol, family.dim)
        self.family, self.most = family, 400_000
        self.most_rank = min(MOST_RANK if family.rank is None else family.rank, self.dim - 1)

    def _first(self, q: Gaussian, key: tuple[int, ...], max_evaluations: int) -> LowRankState:
        first = self._gaussian(q.mean, q.factor[:, :1].copy())
        return LowRankState(key, first, first, first, Phase.SURVEY, self.fewest, max_evaluations)

    def _gaussian(self, mean: Array, factor: Array) -> Gaussian:
        return Gaussian.from_factor(mean, factor, LowRank.of(self.dim, factor.shape[1] - 1))

    def ask(self, state: LowRankState) -> Array:
        """The draws to evaluate next; in a look, both outer nodes of a quadrature by three on lines through draws."""
        x, q = state.directions, state.candidate
        if x is None:
            return super().ask(state)
        base = np.zeros((1, self.dim))  # a power iteration goes through the mean
        if not state.again:
            half = self._rng(state).standard_normal((BASES, self.dim))
            base = np.concatenate([half, -half])
        base = base[:, None] - (base @ x.T)[:, :, None] * x
        nodes = np.concatenate(
            [(base + NODE * x).reshape(-1, self.dim), (base - NODE * x).reshape(-1, self.dim)]
        )
        return np.asarray(q.mean + self.family.from_frame(q.factor, nodes))

    def _asked(self, state: LowRankState) -> int:
        if state.directions is None:
            return super()._asked(state)
        return 2 * len(state.directions) * (1 if state.again else 2 * BASES)

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
        e = outside(Q, eps)
        c = N * (outside(Q, r) * e).sum(axis=0) / np.square(e).sum(axis=0)
        a = solved(Q, c, DAMPING)
        r = r - outside(Q, e * a)
        x = symmetric(Q, r.T @ (eps @ Q) / m)
        r = r - (eps @ Q) @ x.T - outside(Q, eps) @ x @ Q.T
        share = m // BATCHES
        parted = (BATCHES, share, self.dim)
        by_Q = np.swapaxes(r.reshape(parted), 1, 2) @ (eps @ Q).reshape(BATCHES, share, -1) / share
        RQ = np.array([x + symmetric(Q, some) for some in by_Q])
        outer = squared(Q, a) + (outside(Q, r) * e).reshape(parted).mean(axis=1)
        if rest is not None:
            RQ = RQ + rest.times(Q.T).T
            outer = outer + np.square(outside(Q, rest.W.T).T) @ rest.weights
        a = np.array([solved(Q, c) for c in outer])
        QRQ = (Q.T @ RQ).reshape(BATCHES, -1)
        flat = RQ.reshape(BATCHES, -1)
        gram = by_mean @ by_mean.T + flat @ flat.T - 0.5 * QRQ @ QRQ.T
        gram += 0.25 * (outer @ a.T + a @ outer.T)
        h = f - q.log_density_at(theta)
        diagonal, by_Q = solved(Q, outer.mean(axis=0), DAMPING), RQ.mean(axis=0)
        return Pull(q, 0.5 * (h[:m] + h[m:]), even.mean(axis=0), *compared(gram), diagonal, by_Q), R

    def _rest(self, state: LowRankState, eps: Array, R: Array) -> Rest | None:
        """What the last look has left, in the frame; None if it does not explain the products R of the draws."""
        if state.rest is None:
            return None
        rest = Rest(self.family.solve(state.candidate.factor, state.rest.W.T).T, state.rest.weights)
        left = R - rest.times(eps)
        return rest if np.vdot(left, left) < EXPLAINED * np.vdot(R, R) else None

    # --- decisions --------------------------------------------------------------------------------

    def _failed(self, state: LowRankState) -> LowRankState:
        if state.directions is not None:
            return self._leapt(replace(state, directions=None, complete=True))
        return super()._failed(state)

    def _weighed(self, state: LowRankState, theta: Array, f: Array, slopes: Array) -> LowRankState:
        if state.directions is not None:
            return self._seen(state, state.directions, slopes)
        now, R = self._pull(state, theta, f, slopes)
        here, left = state.here, now.left
        slow = here is not None and state.beta == 1.0 and left > SLOW * here.left
        if here is not None and state.phase is Phase.LEAP:
            lost, error = now.loss_since(here)
            # the step follows the noise of these very draws, which lowers the bound on them: its gradient tells more
            allowed = LOSS * error + here.left
            if (lost > allowed and left > 0.5 * here.left) or (lost > 0.0 and left > here.left):
                return self._taken_back(state)
        state = self._accepted(state, now)
        state = replace(state, steps=state.steps + 1, grown=False, beta=min(1.0, 2.0 * state.beta))
        if state.phase is Phase.VERIFY:
            return self._verified(state, now)
        fast = (
            here is not None
            and state.phase is Phase.LEAP
            and now.noise + left > ROUND_OFF * self.dim
            and now.noise + left < FAST * (here.noise + here.left)
        )
        far = fast or self._far(now)
        early = far and state.steps >= EARLY and state.looks < MOST_EARLY
        if early or (not far and not state.complete and state.looks < MOST_LOOKS):
            looking = self._looking(state, R, again=True)
            if looking is not None:
                return replace(looking, complete=not far, thorough=slow or not far)
        return self._leapt(state) if far else self._settled(state, now)

    def _looking(self, state: LowRankState, seen: Array, *, again: bool) -> LowRankState | None:
        """Ask for products of R with a basis of the vectors ``seen``; None if there is no room for a column."""
        Q = self.family.parts(state.q.factor).Q
        room = self.most_rank - Q.shape[1]
        wanted = room if self.family.rank is not None else min(room, max(16, Q.shape[1]))
        _, sizes, rows = np.linalg.svd(outside(Q, seen), full_matrices=False)
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
        kept = (values > 0.0) & (worth(values) > NEGLIGIBLE * self.tol)
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

    def _taken_back(self, state: LowRankState) -> LowRankState:
        if state.grown:
            return self._leapt(replace(state, grown=False, complete=state.thorough))
        return super()._taken_back(state)

    def _shortened(self, state: LowRankState) -> LowRankState:
        return self._leapt(replace(state, beta=0.5 * state.beta))

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
        kept = worth(values) > NEGLIGIBLE * self.tol
        V = basis @ vectors[:, ::-1][:, :rank][:, kept] * np.sqrt(values[kept])
        return np.column_stack([grown, root[:, None] * V])
