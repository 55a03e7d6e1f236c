r"""From a fit to chains: short warm-up, then transitions until the effective sizes are useful.

Walkers start at draws of the fit. They are more than the chains that are asked for: their evaluations are one batch,
and together they show the shape of the target after a few transitions. A chain of the result is made of the records of
several walkers, one after the other.

Warm-up is `WARM_UP` transitions of each walker, after each part of which the kernels are adapted to the draws of that
part. Then the kernels are fixed, and draws are recorded. If their effective size is too small when the record is full,
its first half is dropped, of the second half every other draw is kept, and the walkers go on with half as many records
a transition; the kernels are adapted once more. So the part that is dropped grows with the time that the chains need
to forget where they began, and at the end all draws are equally far apart. Chains are thorough (see `Kernels`) in the
warm-up, which explores, and from the first doubling on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.families.gaussian import Gaussian
from mgvbp.sampling.convergence import ess, largest_rhat, rhat
from mgvbp.sampling.kernels import Draws, Kernels
from mgvbp.sampling.points import Kernel, Move, Point
from mgvbp.sampling.walkers import BudgetSpentError, Engine, Evaluate, Report, Walker

WALKERS = 20
"""Walkers at least. With 10 a batch is half as large, and so are the draws from which the shape is learnt; with 40 the
warm-up takes twice as many evaluations."""
WARM_UP = (25, 25)
"""Transitions of each walker before draws are kept, in the parts after which the kernels are adapted."""
BULK, TAIL = 0.25, 0.1
"""Shares of the draws that the effective sizes should be, in the bulk and in the tails, of every entry of θ.

