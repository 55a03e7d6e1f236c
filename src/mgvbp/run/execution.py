"""Who evaluates the draws of a run, what is shown of it and what is recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from mgvbp.core.outcome import Outcome
from mgvbp.errors import InvalidTypeError
from mgvbp.posterior.failures import Failures
from mgvbp.problem.problem import Needs, Problem
from mgvbp.run.checkpoints.checkpoint import Recorder
from mgvbp.run.evaluation.evaluation import Here, evaluator
from mgvbp.run.loop import AskTell, Callback, Judge, Limits, Run, run
from mgvbp.run.progress import progress_bar


@dataclass(frozen=True)
class Execution:
    """The arguments of `fit` that say who evaluates the draws, what is shown and what is recorded."""

    n_jobs: int | None
    timeout: float | None
    progress: bool
    callback: Callback | None
    recorder: Recorder | None
    check: bool = False
    """Whether to compare the model with that of the recorder's file first."""

    def __post_init__(self) -> None:
        if self.callback is not None and not callable(self.callback):
            raise InvalidTypeError(f"callback must be a function of an Iteration; got {self.callback!r}")

    def run(
        self,
        problem: Problem,
        optimizer: AskTell,
        needs: Needs,
        judge: Judge,
        limits: Limits,
        remark: Callable[[], str] = lambda: "",
    ) -> tuple[Run, Failures]:
        """Run the loop; returns how it ended and which evaluations failed."""
        recorder = self.recorder
        total = None if limits.iterations == math.inf else int(limits.iterations)
        before = _workers_lost(problem)
        failures = recorder.failures if recorder else Failures()
        if recorder and self.check:
            recorder.recognise(partial(Here(problem, needs), 1))
        with self._hint(), ExitStack() as stack:
            report = stack.enter_context(progress_bar(self.progress, total, remark))
            start, keep = recorder.start if recorder else None, None
            valued = start is not None and start.finite > 0
            chosen = evaluator(problem, needs, self.n_jobs, self.timeout, failures, valued)
            evaluate = stack.enter_context(chosen)
            if recorder:
                # a bad path shows at once, and there is always a file to resume from
                recorder.write(first=True)
                stack.callback(recorder.write)
                evaluate = partial(recorder.evaluated, evaluate)
                keep = recorder.keep
            outcome = run(optimizer, evaluate, judge, limits, self.callback, report, start, keep)
            failures.workers_lost += _workers_lost(problem) - before
        return outcome, failures

    @contextmanager
    def _hint(self) -> Iterator[None]:
        """Add a note on how to resume to an interrupt that comes before there is a result."""
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if self.recorder is not None and self.recorder.resumption:
                interrupt.add_note(f"there is no posterior yet: {self.recorder.resumption}")
            raise

    def resumption(self, outcome: Run) -> str:
        """A sentence on how to resume after control-C; empty without a checkpoint."""
        interrupted = outcome.ending.outcome is Outcome.INTERRUPTED
        return self.recorder.resumption if self.recorder is not None and interrupted else ""


def _workers_lost(problem: Problem) -> int:
    """How many workers a `mgvbp.ShardedLikelihood` has lost so far."""
    return int(getattr(problem.log_likelihood, "workers_lost", 0))
