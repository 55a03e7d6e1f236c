"""The loop: ask, evaluate, tell, until something says stop."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from mgvbp._linalg import Array
from mgvbp.errors import ConvergenceWarning, DivergenceError, warn_user
from mgvbp.gaussian import Gaussian
from mgvbp.optimizer import Info
from mgvbp.progress import Reporter
from mgvbp.trace import TRACE_DTYPES, Trace


class Iteration(NamedTuple):
    """What a callback sees of an iteration."""

    iteration: int
    gaussian: Gaussian
    """The approximation from which the iteration's draws came."""
    lower_bound: float
    smoothed: float
    n_evaluations: int


Callback = Callable[[Iteration], object]

INTERRUPTED = "interrupted"
"""Why a run has stopped after control-C."""


class AskTell(Protocol):
    """What the loop asks of an optimiser."""

    @property
    def gaussian(self) -> Gaussian:
        """The current approximation."""

    def ask(self) -> Array:
        """Draws to evaluate."""

    @property
    def tell(self) -> Callable[..., Info]:
        """Takes their values, and the derivatives that it needs."""


class Verdict(NamedTuple):
    """What a judge thinks after an iteration; an empty ``stop_reason`` goes on."""

    best: Gaussian
    lower_bound: float
    smoothed: float
    stop_reason: str
    converged: bool


class Judge(Protocol):
    """Decides after iteration ``t``, whose draws came from ``q``, which iterate is best and whether to stop."""

    def __call__(self, t: int, q: Gaussian, info: Info) -> Verdict:
        """Return the verdict."""


class Patience:
    """The paper's rule: stop when the average over a window has not improved for ``patience`` iterations.

    The best iterate is the one with the largest average of the lower bound over a full window; before there
    is one, the one with the largest lower bound. With ``last`` it is the last one: for methods whose fixed point is
    not the maximum of the bound. Of minibatches, ``epoch`` of which are all data, iterates are compared by averages
    over whole epochs, or the best would be the one of the luckiest batches; before the first has ended it is the last.
    """

    def __init__(self, window: int, patience: int, *, epoch: int = 1, last: bool = False) -> None:
        self._window, self._patience = (epoch * math.ceil(steps / epoch) for steps in (window, patience))
        self._epoch, self._last = epoch, last
        self._recent: deque[float] = deque(maxlen=self._window)
        self._best: Gaussian | None = None
        self._bound, self._at = -math.inf, 0

    def __call__(self, t: int, q: Gaussian, info: Info) -> Verdict:
        """Return the verdict."""
        self._recent.append(info.lower_bound)
        smoothed = math.fsum(self._recent) / len(self._recent)
        bound = info.lower_bound if self._epoch == 1 and t < self._window else smoothed
        better = bound > self._bound and t % self._epoch == 0
        if self._best is None or t <= self._epoch or t == self._window or better:
            self._best, self._bound, self._at = q, bound, t
        stop = t - self._at >= self._patience
        reason = f"no improvement in {self._patience} iterations" if stop else ""
        if self._last:
            return Verdict(q, smoothed, smoothed, reason, stop)
        return Verdict(self._best, self._bound, smoothed, reason, stop)


class Run(NamedTuple):
    """How a run ended."""

    best: Gaussian
    lower_bound: float
    trace: Trace
    stop_reason: str
    converged: bool


def run(
    optimizer: AskTell,
    evaluate: Callable[[int, Array], tuple[Array, ...]],
    judge: Judge,
    max_iterations: float,
    max_evaluations: float,
    callback: Callback | None,
    report: Reporter,
) -> Run:
    """Iterate until the judge, the callback or a limit says stop.

    An interrupt (control-C) after there was a lower bound, or a breakdown after some value was finite, ends the run
    with what is there; before, they are raised.
    """
    rows: list[tuple[float | int | str, ...]] = []
    verdict: Verdict | None = None
    evaluation: tuple[Array, ...] = ()
    reason, evaluations, finite = "", 0, 0
    try:
        while not reason:
            q = optimizer.gaussian
            theta = optimizer.ask()
            t = len(rows) + 1
            evaluation = evaluate(t, theta)
            evaluations += len(theta)
            info = optimizer.tell(*evaluation)
            finite += len(theta) - info.dropped
            verdict = judge(t, q, info)
            rows.append(_row(info, verdict.smoothed, evaluations))
            report(t, verdict.smoothed, evaluations)
            seen = Iteration(t, q, info.lower_bound, verdict.smoothed, evaluations)
            if callback is not None and callback(seen) and not verdict.stop_reason:
                reason = "stopped by the callback"
            elif verdict.stop_reason:
                reason = verdict.stop_reason
            elif t >= max_iterations:
                reason = f"reached max_iterations = {max_iterations}"
            elif evaluations + len(theta) > max_evaluations:
                reason = f"reached max_evaluations = {max_evaluations}"
    except KeyboardInterrupt:
        if verdict is None or verdict.lower_bound == -math.inf:
            raise
        reason = INTERRUPTED
    except DivergenceError as error:
        if verdict is None or finite == 0:
            if evaluation and np.isnan(evaluation[0]).all():
                error.add_note("the function is nan at every draw: check the data for nan")
            raise
        rows[-1] = _row(info, verdict.smoothed, evaluations)
        reason = f"broke down: {error}"
        warn_user(f"the run broke down and returns its best iterate: {error}", ConvergenceWarning)
    assert verdict is not None
    columns = zip(TRACE_DTYPES.items(), zip(*rows, strict=True), strict=True)
    trace = Trace(**{name: np.array(column, dtype) for (name, dtype), column in columns})
    converged = verdict.converged and reason == verdict.stop_reason
    return Run(verdict.best, verdict.lower_bound, trace, reason, converged)


def _row(info: Info, smoothed: float, evaluations: int) -> tuple[float | int | str, ...]:
    """The columns of `Trace`."""
    return (
        info.phase, info.lower_bound, smoothed, info.gap, info.noise, info.step_size, info.radius,
        info.num_draws, evaluations, info.dropped, info.reductions,
    )  # fmt: skip
