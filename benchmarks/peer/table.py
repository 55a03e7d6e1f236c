"""From stored results to the Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

Record = dict[str, Any]
NEAR, BETTER, TIMES, SMALL = 0.05, 0.02, 20.0, 10
"""The gap to reach; an advantage in the bound that counts; the lead in queries that we want up to this d."""
OURS = ("mgvbp auto", "mgvbp auto, gradients")
TRUTH = "NUTS"
CHAINS = (TRUTH, "nutpie")


class Row(NamedTuple):
    """A peer on a problem, medians over the seeds; inf where the gap was not reached."""

    target: str
    dim: int
    peer: str
    values: float
    gradients: float
    near_values: float
    near_gradients: float
    near_seconds: float
    compile_seconds: float
    seconds: float
    gap: float
    distance: float
    """Nats from the best Gaussian to the posterior itself; nan where the evidence is not known."""
    memory: float
    """The most that the process had, in MB."""
    khat: float
    shift: float
    cut: bool
    """Whether the clock ended a run."""

    @property
    def near_queries(self) -> float:
        """Values and gradients together."""
        return self.near_values + self.near_gradients

    @property
    def near_total(self) -> float:
        """Seconds to the gap, with compilation."""
        return self.near_seconds + self.compile_seconds


def optima(records: Iterable[Record]) -> dict[str, float]:
    """The exact optimum of each problem; where there is none, the best bound of all runs."""
    found: dict[str, float] = {}
    for record in records:
        best = max((run["bound"] for run in record.get("runs", [])), default=-np.inf)
        known = record["optimum"]
        found[record["target"]] = (
            known if known is not None else max(best, found.get(record["target"], -np.inf))
        )
    return found


def summarised(records: list[Record]) -> list[Row]:
    """A row for every record that has runs."""
    best = optima(records)
    truth = {r["target"]: r["runs"][0] for r in records if r["peer"] == TRUTH and "runs" in r}
    return [
        row(record, best[record["target"]], truth.get(record["target"]))
        for record in records
        if "runs" in record
    ]


def row(record: Record, optimum: float, truth: Record | None) -> Row:
    """The medians."""
    runs, evidence = record["runs"], record["log_evidence"]

    def median(of: Callable[[Record], float]) -> float:
        return float(np.median([of(run) for run in runs]))

    def near(run: Record, what: str) -> float:
        first = next((at for at in run["path"] if optimum - at["bound"] <= NEAR), None)
        return float(first[what]) if first else np.inf

    def shift(run: Record) -> float:
        if truth is None:
            return np.nan
        return float(np.max(np.abs(np.subtract(run["mean"], truth["mean"])) / truth["sd"]))

    return Row(
        record["target"],
        record["dim"],
        record["peer"],
        median(lambda run: run["path"][-1]["values"]),
        median(lambda run: run["path"][-1]["gradients"]),
        median(lambda run: near(run, "values")),
        median(lambda run: near(run, "gradients")),
        median(lambda run: near(run, "seconds")),
        record["compile_seconds"],
        median(lambda run: run["path"][-1]["seconds"]),
        median(lambda run: optimum - run["bound"]),
        np.nan if evidence is None else evidence - optimum,
        record["memory"],
        median(lambda run: run["khat"]),
        median(shift),
        record["peer"] not in (*OURS, *CHAINS)
        and any(run["path"][-1]["seconds"] > record["budget"]["seconds"] for run in runs),
    )


def results(rows: Iterable[Row], records: Iterable[Record]) -> str:
    """All rows, a table for each target; then who was left out, and why."""
    lines = []
    for (target, dim), here in groupby(rows, key=lambda r: (r.target, r.dim)):
        table = list(here)
        lines += ["", f"### {target} (d = {dim})", ""]
        if np.isfinite(table[0].distance):
            lines += [f"The best Gaussian is {number(table[0].distance, 4)} nats from the posterior.", ""]
        lines += [
            "| peer | values | gradients | queries to 0.05 | s to 0.05 | compilation, s | run, s | MB | gap | k-hat "
            "| mean off, sd |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        ]
        for r in table:
            mcmc = r.peer in CHAINS
            near = ("", "") if mcmc else (count(r.near_queries), number(r.near_seconds, 3))
            ends = (
                ("", "", number(r.shift, 2))
                if mcmc
                else (number(r.gap, 4), number(r.khat, 2), number(r.shift, 2))
            )
            costs = (number(r.compile_seconds, 2), number(r.seconds, 3) + ", cut" * r.cut, count(r.memory))
            lines.append(
                "| " + " | ".join((r.peer, count(r.values), count(r.gradients), *near, *costs, *ends)) + " |"
            )
    skipped = [f"{r['target']}, {r['peer']}: {r['skipped']}" for r in records if "skipped" in r]
    return "\n".join([*lines, "", *(f"- left out: {line}" for line in skipped)])


class Standing(NamedTuple):
    """On a problem, the better of our rows and the best peer in each respect."""

    queries: tuple[Row, Row]
    time: tuple[Row, Row]
    gap: tuple[Row, Row]

    @property
    def times(self) -> float:
        """The best peer's queries over ours; nan where we never get near."""
        ours, theirs = (row.near_queries for row in self.queries)
        return theirs / ours if np.isfinite(ours) else np.nan

    @property
    def faster(self) -> bool:
        """Whether we are near first, with compilation."""
        ours, theirs = (row.near_total for row in self.time)
        return ours < theirs

    @property
    def beaten(self) -> bool:
        """Whether a peer's lower bound is better by more than counts."""
        ours, theirs = (row.gap for row in self.gap)
        return theirs < ours - BETTER


