"""Linear regression on the Istanbul data under four covariance structures: istanbul_mu, _cov and _cov_2."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from mgvbp.paper.common import METHODS
from mgvbp.paper.istanbul.figures import bound_figure, race_figure
from mgvbp.paper.istanbul.runs import (
    BETAS,
    COORDINATES,
    DRAWS,
    PANELS,
    STRUCTURES,
    UNCONVERGED,
    run_auto,
    run_mcmc,
    run_mgvbp,
    run_ml,
    run_race,
    run_spread,
)
from mgvbp.paper.istanbul.tables import (
    covariance_tables,
    ml_table,
    moment_table,
    performance_table,
    race_table,
    spread_tables,
)
from mgvbp.paper.spec import Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Istanbul(Experiment):
    """Four structures with the printed settings, the authors' and `auto`; ML, MCMC; a race of the methods.

    A quick run has maximum likelihood, `auto` and one of the authors' runs.
    """

    name = "istanbul"
    title = "Istanbul stock exchange: linear regression, block-diagonal covariances"
    data = ("istanbul",)

    def cells(self, quick: bool) -> list[Cell]:
        auto = [Cell(f"{s} auto", partial(run_auto, structure=s)) for s in STRUCTURES]
        first = [Cell("ML", run_ml), *auto, named_cell("full", "as run")]
        if quick:
            return first
        pairs = [(s, how) for s in STRUCTURES for how in DRAWS if (s, how) != ("full", "as run")]
        races = [(m, s, p) for p in PANELS for s in ("full", "diagonal") for m in METHODS]
        return [
            *first,
            Cell("MCMC", partial(run_mcmc, steps=20_000)),
            *(named_cell(s, how) for s, how in pairs),
            *(Cell(f"spread {s}", partial(run_spread, structure=s)) for s in UNCONVERGED),
            *(Cell(f"{p}: {m} {s}", partial(run_race, method=m, structure=s, panel=p)) for m, s, p in races),
        ]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        tables = [
            performance_table(outcomes),
            moment_table(outcomes, "istanbul_mu", "mean", (*BETAS, "σ")),
            moment_table(outcomes, "istanbul_cov_2", "sd", COORDINATES),
            *covariance_tables(outcomes),
            ml_table(outcomes),
            *spread_tables(outcomes),
            race_table(outcomes),
        ]
        return [table for table in tables if table.rows]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        figures = {}
        if any(f"{s} as run" in outcomes for s in STRUCTURES):
            figures["lower-bound"] = bound_figure(outcomes)
        if any(name.startswith(tuple(PANELS)) for name in outcomes):
            figures["race"] = race_figure(outcomes)
        return figures


def named_cell(structure: str, how: str) -> Cell:
    """The run of MGVBP for a row."""
    return Cell(f"{structure} {how}", partial(run_mgvbp, structure=structure, how=how))


EXPERIMENT = Istanbul()
