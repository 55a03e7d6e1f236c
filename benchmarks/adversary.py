"""Targets made to deceive (tests/adversary): the claims of `auto` that are false.

Run:  python benchmarks/adversary.py [--seeds 3] [--kind K ...] [--mode M ...] [--jobs 2] [--shard 1/2] [--out FILE]
      [names ...]

A FILE has one line of JSON for each run. Runs that it has are not made again, so that a benchmark that was stopped goes
on, and shards of it may run at the same time.

The true gap is the best lower bound minus that of the result, both by quadrature (tests/adversary/pieces.py). A claim,
``converged=True``, is false if the true gap exceeds ``gap + 3 gap_se + 0.01``, and bad if it does so by more than 0.05
nats. Where no best Gaussian exists (the density is zero in a region, or cannot be normalised) every claim is false and
bad. Claims that miss a mode which no draw can show are counted apart. Targets: at most 1% of the claims false, none
bad; at least 85% of the runs that can be right within 0.05 nats and claimed (that excludes wrong gradients, and values
that depend on other rows, for which an error is the right answer); of the runs that claim nothing, 95% with a true gap
of at most 5 gap + 0.1.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import mgvbp
from mgvbp.errors import MgvbpError, MgvbpWarning

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))
from adversary import TARGETS  # noqa: E402

LIMIT = 120
"""Seconds of the processor after which a run is given up, and counted as one that claims nothing."""

LATE = "out of time"


class OutOfTime(BaseException):
    """Not an `Exception`, so that no handler of the user's exceptions takes it."""


class Row(NamedTuple):
    """One run; the numbers are nan where it ended with an error."""

    target: str
    kind: str
    mode: str
    seed: int
    outcome: str
    """How it ended: the reason, or the name of the error."""
    true_gap: float = math.nan
    gap: float = math.nan
    gap_se: float = math.nan
    claimed: bool = False
    evaluations: int = 0
    seconds: float = math.nan
    """Of the processor, for the fit."""

    @property
    def excess(self) -> float:
        """By how much the true gap exceeds what the certificate allows."""
        return self.true_gap - (self.gap + 3.0 * self.gap_se + 0.01)

    @property
    def false(self) -> bool:
        return self.claimed and not self.excess <= 0.0

    @property
    def bad(self) -> bool:
        return self.claimed and not self.excess <= 0.05

    @property
    def answerable(self) -> bool:
        """Whether a claim with a small gap is possible and right."""
        target = TARGETS[self.target]
        return target.proper and not target.unreachable and not target.wrong and self.kind != "batch"


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise `OutOfTime` after so many seconds of the processor: other work on the machine changes no result."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(name: str, mode: str, seed: int, limit: int = LIMIT) -> Row:
    """Fit a target, and measure the true gap."""
    target = TARGETS[name]
    start = time.process_time()

    def ended(outcome: str) -> Row:
        return Row(name, target.kind, mode, seed, outcome, seconds=time.process_time() - start)

    try:
        with limited(limit), threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", MgvbpWarning)
            posterior = mgvbp.fit(
                target.function(seed),
                dim=target.dim,
                family=target.family,
                grad=target.gradient if mode == "gradients" else None,
                initial_mean=target.initial_mean,
                initial_variance=target.initial_variance,
                rng=seed,
            )
    except OutOfTime:
        return ended(LATE)
    except MgvbpError as error:
        return ended(type(error).__name__)
    except Exception as error:  # a raw traceback is a defect: shown in the table
        return ended(f"RAW {type(error).__name__}: {error}")
    return ended(posterior.stop_reason)._replace(
        true_gap=target.best - target.lower_bound(posterior) if target.proper else math.inf,
        gap=posterior.gap,
        gap_se=posterior.gap_se,
        claimed=posterior.converged,
        evaluations=posterior.n_evaluations,
    )


def share(true: list[bool]) -> str:
    return f"{np.mean(true):.1%}" if true else "-"


