"""joblib's workers: what is sent to them, what they do with it, and what is known when one is lost.

joblib's backend (`joblib.parallel_config`) decides what a worker is: a process (loky), a thread, or a task of a Dask or
Ray cluster. The model reaches each process once; after that a task is the draws of a chunk.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing import TimeoutError as PoolTimeoutError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError, MgvbpError
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run.attempts import Done, Failed, Indices, Outcome, attempt
from mgvbp.run.deadline import available

Packed = NDArray[np.uint8]
"""A pickled model as an array: joblib shows the same memory to all processes of a machine if an array is large."""
NOTHING: Packed = np.empty(0, np.uint8)

SLACK = 5.0
"""Seconds beyond the timeout after which a worker that does not stop by itself is ended.

A chunk may take one second more than a single draw (see `Cost.limit`) and the messages some time. With half of it a busy
machine would lose workers that are about to answer; twice as much is how long a fit waits for one that hangs.
"""
START = 600.0
"""Seconds in which the workers must be there. Half an hour's queue of a cluster is too long, a busy minute is not."""
REPLACEMENT = 120.0
"""Seconds in which the workers must be back after one was lost."""
ROUNDS = 2
"""Tasks a worker that bring the model at the start; a worker that gets none of them asks for it later."""


class Workers:
    """Attempts to evaluate chunks by joblib's workers; `close` it after use.

    Parameters
    ----------
    problem : Problem
    needs : {"values", "gradients", "squares"}
    number : int
    timeout : float or None
        Seconds that a draw may take.
    failures : Failures
        Where workers that are lost are counted.
    """

    def __init__(
        self, problem: Problem, needs: Needs, number: int, timeout: float | None, failures: Failures
    ) -> None:
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        self._needs, self._number, self._failures = needs, number, failures
        self._model: Problem | str = uuid.uuid4().hex
        self._content = NOTHING
        if getattr(backend, "supports_sharedmem", False):
            self._model = problem
        else:
            self._content = packed(problem)
        self._dask = getattr(backend, "client", None)
        self._addresses = self._present()
        streams = getattr(backend, "supports_return_generator", False)  # Dask and Ray do not
        self._options: dict[str, Any] = {
            "return_as": "generator_unordered" if streams else "list",
            "timeout": None if timeout is None else timeout + SLACK,
        }
        self._patience = START
        self._parallel: Any = None
        self._stack = ExitStack()

    def close(self) -> None:
        """Let the workers go; they are started again when they are needed."""
        self._stack.close()
        self._parallel = None

    def attempts(
        self, iteration: int, theta: Array, chunks: list[Indices], limit: float | None, last: bool
    ) -> Iterator[Outcome]:
        """Attempt each chunk within ``limit`` seconds; the outcomes come as they are known.

        When a worker is lost, joblib does not say which chunk it had. Chunks are begun in order, so that it is among
        the first without an outcome, one for each worker. These fail. The ``last`` time they are tried one after the
        other instead, which shows the one that kills its worker.
        """
        from joblib import delayed

        self._addresses = self._present()
        content, groups = NOTHING, [chunks]
        while groups:
            waiting = dict(enumerate(groups.pop(0)))
            if not waiting:
                continue
            parallel = self._started()
            # Draws are in a tuple: joblib would give an array to one of Dask's workers and lose it together with him.
            tasks = [
                delayed(work)(self._model, content, k, iteration, (theta[rows],), self._needs, limit)
                for k, rows in waiting.items()
            ]
            broken: Exception | None = None
            try:
                for k, outcome in parallel(tasks):
                    if outcome is not None:
                        yield waiting.pop(k), outcome
            except Exception as error:  # It is none of the function, whose exceptions are outcomes.
                broken = error
            left = list(waiting.values())
            if broken is None:
                content = self._content  # Chunks are left over that came to workers without a model.
                groups.insert(0, left)
                continue
            self.close()
            self._count_lost(broken=True)
            suspects, innocent = left[: self._number], left[self._number :]
            if last and len(suspects) > 1:
                groups = [*([rows] for rows in suspects), innocent, *groups]
            else:
                groups.insert(0, innocent)
                reason = "timed_out" if isinstance(broken, PoolTimeoutError | TimeoutError) else "lost"
                failure = Failed(reason, f"{type(broken).__name__}: {broken}")
                yield from ((rows, failure) for rows in suspects)
        self._count_lost(broken=False)

    def _started(self) -> Any:
        """joblib's pool. Its start, with the model, takes seconds, which do not count as those of the first draws."""
        from joblib import Parallel, delayed

        if self._parallel is None:
            options = {"n_jobs": self._number, "batch_size": 1}
            try:
                Parallel(**options, timeout=self._patience)(
                    delayed(prepare)(self._model, self._content) for _ in range(ROUNDS * self._number)
                )
                self._parallel = self._stack.enter_context(Parallel(**options, **self._options))
            except Exception as error:
                message = f"the workers could not be started: {type(error).__name__}: {error}"
                raise DivergenceError(message) from error
            self._patience = REPLACEMENT
        return self._parallel

    def _present(self) -> set[str]:
        """The addresses of Dask's workers; none for other backends."""
        return set() if self._dask is None else set(self._dask.ncores())

    def _count_lost(self, broken: bool) -> None:
        """Count lost workers: those of Dask, who gives their tasks to others without a word, or the one of a pool."""
        if self._dask is None:
            lost = int(broken)
        else:
            before, self._addresses = self._addresses, self._present()
            lost = len(before - self._addresses)
        for _ in range(lost):
            self._failures.add("workers_lost")


