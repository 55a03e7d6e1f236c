"""The paper's non-differentiable model: table non_diff, and which form of the model its numbers fit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from mgvbp.paper.nondiff.figures import bounds_figure, forms_figure
from mgvbp.paper.nondiff.runs import (
    DATA_SETS,
    FORMS,
    METHODS,
    TRAIN,
    run_auto,
    run_form,
    run_mcmc,
    run_method,
    run_ml,
)
from mgvbp.paper.nondiff.tables import form_table, gap_table, results_table
from mgvbp.paper.spec import Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NonDifferentiable(Experiment):
    """Both forms of the model on simulated data, with the paper's methods and settings, `auto`, ML and MCMC.

    A quick run has ML and MGVBP on one data set, and fewer data sets for the forms.
    """

    name = "nondiff"
    title = "Non-differentiable model: reconstruction from bits"

    def cells(self, quick: bool) -> list[Cell]:
        if quick:
            return [
                Cell("norms 0 ML", partial(run_ml, form="norms", number=0)),
                method_cell("norms", 0, "MGVBP", "equal steps"),
                *(form_cell(form, TRAIN, replications=20) for form in FORMS),
            ]
        where = [(form, k) for form in FORMS for k in range(DATA_SETS[form])]
        runs = [(f, k, m, "equal steps") for f, k in where for m in METHODS]
        runs += [("norms", 0, m, "other clip") for m in METHODS]
        return [
            *(Cell(f"{f} {k} ML", partial(run_ml, form=f, number=k)) for f, k in where),
            *(Cell(f"{f} {k} auto", partial(run_auto, form=f, number=k)) for f, k in where),
            Cell("norms 0 MCMC", partial(run_mcmc, form="norms", number=0, steps=4000)),
            *(method_cell(*run) for run in runs),
            *(form_cell(form, n, replications=200) for form in FORMS for n in (TRAIN, 2 * TRAIN)),
        ]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        tables = [*(results_table(outcomes, form) for form in FORMS), form_table(outcomes)]
        tables += [gap_table(outcomes, form) for form in FORMS]
        return [table for table in tables if table.rows]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        figures = {}
        if "norms 0 auto" in outcomes:
            figures["bounds"] = bounds_figure(outcomes)
        if any(name.startswith("form ") for name in outcomes):
            figures["forms"] = forms_figure(outcomes)
        return figures


def method_cell(form: str, number: int, method: str, panel: str) -> Cell:
    """The run of a method on a data set."""
    run = partial(run_method, form=form, number=number, method=method, panel=panel)
    return Cell(f"{form} {number} {method} {panel}", run)


def form_cell(form: str, rows: int, replications: int) -> Cell:
    """What the paper's numbers would be under a form of the model with this number of rows."""
    return Cell(f"form {form} {rows}", partial(run_form, form=form, rows=rows, replications=replications))


EXPERIMENT = NonDifferentiable()
