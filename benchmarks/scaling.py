"""What several workers bring: log-likelihoods of 20 ms and of 1 µs a draw, S = 100, two workers against one process.

Run:  python benchmarks/scaling.py [--iterations 5] [--backends loky threading dask]

A log-likelihood sleeps, as one that waits for a simulator elsewhere, or computes. Targets: at 20 ms two processes are
at least 1.8 times as fast as one; at 1 µs, where sharing cannot pay, n_jobs=2 is within 10% of n_jobs=1. The overhead
is what a worker's draw takes longer than the log-likelihood itself: (seconds × workers − seconds of the draws) / draws.
Workers are started by a first fit, whose time is shown apart. Dask needs the package distributed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np

import mgvbp

DIM, DRAWS, COST, WORKERS = 4, 100, 0.02, 2


def sleeping(theta: np.ndarray) -> float:
    """A normal log density that takes `COST` seconds of waiting."""
    time.sleep(COST)
    return cheap(theta)


def computing(theta: np.ndarray) -> float:
    """A normal log density that takes `COST` seconds of computing."""
    end = time.thread_time() + COST
    while time.thread_time() < end:
        pass
    return cheap(theta)


def cheap(theta: np.ndarray) -> float:
    """A normal log density of about a microsecond."""
    return -0.5 * float(theta @ theta)


def seconds(function: Callable[[np.ndarray], float], iterations: int, n_jobs: int) -> float:
    """The time of a fit."""
    method = mgvbp.MGVBP(step_size=0.1, max_iterations=iterations)
    options: dict[str, Any] = {"dim": DIM, "num_draws": DRAWS, "estimator": "h", "vectorized": False}
    start = time.perf_counter()
    mgvbp.fit(function, method=method, n_jobs=n_jobs, **options)
    return time.perf_counter() - start


@contextmanager
def backend(name: str) -> Iterator[None]:
    """The backend of joblib of that name, for Dask with a cluster of its own."""
    if name != "dask":
        with joblib.parallel_config(backend=name):
            yield
        return
    distributed: Any = importlib.import_module("distributed")
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield


def expensive(backends: list[str], iterations: int) -> None:
    draws = DRAWS * iterations
    print(f"{1e3 * COST:g} ms a draw, S = {DRAWS}, {iterations} iterations, {WORKERS} workers")
    print(
        f"{'likelihood':<12}{'backend':<12}{'one':>8}{'start':>8}{'two':>8}{'ratio':>8}{'overhead a draw':>18}"
    )
    for function in (sleeping, computing):
        one = seconds(function, iterations, 1)
        for name in backends:
            with backend(name):
                first = seconds(function, 1, WORKERS) - one / iterations / WORKERS
                two = seconds(function, iterations, WORKERS)
            overhead = (two * WORKERS - one) / draws
            print(
                f"{function.__name__:<12}{name:<12}{one:>7.2f}s{first:>7.2f}s{two:>7.2f}s{one / two:>8.2f}"
                f"{1e3 * overhead:>16.2f}ms"
            )


def worthless(iterations: int = 500, repeats: int = 7) -> None:
    times = {jobs: [seconds(cheap, iterations, jobs) for _ in range(2)] for jobs in (1, WORKERS)}
    for _ in range(repeats):
        for jobs, found in times.items():
            found.append(seconds(cheap, iterations, jobs))
    one, two = (min(times[jobs]) for jobs in (1, WORKERS))
    print(
        f"\n1 µs a draw, S = {DRAWS}, {iterations} iterations: n_jobs=1 {one:.3f}s, n_jobs=2 {two:.3f}s",
        end="",
    )
    print(f", ratio {two / one:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--backends", nargs="+", default=["loky", "threading", "dask"])
    arguments = parser.parse_args()
    if importlib.util.find_spec("distributed") is None and "dask" in arguments.backends:
        print("without Dask: the package distributed is not installed")
        arguments.backends.remove("dask")
    warnings.simplefilter("ignore", mgvbp.MgvbpWarning)  # a few iterations do not converge
    expensive(arguments.backends, arguments.iterations)
    worthless()


if __name__ == "__main__":
    main()
