"""Evaluations by several workers: draws in chunks through joblib, and what happens when one fails.

joblib's backend (`joblib.parallel_config`) decides what a worker is: a process (loky), a thread, a task of a Dask or
Ray cluster. The model reaches each worker once, as an array that joblib maps into memory (processes) or scatters
(Dask); after that a chunk is some draws. Chunks are sized by the measured cost of a draw, and where all draws of an
iteration cost less than the trouble they are evaluated here.

A chunk that raises, takes too long or loses its worker is taken apart: each of its draws is tried once more, alone.
What fails again has the value NaN, is left out like any other draw without a value, and is counted.
"""

from __future__ import annotations

import math
import pickle
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing import TimeoutError as PoolTimeoutError
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.checks import positive_number
from mgvbp.deadline import Deadline, deadline
from mgvbp.errors import DivergenceError, InvalidTypeError
from mgvbp.problem import Needs, Problem

Evaluate = Callable[[int, Array], tuple[Array, ...]]
Indices = NDArray[np.intp]

WORTHWHILE = 0.02
"""Seconds that the draws of an iteration take here from which others are asked to help."""
CHUNK = 0.05
"""Seconds that a chunk should take: short beside an iteration, long beside a pool's own milliseconds."""
SLACK = 5.0
"""Seconds beyond the limit after which a worker that does not stop by itself is killed."""
MOST_FAILURES = 0.5
"""Share of an iteration's draws that may fail."""
LEAST_DRAWS = 10
"""Draws of an iteration from which that share means something."""


class Done(NamedTuple):
    """What an attempt came to: the arrays of `Problem.evaluate_at` and the seconds they took."""

    arrays: tuple[Array, ...]
    seconds: float


class Failed(NamedTuple):
    """Why there are none: ``raised``, ``timed_out`` or ``lost``, and what was raised."""

    kind: str
    error: str


@dataclass
class Failures:
    """Draws that had no value at the second attempt either, by reason."""

    raised: int = 0
    timed_out: int = 0
    lost: int = 0
    first_error: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """The reasons that occurred."""
        counts = {"raised": self.raised, "timed_out": self.timed_out, "lost": self.lost}
        return {reason: count for reason, count in counts.items() if count}

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        reasons = {
            "raised an exception": self.raised,
            "timed out": self.timed_out,
            "lost their worker": self.lost,
        }
        listed = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return listed + (f" (the first: {self.first_error})" if self.first_error else "")


def evaluator(
    problem: Problem, needs: Needs, n_jobs: int | None, timeout: float | None
) -> AbstractContextManager[Evaluate]:
    """How `fit` evaluates draws: here, or, if asked for, through a `Pool`."""
    if n_jobs is not None and (not isinstance(n_jobs, int | np.integer) or n_jobs == 0):
        raise InvalidTypeError(f"n_jobs must be a number of workers, -1 for one a core; got {n_jobs!r}")
    if timeout is not None:
        positive_number(timeout, "timeout")
    # without a word from the user joblib is not imported, and then no parallel_config can be in force
    workers = _workers(n_jobs) if n_jobs is not None or "joblib" in sys.modules else 1
    if workers == 1 and timeout is None:
        return nullcontext(partial(problem.evaluate_at, needs=needs))
    return Pool(problem, needs, workers, timeout)


def _workers(n_jobs: int | None) -> int:
    import joblib

    return int(joblib.effective_n_jobs(n_jobs))


