"""The TABL network on limit-order books: table tabl, lower bounds at equal passes over the data, and figures."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

from mgvbp.datasets import load_fi2010
from mgvbp.paper.lob import results, runs
from mgvbp.paper.lob.problem import FULL, QUICK, Lob, Plan, problem
from mgvbp.paper.lob.runs import INITIAL_VARIANCE, PAPER, run_method, settings
from mgvbp.paper.spec import Cells, Experiment, Outcome, Outcomes

__all__ = [
    "EXPERIMENT", "FULL", "INITIAL_VARIANCE", "PAPER", "Lob", "Plan", "problem", "run_method", "settings",
]  # fmt: skip
"""The benchmark of this experiment uses them too."""


def experiment(directory: str = "", full: Plan = FULL, quick: Plan = QUICK) -> Experiment:
    """The paper's neural network, on simulated books or on the files of FI-2010 in a directory.

    ``full`` and ``quick`` say how much is run. A quick run has few windows, few passes and no MCMC.
    """
    end = suffix(directory)

    def cells(short: bool) -> Cells:
        plan = replace(quick if short else full, directory=directory)
        return {name + end: run for name, run in runs.cells(plan).items()}

    def by_row(outcomes: Outcomes) -> dict[str, Outcome]:
        return {name.removesuffix(end): outcome for name, outcome in outcomes.items()}

    return Experiment(
        "lob",
        cells,
        lambda outcomes: results.tables(by_row(outcomes), real=bool(directory)),
        lambda outcomes: results.figures(by_row(outcomes)),
    )


def suffix(directory: str) -> str:
    """The end of a cell's name, which keeps the stored cells of different data apart."""
    if not directory:
        return ""
    files = [(path.name, path.stat().st_size) for path in sorted(Path(directory).rglob("*.txt"))]
    return f", FI-2010 in {directory} ({zlib.crc32(repr(files).encode()):08x})"


def on_files(directory: Path) -> Experiment:
    """The experiment on the files of FI-2010 below a directory. They are read here, once for all cells."""
    load_fi2010(directory, progress=True)
    return experiment(str(directory.resolve()))


EXPERIMENT = experiment()
