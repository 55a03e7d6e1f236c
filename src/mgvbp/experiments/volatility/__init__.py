"""Eight volatility models on the S&P 500: the paper's tables vol_est and vol_est_EGARCH, and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mgvbp.experiments.spec import Cell, Experiment, Outcome, Table
from mgvbp.experiments.volatility.figures import (
    PANELS,
    draw_dynamics,
    dynamics,
    dynamics_of,
    marginals,
    new_figure,
    slug,
)
from mgvbp.experiments.volatility.runs import (
    DRAWS,
    EVERY,
    NUM_DRAWS,
    Path,
    cells_of,
    run_auto,
    run_ml,
    run_named,
)
from mgvbp.experiments.volatility.tables import (
    LIKELIHOODS,
    LOSSES_NOTE,
    REASONS,
    ROUNDING,
    chains,
    model_tables,
    noisy_table,
    race,
    rows_of,
)
from mgvbp.experiments.volatility.target import MODELS, Target, exact_bound, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "DRAWS",
    "EVERY",
    "EXPERIMENT",
    "LIKELIHOODS",
    "LOSSES_NOTE",
    "MODELS",
    "NUM_DRAWS",
    "PANELS",
    "REASONS",
    "ROUNDING",
    "Path",
    "Target",
    "cells_of",
    "draw_dynamics",
    "dynamics_of",
    "exact_bound",
    "new_figure",
    "noisy_table",
    "rows_of",
    "run_auto",
    "run_ml",
    "run_named",
    "summary",
]


class Volatility(Experiment):
    """The eight models."""

    name = "volatility"
    title = "ARCH, GARCH, GJR, EGARCH and FIGARCH on the S&P 500"
    data = ("sp500",)

    def cells(self, quick: bool) -> list[Cell]:
        if quick:
            return cells_of("GARCH(1,0,1)", mcmc_steps=500)
        return [cell for model in MODELS for cell in cells_of(model)]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        return [table for table in [*model_tables(outcomes), race(outcomes), chains(outcomes)] if table.rows]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        found = {"dynamics": dynamics(outcomes, list(MODELS))}
        found |= {slug(m): marginals(outcomes, m) for m in ("GARCH(1,0,1)", "GJR(1,1,1)", "FIGARCH(1,d,1)")}
        return {name: figure for name, figure in found.items() if figure.axes}


EXPERIMENT = Volatility()