def line(label: str, rows: list[Row]) -> str:
    """The counts of some runs."""
    reached = [row for row in rows if not TARGETS[row.target].unreachable]
    claims = [row for row in reached if row.claimed]
    apart = sum(row.false for row in rows) - sum(row.false for row in reached)
    silent = [
        row for row in reached if TARGETS[row.target].proper and not row.claimed and not math.isnan(row.gap)
    ]
    return (
        f"{label:<10}{len(rows):>6}{len(claims):>9}{sum(row.false for row in claims):>7}"
        f"{sum(row.bad for row in claims):>6}{apart:>7}"
        f"{share([row.claimed and row.true_gap <= 0.05 for row in rows if row.answerable]):>8}"
        f"{share([row.true_gap <= 5.0 * row.gap + 0.1 for row in silent]):>8}{len(silent):>5}"
        f"{sum(math.isnan(row.gap) for row in rows):>8}"
        f"{np.median([row.evaluations for row in rows]):>8.0f}{sum(row.seconds for row in rows):>9.1f}"
    )


def report(row: Row) -> None:
    """Print a run that is a false claim, was given up, or ended in a raw traceback."""
    label = f"{row.target:<32}{row.mode:<10}{row.seed:>4}"
    if row.false:
        marks = "  bad" * row.bad + "  unreachable" * TARGETS[row.target].unreachable
        print(f"{label}{row.true_gap:>11.4f}{row.gap:>10.4f}{row.gap_se:>10.4f}{marks}", flush=True)
    elif row.outcome == LATE or row.outcome.startswith("RAW"):
        print(f"{label}  {row.outcome}", flush=True)


def stored(path: Path | None) -> list[Row]:
    """The runs of a file, if there is one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
    return [Row(**json.loads(line)) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="targets; all by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kind", nargs="+", choices=sorted({target.kind for target in TARGETS.values()}))
    parser.add_argument("--mode", nargs="+", choices=sorted({m for t in TARGETS.values() for m in t.modes}))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of the processor for a run")
    parser.add_argument("--shard", default="1/1", help="K/N: the K-th of N parts of the runs")
    parser.add_argument(
        "--out", type=Path, help="one line of JSON for each run; those in it are not made again"
    )
    arguments = parser.parse_args()
    chosen = [TARGETS[name] for name in arguments.names or TARGETS]
    wanted = [
        (target.name, mode, seed)
        for target in chosen
        if arguments.kind is None or target.kind in arguments.kind
        for mode in target.modes
        if arguments.mode is None or mode in arguments.mode
        for seed in range(arguments.seeds)
    ]
    known = {(row.target, row.mode, row.seed): row for row in stored(arguments.out)}
    rows = [known[key] for key in wanted if key in known]
    shard, shards = (int(part) for part in arguments.shard.split("/"))
    missing = [key for key in wanted[shard - 1 :: shards] if key not in known]
    runs = Parallel(n_jobs=arguments.jobs, return_as="generator")(
        delayed(run)(*key, arguments.limit) for key in missing
    )
    print(f"{'false claims':<32}{'by':<10}{'seed':>4}{'true gap':>11}{'gap':>10}{'se':>10}")
    for row in rows:
        report(row)
    for row in runs:
        rows.append(row)
        report(row)
        if arguments.out:
            with arguments.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row._asdict()) + "\n")
    print(
        f"{'kind':<10}{'runs':>6}{'claimed':>9}{'false':>7}{'bad':>6}{'apart':>7}{'right':>8}{'silent':>8}{'of':>5}"
        f"{'errors':>8}{'evals':>8}{'seconds':>9}"
    )
    for kind in dict.fromkeys(row.kind for row in rows):
        print(line(kind, [row for row in rows if row.kind == kind]))
    print(line("all", rows))
    for group in ("relative", "stranger"):
        if some := [row for row in rows if row.target.startswith(group)]:
            print(line(group, some))


if __name__ == "__main__":
    main()
