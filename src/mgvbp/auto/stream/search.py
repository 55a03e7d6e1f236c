"""A search on a stream of batches by ask and tell: a mode, its curvature, then rounds of steps that are kept or undone.

A round is some whole epochs of steps, and a check. The check evaluates the lower bound on all data, one batch after the
other, at draws whose ε are the same in all checks, so that differences between Gaussians have little noise:

- a gain of more than the tolerance is kept, and the next round takes longer steps;
- a smaller one is kept too, but the next steps are shorter: what is left may be their noise;
- a loss beyond its noise and the tolerance is undone, and the next steps are much shorter.

After `STALE` rounds in a row without a gain, the result and the start are measured at fresh draws, and the better one
is returned. So no result is worse than its start, and the bound is not that of a maximum over noisy values.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto.stream.adam import Adam
from mgvbp.auto.stream.state import Measured, Stage, StreamState
from mgvbp.auto.stream.step import stepped
from mgvbp.core.checks import as_key, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.errors import DivergenceError
from mgvbp.estimators import Gradient, Sample
from mgvbp.estimators.draws import antithetic
from mgvbp.families import Diagonal, Family, Full
from mgvbp.families.gaussian import Gaussian
from mgvbp.methods.optimizer import STREAM, Info, initial_frame
from mgvbp.problem.calling import checked_derivatives, checked_values
from mgvbp.problem.problem import Problem, grad_log_prior, log_prior

LEAST = 50
"""Fewest iterations of a round. With 25 the checks cost more than the steps, with 100 a bad step size costs more."""
EPOCHS = 4
"""Fewest epochs of a round of steps, so that a check, of one epoch with twice the draws, costs half as much."""
DRAWS, DRAWS_OF_OTHERS = 8, 64
"""Draws of a step in the diagonal family, and in others, whose curvature has more entries."""
CHECKED, VERIFIED = 16, 64
"""Fewest draws of a check; draws of the verification, and the most of a check."""
MOST_NUMBERS = 10**7
"""Most numbers in the draws of a verification."""
FIRST_STEP, LONGEST = 0.1, 0.5
"""The first and the longest step of the mean. On digits, wine and cancer 0.1 led to higher bounds after 400 steps than
0.02 and 0.3 did."""
FIRST_RATE = 0.1
"""The first share of new curvature; half of it is slower, and twice as much is noisier, in equal measure."""
LONGER, SHORTER, MUCH_SHORTER = 1.5, 0.5, 0.25
"""Factors on the steps after a gain, after none, and after a loss."""
LONGEST_ROUND = 8
"""Rounds become at most so many times as long as the first: if steps are halved, they are doubled, to get as far."""
LEAST_STEP = 1e-6
"""A shorter step ends the search: every round before was undone."""
FALL = 100.0
"""A round is undone at once if a batch has a bound that is so many times as low as that of the best Gaussian; batches
alone do not differ by as much."""
LOSS = 2.0
"""Standard errors beyond which a loss is undone, if it is more than the tolerance too."""
STALE = 3
"""Rounds in a row without a gain that end the search: the steps are then an eighth as long as when gains ended."""
LEAST_GAIN, GAIN_BY_PARAMETER = 0.1, 1e-3
"""Nats that a round must gain to count: at least 0.1, and a thousandth of a nat for each parameter."""
POINT_ROUNDS, ROUNDS = 60, 100
"""Most rounds of ADAM, and of steps."""
NARROW = 0.1
"""Standard deviations of the first Gaussian at the mode, in units of the prior's (but at most 0.1)."""
SPREAD = 0.1
"""Spread of the first point around the prior's mean: at exactly 0 the hidden units of a network are all alike."""
SMALL = 50
"""Up to so many parameters a network without minibatches has the certified search instead."""


def streams(problem: Problem, family: Family | None) -> bool:
    """Whether `StreamSearch` is for this problem: minibatches, or a network with many weights.

    A network without minibatches for which the user chose full covariances has the certified search instead.
    """
    if problem.num_batches > 1:
        return True
    network = getattr(problem.log_likelihood, "is_network", False)
    return bool(network) and problem.dim > SMALL and not isinstance(family, Full)