class Pool:
    """A function of the iteration and its draws that evaluates them by several workers.

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
    """

    def __init__(self, problem: Problem, needs: Needs, workers: int, timeout: float | None) -> None:
        self._problem, self._needs, self._workers, self._timeout = problem, needs, workers, timeout
        self.failures = Failures()
        self._cost: float | None = None
        self._token, self._payload = uuid.uuid4().hex, np.empty(0, np.uint8)
        self._parallel: Any = None
        self._ready = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._parallel is not None:
            self._parallel.__exit__(kind, value, trace)
            MODELS.pop(self._token, None)

    def __call__(self, iteration: int, theta: Array) -> tuple[Array, ...]:
        """What the problem's function gives for all rows of ``theta``; NaN where it failed twice."""
        found: list[tuple[Indices, Done]] = []
        failed: list[tuple[Indices, Failed]] = []
        start = 0
        if self._cost is None:  # one draw shows what the others will cost
            start = 1
            self._sort(self._run(iteration, theta, [np.arange(1)]), found, failed)
        chunks = self._chunks(np.arange(start, len(theta)))
        self._sort(self._run(iteration, theta, chunks), found, failed)
        again = [np.array([i]) for rows, _ in failed for i in rows]
        failed = []
        self._sort(self._run(iteration, theta, again), found, failed)
        self._count(failed, theta)
        width = {"values": 1, "gradients": 2, "squares": 3}[self._needs]
        arrays = tuple(np.full(theta.shape[: 1 + (k > 0)], np.nan) for k in range(width))
        for rows, done in found:
            for array, part in zip(arrays, done.arrays, strict=True):
                array[rows] = part
        seconds = sum(done.seconds for _, done in found)
        self._cost = seconds / max(sum(len(rows) for rows, _ in found), 1)
        return arrays

    def _sort(
        self,
        outcomes: Iterator[tuple[Indices, Done | Failed]],
        found: list[tuple[Indices, Done]],
        failed: list[tuple[Indices, Failed]],
    ) -> None:
        for rows, outcome in outcomes:
            if isinstance(outcome, Done):
                found.append((rows, outcome))
                self._cost = outcome.seconds / len(rows) if self._cost is None else self._cost
            else:
                failed.append((rows, outcome))

    def _count(self, failed: list[tuple[Indices, Failed]], theta: Array) -> None:
        for _, failure in failed:
            setattr(self.failures, failure.kind, getattr(self.failures, failure.kind) + 1)
            self.failures.first_error = self.failures.first_error or failure.error
        if len(failed) > MOST_FAILURES * len(theta) and len(theta) >= LEAST_DRAWS:
            raise DivergenceError(
                f"{len(failed)} of {len(theta)} draws failed twice: {failed[0][1].error}; the draws are this "
                "exception's .theta",
                theta,
            )

    # --- chunks ---------------------------------------------------------------------------------------

    def _chunks(self, rows: Indices) -> list[Indices]:
        """The draws in chunks: few enough for the pool, enough for the workers to end at about the same time."""
        if len(rows) == 0:
            return []
        if not self._pays(len(rows)):
            return [rows]
        assert self._cost is not None
        number = min(len(rows), max(self._workers, math.ceil(len(rows) * self._cost / CHUNK)))
        return np.array_split(rows, number)

    def _pays(self, draws: int) -> bool:
        return self._workers > 1 and self._cost is not None and draws * self._cost > WORTHWHILE

    def _limit(self, draws: int) -> float | None:
        return None if self._timeout is None else self._timeout + 10.0 * draws * (self._cost or 0.0)

    def _run(
        self, iteration: int, theta: Array, chunks: list[Indices]
    ) -> Iterator[tuple[Indices, Done | Failed]]:
        """Attempt each chunk once, here or by the workers."""
        if not chunks:
            return
        if not self._pays(sum(map(len, chunks))):
            for rows in chunks:
                yield (
                    rows,
                    attempt(self._problem, iteration, theta[rows], self._needs, self._limit(len(rows))),
                )
            return
        yield from self._distribute(iteration, theta, chunks)

    def _distribute(
        self, iteration: int, theta: Array, chunks: list[Indices]
    ) -> Iterator[tuple[Indices, Done | Failed]]:
        from joblib import delayed

        waiting = dict(enumerate(chunks))
        while waiting:
            limit = self._limit(max(map(len, waiting.values())))
            parallel = self._pool(None if limit is None else limit + SLACK)
            tasks = [
                delayed(work)(self._token, self._payload, k, iteration, theta[rows], self._needs, limit)
                for k, rows in waiting.items()
            ]
            try:
                with _one_blas_thread(self._shared):
                    for k, outcome in parallel(tasks):
                        yield waiting.pop(k), outcome
            except (PoolTimeoutError, TimeoutError, BrokenExecutor) as error:
                # tasks start in order, as many as there are workers: among the first that are left is the culprit
                kind = "lost" if isinstance(error, BrokenExecutor) else "timed_out"
                self._ready = False
                for k in list(waiting)[: self._workers]:
                    yield waiting.pop(k), Failed(kind, f"{type(error).__name__}: {error}")

    # --- the pool -------------------------------------------------------------------------------------

    @property
    def _shared(self) -> bool:
        """Whether workers are threads of this process."""
        from joblib.parallel import get_active_backend

        return bool(getattr(get_active_backend()[0], "supports_sharedmem", False))

    def _pool(self, timeout: float | None) -> Any:
        """The pool, its workers ready; the first call sends the model on its way."""
        if self._parallel is None:
            from joblib import Parallel

            if self._shared:
                MODELS[self._token] = self._problem
            else:
                import cloudpickle

                self._payload = np.frombuffer(cloudpickle.dumps(self._problem), np.uint8)
            self._parallel = Parallel(
                n_jobs=self._workers, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
            ).__enter__()
        if not self._ready:  # workers take seconds to start, which are not the first draws' fault
            from joblib import delayed

            self._parallel.timeout = None
            tasks = (delayed(ready)(self._token, self._payload) for _ in range(2 * self._workers))
            self._ready = all(self._parallel(tasks))
        self._parallel.timeout = timeout
        return self._parallel


MODELS: dict[str, Problem] = {}
"""In a worker, the model that it works on; in this process, those of fits whose workers are threads."""


def work(
    token: str,
    payload: NDArray[np.uint8],
    number: int,
    iteration: int,
    theta: Array,
    needs: Needs,
    limit: float | None,
) -> tuple[int, Done | Failed]:
    """Attempt a chunk in a worker."""
    return number, attempt(model(token, payload), iteration, theta, needs, limit)


def ready(token: str, payload: NDArray[np.uint8]) -> bool:
    """Whether a worker has started and has the model."""
    return model(token, payload) is not None


def model(token: str, payload: NDArray[np.uint8]) -> Problem:
    """The model of this token; a worker keeps it until another one comes."""
    problem = MODELS.get(token)
    if problem is None:
        MODELS.clear()
        problem = MODELS[token] = pickle.loads(payload.data)
    return problem


def attempt(
    problem: Problem, iteration: int, theta: Array, needs: Needs, limit: float | None
) -> Done | Failed:
    """Evaluate some draws; exceptions become values."""
    start = time.perf_counter()
    try:
        with deadline(limit):
            arrays = problem.evaluate_at(iteration, theta, needs)
    except Deadline:
        return Failed("timed_out", f"took longer than {limit:g} seconds")
    except Exception as error:
        return Failed("raised", f"{type(error).__name__}: {error}")
    return Done(arrays, time.perf_counter() - start)


@contextmanager
def _one_blas_thread(shared: bool) -> Iterator[None]:
    """Threads of one process share its BLAS, which must not start as many again; other backends see to it."""
    if not shared:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
