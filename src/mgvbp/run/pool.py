"""A pool evaluates draws here or by workers, whichever is faster, and goes on when draws fail.

The first draws are timed in this process. Where workers would not save time, all others are evaluated here too; else
they go to the workers in chunks. A chunk that raises, takes too long or loses its worker is taken apart, and each of
its draws is tried once more, alone. A draw that fails again has the value NaN and is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError, MgvbpWarning, warn_user
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run import attempts, cost
from mgvbp.run.attempts import Done, Failed, Indices, Keep, Outcome, attempt, slices
from mgvbp.run.cost import Cost
from mgvbp.run.workers import Workers

MOST_FAILURES = 0.5
"""Share of an iteration's draws that may fail.

With more, most of the region where the draws lie has no values, and a result would be about the rest.
"""
LEAST_DRAWS = 10
"""Draws of an iteration from which that share says something; with fewer, one bad step may let all of them fail."""


class Pool:
    """Evaluates draws here or by workers; `close` it after use.

    Parameters
    ----------
    problem : Problem
    needs : {"values", "gradients", "squares"}
    workers : int
        How many there may be. With 1 all draws are evaluated here.
    timeout : float or None
        Seconds that a draw may take.
    failures : Failures
        Where draws without a value, and workers that are lost, are counted.
    valued : bool
        Whether some draw had a value before, in a run that is resumed.
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
        self._number, self._timeout = workers, timeout
        self._cost = Cost()
        self._workers: Workers | None = None
        self._valued = valued

    def close(self) -> None:
        """Let the workers go."""
        if self._workers is not None:
            self._workers.close()

    def __call__(
        self, iteration: int, theta: Array, keep: Keep | None = None, total: int | None = None, /
    ) -> tuple[Array, ...]:
        """Return what the problem's function gives for the rows of ``theta``; NaN where it failed twice."""
        found = Found(theta, self.needs, keep)
        rest = np.arange(len(theta)) if self._cost.known else self._measured(iteration, theta, found)
        workers = self._chosen(len(rest))
        chunks = [rest] if len(rest) else []
        if workers is not None or self.problem.one_by_one(self.needs):  # Else they are faster together.
            chunks = self._cost.chunks(rest, self._number if workers else 1)
        seconds, draws = 0.0, 0
        for rows, outcome in self._attempts(workers, iteration, theta, chunks, last=False):
            found.take(rows, outcome)
            if isinstance(outcome, Done):
                seconds, draws = seconds + outcome.seconds, draws + len(rows)
        self._cost.learn(seconds, draws)
        # Draws are tried again where they failed: what killed a worker must not kill this process.
        for rows, outcome in self._attempts(workers, iteration, theta, found.to_repeat(), last=True):
            found.take(rows, outcome)
        self._count(found, theta, total or len(theta))
        return found.arrays

    def _measured(self, iteration: int, theta: Array, found: Found) -> Indices:
        """Evaluate the first draws here until they show what the others will cost; return the others.

        The first call does not count, as it may compile something or read a file. Slices grow until they take some
        time, as many draws at once may cost no more than one.
        """
        rest = np.arange(len(theta))
        for rows, outcome in self._here(iteration, theta, slices(rest)):
            found.take(rows, outcome)
            rest = rest[len(rows) :]
            ahead = outcome.seconds / len(rows) * len(rest)
            if rows[0] > 0 and (outcome.seconds > attempts.CHUNK or ahead <= cost.WORTHWHILE):
                self._cost.learn(outcome.seconds, len(rows))
                break
        return rest

    def _chosen(self, draws: int) -> Workers | None:
        """The workers if they are faster than this process, which evaluates if the model cannot be sent to them."""
        if self._number == 1 or not self._cost.worth_workers(draws, self._workers is not None):
            return None
        if self._workers is None:
            try:
                self._workers = Workers(self.problem, self.needs, self._number, self._timeout, self.failures)
            except InvalidInputError as error:
                warn_user(f"all draws are evaluated in this process: {error}", MgvbpWarning)
                self._number = 1
        return self._workers

    def _attempts(
        self, workers: Workers | None, iteration: int, theta: Array, chunks: list[Indices], last: bool
    ) -> Iterator[Outcome]:
        """Attempt each chunk once, by the workers or here; the outcomes come as they are known."""
        if workers is None:
            return self._here(iteration, theta, chunks)
        limit = self._cost.limit(max(map(len, chunks), default=0), self._timeout)
        return workers.attempts(iteration, theta, chunks, limit, last)

    def _here(self, iteration: int, theta: Array, chunks: Iterable[Indices]) -> Iterator[Outcome]:
        """Attempt each chunk in this process; the next is asked for when the last has ended."""
        for rows in chunks:
            limit = self._cost.limit(len(rows), self._timeout)
            yield rows, attempt(self.problem, iteration, theta[rows], self.needs, limit)

    def _count(self, found: Found, theta: Array, draws: int) -> None:
        """Count the draws without a value; raise if there are so many that the run cannot go on."""
        number = len(found.failed)
        self._valued = self._valued or number < len(theta)
        too_many = number > MOST_FAILURES * draws and draws >= LEAST_DRAWS
        if too_many or (number == draws > 1 and not self._valued):  # One may be a bad place to begin at.
            raise DivergenceError(
                f"{number} of {draws} draws failed twice: {found.failed[0][1].error}; the draws are this exception's "
                ".theta",
                theta,
            )
        # They are counted after that, as those of an iteration that is repeated must not count twice.
        for _, failure in found.failed:
            self.failures.add(failure.reason, failure.error)


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
