"""The tuning numbers of `auto`, each halved and doubled: what becomes of the fits of the zoo's small targets.

Run:  python benchmarks/constants.py [--seeds 2] [--max-dim 5] [--jobs 1] [--markdown] [names ...]

For every number in `mgvbp.auto.constants` and `mgvbp.surfaces.constants` a row has, at half and at double its value:
the share of the runs within 0.05 nats of the optimum, the number of false claims (converged, and the true gap above
gap + 3 gap_se + 0.01), and queries (median of the ratios, target by target) and CPU time of the search (ratio of the
sums) relative to the value as it is. The first row is the value as it is. Runs by values and by gradients are counted
together; a number that neither of them uses on these targets has the same counts and queries
of exactly 1.00; times vary with the machine.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp.auto import constants as of_auto
from mgvbp.surfaces import constants as of_surfaces

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from zoo import TARGETS  # noqa: E402
from zoo.base import jax_backend  # noqa: E402
from zoo.bound import lower_bound  # noqa: E402

LIMIT = 4000
"""Queries after which a run is given up: half and double of some numbers wander."""


class Row(NamedTuple):
    """One run."""

    true_gap: float
    queries: int
    claimed: bool
    stated: float
    seconds: float

    @property
    def false(self) -> bool:
        """Whether it claims more than is true."""
        return self.claimed and self.true_gap > self.stated


def constants() -> dict[str, tuple[ModuleType, float]]:
    """All numbers, with the module they are in."""
    found = {}
    for module in (of_auto, of_surfaces):
        for name, value in vars(module).items():
            if name.isupper():
                found[name] = module, value
    return found


def scaled(value: float, factor: float) -> float:
    """A number at half or double; whole numbers stay whole."""
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


@lru_cache
def by_gradients(name: str) -> Any:
    """Values and gradients of a target, compiled."""
    import jax

    from mgvbp.interop.functions.compiled import Compiled

    return Compiled(jax.value_and_grad(lambda row: TARGETS[name].density(row[None], jax_backend())[0]))


def runs(
    names: list[str], optima: dict[str, float], seeds: int, setting: tuple[str, float] | None
) -> list[Row]:
    """All runs with one number changed."""
    if setting is not None:
        name, value = setting
        module, before = constants()[name]
        setattr(module, name, value)
        try:
            return runs(names, optima, seeds, None)
        finally:
            setattr(module, name, before)
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            target, with_gradients = TARGETS[name], by_gradients(name)
            with_gradients(np.zeros((1, target.dim)))
            for function in (target.log_density, with_gradients):
                for seed in range(seeds):
                    rows.append(run(name, function, function is with_gradients, optima[name], seed))
    return rows


def run(name: str, function: Any, gradients: bool, optimum: float, seed: int) -> Row:
    """Fit a target from mean 0, variance 1, and measure the true gap."""
    target = TARGETS[name]
    search = mgvbp.Auto().start(target.dim, max_evaluations=LIMIT, gradients=gradients, rng=seed)
    start = time.process_time()
    try:
        while not search.stop_reason:
            found = function(search.ask())
            search.tell(*(found if gradients else (found,)))
    except (
        Exception
    ):  # a value that makes no sense, such as more columns than draws, is a failure like any other
        return Row(math.inf, search.n_evaluations, False, math.inf, time.process_time() - start)
    seconds = time.process_time() - start
    bound, _ = lower_bound(target, search.gaussian, num=2**12, seeds=range(2))
    stated = search.gap + 3.0 * search.gap_se + 0.01
    return Row(optimum - bound, search.n_evaluations, search.converged, stated, seconds)


def described(rows: list[Row], base: list[Row]) -> tuple[str, ...]:
    """Within 0.05 nats, false claims, queries and time, the last two relative to ``base``."""
    within = np.mean([row.true_gap <= 0.05 for row in rows])
    ratio = np.median([row.queries / other.queries for row, other in zip(rows, base, strict=True)])
    seconds = sum(row.seconds for row in rows) / sum(row.seconds for row in base)
    return f"{within:.1%}", str(sum(row.false for row in rows)), f"{ratio:.2f}", f"{seconds:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="numbers to look at; all by default")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--max-dim", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--markdown", action="store_true", help="print a table for the docs")
    arguments = parser.parse_args()
    reference = json.loads((TESTS / "zoo" / "reference.json").read_text())
    optima = {
        name: reference[name]["full"]["lower_bound"]
        for name, target in TARGETS.items()
        if target.dim <= arguments.max_dim
        and "full" in reference.get(name, {})
        and not {"multimodal", "improper", "tails"} & set(target.tags)
    }
    chosen = {name: constants()[name] for name in arguments.names} or constants()
    # the first time functions are compiled, which is not the search's own time
    settings = [
        None,
        None,
        *((name, scaled(value, f)) for name, (_, value) in chosen.items() for f in (0.5, 2.0)),
    ]
    tasks = (delayed(runs)(list(optima), optima, arguments.seeds, setting) for setting in settings)
    results = Parallel(arguments.jobs, return_as="generator")(tasks)
    _, base = next(results), next(results)
    print(f"{len(base)} runs of {len(optima)} targets with d <= {arguments.max_dim}; half, then double\n")
    line = "|" + " {} |" * 10 if arguments.markdown else "{:<24}{:>8}" + "{:>9}" * 8
    print(line.format("number", "value", *2 * ("within", "false", "queries", "time")))
    if arguments.markdown:
        print("|---" * 10 + "|")
    print(line.format("as they are", "", *2 * described(base, base)))
    for name, (_, value) in chosen.items():
        half, double = (described(next(results), base) for _ in range(2))
        print(line.format(name, f"{value:g}", *half, *double), flush=True)


if __name__ == "__main__":
    main()
