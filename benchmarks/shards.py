"""What sharded data cost: a logistic log-likelihood a row, Dask a task, and what follows for a cluster.

Run:  python benchmarks/shards.py [--rows 1e9] [--machines 100] [--cores 8]

Measured, for d = 10: processor time per row and draw of the log-likelihood (values, and values with gradients) on one
core; the time of a call of `ShardedLikelihood` on a LocalCluster of two processes with 8 and 128 shards that cost
nothing, the best of several: an overhead per call and one per task; the calls and draws of a fit by `auto` to 20,000
rows. Calculated from these: a fit to all rows, one shard a core. Not in it: the network between machines, how unequal
they are, and that more rows make a posterior that is further from the start, but more Gaussian.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp.problem.sharded import ShardedLikelihood

DIM, BLOCK = 10, 4_000
PLANS = {"values": (132, False), "values and gradients": (24, True)}
"""Draws at once, two per coefficient of a quadratic or of its gradient, and whether there are gradients."""
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


def simulated(rows: int) -> Array:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, DIM))
    y = rng.random(rows) < 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, DIM)))
    return np.column_stack([X, y])


def cost_of_a_row(draws: int, gradients: bool, rows: int = 200_000) -> float:
    """Processor seconds per row and draw."""
    model, data = Logistic(), simulated(rows)
    theta = 0.1 * np.random.default_rng(1).standard_normal((draws, DIM))
    function = model.value_and_grad if gradients else model
    return best(lambda: function(theta, data), time.thread_time, 5) / rows / draws


def needs_of_a_fit(gradients: bool, rows: int = 20_000) -> tuple[int, int]:
    """Calls and draws."""
    model = Logistic() if gradients else Logistic().__call__
    posterior = mgvbp.fit(
        ShardedLikelihood(model, np.array_split(simulated(rows), 8)), mgvbp.Gaussian(variance=5.0, dim=DIM)
    )
    assert posterior.converged
    return len(posterior.trace), posterior.n_evaluations


def cost_of_dask(counts: tuple[int, int] = (8, 128)) -> tuple[float, float]:
    """Seconds per call, and per task of it."""
    distributed: Any = importlib.import_module("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
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
    cores = arguments.machines * arguments.cores
    call, task = cost_of_dask()
    overhead = call + task * cores
    print(f"Dask: {1e3 * call:.1f} ms a call and {1e3 * task:.2f} ms a task")
    print(
        f"{arguments.rows:,.0f} rows, d = {DIM}, {arguments.machines} machines with {arguments.cores} cores each"
    )
    print(
        f"{'':<22}{'ns a row and draw':>18}{'calls':>8}{'draws':>8}{'one core':>12}{'cluster':>10}{'of it Dask':>12}"
    )
    for name, (draws, gradients) in PLANS.items():
        with threadpool_limits(1):
            cost = cost_of_a_row(draws, gradients)
            calls, evaluations = needs_of_a_fit(gradients)
        alone = cost * arguments.rows * evaluations
        total = alone / cores + calls * overhead
        print(
            f"{name:<22}{1e9 * cost:>18.1f}{calls:>8}{evaluations:>8}{alone / 3600:>10,.1f} h{total:>8,.0f} s"
            f"{calls * overhead / total:>12.0%}"
        )


if __name__ == "__main__":
    main()
