"""How a fit is carried out: who evaluates the draws, what is shown and what is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from mgvbp._linalg import Array
from mgvbp.attempts import Failures
from mgvbp.checkpoint import Recorder
from mgvbp.errors import InvalidTypeError
from mgvbp.loop import AskTell, Callback, Iteration, Judge, Run, run
from mgvbp.parallel import Evaluate, Pool, evaluator
from mgvbp.problem import Needs, Problem
from mgvbp.progress import progress_bar


@dataclass(frozen=True)
class Execution:
    """What `fit` was asked for besides the result; see there."""

    n_jobs: int | None
    timeout: float | None
    progress: bool
    callback: Callback | None
    recorder: Recorder | None

    def __post_init__(self) -> None:
        if self.callback is not None and not callable(self.callback):
            raise InvalidTypeError(f"callback must be a function of an Iteration; got {self.callback!r}")

    def run(
        self,
        problem: Problem,
        optimizer: AskTell,
        needs: Needs,
        judge: Judge,
        max_iterations: float,
        max_evaluations: float,
    ) -> tuple[Run, Failures]:
        """Run the loop; returns how it ended and which evaluations failed."""
        total = None if max_iterations == float("inf") else int(max_iterations)
        before = _workers_lost(problem)
        with self._hint(), ExitStack() as stack:
            report = stack.enter_context(progress_bar(self.progress, total))
            evaluate = pool = stack.enter_context(evaluator(problem, needs, self.n_jobs, self.timeout))
            failures = pool.failures if isinstance(pool, Pool) else Failures()
            if self.recorder is not None:
                evaluate, failures = self.recorder.recording(evaluate), self.recorder.failures
                stack.callback(self.recorder.write)
            if isinstance(pool, Pool):
                evaluate = _announced(evaluate, pool)
            outcome = run(optimizer, evaluate, judge, max_iterations, max_evaluations, self._callback, report)
            failures.workers_lost += _workers_lost(problem) - before
        return outcome, failures

    @contextmanager
    def _hint(self) -> Iterator[None]:
        """Say how to go on after an interrupt before there is a result; the checkpoint is written then."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if self.recorder is not None and self.recorder.resumption:
                interrupt.add_note(f"there is no posterior yet: {self.recorder.resumption}")
            raise

    @property
    def _callback(self) -> Callback | None:
        """The callback, which has seen the iterations of an earlier life."""
        callback, seen = self.callback, len(self.recorder.told) if self.recorder else 0
        if callback is None or seen == 0:
            return callback

        def for_new_ones(iteration: Iteration) -> object:
            return iteration.iteration > seen and callback(iteration)

        return for_new_ones


def _announced(evaluate: Evaluate, pool: Pool) -> Evaluate:
    """``evaluate``, before which the pool hears how many draws the iteration has: a resumed run asks for the rest."""

    def announced(iteration: int, theta: Array) -> tuple[Array, ...]:
        pool.draws = len(theta)
        return evaluate(iteration, theta)

    return announced


def _workers_lost(problem: Problem) -> int:
    """Workers that a `mgvbp.ShardedLikelihood` has lost so far."""
    return int(getattr(problem.log_likelihood, "workers_lost", 0))
