"""Nats behind auto along the runs, and the paper's numbers among those of simulated data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.paper.nondiff.runs import FORMS, METHODS, TRAIN
from mgvbp.paper.spec import Outcome, reference
from mgvbp.plots import finished, private_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bounds_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """Nats behind `auto` along the runs, with the same draws for all."""
    figure = private_figure(10, 4)
    for axis, form in zip(figure.subplots(1, 2), FORMS, strict=True):
        for i, method in enumerate(METHODS):
            outcome, auto = outcomes.get(f"{form} 0 {method} equal steps"), outcomes.get(f"{form} 0 auto")
            if outcome is None or auto is None:
                continue
            behind = np.maximum(auto.values["few"] - np.array(outcome.curves["bound"]), 0.01)
            style = "--" if method == "MGVBP" else "-"
            axis.semilogy(outcome.curves["iteration"], behind, style, color=f"C{i}", label=method)
        axis.set(xlabel="iteration", ylabel="nats behind auto")
        finished(axis, f"{form}, first data set", frameon=False)
    return figure


def forms_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """Two numbers of the paper among those of simulated data sets."""
    paper = reference("nondiff")["paper"]
    row = paper["non_diff"]["MGVBP"]
    figure = private_figure(7, 4.5)
    axis = figure.subplots()
    for form in FORMS:
        for n in (TRAIN, 2 * TRAIN):
            if outcome := outcomes.get(f"form {form} {n}"):
                x, y = outcome.curves["log-lik − LB*"], -np.array(outcome.curves["first LB"])
                axis.scatter(x, y, s=8, label=f"{form}, {n} rows")
    axis.scatter(
        row["log-lik"] - row["LB*"],
        -paper["text"]["initial"]["LB"],
        marker="*",
        s=160,
        color="k",
        label="paper",
    )
    axis.set(yscale="log", xlabel="log-likelihood at the mean − lower bound", ylabel="− first lower bound")
    finished(axis, "The paper among simulated data sets", frameon=False)
    return figure