def packed(problem: Problem) -> Packed:
    """The model in a form that other processes understand."""
    import cloudpickle

    try:
        return np.frombuffer(cloudpickle.dumps(problem), np.uint8)
    except MgvbpError:  # It comes from a part of ours, which knows better why, and what to do.
        raise
    except Exception as error:
        raise InvalidInputError(
            f"the model cannot be sent to other processes: {error}; "
            "joblib.parallel_config(backend='threading') leaves it in this one"
        ) from error


# --- in a worker ----------------------------------------------------------------------------------------

RECEIVED: dict[str, Problem] = {}
"""The last model that came to this process, by the name that its fit gave it."""
LOCK = threading.Lock()


def prepare(model: Problem | str, content: Packed) -> None:
    """Take the model."""
    received(model, content)


def received(model: Problem | str, content: Packed) -> Problem | None:
    """Return the model of this name, unpacked once a process; None where it is not known and did not come along."""
    if isinstance(model, Problem):
        return model
    with LOCK:  # A worker of Dask may have several threads.
        if model not in RECEIVED and len(content):
            RECEIVED.clear()
            RECEIVED[model] = pickle.loads(content.data)
        return RECEIVED.get(model)


def work(
    model: Problem | str,
    content: Packed,
    number: int,
    iteration: int,
    draws: tuple[Array],
    needs: Needs,
    limit: float | None,
) -> tuple[int, Done | Failed | None]:
    """Attempt the chunk of this number in a worker; None if the worker has no model.

    Whatever is raised is a failure, as an interrupt in a worker is not the user's. A thread gets no alarm signal, so
    that a chunk with a limit is evaluated in a thread beside it, which is left behind if it hangs.
    """
    problem = received(model, content)
    if problem is None:
        return number, None
    if limit is None or available():
        return number, attempt(problem, iteration, draws[0], needs, limit, (BaseException,))
    found: list[Done | Failed] = []
    beside = threading.Thread(
        target=lambda: found.append(attempt(problem, iteration, draws[0], needs, None, (BaseException,))),
        daemon=True,
    )
    beside.start()
    beside.join(limit)
    return number, found[0] if found else Failed("timed_out", f"took longer than {limit:g} seconds", limit)
