"""Who evaluates the draws of an iteration: this process, or a `Pool` of workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Protocol

import numpy as np

from mgvbp.core.checks import positive_number
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError, MgvbpWarning, warn_user
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run.evaluation.attempts import Keep, slices
from mgvbp.run.evaluation.deadline import available
from mgvbp.run.evaluation.pool import Pool

LONGEST = 1e6
"""A timeout of more seconds, eleven days, is left out: Windows cannot wait for more than 49 days at once."""


class Evaluator(Protocol):
    """A function that evaluates the draws of an iteration."""

    def __call__(
        self, iteration: int, theta: Array, keep: Keep | None = None, total: int | None = None, /
    ) -> tuple[Array, ...]:
        """Return what `Problem.evaluate_at` returns for the rows of ``theta``.

        ``keep`` is given values as soon as they are known. ``total`` is the number of draws of the iteration: a
        resumed run asks for those that are missing, which are fewer.
        """


class Here:
    """Evaluates draws in this process and lets exceptions pass."""

    def __init__(self, problem: Problem, needs: Needs) -> None:
        self.problem, self.needs = problem, needs

    def __call__(
        self, iteration: int, theta: Array, keep: Keep | None = None, total: int | None = None, /
    ) -> tuple[Array, ...]:
        """Evaluate all draws at once; a few at a time if they are to be kept and the function takes one draw."""
        if keep is None or not self.problem.one_by_one(self.needs):
            return self.problem.evaluate_at(iteration, theta, self.needs)
        parts = []
        for rows in slices(np.arange(len(theta))):
            parts.append(self.problem.evaluate_at(iteration, theta[rows], self.needs))
            keep(rows, parts[-1])
        return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


@contextmanager
def evaluator(
    problem: Problem,
    needs: Needs,
    n_jobs: int | None,
    timeout: float | None,
    failures: Failures,
    valued: bool = False,
) -> Iterator[Evaluator]:
    """Choose how `fit` evaluates draws: `Here`, or in a `Pool` if workers or a timeout were asked for.

    A pool counts the draws without a value in ``failures``; ``valued`` says whether some draw had a value before, in a
    run that is resumed. A ``timeout`` that cannot be kept here is a warning.
    """
    if n_jobs is not None and (not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool)):
        raise InvalidTypeError(f"n_jobs must be a number of workers, -1 for one a core; got {n_jobs!r}")
    if n_jobs == 0:
        raise InvalidInputError("n_jobs must be a number of workers, or -1 for one a core; got 0")
    if timeout is not None and positive_number(timeout, "timeout") > LONGEST:
        timeout = None
    if timeout is not None and not available():
        warn_user(
            "timeout= cannot stop a draw that is evaluated in this process: it takes an alarm signal, which "
            "Windows does not have and only the main thread gets; call fit there, or send draws to other "
            "processes (n_jobs=2), which are ended if need be",
            MgvbpWarning,
            "timeout",
        )
    workers = 1
    # Without n_jobs, workers are asked for by joblib.parallel_config: only a program that imported joblib calls it.
    if n_jobs is not None or "joblib" in sys.modules:
        import joblib

        workers = int(joblib.effective_n_jobs(n_jobs))
    if workers == 1 and timeout is None:
        yield Here(problem, needs)
    else:
        with closing(Pool(problem, needs, workers, timeout, failures, valued)) as pool:
            yield pool
