"""joblib's workers: what is sent to them, what they do with it, and what is known when one is lost.

joblib's backend (`joblib.parallel_config`) decides what a worker is: a process (loky), a thread, or a task of a Dask or
Ray cluster. The model reaches each process once; after that a task is the draws of a chunk.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
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

A chunk may take a second more than a single draw (see `Cost.limit`), and messages take some time. With half of it a
busy machine would lose workers that are about to answer; with twice as much a fit waits longer for one that hangs.
"""
START = 300.0
"""Seconds in which the workers must be there: processes need a few, and a cluster may be busy with something else.

With half of it a fit would more often give up a cluster that would have had time for it; twice as much only waits.
"""


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
        shares = getattr(backend, "supports_sharedmem", False)
        self._model = problem if shares else uuid.uuid4().hex
        self._content = NOTHING if shares else packed(problem)
        self._needs, self._number, self._timeout, self._failures = needs, number, timeout, failures
        self._streams = getattr(backend, "supports_return_generator", False)  # Dask's and Ray's do not.
        self._dask = getattr(backend, "client", None)
        elsewhere = self._dask is not None and not any(a.startswith("inproc") for a in self._dask.ncores())
        self._home = os.getpid() if elsewhere else 0
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

        content, groups, addresses = NOTHING, [chunks], self._watched(set())
        while groups:
            waiting = dict(enumerate(groups.pop(0)))
            if not waiting:
                continue
            parallel = self._started()
            # Draws are in a tuple: joblib would give an array to one of Dask's workers, and it would be lost with him.
            tasks = [
                delayed(work)(
                    self._model, content, k, iteration, (theta[rows],), self._needs, limit, self._home
                )
                for k, rows in waiting.items()
            ]
            broken: Exception | None = None
            try:
                for k, outcome in parallel(tasks):
                    if outcome is not None:
                        yield waiting.pop(k), outcome
            except Exception as error:  # The function's exceptions are outcomes: this one is the pool's.
                broken = error
            left = list(waiting.values())
            if broken is None:
                content = self._content  # What is left came to workers without a model, or to this process.
                groups.insert(0, left)
                if left and self._home:
                    self.close()
                continue
            self.close()
            addresses = self._watched(addresses)
            if self._dask is None:
                self._failures.add("workers_lost")
            suspects, others = left[: self._number], left[self._number :]
            if last and len(suspects) > 1:
                groups = [*([rows] for rows in suspects), others, *groups]
            else:
                groups.insert(0, others)
                reason = "timed_out" if isinstance(broken, PoolTimeoutError | TimeoutError) else "lost"
                failure = Failed(reason, f"{type(broken).__name__}: {broken}")
                yield from ((rows, failure) for rows in suspects)
        self._watched(addresses)

    def _watched(self, before: set[str]) -> set[str]:
        """Return the addresses of Dask's workers, and count those that are gone: Dask itself says nothing of them."""
        present = set() if self._dask is None else set(self._dask.ncores())
        for _ in before - present:
            self._failures.add("workers_lost")
        return present

    def _started(self) -> Any:
        """The pool; its start, with the model, takes seconds, which do not count as those of the first draws."""
        from joblib import Parallel, delayed

        if self._parallel is None:
            options: dict[str, Any] = {"n_jobs": self._number, "batch_size": 1}
            # Some workers may get two of these tasks, and others none: they will ask for the model.
            greetings = [delayed(receive)(self._model, self._content)] * (2 * self._number)
            try:
                self._wait_for_two()
                Parallel(**options, timeout=START)(greetings)
            except Exception as error:
                message = f"the workers could not be started: {type(error).__name__}: {error}"
                raise DivergenceError(message) from error
            options["return_as"] = "generator_unordered" if self._streams else "list"
            options["timeout"] = None if self._timeout is None else self._timeout + SLACK
            self._parallel = self._stack.enter_context(Parallel(**options))
        return self._parallel

    def _wait_for_two(self) -> None:
        """Wait for two workers of Dask: with one, joblib evaluates in this process, which a draw may kill."""
        end = time.monotonic() + START
        while self._dask is not None and sum(self._dask.ncores().values()) < 2:
            if time.monotonic() > end:
                raise TimeoutError("fewer than two are left")
            time.sleep(0.1)


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


def receive(model: Problem | str, content: Packed) -> None:
    """Unpack a model, once a process; a thread is given the model itself."""
    with LOCK:  # A worker of Dask may have several threads.
        if isinstance(model, str) and model not in RECEIVED and len(content):
            RECEIVED.clear()
            RECEIVED[model] = pickle.loads(content.data)


def work(
    model: Problem | str,
    content: Packed,
    number: int,
    iteration: int,
    draws: tuple[Array],
    needs: Needs,
    limit: float | None,
    home: int,
) -> tuple[int, Done | Failed | None]:
    """Attempt the chunk of this number in a worker; None if the worker has no model, or is the process ``home``.

    There joblib evaluates if it has seen one worker of Dask only, and a draw that kills its worker would kill the fit.
    Whatever is raised is a failure, as an interrupt in a worker is not the user's. A thread gets no alarm signal:
    there a chunk with a limit is evaluated in another thread, which is left behind if it hangs.
    """
    if home == os.getpid():
        return number, None
    receive(model, content)
    problem = RECEIVED.get(model) if isinstance(model, str) else model
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
