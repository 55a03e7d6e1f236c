"""The clock and the log-likelihood that the benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

LogLikelihood = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def best_time(
    function: Callable[[], object],
    seconds: float = 1.0,
    repeats: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Seconds of one call: the best of ``repeats`` averages that together take about ``seconds``."""
    start = clock()
    function()
    once = clock() - start
    calls = max(1, int(seconds / repeats / max(once, 1e-7)))
    best = once
    for _ in range(repeats if once < seconds else 1):
        start = clock()
        for _ in range(calls):
            function()
        best = min(best, (clock() - start) / calls)
    return best


def plain_logistic(X: NDArray[np.float64], y: NDArray[np.float64]) -> LogLikelihood:
    """The logistic log-likelihood for all draws at once, as a user would write it."""
    signed = np.ascontiguousarray(((2.0 * y - 1.0)[:, None] * X).T)
    return lambda theta: np.asarray(log_expit(theta @ signed).sum(axis=1))
