"""Eight volatility models on the S&P 500: the paper's tables vol_est and vol_est_EGARCH, and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mgvbp.paper.spec import Cell, Experiment, Outcome, Table
from mgvbp.paper.volatility.figures import dynamics, marginals, slug
from mgvbp.paper.volatility.runs import cells_of
from mgvbp.paper.volatility.tables import chains, model_tables, race
from mgvbp.paper.volatility.target import MODELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Volatility(Experiment):
    """All eight models; quick: GARCH(1,0,1) alone, with a short chain."""

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