def compared(rows: list[Row]) -> list[Standing]:
    """For every problem on which there are both."""
    found = []
    for target in dict.fromkeys(r.target for r in rows):
        here = [r for r in rows if r.target == target and r.peer not in CHAINS]
        groups = [[r for r in here if (r.peer in OURS) is mine] for mine in (True, False)]
        if all(groups):
            ours, peers = groups
            found.append(
                Standing(
                    (min(ours, key=lambda r: r.near_queries), min(peers, key=lambda r: r.near_queries)),
                    (min(ours, key=lambda r: r.near_total), min(peers, key=lambda r: r.near_total)),
                    (min(ours, key=lambda r: r.gap), min(peers, key=lambda r: r.gap)),
                )
            )
    return found


def standings(rows: list[Row]) -> str:
    """Who is ahead on which problem, and on how many."""
    lines = [
        "| target (d) | our queries to 0.05 | best peer's | times ours | our seconds, with compilation | best peer's "
        "| our gap | best peer's |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    found = compared(rows)
    for at in found:
        first = at.queries[0]
        cells = (
            f"{first.target} ({first.dim})",
            *(named(count(r.near_queries), r) for r in at.queries),
            "∞" if np.isinf(at.times) else number(at.times, 1),
            *(named(number(r.near_total, 2), r) for r in at.time),
            *(named(number(r.gap, 4), r) for r in at.gap),
        )
        lines.append("| " + " | ".join(cells) + " |")
    small = [at for at in found if at.queries[0].dim <= SMALL]
    return "\n".join(
        [
            *lines,
            "",
            f"Ahead in queries on {sum(at.times > 1.0 for at in found)} of {len(found)} targets, 20 times on "
            f"{sum(at.times >= TIMES for at in small)} of the {len(small)} with d ≤ 10; faster on "
            f"{sum(at.faster for at in found)} of {len(found)}; beaten by more than 0.02 nats on "
            f"{sum(at.beaten for at in found)}.",
        ]
    )


def named(text: str, r: Row) -> str:
    """With the peer's name, where there is a number."""
    return text if text == "never" else f"{text} ({r.peer.removeprefix('mgvbp ')})"


def count(x: float) -> str:
    """A count, or that it never came to be."""
    return f"{x:,.0f}" if np.isfinite(x) else "never"


def number(x: float, digits: int) -> str:
    """A number; inf is never reached, or broken down."""
    if np.isnan(x):
        return "–"
    if np.isinf(x):
        return "never" if x > 0 else "−∞"
    return f"{x:z,.{digits if abs(x) < 1000 else 0}f}" if abs(x) < 1e9 else f"{x:.1e}"
