"""Logistic regression on the Labour data: the tables logistic_perf, logistic_mu, _var, _cov and _S, and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from mgvbp.paper.common import METHODS, PRIOR_VARIANCE
from mgvbp.paper.labour.figures import bound_figure, learning_figure, metrics_figure, speed_figure
from mgvbp.paper.labour.model import exact_lower_bound, expectation, measures, problem
from mgvbp.paper.labour.runs import (
    ESTIMATORS,
    FAMILIES,
    INITIAL_VARIANCE,
    NUM_DRAWS,
    PANELS,
    SETTINGS,
    SIZES,
    row_name,
    run_auto,
    run_mcmc,
    run_method,
    run_ml,
    run_size,
)
from mgvbp.paper.labour.tables import (
    bound_tables,
    covariance_tables,
    moment_tables,
    performance_tables,
    size_tables,
    speed_tables,
)
from mgvbp.paper.spec import Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "EXPERIMENT", "INITIAL_VARIANCE", "METHODS", "NUM_DRAWS", "PRIOR_VARIANCE", "SETTINGS", "exact_lower_bound",
    "expectation", "measures", "problem",
]  # fmt: skip
"""The problem and its settings serve other experiments, the benchmarks and the pages of the documentation too."""

BASELINES = {"MCMC", "ML"}


class LabourExperiment(Experiment):
    """The paper's logistic regression; quick: the authors' runs with full covariance, and `auto`."""

    name = "labour"
    title = "Logistic regression on the Labour data"
    data = ("labour",)

    def cells(self, quick: bool) -> list[Cell]:
        def method(panel: str, m: str, e: str, f: str) -> Cell:
            return Cell(f"{panel} {row_name(m, e, f)}", partial(run_method, PANELS[panel], m, e, f))

        auto = [Cell(f"auto {family}", partial(run_auto, family)) for family in FAMILIES]
        if quick:
            return [*(method("authors", m, "loglik", "full") for m in METHODS), auto[0]]
        return [
            *(method(*which) for which in product(PANELS, METHODS, ESTIMATORS, FAMILIES)),
            *auto,
            Cell("ML", run_ml),
            Cell("MCMC", run_mcmc),
            *(Cell(f"S = {S}", partial(run_size, replace(PANELS["authors"], num_draws=S))) for S in SIZES),
        ]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        found = [*bound_tables(outcomes), *speed_tables(outcomes)]
        if outcomes.keys() >= BASELINES:  # not in a quick run
            found += [*performance_tables(outcomes), *moment_tables(outcomes), *covariance_tables(outcomes)]
        found += size_tables(outcomes)
        return [table for table in found if table.rows]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        found = {
            "bound": bound_figure(outcomes),
            "speed": speed_figure(outcomes),
            "metrics": metrics_figure(outcomes),
            "learning": learning_figure(outcomes),
        }
        return {name: figure for name, figure in found.items() if figure is not None}


EXPERIMENT = LabourExperiment()
