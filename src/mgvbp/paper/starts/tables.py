"""The tables StartValLabour and StartValGARCH, and which sample the second one may be of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mgvbp.paper.common import ARRIVED, Array
from mgvbp.paper.spec import Outcome, Row, Table, reference
from mgvbp.paper.starts.cases import STARTS, Case, Start

BLOCKS = 10
"""Cells of a row of `auto`, of 20 runs each: the paper's 200 runs."""
PERCENTAGES = ("accuracy", "precision", "recall", "F1")
SAMPLES = {"1,689 days": 1689, "1,698 days": 1698}


def cell_name(case: Case, start: Start, method: str, block: int) -> str:
    """The name of a cell, under which its outcome is stored."""
    return f"{case.label} {start.name} {method} {block}"


def table(case: Case, outcomes: Mapping[str, Outcome]) -> Table:
    """The table of a case; the paper's numbers stand beside the rows of MGVBP, which has the paper's settings."""
    columns = {name: mean for name, (mean, _) in case.tolerances.items()}
    columns |= {f"sd {name}": spread for name, (_, spread) in case.tolerances.items()}
    columns |= {"arrived %": 0.0, "queries": 0.0, "runs": 0.0}
    exact, printed = reference("starts")["exact"][case.label], reference("starts")["paper"][case.label]
    rows = []
    for start in STARTS:
        for method in case.methods:
            names = [cell_name(case, start, method, block) for block in range(BLOCKS)]
            done = [outcomes[name].curves for name in names if name in outcomes]
            if done:
                runs = {name: np.concatenate([curves[name] for curves in done]) for name in done[0]}
                paper = printed[start.name] if method == "MGVBP" else {}
                ours = statistics(case, runs, exact["LB"])
                rows.append(Row(f"{start.name} {method}", ours, paper, exact, case.reason))
    return Table(case.label, case.title, columns, rows, bound="LB", note=case.note)


def statistics(case: Case, runs: Mapping[str, Array], optimum: float) -> dict[str, float]:
    """What a row shows of its runs; standard deviations are × 100, but those of percentages are in points."""
    shown = {name: float(runs[name].mean()) for name in case.tolerances}
    for name in case.tolerances:
        unit = 1.0 if name in PERCENTAGES else 100.0
        shown[f"sd {name}"] = unit * float(runs[name].std(ddof=1))
    shown["arrived %"] = 100.0 * float(np.mean(optimum - runs["at point"] <= ARRIVED))
    return shown | {"queries": float(runs["queries"].mean()), "runs": float(len(runs["LB"]))}


def samples(outcomes: Mapping[str, Outcome]) -> Table:
    """The results of `auto` on both samples that the paper's second table may be of."""
    printed, exact = (reference("starts")[part] for part in ("paper", "exact"))
    paper = {name: printed["StartValGARCH"]["N(0, 0.1)"][name] for name in ("LB", "−loglik", "MSE")}
    rows = [
        Row(name, outcomes[name].values, paper, exact["sample"][str(days)], "another sample")
        for name, days in SAMPLES.items()
        if name in outcomes
    ]
    note = "The table says 1,689 days, where the paper's other tables have 1,698; neither gives its numbers."
    columns = {"LB": 0.02, "−loglik": 0.01, "MSE": 0.005}
    return Table("sample", "The sample of StartValGARCH, by auto", columns, rows, bound="LB", note=note)
