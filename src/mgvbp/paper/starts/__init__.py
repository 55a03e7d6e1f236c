"""Starting values: the paper's tables StartValLabour and StartValGARCH."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from mgvbp.paper.spec import Cell, Experiment, Outcome, Table
from mgvbp.paper.starts.cases import CASES, FAR, STARTS
from mgvbp.paper.starts.runs import fit_sample, replicate
from mgvbp.paper.starts.tables import BLOCKS, SAMPLES, cell_name, samples, table

BLOCK, QUICK = 20, 4
"""Runs of a cell, and of one in a quick run. 20 is the number in the authors' files for Labour; the paper says 200."""
SLOW_BLOCKS = 1
"""Cells of a row of MGVBP, whose runs take seconds each: 20 runs take minutes, 200 would take hours."""


class Starts(Experiment):
    """Both tables, and what the sample of the second may have been."""

    name = "starts"
    title = "Starting values"
    data = ("labour", "sp500")

    def cells(self, quick: bool) -> list[Cell]:
        """Blocks of runs; the first block of every row comes first, so that a run may be stopped at any time."""
        cells = [Cell(name, partial(fit_sample, days=days)) for name, days in SAMPLES.items()]
        size = QUICK if quick else BLOCK
        for block in range(1 if quick else BLOCKS):
            for case in CASES:
                for method, settings in case.methods.items():
                    starts = case.starts(method) if settings is None or block < SLOW_BLOCKS else []
                    if quick:
                        few = STARTS[:1] if settings else [STARTS[0], *FAR]
                        starts = [start for start in starts if start in few]
                    for start in starts:
                        run = partial(
                            replicate, case=case, start=start, method=method, block=block, size=size
                        )
                        cells.append(Cell(cell_name(case, start, method, block), run))
        return cells

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        """One row a start and method."""
        return [*(table(case, outcomes) for case in CASES), samples(outcomes)]


EXPERIMENT = Starts()
