"""The loop: ask, evaluate, tell, until something says stop."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mgvbp._linalg import Array
from mgvbp.errors import ConvergenceWarning, DivergenceError
from mgvbp.gaussian import Gaussian
from mgvbp.optimizer import Info, Optimizer
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


class Limits(NamedTuple):
    """When to stop."""

    max_iterations: int
    max_evaluations: float
    window: int
    patience: int


class Run(NamedTuple):
    """How a run ended: the best Gaussian, its smoothed lower bound, and the record."""

    best: Gaussian
    lower_bound: float
    trace: Trace
    stop_reason: str
    converged: bool


def run(
    optimizer: Optimizer,
    evaluate: Callable[[Array], Array],
    limits: Limits,
    callback: Callback | None,
    report: Reporter,
) -> Run:
    """Iterate until the smoothed lower bound has not improved for ``patience`` iterations, or a limit.

    The best iterate is the one with the largest average of the lower bound over a full window; before there
    is one, the one with the largest lower bound. An interrupt (control-C), or a breakdown after the first
    iteration, ends the run with what is there.
    """
    recent: deque[float] = deque(maxlen=limits.window)
    rows: list[tuple[float | int, ...]] = []
    best: Gaussian | None = None
    best_bound, best_at, evaluations = -math.inf, 0, 0
    converged, reason = False, ""
    try:
        while not reason:
            q = optimizer.gaussian
            theta = optimizer.ask()
            info = optimizer.tell(evaluate(theta))
            evaluations += len(theta)
            t = len(rows) + 1
            recent.append(info.lower_bound)
            smoothed = math.fsum(recent) / len(recent)
            rows.append(_row(info, smoothed, evaluations))
            bound = info.lower_bound if t < limits.window else smoothed
            if best is None or t == limits.window or bound > best_bound:
                best, best_bound, best_at = q, bound, t
            report(t, smoothed, evaluations)
            seen = Iteration(t, q, info.lower_bound, smoothed, evaluations)
            if callback is not None and callback(seen):
                reason = "stopped by the callback"
            elif t - best_at >= limits.patience:
                converged, reason = True, f"no improvement in {limits.patience} iterations"
            elif t >= limits.max_iterations:
                reason = f"reached max_iterations = {limits.max_iterations}"
            elif evaluations + len(theta) > limits.max_evaluations:
                reason = f"reached max_evaluations = {limits.max_evaluations:.0f}"
    except KeyboardInterrupt:
        if best is None:
            raise
        reason = "interrupted"
    except DivergenceError as error:
        if best is None:
            raise
        rows[-1] = _row(info, smoothed, evaluations + len(theta))
        reason = f"broke down: {error}"
        warnings.warn(
            f"the run broke down and returns its best iterate: {error}", ConvergenceWarning, stacklevel=3
        )
    assert best is not None
    columns = zip(TRACE_DTYPES.items(), zip(*rows, strict=True), strict=True)
    trace = Trace(**{name: np.array(column, dtype) for (name, dtype), column in columns})
    return Run(best, best_bound, trace, reason, converged)


def _row(info: Info, smoothed: float, evaluations: int) -> tuple[float | int, ...]:
    """The columns of `Trace`."""
    return (
        info.lower_bound, smoothed, info.gap, info.step_size, evaluations, info.dropped, info.reductions
    )  # fmt: skip
