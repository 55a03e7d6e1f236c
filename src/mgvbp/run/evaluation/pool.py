"""A pool evaluates draws here or by workers, whichever is faster, and goes on when draws fail.

The first draws are timed, by a worker if there are some. Where workers would not save time, the others are evaluated
in this process, unless a draw has killed its worker; else they go to the workers in chunks. A chunk that raises, takes
too long or loses its worker is taken apart, and each of its draws is tried once more, alone. A draw that fails again
has the value NaN and is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError, MgvbpWarning, warn_user
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run.evaluation import attempts, cost
from mgvbp.run.evaluation.attempts import Answer, Done, Failed, Indices, Keep, attempt
from mgvbp.run.evaluation.cost import Cost
from mgvbp.run.evaluation.workers import Workers

MOST_FAILURES = 0.5
"""Share of an iteration's draws that may fail.

With more, most of the region where the draws lie has no values, and a result would be about the rest.
"""
LEAST_DRAWS = 10
"""The share is judged in iterations with so many draws or more; in smaller ones a single bad step may make all fail."""
MOST_LOST = 100
"""Draws of a run that may kill their worker, twice each: at a second for a new process they cost some minutes.

With half of it a long run would end at one draw in a thousand; twice as much only waits for what is lost anyway.
"""


class Pool:
    """Evaluates draws here or by up to ``workers`` workers, ``timeout`` seconds a draw; `close` it after use.

    Draws without a value, and workers that are lost, are counted in ``failures``. ``valued`` says whether some draw had
    a value before, in a run that is resumed.
    """

    def __init__(
        self,
        problem: Problem,
        needs: Needs,
        workers: int,
        timeout: float | None,
        failures: Failures,
        valued: bool = False,
    ) -> None:
        self.problem, self.needs, self.failures = problem, needs, failures
        self._number, self._timeout, self._valued = workers, timeout, valued
        self._cost = Cost()
        self._workers: Workers | None = None
        if workers > 1:
            try:
                self._workers = Workers(problem, needs, workers, failures)
            except InvalidInputError as error:
                warn_user(f"all draws are evaluated in this process: {error}", MgvbpWarning, "one-process")

    def close(self) -> None:
        """Let the workers go."""
        if self._workers is not None:
            self._workers.close()

    def __call__(
        self, iteration: int, theta: Array, keep: Keep | None = None, total: int | None = None, /
    ) -> tuple[Array, ...]:
        """Return what the problem's function gives for the rows of ``theta``; NaN where it failed twice."""
        found, rest, measuring = Found(theta, self.needs, keep), np.arange(len(theta)), not self._cost.known
        if measuring:
            rest = self._measured(iteration, theta, found)
        shared = self._cost.of(len(rest)) > cost.WORTHWHILE or self.failures.workers_lost > 0
        workers = self._workers if shared else None
        chunks = [rest] if len(rest) else []
        if workers is not None or self.problem.one_by_one(self.needs):  # Else they are faster together.
            chunks = self._cost.chunks(rest, self._number if workers else 1)
        seconds, draws = 0.0, 0
        for rows, outcome in self._attempts(workers, iteration, theta, chunks):
            found.take(rows, outcome)
            if isinstance(outcome, Done):
                seconds, draws = seconds + outcome.seconds, draws + len(rows)
        self._cost.learn(seconds, draws)
        # Draws are tried again where they failed: what killed a worker must not kill this process.
        workers = self._workers if measuring else workers
        for rows, outcome in self._attempts(workers, iteration, theta, found.to_repeat()):
            found.take(rows, outcome)
            self._check(found, theta, total or len(theta))
        self._valued = self._valued or len(found.failed) < len(theta)
        # They are counted at the end, as those of an iteration that is repeated must not count twice.
        for _, failure in found.failed:
            self.failures.add(failure.reason, failure.error)
        return found.arrays

    def _measured(self, iteration: int, theta: Array, found: Found) -> Indices:
        """Evaluate the first draws until they show what the others will cost; return the others.

        The first call does not count, as it may compile something or read a file. Slices grow until they take some
        time, as many draws at once may cost no more than one.
        """
        rest, size = np.arange(len(theta)), 1
        while len(rest):
            part, rest = rest[:size], rest[size:]
            ((_, outcome),) = self._attempts(self._workers, iteration, theta, [part])
            found.take(part, outcome)
            if not isinstance(outcome, Done):
                continue
            ahead = outcome.seconds / len(part) * len(rest)
            if part[0] > 0 and (outcome.seconds > attempts.CHUNK or ahead <= cost.WORTHWHILE):
                self._cost.learn(outcome.seconds, len(part))
                break
            size = 2 * size if outcome.seconds < attempts.CHUNK else 1
        return rest

    def _attempts(
        self, workers: Workers | None, iteration: int, theta: Array, chunks: list[Indices]
    ) -> Iterator[Answer]:
        """Attempt each chunk once, by the workers or here; the outcomes come as they are known."""
        if workers is None:
            return self._here(iteration, theta, chunks)
        limit = self._cost.limit(max(map(len, chunks), default=0), self._timeout)
        return workers.attempts(iteration, theta, chunks, limit)

    def _here(self, iteration: int, theta: Array, chunks: list[Indices]) -> Iterator[Answer]:
        for rows in chunks:
            limit = self._cost.limit(len(rows), self._timeout)
            yield rows, attempt(self.problem, iteration, theta[rows], self.needs, limit)

    def _check(self, found: Found, theta: Array, draws: int) -> None:
        """Raise if so many draws have failed twice that the run cannot go on."""
        number, lost = len(found.failed), sum(failure.reason == "lost" for _, failure in found.failed)
        too_many = number > MOST_FAILURES * draws and draws >= LEAST_DRAWS
        if too_many or (number == draws > 1 and not self._valued):  # One may be a bad place to begin at.
            raise DivergenceError(
                f"{number} of {draws} draws failed twice: {found.failed[0][1].error}; the draws are this exception's "
                ".theta",
                theta,
            )
        if self.failures.lost + lost > MOST_LOST:
            raise DivergenceError(f"{self.failures.lost + lost} draws have killed two workers each", theta)


class Found:
    """What is known of the draws of an iteration: the values, NaN where there are none, and the last failures."""

    def __init__(self, theta: Array, needs: Needs, keep: Keep | None) -> None:
        number = {"values": 1, "gradients": 2, "squares": 3}[needs]
        shapes = [theta.shape[:1], theta.shape, theta.shape]
        self.arrays = tuple(np.full(shape, np.nan) for shape in shapes[:number])
        self.failed: list[tuple[Indices, Failed]] = []
        self._keep = keep

    def take(self, rows: Indices, outcome: Done | Failed) -> None:
        """Take the outcome of an attempt."""
        if isinstance(outcome, Failed):
            self.failed.append((rows, outcome))
            return
        for array, part in zip(self.arrays, outcome.arrays, strict=True):
            array[rows] = part
        if self._keep is not None:
            self._keep(rows, outcome.arrays)

    def to_repeat(self) -> list[Indices]:
        """The draws that failed, each alone; they are no longer among the failed."""
        alone = [row for rows, _ in self.failed for row in np.split(rows, len(rows))]
        self.failed = []
        return alone
