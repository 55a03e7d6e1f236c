"""Figures of the models of daily data: the bound and the losses over the iterations, and the marginal densities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.paper.common import COLOURS, METHODS
from mgvbp.paper.spec import Outcomes, reference
from mgvbp.plots import finished, private_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = COLOURS | {"auto": "C3", "MCMC": "0.75"}
STYLES = {"MGVBP 0.01": "--", **{f"{method} diagonal": ":" for method in METHODS}}
WIDTHS = {"MGVB": 3.6, "QBVI": 2.2}
"""At equal steps the lines lie on each other, so each is thinner than the one below it."""
PANELS = ("MSE rv", "test MSE rv", "QLIKE rv", "test QLIKE rv")
LABELS = {
    "MGVBP": "MGVBP, step 0.02",
    "MGVB": "MGVB, 0.01",
    "QBVI": "QBVI, 0.01",
    "MGVBP 0.01": "MGVBP, 0.01",
}


def dynamics(
    outcomes: Outcomes, models: Iterable[str], har: Mapping[str, str] | None = None
) -> Figure | None:
    """Lower bound, MSE and QLIKE over the iterations, with a row for each model; ``har`` labels runs of HAR."""
    shown = [model for model in models if f"{model} MGVBP" in outcomes]
    if not shown and not har:
        return None
    rows = len(shown) + bool(har)
    figure = private_figure(13.0, 2.4 * rows + 0.4)
    axes = list(figure.subplots(rows, 1 + len(PANELS), squeeze=False))
    if har:
        line = axes.pop(0)
        optimum = reference("har")["exact"]["full"]["LB*"]
        draw_row(line, "HAR", {run: outcomes[run].curves for run in har}, har, optimum)
        line[1].legend(*line[0].get_legend_handles_labels(), fontsize=7)  # this panel has room for it
    for model, line in zip(shown, axes, strict=True):
        runs = {run: outcomes[f"{model} {run}"].curves for run in LABELS if f"{model} {run}" in outcomes}
        draw_row(line, model, runs, LABELS, reference("volatility")["exact"][model]["LB*"])
        line[0].legend(fontsize=7, loc="lower right")
    return figure


def draw_row(
    line: Iterable[Axes],
    name: str,
    runs: Mapping[str, Mapping[str, list[float]]],
    labels: Mapping[str, str],
    optimum: float,
) -> None:
    """Draw one row: the bound with its optimum, and the two losses on the training and the test days."""
    first, *losses = line
    for run, curves in runs.items():
        for panel, column in zip((first, *losses), ("LB", *PANELS), strict=True):
            panel.plot(
                curves["iteration"],
                curves[column],
                label=labels[run],
                color=COLOURS[run.split()[0]],
                linestyle=STYLES.get(run, "-"),
                linewidth=WIDTHS.get(run, 1.2),
            )
    first.axhline(optimum, color="k", linestyle=":", linewidth=1.0, label="exact optimum")
    first.set_ylim(optimum - 6.0, optimum + 0.5)
    for panel, title in zip((first, *losses), (f"{name}: lower bound", *PANELS), strict=True):
        panel.set_xlabel("iteration")
        finished(panel, title)


def marginals(outcomes: Outcomes, model: str, names: Iterable[str]) -> Figure | None:
    """Marginal densities of ψ (top) and of the parameters (bottom), by MCMC (grey) and the methods."""
    runs = {run: outcomes[f"{model} {run}"].curves for run in SHADES if f"{model} {run}" in outcomes}
    if "MCMC" not in runs:
        return None
    names = list(names)
    figure = private_figure(13.0, 5.2)
    axes = figure.subplots(2, len(names), squeeze=False)
    for space, line in zip(("psi", "theta"), axes, strict=True):
        for name, panel in zip(names, line, strict=True):
            for run, curves in runs.items():
                edges, heights = curves[f"{space} {name} edges"], curves[f"{space} {name} heights"]
                if run == "MCMC":
                    panel.stairs(heights, edges, fill=True, color=SHADES[run], label=run, zorder=0)
                else:
                    centres = (np.array(edges[1:]) + np.array(edges[:-1])) / 2.0
                    panel.plot(centres, heights, color=SHADES[run], linewidth=1.1, label=run)
            panel.set_yticks([])
            finished(panel, f"ψ of {name}" if space == "psi" else name)
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"{model}: marginals of ψ (top) and of the parameters (bottom)", fontsize=10)
    return figure