1,000 of 4,000 draws give a mean to 3% of a standard deviation, and an R-hat that chance alone does not lift above
1.01. Twice the shares would about double the evaluations on targets that are hard.
"""
LONGEST = 32
"""Most transitions between two draws; chains that need more are better helped by another parametrisation."""
ATTEMPTS = 20
"""Draws of the fit for each start, until one has a finite density."""
NOISE = 0.05
"""Nats by which the values of one point may differ; noise of this size changes no decision that matters."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """Draws of several chains, and how they were made.

    Parameters
    ----------
    theta : ndarray of shape (chains, n, d)
    log_density, acceptance, diverging : ndarray of shape (chains, n)
        Of the target at θ; of the last kernel (see `Kernels`); whether a trajectory diverged since the last draw.
    n_evaluations : int
    rejected : int
        Evaluations that were nan or +inf: such points are never accepted.
    thinning : int
        Transitions from one draw to the next.
    step_size : float or None
    ended : str
        Why there are fewer draws than wanted; empty if there are not.
    """

    theta: Array
    log_density: Array
    acceptance: Array
    diverging: Array
    n_evaluations: int
    rejected: int
    thinning: int
    step_size: float | None
    ended: str = ""


def sample(
    q: Gaussian,
    evaluate: Evaluate,
    gradients: bool,
    *,
    draws: int,
    chains: int,
    key: tuple[int, ...],
    limit: float = math.inf,
    report: Report = lambda draws, evaluations: None,
) -> Sampled:
    """``draws`` draws in each of ``chains`` chains, started at draws of ``q``.

    Parameters
    ----------
    q : Gaussian
        Its `sample` and `log_density` are those of the fit; its mean and factor are the frame.
    evaluate : callable
        Log densities and, if ``gradients``, gradients at θ (S, d).
    key : tuple of int
        Identifies the stream of random numbers.
    limit : float
        Evaluations at most.
    """
    return Sampler(q, Engine(evaluate, q, limit), gradients, draws, chains, key, report).run()


class Sampler:
    """The state of a run: the walkers, their kernels, and how far apart their draws are."""

    def __init__(
        self,
        q: Gaussian,
        engine: Engine,
        gradients: bool,
        draws: int,
        chains: int,
        key: tuple[int, ...],
        report: Report,
    ) -> None:
        self.q, self.engine, self.draws, self.chains, self._report = q, engine, draws, chains, report
        self._each = min(draws, math.ceil(WALKERS / chains))
        self._length = math.ceil(draws / self._each)
        self._generators = [np.random.default_rng((*key, k)) for k in range(1 + chains * self._each)]
        self.kernels = Kernels.of(q, gradients)
        self.walkers: list[Walker] = []
        self.thinning, self._warm = 1, sum(WARM_UP)

    def run(self) -> Sampled:
        """Start, warm up, and draw until it is enough or something stops the run."""
        ended = ""
        try:
            self._start()
            self._warm_up()
            self._draw()
        except KeyboardInterrupt:
            if not self._recorded:
                raise
            ended = "interrupted"
        except BudgetSpentError:
            if not self._recorded:
                raise InvalidInputError(
                    f"max_evaluations = {self.engine.limit:g} is too few for {self.chains * self._each} walkers to "
                    "make a step each"
                ) from None
            ended = f"reached max_evaluations = {self.engine.limit:g}"
        except DivergenceError as error:
            if not self._recorded:
                raise
            ended = f"the evaluation broke down ({error})"
        return self._sampled(ended)

    # --- parts of a run ---------------------------------------------------------------------------

    def _start(self) -> None:
        """Put each walker at a draw of the fit where the density is not zero."""
        found: dict[int, Point] = {}
        number, fit = self.chains * self._each, Draws(self.q)
        for _ in range(ATTEMPTS):
            missing = [k for k in range(number) if k not in found]
            if not missing:
                break
            points = self.engine.points(np.array([fit.sample(self._generators[k]) for k in missing]))
            found |= {k: point for k, point in zip(missing, points, strict=True) if usable(point)}
        if len(found) < number:
            raise DivergenceError(
                f"the log density, or its gradient, is not finite at {ATTEMPTS} draws of the fit: chains cannot start"
            )
        ends = [found[0], found[number - 1]]
        again = self.engine.points(np.array([point.position for point in ends]))
        spread = max(abs(a.value - b.value) for a, b in zip(again, ends, strict=True))
        if not spread <= NOISE:
            raise InvalidInputError(
                f"the log density is noisy, a draw has two values {spread:.2g} nats apart: chains need the same value "
                "again; average over the noise, or fix its seed"
            )
        self.walkers = [Walker(found[k], self._generators[k]) for k in range(number)]

    def _warm_up(self) -> None:
        heard: list[float] = []

        def learn(acceptance: float) -> None:
            heard.append(acceptance)
            if len(heard) == len(self.walkers):  # one by one they would all answer for the same step size
                self.kernels = self.kernels.learn(math.fsum(heard) / len(heard))
                heard.clear()

        for part, length in enumerate(WARM_UP):
            self._advance(length, learn, tuning=True)
            last = part == len(WARM_UP) - 1
            self._adapt(slice(-length, None), tuning=not last)

    def _draw(self) -> None:
        """Fill the record; as long as it is not enough, thin it and go on."""
        self._advance(self._length)
        for walker in self.walkers:
            del walker.record[: self._warm]
        self._warm = 0
        while self.thinning < LONGEST and not self._enough():
            self._adapt(slice(None), tuning=False)
            self.thinning *= 2
            for walker in self.walkers:
                walker.record = walker.record[self._length // 2 + 1 :: 2]
            self._advance(self._length - self._recorded)

    def _advance(
        self, records: int, learn: Callable[[float], None] = lambda acceptance: None, tuning: bool = False
    ) -> None:
        """Let each walker make so many more records."""

        def kernels() -> Sequence[Kernel]:
            return self.kernels.sequence(tuning, thorough=tuning or self.thinning > 1)

        transitions = records * self.thinning
        walks = [walker.walk(kernels, transitions, self.thinning, learn) for walker in self.walkers]
        self.engine.run(walks, self._tell)

    def _tell(self) -> None:
        done = sum(len(walker.record) for walker in self.walkers) - self._warm * len(self.walkers)
        self._report(max(done, 0), self.engine.n_evaluations)

    def _adapt(self, rows: slice, tuning: bool) -> None:
        """Adapt the kernels to these rows of the record."""
        draws = np.array([move.point.position for walker in self.walkers for move in walker.record[rows]])
        self.kernels = self.kernels.adapted(draws, self._generators[-1], tuning)

    # --- the record -------------------------------------------------------------------------------

    @property
    def _recorded(self) -> int:
        """Records that every walker has."""
        return min((len(walker.record) for walker in self.walkers), default=0)

    def _enough(self) -> bool:
        theta = self._theta(slice(None, self._length))
        least = np.array([BULK, TAIL]) * self.chains * theta.shape[1]
        sizes = np.array([ess(theta).min(), ess(theta, "tail").min()])
        return bool((sizes >= least).all() and rhat(theta).max() <= largest_rhat(theta))

    def _theta(self, rows: slice) -> Array:
        """The draws of these rows of the record, (chains, n, d)."""
        positions = self._column(rows, lambda move: move.point.position)
        family, dim = self.q.family, self.q.dim
        theta = self.q.mean + family.from_frame(self.q.factor, positions.reshape(-1, dim))
        return theta.reshape(self.chains, -1, dim)[:, : self.draws]

    def _column(self, rows: slice, entry: Callable[[Move], Any]) -> Array:
        """An entry of these rows of the record as that of chains: the rows of several walkers, one after the other."""
        found = np.array([[entry(move) for move in walker.record[rows]] for walker in self.walkers])
        return found.reshape(self.chains, -1, *found.shape[2:])

    def _sampled(self, ended: str) -> Sampled:
        recorded = self._recorded
        # a run that ends in the warm-up has the later half of it to show
        rows = slice(self._warm if recorded > self._warm else recorded // 2, recorded)
        step = self.kernels.step
        return Sampled(
            self._theta(rows),
            self._column(rows, lambda move: move.point.value)[:, : self.draws],
            self._column(rows, lambda move: move.acceptance)[:, : self.draws],
            self._column(rows, lambda move: move.diverged)[:, : self.draws],
            self.engine.n_evaluations,
            self.engine.rejected,
            self.thinning,
            None if step is None else step.settled,
            ended,
        )


def usable(point: Point) -> bool:
    """Whether a walker can start here."""
    return math.isfinite(point.value) and (point.gradient is None or bool(np.isfinite(point.gradient).all()))
