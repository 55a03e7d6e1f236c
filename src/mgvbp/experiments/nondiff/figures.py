"""Nats behind auto along the runs, and the paper's numbers among those of simulated data sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.experiments.nondiff.runs import FORMS, METHODS, TRAIN
from mgvbp.experiments.spec import Outcome, reference

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bounds_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """Nats behind `auto` along the runs, on common draws."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axis, form in zip(figure.subplots(1, 2), FORMS, strict=True):
        for i, method in enumerate(METHODS):
            outcome, auto = outcomes.get(f"{form} 0 {method} equal steps"), outcomes.get(f"{form} 0 auto")
            if outcome is None or auto is None:
                continue
            behind = np.maximum(auto.values["few"] - np.array(outcome.curves["bound"]), 0.01)
            style = "--" if method == "MGVBP" else "-"
            axis.semilogy(outcome.curves["iteration"], behind, style, color=f"C{i}", label=method)
        axis.set(title=f"{form}, first data set", xlabel="iteration", ylabel="nats behind auto")
        if axis.lines:
            axis.legend()
    return figure


def forms_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """Two numbers of the paper among those of simulated data sets."""
    from matplotlib.figure import Figure

    paper = reference("nondiff")["paper"]
    row = paper["non_diff"]["MGVBP"]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
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
    axis.legend()
    return figure
