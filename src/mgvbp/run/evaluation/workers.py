"""Workers that evaluate chunks of draws: what is sent to them, what they do with it, and what happens when one is lost.

joblib's backend (`joblib.parallel_config`) says what a worker is: a process (loky), a thread, or a task of a Dask or
Ray cluster. Each is an executor of `concurrent.futures`. When a process dies, a pool of several breaks as a whole and
does not say which task was to blame; so each process is a pool of its own. The model reaches a process once; after that
a task is the draws of a chunk.
"""

from __future__ import annotations

import math
import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from functools import partial
from importlib import import_module
from typing import Any

from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError, MgvbpError
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run.evaluation.attempts import Answer, Done, Failed, Indices, attempt
from mgvbp.run.evaluation.deadline import available

SLACK = 5.0
"""Seconds beyond the limit after which a worker that does not stop by itself is ended.

With half of it a busy machine would lose workers that are about to answer; with twice as much a fit waits longer for
one that hangs.
"""
START = 300.0
"""Seconds in which a worker must be there: a process needs one or a few, and a cluster may be busy with something else.

With half of it a fit would more often give up a cluster that would have had time for it; twice as much only waits.
"""
IDLE = 300.0
"""Seconds after which a process without a task ends, as joblib's do; until then the next fit need not start one."""
NUMBERS_OF_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip
"""Variables that say how many threads a library may use; each process has its share of the cores."""
RESTING: dict[int, list[Executor]] = {}
"""Processes that earlier fits have left, by the number of workers that share the cores."""


class Workers:
    """Attempts to evaluate chunks by joblib's workers, and counts those that are lost; `close` it after use."""

    def __init__(self, problem: Problem, needs: Needs, number: int, failures: Failures) -> None:
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        shares = getattr(backend, "supports_sharedmem", False)
        self._dask = getattr(backend, "client", None)
        self._model = problem if shares else os.urandom(16).hex()
        self._content = b"" if shares else packed(problem)
        self._open = opener(backend, number)
        self._processes = not (shares or self._dask or self._open is RayTasks)
        self._needs, self._failures, self._number = needs, failures, number
        # Dask takes a while to answer, and shares out tasks itself.
        self._most = math.inf if self._dask else number
        self._idle = RESTING.pop(number, []) if self._processes else []
        self._busy: dict[Future[Any], tuple[Executor, Indices, float]] = {}
        self._scattered: Any = None

    def close(self) -> None:
        """Let the workers go, and end those that are still at work."""
        for future, (executor, *_) in self._busy.items():
            self._end(executor, future)
        if self._processes:
            RESTING.setdefault(self._number, []).extend(self._idle)
        self._busy, self._idle = {}, []

    def attempts(
        self, iteration: int, theta: Array, chunks: list[Indices], limit: float | None
    ) -> Iterator[Answer]:
        """Attempt each chunk within ``limit`` seconds; the outcomes come as they are known."""
        waiting: deque[tuple[Indices, Any]] = deque((rows, b"") for rows in chunks)
        present = self._addresses()
        while waiting or self._busy:
            while waiting and len(self._busy) < self._most:
                rows, content = waiting.popleft()
                slack = SLACK if self._idle else START
                # Dask's tasks may wait.
                patience = math.inf if limit is None or self._dask else limit + slack
                executor = self._idle.pop() if self._idle else self._open()
                task = (self._model, content, iteration, theta[rows], self._needs, limit)
                try:
                    self._busy[executor.submit(work, *task)] = executor, rows, time.monotonic() + patience
                except BrokenExecutor:  # It was lost while it had nothing to do.
                    waiting.appendleft((rows, content))
            for future, executor, rows in self._ended():
                outcome = self._outcome(future, executor)
                if outcome is None:
                    waiting.appendleft((rows, self._sent()))
                else:
                    yield rows, outcome
        for _ in present - self._addresses():  # Dask itself says nothing of workers that are gone.
            self._failures.add("workers_lost")

    def _ended(self) -> list[tuple[Future[Any], Executor, Indices]]:
        """Wait for a task that has ended, or that should have; such tasks are no longer among the busy."""
        end = min(end for *_, end in self._busy.values())
        wait(self._busy, min(START, max(0.0, end - time.monotonic())), FIRST_COMPLETED)
        over = [f for f, (*_, end) in self._busy.items() if f.done() or time.monotonic() >= end]
        if not over and self._dask is not None and not self._dask.ncores():
            raise DivergenceError(f"the cluster has had no workers for {START:g} seconds")
        return [(future, *self._busy.pop(future)[:2]) for future in over]

    def _outcome(self, future: Future[Any], executor: Executor) -> Done | Failed | None:
        """What came of a task; None if its worker has no model."""
        if future.done() and not future.cancelled() and future.exception() is None:
            self._idle.append(executor)
            outcome: Done | Failed | None = future.result()
            if isinstance(outcome, Failed) and outcome.reason == "unready":
                raise DivergenceError(f"the workers could not be started: {outcome.error}")
            return outcome
        # The function's exceptions are outcomes: this one is the executor's.
        if self._processes:
            self._failures.add("workers_lost")
        if not future.done():
            self._end(executor, future)
            return Failed("timed_out", "does not return, and its worker does not hear the alarm")
        error = None if future.cancelled() else future.exception()
        return Failed("lost", f"{type(error).__name__}: {error}" if error else "its worker is gone")

    def _end(self, executor: Any, future: Future[Any]) -> None:
        """End a task: a process is killed; a task of a cluster is cancelled, and a thread left behind."""
        future.cancel()
        if self._processes:
            executor.shutdown(wait=False, kill_workers=True)

    def _sent(self) -> Any:
        """The model as a task takes it along. For Dask it is put on a worker, and again if that worker is lost."""
        if self._dask is None:
            return self._content
        if self._scattered is None or self._scattered.status != "finished":
            self._scattered = self._dask.scatter(self._content, hash=False)
        return self._scattered

    def _addresses(self) -> set[str]:
        """The workers of Dask that are there."""
        return set() if self._dask is None else set(self._dask.ncores())


