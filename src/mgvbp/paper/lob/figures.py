"""The bound and the measures over the passes, and the reliability of the probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.paper.lob.runs import METHODS
from mgvbp.paper.spec import Outcome
from mgvbp.plots import finished, private_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES = {
    "MGVBP gradient": ("C0", "-"),
    "QBVI gradient diag": ("C2", "-"),
    "QBVI diag, same steps": ("C2", "--"),
    "VOGN diag": ("C3", "-"),
    "MGVBP h": ("C0", ":"),
    "QBVI h diag": ("C2", ":"),
    "MCMC": ("0.4", "--"),
    "ADAM": ("C1", "-"),
}
PANELS = {"test acc": "accuracy", "test f1": "macro F1", "test lpd": "log predictive density"}
LEAST = 10.0
"""Nats. A smaller distance to the best bound is drawn as this one: the best has distance 0, which has no logarithm."""


def learning_figure(outcomes: Mapping[str, Outcome]) -> Figure | None:
    """Figure tabl: the lower bound and the test measures against passes over the data. Circles are the results.

    With function values alone the result is the iterate with the best smoothed bound, which may not be the last one.
    """
    runs = {name: outcomes[name] for name in METHODS if name in outcomes}
    if not runs:
        return None
    best = max(max(run.values["LB*"], *run.curves["bound"]) for run in runs.values())
    figure = private_figure(14, 3.8)
    first, *others = figure.subplots(1, 1 + len(PANELS))
    for name, run in runs.items():
        colour, dashes = STYLES[name]
        style = {"color": colour, "ls": dashes, "marker": ".", "ms": 4, "lw": 1.3}
        result = {"color": colour, "marker": "o", "ms": 6, "mfc": "none"}
        passes, end = run.curves["passes"], run.values["passes"]
        first.plot(passes, np.maximum(best - np.array(run.curves["bound"]), LEAST), label=name, **style)
        first.plot(end, max(best - run.values["LB*"], LEAST), **result)
        for axis, column in zip(others, PANELS, strict=True):
            axis.plot(passes, run.curves[column], **style)
            axis.plot(end, run.values[column], **result)
    first.set_yscale("log")
    finished(first, f"nats below the best bound, {best:,.0f}".replace("-", "−"), frameon=False)
    for axis, (column, title) in zip(others, PANELS.items(), strict=True):
        finished(axis, f"test {title}")
        shown = [max(run.curves[column]) for run in runs.values()]
        high, usual = max(shown), float(np.median([run.values[column] for run in runs.values()]))
        margin = max(high - usual, 0.005)
        axis.set_ylim(usual - 2.0 * margin, high + 0.3 * margin)  # a run that fails may leave the picture
    for axis in (first, *others):
        axis.set_xscale("symlog", linthresh=10)
        axis.set(xlim=(-0.5, None), xlabel="passes over the data")
    return figure


def reliability_figure(outcomes: Mapping[str, Outcome]) -> Figure | None:
    """How often the likeliest class was the true one, against its probability, on the test windows."""
    runs = {name: outcomes[name] for name in STYLES if name in outcomes}
    if not runs:
        return None
    figure = private_figure(10, 4.4)
    line, bars = figure.subplots(1, 2)
    for name, run in runs.items():
        colour, dashes = STYLES[name]
        label = f"{name} ({run.values['test ECE']:.3f})"
        confidence, accuracy = (np.array(run.curves[c]) for c in ("confidence", "accuracy"))
        line.plot(confidence, accuracy, dashes, color=colour, marker="o", ms=3, lw=1.2, label=label)
        bars.plot(confidence, run.curves["share"], dashes, color=colour, marker="o", ms=3, lw=1.2)
    line.plot([1 / 3, 1.0], [1 / 3, 1.0], color="0.7", lw=0.8)
    line.set(xlabel="probability of the likeliest class", ylabel="how often it was the true one")
    bars.set(xlabel="probability of the likeliest class", ylabel="share of the test windows")
    finished(line, "Reliability, and the expected calibration error", frameon=False)
    finished(bars, "Confidence")
    return figure
