"""Time and memory of one MGVBP iteration as the dimension grows: full, block-diagonal and diagonal covariances.

Run:  python benchmarks/dimensions.py [--draws 10] [--threads 1] [--families full block diagonal]

Full covariances to d = 2,000, blocks of 10 to d = 100,000, diagonal ones to d = 1,000,000; a quadratic log-likelihood
and a logistic one (10 non-zero entries in each of d/10 rows), with score-function gradients on h and with the
target's own gradients. Each size runs in a fresh process. `ours` is the time without the target, best of several;
`peak` is what an iteration allocates beyond the state, the target included, and `process` the largest resident size
of the whole process.
The exponents are slopes of least squares in logarithms over the sizes shown: 1 is proportional to d.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, log_expit
from threadpoolctl import threadpool_limits

import mgvbp

Array = NDArray[np.float64]

SIZES = {
    "full": [250, 500, 1000, 2000],
    "block": [1000, 10_000, 100_000],
    "diagonal": [10_000, 100_000, 1_000_000],
}
BLOCK, NON_ZEROS = 10, 10
REPEATS = 3
MIB = 2**20


class Target(Protocol):
    """A log-likelihood of rows, (S, d) -> (S,), and its gradient, (S, d) -> (S, d)."""

    def values(self, theta: Array) -> Array: ...

    def gradients(self, theta: Array) -> Array: ...


class Quadratic:
    """Independent normal observations of each parameter, with precisions from 0.1 to 10."""

    def __init__(self, d: int) -> None:
        self.precisions = np.geomspace(0.1, 10.0, d)

    def values(self, theta: Array) -> Array:
        return np.asarray(-0.5 * (np.square(theta - 1.0) @ self.precisions))

    def gradients(self, theta: Array) -> Array:
        return (1.0 - theta) * self.precisions


class Logistic:
    """Logistic regression on sparse features."""

    def __init__(self, d: int) -> None:
        rng, rows = np.random.default_rng(0), d // NON_ZEROS
        signs = np.repeat(rng.choice([-1.0, 1.0], size=rows), NON_ZEROS)
        columns = rng.integers(d, size=rows * NON_ZEROS)
        starts = NON_ZEROS * np.arange(rows + 1)
        self.X: Any = csr_array((signs * rng.normal(size=len(columns)), columns, starts), shape=(rows, d))

    def values(self, theta: Array) -> Array:
        return np.asarray(log_expit(self.X @ theta.T).sum(axis=0))

    def gradients(self, theta: Array) -> Array:
        return np.asarray((self.X.T @ expit(-(self.X @ theta.T))).T)


class Figures(NamedTuple):
    """Seconds of an iteration without the target, of the target; bytes of its peak, and of the process."""

    ours: float
    target: float
    peak: int
    process: int


def measure(family: str, d: int, target: str, estimator: str, draws: int, threads: int) -> Figures:
    """Run a few iterations; in a process of its own, or else the last figure is that of an earlier run."""
    function: Target = Quadratic(d) if target == "quadratic" else Logistic(d)
    optimizer = mgvbp.MGVBP(step_size=1e-4).start(
        mgvbp.Gaussian(variance=1.0, dim=d),
        family=mgvbp.BlockDiagonal([BLOCK] * (d // BLOCK)) if family == "block" else family,
        estimator=estimator,
        num_draws=draws,
        initial_variance=0.1,
    )

    def iterate() -> tuple[float, float]:
        start = time.perf_counter()
        theta = optimizer.ask()
        asked = time.perf_counter()
        values = function.values(theta)
        gradients = function.gradients(theta) if estimator == "gradient" else None
        evaluated = time.perf_counter()
        optimizer.tell(values, gradients)
        return time.perf_counter() - start - (evaluated - asked), evaluated - asked

    with threadpool_limits(threads):
        iterate()  # the second iteration is the first with momentum and control variates
        ours, theirs = (min(column) for column in zip(*(iterate() for _ in range(REPEATS)), strict=True))
        tracemalloc.start()
        iterate()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    kib = 1 if sys.platform == "darwin" else 1024  # the unit that getrusage counts in
    return Figures(ours, theirs, peak, kib * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def exponent(sizes: Sequence[int], figures: Sequence[float]) -> float:
    """The slope of log figure on log size."""
    return float(np.polyfit(np.log(sizes), np.log(figures), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--families", nargs="+", choices=list(SIZES), default=list(SIZES))
    arguments = parser.parse_args()
    print(f"MGVBP, S = {arguments.draws}, blocks of {BLOCK}; BLAS threads: {arguments.threads}")
    print(f"{'family':<10}{'target':<11}{'estimator':<10}{'d':>10}", end="")
    print(f"{'ours':>12}{'target':>12}{'peak':>11}{'process':>11}")
    # spawned, one task each: what an earlier run took from the system does not count
    context = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as fresh:
        for family in arguments.families:
            for target in ("quadratic", "logistic"):
                for estimator in ("h", "gradient"):
                    table = []
                    for d in SIZES[family]:
                        task = (family, d, target, estimator, arguments.draws, arguments.threads)
                        row = fresh.submit(measure, *task).result()
                        table.append(row)
                        print(
                            f"{family:<10}{target:<11}{estimator:<10}{d:>10,}"
                            f"{1e3 * row.ours:>10.1f}ms{1e3 * row.target:>10.1f}ms"
                            f"{row.peak / MIB:>8.1f}MiB{row.process / MIB:>8.0f}MiB",
                            flush=True,
                        )
                    ours, theirs, peaks, _ = zip(*table, strict=True)
                    slopes = [exponent(SIZES[family], column) for column in (ours, theirs, peaks)]
                    print(f"{'growth exponent':>41}{slopes[0]:>12.2f}{slopes[1]:>12.2f}{slopes[2]:>11.2f}")


if __name__ == "__main__":
    main()