def packed(problem: Problem) -> bytes:
    """The model in a form that other processes understand."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(problem))
    except MgvbpError:  # It comes from a part of ours, which knows better why, and what to do.
        raise
    except Exception as error:
        raise InvalidInputError(
            f"the model cannot be sent to other processes: {error}; "
            "joblib.parallel_config(backend='threading') leaves it in this one"
        ) from error


# --- executors ------------------------------------------------------------------------------------------


def opener(backend: Any, number: int) -> Callable[[], Executor]:
    """How to make an executor for one task at a time."""
    if getattr(backend, "supports_sharedmem", False):
        return Threads
    if getattr(backend, "client", None) is not None:
        return partial(backend.client.get_executor, pure=False)
    if type(backend).__module__.startswith("ray."):
        return RayTasks
    from joblib.externals.loky import ProcessPoolExecutor

    share = str(max(1, (os.cpu_count() or 1) // number))  # of the cores
    environment = {name: os.environ.get(name, share) for name in NUMBERS_OF_THREADS}
    return partial(ProcessPoolExecutor, 1, timeout=IDLE, env=environment)


class Threads(Executor):
    """A thread for each task, which is left behind if it hangs; a pool's threads would keep Python from ending."""

    def submit(self, function: Callable[..., Any], /, *given: Any) -> Future[Any]:  # type: ignore[override]
        """Begin to evaluate."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                future.set_result(function(*given))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future


class RayTasks(Executor):
    """Tasks of Ray, which Ray does not repeat when their worker is lost."""

    def submit(self, function: Callable[..., Any], /, *given: Any) -> Future[Any]:  # type: ignore[override]
        """Begin to evaluate."""
        ray: Any = import_module("ray")
        future: Future[Any] = ray.remote(max_retries=0)(function).remote(*given).future()
        return future


# --- in a worker ----------------------------------------------------------------------------------------

RECEIVED: dict[str, Problem] = {}
"""The last model that came to this process, by the name that its fit gave it."""
LOCK = threading.Lock()


def received(model: str, content: bytes) -> Problem | None:
    """The model of this name, which is unpacked once a process; None if it has not come yet."""
    with LOCK:  # A worker of Dask may have several threads.
        if model not in RECEIVED and content:
            RECEIVED.clear()
            RECEIVED[model] = pickle.loads(content)
        return RECEIVED.get(model)


def work(
    model: Problem | str, content: bytes, iteration: int, theta: Array, needs: Needs, limit: float | None
) -> Done | Failed | None:
    """Attempt a chunk in a worker; None if the worker has no model.

    Whatever is raised is a failure, as an interrupt in a worker is not the user's. A thread gets no alarm signal:
    there a chunk with a limit is evaluated in another thread, which is left behind if it hangs.
    """
    try:
        problem = received(model, content) if isinstance(model, str) else model
    except BaseException as error:
        return Failed("unready", f"{type(error).__name__}: {error}")
    if problem is None:
        return None
    if limit is None or available():
        return attempt(problem, iteration, theta, needs, limit, (BaseException,))
    beside = Threads().submit(attempt, problem, iteration, theta, needs, None, (BaseException,))
    if beside in wait([beside], limit).done:
        outcome: Done | Failed = beside.result()
        return outcome
    return Failed("timed_out", f"took longer than {limit:g} seconds")
