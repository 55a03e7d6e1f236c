"""The TABL network on limit-order books: table tabl, lower bounds at equal passes over the data, and figures."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mgvbp.datasets import load_fi2010
from mgvbp.paper.lob.figures import learning_figure, reliability_figure
from mgvbp.paper.lob.plan import FULL, QUICK, Plan
from mgvbp.paper.lob.problem import Lob, Source, problem
from mgvbp.paper.lob.runs import (
    INITIAL_VARIANCE,
    METHODS,
    PAPER,
    run_adam,
    run_mcmc,
    run_method,
    run_truth,
    settings,
)
from mgvbp.paper.lob.tables import TRUTH, passes_table, results_tables
from mgvbp.paper.spec import Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "EXPERIMENT", "FULL", "INITIAL_VARIANCE", "PAPER", "Lob", "Plan", "Source", "problem", "run_method", "settings",
]  # fmt: skip
"""The benchmark of this experiment uses them too."""


class LobExperiment(Experiment):
    """The paper's neural network, on simulated books or on the files of FI-2010.

    Parameters
    ----------
    directory : str
        The directory of FI-2010; empty for simulated data.
    full, quick : Plan
        How much is run. A quick run has few windows, few passes and no MCMC.
    """

    name = "lob"
    title = "A neural network on limit-order books"

    def __init__(self, directory: str = "", full: Plan = FULL, quick: Plan = QUICK) -> None:
        self.directory, self.full, self.quick = directory, full, quick

    def on(self, directory: Path) -> LobExperiment:
        """The same experiment on the files of FI-2010 below a directory. They are read here, once for all cells."""
        load_fi2010(directory, progress=True)
        return LobExperiment(str(directory.resolve()), self.full, self.quick)

    def cells(self, quick: bool) -> list[Cell]:
        plan = self.quick if quick else self.full
        source = Source(plan.windows, self.directory)
        runs = {name: partial(run_method, source=source, plan=plan, name=name) for name in METHODS}
        runs["ADAM"] = partial(run_adam, source=source, plan=plan)
        if plan.chains:
            runs["MCMC"] = partial(run_mcmc, source=source, plan=plan)
        if not self.directory:
            runs[TRUTH] = partial(run_truth, source=source)
        return [Cell(name + self._suffix, run) for name, run in runs.items()]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        found = self._by_row(outcomes)
        tables = [*results_tables(found, real=bool(self.directory)), passes_table(found)]
        return [table for table in tables if any(row.ours for row in table.rows)]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        found = self._by_row(outcomes)
        figures = {"learning": learning_figure(found), "reliability": reliability_figure(found)}
        return {name: figure for name, figure in figures.items() if figure is not None}

    @property
    def _suffix(self) -> str:
        """The end of a cell's name, which keeps the stored cells of different data apart."""
        if not self.directory:
            return ""
        files = [(path.name, path.stat().st_size) for path in sorted(Path(self.directory).rglob("*.txt"))]
        return f", FI-2010 in {self.directory} ({zlib.crc32(repr(files).encode()):08x})"

    def _by_row(self, outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
        return {name.removesuffix(self._suffix): outcome for name, outcome in outcomes.items()}


EXPERIMENT = LobExperiment()