class StreamSearch:
    """An ask/tell run on batches 1, 2, ... of a log-likelihood that has gradients.

    Parameters
    ----------
    problem : Problem
        Its function is not called.
    family : Family
    initial_mean, initial_variance, rng
        As for `fit`.
    tol : float, optional
        Nats that a round must gain to count.
    max_iterations, max_evaluations : int, optional
        The search makes no more of them than this.
    """

    trying = False

    def __init__(
        self,
        problem: Problem,
        family: Family,
        *,
        initial_mean: ArrayLike | None = None,
        initial_variance: ArrayLike | None = None,
        rng: int | np.random.Generator | tuple[int, ...] = 0,
        tol: float | None = None,
        max_iterations: int | None = None,
        max_evaluations: int | None = None,
    ) -> None:
        self.prior, self.dim, self.family = problem.prior, problem.dim, family
        self.epoch = problem.num_batches
        self._share = problem.share
        self.tol = max(LEAST_GAIN, GAIN_BY_PARAMETER * self.dim) if tol is None else tol
        self.climb = self.epoch * math.ceil(LEAST / self.epoch)
        self.round = max(self.climb, EPOCHS * self.epoch)
        self.most = max_iterations or POINT_ROUNDS * self.climb + ROUNDS * (self.round + self.epoch)
        self.most_evaluations = (
            math.inf if max_evaluations is None else positive_integer(max_evaluations, "max_evaluations")
        )
        self.num_draws = DRAWS if isinstance(family, Diagonal) else DRAWS_OF_OTHERS
        share = self.num_draws * self.round // (2 * self.epoch)
        self.verified = 2 * max(CHECKED // 2, min(VERIFIED, MOST_NUMBERS // self.dim) // 2)
        self.checked = 2 * (min(max(CHECKED, share), self.verified) // 2)
        mean, factor, *_ = initial_frame(family, self.prior, initial_mean, initial_variance)
        first, key = Gaussian.from_factor(mean, factor, family), as_key(rng)
        self.scale = np.minimum(first.std, 1.0)
        if initial_mean is None:
            noise = np.random.default_rng((*key, STREAM)).standard_normal(self.dim)
            mean = mean + SPREAD * self.scale * noise
        self.state = StreamState(key, Gaussian.from_factor(mean, factor, family), Adam.at(mean))
        self._asked: tuple[StreamState, Array, Array] | None = None

    @property
    def gaussian(self) -> Gaussian:
        """The current iterate."""
        return self.state.q

    @property
    def best(self) -> Measured:
        """The best Gaussian so far; before one was measured, the current iterate with a bound of −inf."""
        return self.state.best or Measured(self.state.q, np.full(2, -np.inf))

    @property
    def ending(self) -> Ending | None:
        """Why the search ended; None while it goes on."""
        return self.state.ending

    @property
    def converged(self) -> bool:
        """Whether the search ended because the bound no longer rises."""
        return self.ending is not None and self.ending.outcome is Outcome.LEVEL

    def ask(self) -> Array:
        """The points to evaluate, (n, d); the same ones until `tell`."""
        return self._pending()[1].copy()

    def _pending(self) -> tuple[Array, Array]:
        """The ε of the next points, and the points."""
        state = self.state
        if self._asked is None or self._asked[0] is not state:
            if state.stage is Stage.POINT:
                eps, theta = np.zeros((1, self.dim)), state.point.theta[None]
            elif state.stage is Stage.VERIFY:
                assert state.best is not None
                assert state.start is not None
                eps = self._eps(self.verified, 1)
                theta = np.concatenate([_draws(state.best.q, eps), _draws(state.start.q, eps)])
            else:
                check = state.stage is Stage.CHECK
                eps = self._eps(self.checked, 0) if check else self._eps(self.num_draws, 2, state.iteration)
                theta = _draws(state.q, eps)
            self._asked = state, eps, theta
        return self._asked[1:]

    @property
    def _size(self) -> int:
        """How many points the next `ask` has."""
        stage = self.state.stage
        if stage is Stage.POINT:
            return 1
        return {Stage.CHECK: self.checked, Stage.VERIFY: 2 * self.verified}.get(stage, self.num_draws)

    def _eps(self, number: int, *stream: int) -> Array:
        return antithetic(np.random.default_rng((*self.state.key, *stream, STREAM)), number, self.dim)

    def tell(self, values: ArrayLike, gradients: ArrayLike | None = None) -> Info:
        """Take the log-likelihoods (n,) of the batch at the points last asked for, and their gradients (n, d)."""
        before, (eps, theta) = self.state, self._pending()
        likelihoods = checked_values(values, theta, "log_likelihood")
        state = replace(
            before,
            iteration=before.iteration + 1,
            evaluations=before.evaluations + len(theta),
            done=before.done + 1,
        )
        finite = np.isfinite(likelihoods)
        with np.errstate(over="ignore", invalid="ignore"):
            if state.stage in (Stage.CHECK, Stage.VERIFY):
                self.state = self._summed(state, eps, theta, likelihoods)
            else:
                slopes = checked_derivatives(gradients, theta, "grad") + grad_log_prior(self.prior, theta)
                finite &= np.isfinite(slopes).all(axis=1)
                if state.stage is Stage.POINT:
                    self.state = self._climbed(state, theta, likelihoods, slopes)
                else:
                    self.state = self._stepped(state, eps, theta, likelihoods, slopes)
        if self.ending is None and self.state.evaluations + self._size > self.most_evaluations:
            ending = Ending.of(Outcome.MAX_EVALUATIONS, limit=self.most_evaluations)
            self.state = replace(self.state, ending=ending)
        return Info(
            lower_bound=self.best.lower_bound,
            gap=math.inf,
            step_size=before.point.step if before.stage is Stage.POINT else before.step,
            dropped=len(finite) - int(np.count_nonzero(finite)),
            reductions=0,
            noise=math.inf,
            radius=math.inf,
            num_draws=len(theta),
            phase=before.stage.value,
        )

    # --- a mode, and its curvature ----------------------------------------------------------------

    def _climbed(self, state: StreamState, theta: Array, values: Array, slopes: Array) -> StreamState:
        """After a step of ADAM; at the end of a round it is judged by the mean over its last epoch."""
        point, density = state.point, values + log_prior(self.prior, theta)
        if not (np.isfinite(density).all() and np.isfinite(slopes).all()):
            if point.steps == 0 and point.value == -math.inf:
                raise DivergenceError(
                    "the log density or its gradient is not finite where the fit begins: give another initial_mean; "
                    "the point is this exception's .theta",
                    theta,
                )
            return self._after_point(replace(state, point=point.back(), done=self._begun(state), totals=None))
        if state.done > self.climb - self.epoch:
            state = replace(state, totals=density if state.totals is None else state.totals + density)
        point = point.moved(slopes[0], self.scale)
        if state.done < self.climb:
            return replace(state, point=point)
        assert state.totals is not None
        point = point.judged(float(state.totals[0]) / self.epoch, self.tol)
        return self._after_point(replace(state, point=point, done=0, totals=None))

    def _after_point(self, state: StreamState) -> StreamState:
        """Go on with ADAM, or to a narrow Gaussian at the mode once ADAM has ended, or used its share of iterations."""
        mean = state.point.best
        if not state.point.ended and state.iteration < 0.4 * self.most:
            return replace(state, q=Gaussian.from_factor(mean, state.q.factor, self.family))
        factor = self.family.factor(variance=(NARROW * np.minimum(self.scale, 1.0)) ** 2)
        rate = min(FIRST_RATE, self.num_draws * self.dim / (4.0 * self.family.num_monomials))
        q = Gaussian.from_factor(mean, factor, self.family)
        return replace(state, q=q, stage=Stage.CURVE, step=FIRST_STEP, rate=rate)

    # --- steps ------------------------------------------------------------------------------------

    def _stepped(
        self, state: StreamState, eps: Array, theta: Array, values: Array, slopes: Array
    ) -> StreamState:
        """After a step; at the end of a round the average of the means of its last half is checked."""
        q, curve = state.q, state.stage is Stage.CURVE
        sample = Sample(eps, values, log_prior(self.prior, theta), q.log_density_in_frame(eps), slopes)
        try:
            if not (np.isfinite(sample.h).all() and np.isfinite(slopes).all()) or self._lost(state, sample.h):
                raise DivergenceError(
                    "some draws have values or gradients that are not finite, or far too low", theta
                )
            estimate = Gradient().estimate(q, self.prior, sample, None)
            q, momentum = stepped(q, state.momentum, estimate, 0.0 if curve else state.step, state.rate)
        except DivergenceError as error:
            error.theta = theta
            return self._narrowed(state, error) if curve else self._undone(state)
        if curve:
            state = replace(state, q=q)
            return self._to_check(state) if state.done == self.climb else state
        average, length = state.average, self.round * state.length
        if state.done > length // 2:
            average = q.mean if average is None else average + q.mean
        state = replace(state, q=q, momentum=momentum, average=average)
        if state.done < length:
            return state
        assert average is not None
        mean = average / (length - length // 2)
        return self._to_check(replace(state, q=Gaussian.from_factor(mean, q.factor, self.family)))

    def _lost(self, state: StreamState, h: Array) -> bool:
        """Whether a round has fallen so far that there is no need to wait for its check."""
        return state.best is not None and float(h.mean()) < state.best.lower_bound - FALL * (
            abs(state.best.lower_bound) + self.dim
        )

    def _narrowed(self, state: StreamState, error: DivergenceError) -> StreamState:
        """With a Gaussian at the mode that is four times narrower; raises ``error`` if that is too narrow."""
        if state.undone > 10:
            raise error
        q = Gaussian.from_factor(state.q.mean, 4.0 * state.q.factor, self.family)
        return replace(state, q=q, done=self._begun(state), undone=state.undone + 1)

    def _to_check(self, state: StreamState) -> StreamState:
        return replace(state, stage=Stage.CHECK, done=0, average=None, totals=None)

    # --- decisions --------------------------------------------------------------------------------

    def _summed(self, state: StreamState, eps: Array, theta: Array, values: Array) -> StreamState:
        """After a batch of a check; after the last one of the epoch, decide."""
        if state.done < 1:  # the rest of an epoch in which a round was undone
            return state
        part = self._share(state.iteration) * values  # batches may differ in size
        totals = part if state.totals is None else state.totals + part
        if state.done < self.epoch:
            return replace(state, totals=totals)
        density = totals + log_prior(self.prior, theta)
        state = replace(state, done=0, totals=None)
        number = len(eps)
        if state.stage is Stage.CHECK:
            h = density - state.q.log_density_in_frame(eps)
            return self._decided(state, Measured(state.q, h), theta)
        assert state.best is not None
        assert state.start is not None
        best, start = (
            Measured(known.q, part - known.q.log_density_in_frame(eps))
            for known, part in ((state.best, density[:number]), (state.start, density[number:]))
        )
        better = best if best.lower_bound >= start.lower_bound else start
        ending = Ending.of(Outcome.LEVEL, rounds=STALE, tol=self.tol)
        if state.step < LEAST_STEP:
            ending = Ending.of(Outcome.NO_STEP, step=LEAST_STEP)
        elif state.stale < STALE:
            ending = Ending.of(Outcome.MAX_ITERATIONS, limit=self.most)
        return replace(state, best=better, start=start, ending=ending)

    def _decided(self, state: StreamState, found: Measured, theta: Array) -> StreamState:
        """Keep or undo what a round has led to."""
        best = state.best
        if best is None:
            if not np.isfinite(found.h).all():
                return self._narrowed(
                    replace(state, stage=Stage.CURVE),
                    DivergenceError("no draw near the mode is finite", theta),
                )
            return self._next(replace(state, start=found, best=found))
        with np.errstate(invalid="ignore"):
            gain, se = found.gain_over(best)
        if not gain > -max(LOSS * se, self.tol):  # nan is a loss too
            return self._undone(state)
        if gain > self.tol:
            step = min(LONGEST, state.longest, LONGER * state.step)
            return self._next(replace(state, best=found, step=step, stale=0))
        state = replace(
            state,
            step=SHORTER * state.step,
            rate=SHORTER * state.rate,
            length=min(2 * state.length, LONGEST_ROUND),
            stale=state.stale + 1,
            momentum=None,
        )
        kept = found if gain > 0.0 else best
        return self._next(replace(state, best=kept, q=kept.q))

    def _undone(self, state: StreamState) -> StreamState:
        """Back to the best Gaussian, with much shorter steps."""
        assert state.best is not None
        return self._next(
            replace(
                state,
                q=state.best.q,
                step=MUCH_SHORTER * state.step,
                longest=SHORTER * state.step,
                rate=SHORTER * state.rate,
                momentum=None,
                undone=state.undone + 1,
            )
        )

    def _begun(self, state: StreamState) -> int:
        """Minus the iterations that are left of this epoch: checks take whole epochs, which have each row once."""
        return -(-state.iteration % self.epoch)

    def _next(self, state: StreamState) -> StreamState:
        """Begin the next round, or the verification if there is nothing to gain or no time for another round."""
        late = state.iteration + self.round * state.length + 3 * self.epoch > self.most
        ended = state.stale >= STALE or state.step < LEAST_STEP
        stage = Stage.VERIFY if ended or late else Stage.STEP
        done = self._begun(state)
        return replace(state, stage=stage, done=done, average=None, totals=None, rounds=state.rounds + 1)


def _draws(q: Gaussian, eps: Array) -> Array:
    return q.mean + q.family.from_frame(q.factor, eps)
