"""Evaluations by several workers: draws in chunks through joblib, and what happens when one fails.

joblib's backend (`joblib.parallel_config`) decides what a worker is: a process (loky), a thread, a task of a Dask or
Ray cluster. The model reaches each worker once; after that a chunk is some draws. Chunks are sized by the measured
cost of a draw, and where sharing costs more than it saves the draws are evaluated here.

A chunk that raises, takes too long or loses its worker is taken apart: each of its draws is tried once more, alone.
What fails again has the value NaN, is left out like any other draw without a value, and is counted.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import TracebackType
from typing import Self

import numpy as np

from mgvbp._linalg import Array
from mgvbp.attempts import Done, Failed, Failures, Indices, Outcome, attempt
from mgvbp.checks import positive_number
from mgvbp.deadline import available
from mgvbp.errors import DivergenceError, InvalidInputError, InvalidTypeError, MgvbpWarning, warn_user
from mgvbp.problem import Needs, Problem
from mgvbp.workers import Workers

Evaluate = Callable[[int, Array], tuple[Array, ...]]
Observer = Callable[[Indices, tuple[Array, ...]], None]
"""Is told of rows and their values as they come."""

WORTHWHILE = 0.05
"""Seconds that the draws of an iteration take here from which others are asked to help: a pool's answer takes 10 ms."""
START_UP = 1.0
"""Seconds of evaluations, done or ahead in this iteration, before workers are started, which takes as long."""
CHUNK = 0.05
"""Seconds that a chunk should take: short beside an iteration, long beside a pool's own milliseconds."""
MOST_FAILURES = 0.5
"""Share of an iteration's draws that may fail."""
LEAST_DRAWS = 10
"""Draws of an iteration from which that share means something."""


def evaluator(
    problem: Problem, needs: Needs, n_jobs: int | None, timeout: float | None
) -> AbstractContextManager[Evaluate]:
    """How `fit` evaluates draws: here, or, if asked for, through a `Pool`.

    Warns if there is a ``timeout`` that cannot be kept in this process.
    """
    if n_jobs is not None and (not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool)):
        raise InvalidTypeError(f"n_jobs must be a number of workers, -1 for one a core; got {n_jobs!r}")
    if n_jobs == 0:
        raise InvalidInputError("n_jobs must be a number of workers, or -1 for one a core; got 0")
    if timeout is not None:
        positive_number(timeout, "timeout")
        if not available():
            warn_user(
                "timeout= cannot stop a draw that is evaluated in this process: it takes an alarm signal, which "
                "Windows does not have and only the main thread gets; call fit there, or send draws to other "
                "processes (n_jobs=2), which are ended if need be",
                MgvbpWarning,
            )
    # without a word from the user joblib is not imported, and then no parallel_config can be in force
    workers = _effective(n_jobs) if n_jobs is not None or "joblib" in sys.modules else 1
    if workers == 1 and timeout is None:
        return nullcontext(Here(problem, needs))
    return Pool(problem, needs, workers, timeout)


def _effective(n_jobs: int | None) -> int:
    import joblib

    return int(joblib.effective_n_jobs(n_jobs))


