"""`auto` on the zoo of targets (tests/zoo): true gap, queries and time, from mean 0 and variance 1.

Run:  python benchmarks/zoo.py [--seeds 5] [--family full] [--max-dim 30] [--jobs 1] [names ...]

The true gap is the stored optimum (tests/zoo/reference.json, made by an independent method) minus the bound of the
result on a large Sobol sample. Targets: gap <= 0.05 in at least 95% of the runs with d <= 30, median queries at most
10 (d+1)(d+2), every failure with converged=False, and in 95% of the runs that claim convergence the true gap within
3 standard errors (+0.01) of the reported one. Targets tagged multimodal are shown, not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import mgvbp

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from zoo import TARGETS  # noqa: E402
from zoo.bound import lower_bound  # noqa: E402


class Row(NamedTuple):
    """One run."""

    true_gap: float
    queries: int
    gap: float
    gap_se: float
    converged: bool
    seconds: float

    @property
    def covered(self) -> bool:
        """Whether the certificate holds."""
        return self.true_gap <= self.gap + 3.0 * self.gap_se + 0.01


def run(name: str, family: str, optimum: float, seed: int) -> Row:
    """Fit a target from mean 0, variance 1, and measure the true gap."""
    target = TARGETS[name]
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        posterior = mgvbp.fit(target.log_density, dim=target.dim, family=family, rng=seed)
    seconds = time.perf_counter() - start
    bound, _ = lower_bound(target, posterior, num=2**13, seeds=range(2))
    assert posterior.gap is not None
    assert posterior.gap_se is not None
    return Row(
        optimum - bound,
        posterior.n_evaluations,
        posterior.gap,
        posterior.gap_se,
        posterior.converged,
        seconds,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--family", default="full", choices=["full", "diagonal"])
    parser.add_argument("--max-dim", type=int, default=30)
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes, which disturb each other's times a little"
    )
    arguments = parser.parse_args()
    reference = json.loads((TESTS / "zoo" / "reference.json").read_text())
    names = arguments.names or [
        name
        for name in TARGETS
        if arguments.family in reference.get(name, {}) and TARGETS[name].dim <= arguments.max_dim
    ]
    print(
        f"{'target':<28}{'d':>4}{'median gap':>12}{'worst':>10}{'reported':>10}{'queries':>9}{'allowed':>9}"
        f"{'seconds':>9}{'converged':>11}"
    )
    counted: list[tuple[int, Row]] = []
    outcomes = Parallel(n_jobs=arguments.jobs, return_as="generator")(
        delayed(run)(name, arguments.family, reference[name][arguments.family]["lower_bound"], seed)
        for name in names
        for seed in range(arguments.seeds)
    )
    for name in names:
        target, entry = TARGETS[name], reference[name]
        rows = list(islice(outcomes, arguments.seeds))
        allowed = 10 * (target.dim + 1) * (target.dim + 2)
        if "multimodal" not in entry["tags"]:
            counted += [(allowed, row) for row in rows]
        gaps, queries, seconds = ([getattr(r, k) for r in rows] for k in ("true_gap", "queries", "seconds"))
        print(
            f"{name:<28}{target.dim:>4}{np.median(gaps):>12.4f}{max(gaps):>10.4f}"
            f"{np.median([r.gap for r in rows]):>10.4f}{np.median(queries):>9.0f}{allowed:>9}"
            f"{np.median(seconds):>9.3f}{sum(r.converged for r in rows):>8}/{len(rows)}",
            flush=True,
        )
    results = [row for _, row in counted]
    claimed = [row for row in results if row.converged]
    first, ratio, third = np.quantile([row.queries / allowed for allowed, row in counted], [0.25, 0.5, 0.75])
    silent = sum(row.true_gap > 0.05 for row in claimed)
    print(
        f"{len(results)} runs counted; gap <= 0.05: {np.mean([r.true_gap <= 0.05 for r in results]):.1%} (95%)"
    )
    print(f"median of queries / (10 (d+1)(d+2)): {ratio:.2f} (1); half of them {first:.2f} to {third:.2f}")
    print(f"converged: {len(claimed) / len(results):.1%}; of these gap > 0.05: {silent} (0)")
    print(f"certificate holds in {np.mean([r.covered for r in claimed]):.1%} of the runs that claim it (95%)")


if __name__ == "__main__":
    main()
