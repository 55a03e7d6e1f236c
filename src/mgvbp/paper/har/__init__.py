"""Realised volatility: the paper's tables regression and vol_est_FIGARCH_HAR, and the figure of their dynamics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from mgvbp.paper.common import METHODS
from mgvbp.paper.har.runs import (
    FAIR_BUDGET,
    REPLICATIONS,
    VARIANTS,
    run_auto,
    run_fair,
    run_mcmc,
    run_ml,
    run_named,
)
from mgvbp.paper.har.tables import GARCH_ROWS, diagnostics, garch_table, har_tables, race
from mgvbp.paper.spec import Cell, Experiment, Outcome, Table, reference
from mgvbp.paper.volatility.figures import PANELS, draw_dynamics, dynamics_of, new_figure
from mgvbp.paper.volatility.runs import cells_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Har(Experiment):
    """The regression table, and HAR in all variants; quick: one variant, few seeds and a short chain."""

    name = "har"
    title = "Realised volatility: the regression table and HAR"
    data = ("sp500", "har")

    def cells(self, quick: bool) -> list[Cell]:
        variants = [""] if quick else list(VARIANTS)
        families = [
            v for v in variants if v != " h"
        ]  # auto and the fair runs compare families, not estimators
        named = partial(run_named, replications=2 if quick else REPLICATIONS)
        fair = partial(run_fair, budget=FAIR_BUDGET)
        cells = [Cell(f"{m}{v}", partial(named, method=m, variant=v)) for v in variants for m in METHODS]
        if not quick:
            cells += [
                Cell(f"{m}{v} fair", partial(fair, method=m, variant=v)) for v in families for m in METHODS
            ]
        cells += [Cell(f"auto{v}", partial(run_auto, variant=v)) for v in families]
        cells += [Cell("MCMC", partial(run_mcmc, steps=500 if quick else 5000)), Cell("ML", run_ml)]
        return cells if quick else [*cells, *(cell for model in GARCH_ROWS for cell in cells_of(model))]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        tables = [garch_table(outcomes), *har_tables(outcomes), race(outcomes), diagnostics(outcomes)]
        return [table for table in tables if table.rows]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        names = [f"{method}{variant}" for variant in ("", " diagonal") for method in METHODS]
        runs = {name: outcomes[name].curves for name in names if name in outcomes}
        if not runs:
            return {}
        models = [model for model in GARCH_ROWS if f"{model} MGVBP" in outcomes]
        figure, axes = new_figure(1 + len(models), 1 + len(PANELS))
        labels = {run: run for run in runs}
        draw_dynamics(axes[0], "HAR", runs, labels, reference("har")["exact"]["full"]["LB*"])
        axes[0][1].legend(*axes[0][0].get_legend_handles_labels(), fontsize=7)  # this panel has room for it
        for model, line in zip(models, axes[1:], strict=True):
            dynamics_of(line, model, outcomes)
        return {"dynamics": figure}


EXPERIMENT = Har()