class Slices:
    """Rows a few at a time, as many as take about `CHUNK` seconds; all at once if the function takes them so."""

    def __init__(self, problem: Problem, needs: Needs) -> None:
        self.rowwise = not problem.vectorized and (needs == "values" or problem.grad is not None)
        self._size = 1

    def __call__(self, rows: Indices) -> Iterator[Indices]:
        """The rows; how many there are next is what was learnt from those before."""
        start = 0
        while start < len(rows):
            some = rows[start : start + self._size] if self.rowwise else rows
            start += len(some)
            yield some

    def learn(self, draws: int, seconds: float) -> None:
        """Take more at once if these took less than they may, fewer if they took more."""
        self._size = max(self._size, 2 * draws) if seconds < CHUNK else max(1, draws // 2)


class Here:
    """A function of the iteration and its draws that evaluates them in this process; exceptions pass through.

    Parameters
    ----------
    problem : Problem
    needs : {"values", "gradients", "squares"}

    Attributes
    ----------
    observer : callable or None
        If there is one, a function of one draw is given a few at a time, and the observer what came of them.
    """

    def __init__(self, problem: Problem, needs: Needs) -> None:
        self.problem, self.needs = problem, needs
        self._slices = Slices(problem, needs)
        self.observer: Observer | None = None

    def __call__(self, iteration: int, theta: Array) -> tuple[Array, ...]:
        """What the problem's function gives for all rows of ``theta``."""
        if self.observer is None or not self._slices.rowwise:
            return self.problem.evaluate_at(iteration, theta, self.needs)
        parts = []
        for rows in self._slices(np.arange(len(theta))):
            begin = time.perf_counter()
            parts.append(self.problem.evaluate_at(iteration, theta[rows], self.needs))
            self._slices.learn(len(rows), time.perf_counter() - begin)
            self.observer(rows, parts[-1])
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


class Pool:
    """A function of the iteration and its draws that evaluates them here or by workers, whichever is faster.

    Parameters
    ----------
    problem : Problem
    needs : {"values", "gradients", "squares"}
    workers : int
    timeout : float or None
        Seconds that a draw may take.

    Attributes
    ----------
    failures : Failures
    observer : callable or None
        Is given rows and what came of them, as it comes.
    draws : int
        Draws of the iteration, of which a resumed run may ask for the rest only: too many failures are too many of all.
    """

    def __init__(self, problem: Problem, needs: Needs, workers: int, timeout: float | None) -> None:
        self.problem, self.needs, self._number, self._timeout = problem, needs, workers, timeout
        self.failures = Failures()
        self.observer: Observer | None = None
        self.draws = 0
        self._slices = Slices(problem, needs)
        # the median of a few iterations: one that was held up does not make a cheap function look expensive
        self._costs: deque[float] = deque(maxlen=5)
        self._cost = self._spent = 0.0
        self._workers: Workers | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, value, trace)

    def __call__(self, iteration: int, theta: Array) -> tuple[Array, ...]:
        """What the problem's function gives for all rows of ``theta``; NaN where it failed twice."""
        outcomes = [] if self._costs else list(self._observed(self._probe(iteration, theta)))
        rest = np.arange(sum(len(rows) for rows, _ in outcomes), len(theta))
        there = self._pays(len(rest))
        outcomes += self._observed(
            self._learning(self._attempts(there, iteration, theta, self._chunks(rest), last=False))
        )
        failed = [rows for rows, outcome in outcomes if isinstance(outcome, Failed)]
        if failed:
            # where it was the first time: what killed a worker must not kill this process
            again = [*np.concatenate(failed)[:, None]]
            second = list(self._observed(self._attempts(there, iteration, theta, again, last=True)))
            self._count([outcome for _, outcome in second if isinstance(outcome, Failed)], theta)
            outcomes += second
        return self._joined([(rows, done) for rows, done in outcomes if isinstance(done, Done)], theta)

    def _observed(self, outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
        for rows, outcome in outcomes:
            if self.observer is not None and isinstance(outcome, Done):
                self.observer(rows, outcome.arrays)
            yield rows, outcome

    def _joined(self, found: list[tuple[Indices, Done]], theta: Array) -> tuple[Array, ...]:
        if len(found) == 1 and len(found[0][0]) == len(theta):
            return found[0][1].arrays
        width = {"values": 1, "gradients": 2, "squares": 3}[self.needs]
        whole = tuple(np.full(theta.shape[: 1 + (k > 0)], np.nan) for k in range(width))
        for rows, done in found:
            for array, part in zip(whole, done.arrays, strict=True):
                array[rows] = part
        return whole

    def _count(self, failed: list[Failed], theta: Array) -> None:
        draws = max(self.draws, len(theta))
        if len(failed) > MOST_FAILURES * draws and draws >= LEAST_DRAWS:
            raise DivergenceError(
                f"{len(failed)} of {draws} draws failed twice: {failed[0].error}; the draws are this exception's "
                ".theta",
                theta,
            )
        for failure in failed:  # after that, as those of an iteration that is repeated must not count twice
            setattr(self.failures, failure.kind, getattr(self.failures, failure.kind) + 1)
            self.failures.first_error = self.failures.first_error or failure.error

    # --- what a draw costs ----------------------------------------------------------------------------

    def _probe(self, iteration: int, theta: Array) -> Iterator[Outcome]:
        """Evaluate the first draws here, ever more at once, until they show what the others will cost.

        A first call may compile something or read a file, and many draws at once may cost little more than one.
        """
        start, seconds = 0, 0.0
        while start < len(theta) and (start < 2 or seconds < CHUNK):
            rows = np.arange(start, min(start + max(start, 1), len(theta)))
            outcome = self._attempt(iteration, theta, rows)
            yield rows, outcome
            seconds = outcome.seconds
            start += len(rows)
            if seconds / len(rows) * (len(theta) - start) < WORTHWHILE:
                break
        self._learn(seconds / len(rows))

    def _learning(self, outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
        """The outcomes, after the last of which it is known what a draw took on average."""
        seconds, draws = 0.0, 0
        for rows, outcome in outcomes:
            if isinstance(outcome, Done):
                seconds, draws = seconds + outcome.seconds, draws + len(rows)
            yield rows, outcome
        self._spent += seconds
        if draws:
            self._learn(seconds / draws)

    def _learn(self, cost: float) -> None:
        self._costs.append(cost)
        self._cost = sorted(self._costs)[len(self._costs) // 2]

    def _pays(self, draws: int) -> bool:
        """Whether workers are faster: starting them pays once as much was spent here as that takes."""
        ahead = draws * self._cost
        started = self._workers is not None or self._spent + ahead > START_UP
        return self._number > 1 and ahead > WORTHWHILE and started

    def _limit(self, draws: int) -> float | None:
        """Seconds for a chunk: all that one of its draws may take, and ten times what the others should."""
        if self._timeout is None:
            return None
        return min(draws * self._timeout, self._timeout + 10.0 * draws * self._cost)

    # --- attempts -------------------------------------------------------------------------------------

    def _chunks(self, rows: Indices) -> list[Indices]:
        """The draws in chunks: few enough for the pool, enough for the workers to end at about the same time."""
        if len(rows) == 0:
            return []
        if not self._pays(len(rows)):
            return [rows]
        return np.array_split(
            rows, min(len(rows), max(self._number, math.ceil(len(rows) * self._cost / CHUNK)))
        )

    def _attempts(
        self, there: bool, iteration: int, theta: Array, chunks: list[Indices], last: bool
    ) -> Iterator[Outcome]:
        """Attempt each chunk once: ``there``, by the workers, or here."""
        workers = self._started() if there else None
        if workers is None:
            return self._here(iteration, theta, chunks)
        return workers.attempts(iteration, theta, chunks, self._limit(max(map(len, chunks))), last)

    def _here(self, iteration: int, theta: Array, chunks: list[Indices]) -> Iterator[Outcome]:
        """Attempt each chunk in this process: a few draws at a time, so that one that hangs holds up only those."""
        for chunk in chunks:
            for rows in self._slices(chunk):
                yield rows, self._attempt(iteration, theta, rows)

    def _attempt(self, iteration: int, theta: Array, rows: Indices) -> Done | Failed:
        draws = theta if len(rows) == len(theta) else theta[rows]
        outcome = attempt(self.problem, iteration, draws, self.needs, self._limit(len(rows)))
        self._slices.learn(len(rows), outcome.seconds)
        return outcome

    def _started(self) -> Workers | None:
        """The workers; none if the model cannot be sent to them."""
        if self._workers is None and self._number > 1:
            try:
                workers = Workers(self.problem, self.needs, self._number, self.failures)
            except InvalidInputError as error:
                warn_user(f"all draws are evaluated in this process: {error}", MgvbpWarning)
                self._number = 1
            else:
                self._workers = self._stack.enter_context(workers)
        return self._workers
