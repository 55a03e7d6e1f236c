"""What sharded data cost: a logistic log-likelihood a row, Dask a task, and what follows for a cluster.

Run:  python benchmarks/shards.py [--rows 1e9] [--machines 100] [--cores 8]

Measured: processor time per row and draw of the log-likelihood (values, and values with gradients) on one core; the
time of a call of `ShardedLikelihood` on a LocalCluster of two processes with 8 and 128 shards that cost nothing,
the best of several: an overhead per call and one per task. Calculated from these, for d = 10: the time of an iteration
over all rows with one shard a core. Not in it: the network between machines and how unequal they are.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mgvbp.sharded import ShardedLikelihood

DIM, BLOCK = 10, 4_000
PLANS = {"values, S = 132": (132, False), "with gradients, S = 24": (24, True)}
"""Draws of an iteration: two per coefficient of a quadratic, or of its gradient, at d = 10."""
Array = np.ndarray[Any, np.dtype[np.float64]]


class Logistic:
    """Logistic regression on rows (x, y), a block of rows at a time: draws × rows must fit into the cache."""

    def __call__(self, theta: Array, rows: Array) -> Array:
        total = np.zeros(len(theta))
        for start in range(0, len(rows), BLOCK):
            X, y = rows[start : start + BLOCK, :-1], rows[start : start + BLOCK, -1]
            eta = theta @ X.T
            total += eta @ y - np.logaddexp(0.0, eta).sum(axis=1)
        return total

    def value_and_grad(self, theta: Array, rows: Array) -> tuple[Array, Array]:
        values, gradients = np.zeros(len(theta)), np.zeros_like(theta)
        for start in range(0, len(rows), BLOCK):
            X, y = rows[start : start + BLOCK, :-1], rows[start : start + BLOCK, -1]
            eta = theta @ X.T
            softplus = np.logaddexp(0.0, eta)
            values += eta @ y - softplus.sum(axis=1)
            gradients += (y - np.exp(eta - softplus)) @ X
        return values, gradients


def nothing(theta: Array, shard: int) -> Array:
    return np.zeros(len(theta))


def best(function: Callable[[], object], clock: Callable[[], float], repeats: int) -> float:
    """The least time of several."""
    times = []
    for _ in range(repeats):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def cost_of_a_row(draws: int, gradients: bool, rows: int = 200_000) -> float:
    """Processor seconds per row and draw."""
    rng = np.random.default_rng(0)
    data = np.column_stack([rng.standard_normal((rows, DIM)), rng.integers(2, size=rows)])
    theta = 0.1 * rng.standard_normal((draws, DIM))
    model = Logistic()
    function = model.value_and_grad if gradients else model
    return best(lambda: function(theta, data), time.thread_time, 5) / rows / draws


def cost_of_dask(counts: tuple[int, int] = (8, 128)) -> tuple[float, float]:
    """Seconds per call, and per task of it."""
    distributed: Any = importlib.import_module("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    theta = np.zeros((100, DIM))
    times = []
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        for count in counts:
            model = ShardedLikelihood(nothing, list(range(count)), client)
            model(theta)
            times.append(best(lambda: model(theta), time.perf_counter, 20))  # noqa: B023
    task = (times[1] - times[0]) / (counts[1] - counts[0])
    return times[0] - counts[0] * task, task


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e9)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--cores", type=int, default=8)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        rows = {name: cost_of_a_row(*plan) for name, plan in PLANS.items()}
    call, task = cost_of_dask()
    print(f"Dask: {1e3 * call:.1f} ms a call and {1e3 * task:.2f} ms a task")
    cores = arguments.machines * arguments.cores
    print(
        f"{arguments.rows:,.0f} rows, d = {DIM}, {arguments.machines} machines with {arguments.cores} cores each:"
    )
    print(
        f"{'an iteration':<26}{'ns a row and draw':>18}{'one core':>12}{'rows':>10}{'Dask':>10}{'all':>10}{'':>6}"
    )
    for name, cost in rows.items():
        alone = cost * arguments.rows * PLANS[name][0]
        shared, overhead = alone / cores, call + task * cores
        share = shared / (shared + overhead)
        print(
            f"{name:<26}{1e9 * cost:>18.1f}{alone:>10,.0f} s{shared:>8.2f} s{overhead:>8.2f} s"
            f"{shared + overhead:>8.2f} s{share:>6.0%}"
        )


if __name__ == "__main__":
    main()
