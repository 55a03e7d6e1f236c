"""The workers of joblib: what is sent to them, what they do with it, and what is known when one is lost."""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import TimeoutError as PoolTimeoutError
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.attempts import ANYTHING, Done, Failed, Failures, Indices, Outcome, attempt, attempt_beside
from mgvbp.deadline import available
from mgvbp.errors import DivergenceError, InvalidInputError, MgvbpError
from mgvbp.problem import Needs, Problem

Packed = NDArray[np.uint8]

SLACK = 5.0
"""Seconds beyond the limit after which a worker that does not stop by itself is given up."""
START = 600.0
"""Seconds in which the workers must be there: on a cluster they may be busy with something else."""
REPLACEMENT = 120.0
"""Seconds in which the workers must be back after one was lost."""
KEPT = 2
"""Models that a worker remembers: several fits may share it."""


class Workers:
    """joblib's workers, who are given the model once.

    Parameters
    ----------
    problem : Problem
    needs : {"values", "gradients", "squares"}
    number : int
    failures : Failures
        Where workers that are lost are counted.
    """

    def __init__(self, problem: Problem, needs: Needs, number: int, failures: Failures) -> None:
        from joblib import Parallel
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        self._problem, self._needs, self._number, self._failures = problem, needs, number, failures
        self._shared = bool(getattr(backend, "supports_sharedmem", False))
        self._dask = getattr(backend, "client", None)
        self._token, self._payload = uuid.uuid4().hex, NOTHING if self._shared else packed(problem)
        streams = getattr(backend, "supports_return_generator", False)  # Ray does not
        returned = "generator_unordered" if streams else "list"
        self._parallel = Parallel(n_jobs=number, return_as=returned, batch_size=1)
        self._ready = self._met = False
        self._known: set[str] = set()

    def __enter__(self) -> Self:
        if self._shared:
            SHARED[self._token] = self._problem
        self._parallel.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        SHARED.pop(self._token, None)
        self._parallel.__exit__(kind, value, trace)

    def attempts(
        self, iteration: int, theta: Array, chunks: list[Indices], limit: float | None, last: bool
    ) -> Iterator[Outcome]:
        """Attempt each chunk, within ``limit`` seconds; the ``last`` time make sure whose fault a failure is."""
        self._known = self._present()
        yield from self._attempts(iteration, theta, chunks, limit, last)
        self._watch()

    def _attempts(
        self, iteration: int, theta: Array, chunks: list[Indices], limit: float | None, last: bool
    ) -> Iterator[Outcome]:
        from joblib import delayed

        waiting = dict(enumerate(chunks))
        newcomers = False

        def tasks() -> Iterator[Any]:
            for k, rows in list(waiting.items()):
                payload = self._payload if newcomers else NOTHING
                # in a tuple, as joblib would give an array to one of Dask's workers, with whom it would be lost
                yield delayed(work)(self._token, payload, k, iteration, (theta[rows],), self._needs, limit)

        while waiting:
            self._get_ready()
            self._parallel.timeout = None if limit is None else limit + SLACK
            broken: Exception | None = None
            try:
                with _one_blas_thread(self._shared):
                    for k, outcome in self._parallel(tasks()):
                        if outcome is None:
                            newcomers = True  # who do not have the model: from now on tasks bring it
                        else:
                            yield waiting.pop(k), outcome
            except Exception as error:  # not one of the function, whose exceptions are values
                broken = error
            if broken is not None:
                self._ready = False
                timed_out = isinstance(broken, PoolTimeoutError | TimeoutError)
                if self._dask is None:
                    self._failures.workers_lost += 1
                else:
                    self._watch()
                # chunks start in order: among the first that are left is the culprit
                suspects = [waiting.pop(k) for k in list(waiting)[: self._number]]
                if last and len(suspects) > 1:
                    for rows in suspects:
                        yield from self._attempts(iteration, theta, [rows], limit, last)
                else:
                    kind = "timed_out" if timed_out else "lost"
                    failure = Failed(kind, f"{type(broken).__name__}: {broken}")
                    yield from ((rows, failure) for rows in suspects)

    def _present(self) -> set[str]:
        """The addresses of Dask's workers: it gives the tasks of one that is lost to others without a word."""
        return set() if self._dask is None else set(self._dask.ncores())

    def _watch(self) -> None:
        """Count the workers of Dask that are gone."""
        present = self._present()
        self._failures.workers_lost += len(self._known - present)
        self._known = present

    def _get_ready(self) -> None:
        """Start workers and give them the model: it takes seconds, which are not the first draws' fault."""
        from joblib import delayed

        if self._ready:
            return
        self._parallel.timeout = REPLACEMENT if self._met else START
        try:
            for _ in self._parallel(
                delayed(model)(self._token, self._payload) for _ in range(2 * self._number)
            ):
                pass
        except Exception as error:
            raise DivergenceError(
                f"the workers could not be started: {type(error).__name__}: {error}"
            ) from error
        self._ready = self._met = True


# --- in a worker ----------------------------------------------------------------------------------------

NOTHING: Packed = np.empty(0, np.uint8)
SHARED: dict[str, Problem] = {}
"""The models of fits whose workers are threads of this process."""
RECEIVED: dict[str, Problem] = {}
"""The models that came to this process, if it is a worker."""
LOCK = threading.Lock()


def packed(problem: Problem) -> Packed:
    """The model in a form that other processes understand."""
    import cloudpickle

    try:
        return np.frombuffer(cloudpickle.dumps(problem), np.uint8)
    except MgvbpError:  # of a part of ours, which knows better why, and what to do
        raise
    except Exception as error:
        raise InvalidInputError(
            f"the model cannot be sent to other processes: {error}; "
            "joblib.parallel_config(backend='threading') leaves it in this one"
        ) from error


def received(token: str, payload: Packed) -> Problem | None:
    """The model of this token, unpacked once a process; None where it is not known and did not come along."""
    with LOCK:  # a worker of Dask may have several threads
        problem = SHARED.get(token) or RECEIVED.get(token)
        if problem is None and len(payload):
            while len(RECEIVED) >= KEPT:
                del RECEIVED[next(iter(RECEIVED))]
            problem = RECEIVED[token] = pickle.loads(payload.data)
        return problem


def model(token: str, payload: Packed) -> None:
    """Take a model."""
    received(token, payload)


def work(
    token: str,
    payload: Packed,
    number: int,
    iteration: int,
    draws: tuple[Array],
    needs: Needs,
    limit: float | None,
) -> tuple[int, Done | Failed | None]:
    """Attempt a chunk in a worker; None if it has no model."""
    problem = received(token, payload)
    if problem is None:
        return number, None
    if limit is None or available():
        return number, attempt(problem, iteration, draws[0], needs, limit, ANYTHING)
    return number, attempt_beside(problem, iteration, draws[0], needs, limit)


@contextmanager
def _one_blas_thread(shared: bool) -> Iterator[None]:
    """Threads of one process share its BLAS, which must not start as many again; other backends see to it."""
    if not shared:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield
