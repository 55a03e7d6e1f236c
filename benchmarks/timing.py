"""The one clock that the benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_time(function: Callable[[], object], seconds: float = 1.0, repeats: int = 5) -> float:
    """Seconds of one call: the best of ``repeats`` averages that together take about ``seconds``."""
    start = time.perf_counter()
    function()
    once = time.perf_counter() - start
    calls = max(1, int(seconds / repeats / max(once, 1e-7)))
    best = once
    for _ in range(repeats if once < seconds else 1):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - start) / calls)
    return best
