"""The bound and the losses over the iterations, and the marginal densities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.paper.common import COLOURS, METHODS
from mgvbp.paper.spec import Outcome, reference
from mgvbp.paper.volatility.runs import RUNS
from mgvbp.paper.volatility.target import MODELS
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


def slug(model: str) -> str:
    """The name of the figure with the marginals of a model."""
    return "marginals-" + model.lower().replace("(", "-").replace(")", "").replace(",", "")


def new_figure(rows: int, columns: int) -> tuple[Figure, list[list[Axes]]]:
    """A figure of rows and columns of small panels."""
    figure = private_figure(13.0, 2.4 * rows + 0.4)
    return figure, [list(line) for line in figure.subplots(rows, columns, squeeze=False)]


def dynamics(outcomes: Mapping[str, Outcome], models: list[str]) -> Figure:
    """Lower bound, MSE and QLIKE over the iterations, with a row for each model."""
    shown = [model for model in models if f"{model} MGVBP" in outcomes]
    if not shown:
        return private_figure(1.0, 1.0)
    figure, axes = new_figure(len(shown), 1 + len(PANELS))
    for model, line in zip(shown, axes, strict=True):
        dynamics_of(line, model, outcomes)
    return figure


def dynamics_of(line: list[Axes], model: str, outcomes: Mapping[str, Outcome]) -> None:
    """Draw the row of one model."""
    runs = {run: outcomes[f"{model} {run}"].curves for run in RUNS if f"{model} {run}" in outcomes}
    draw_dynamics(line, model, runs, LABELS, reference("volatility")["exact"][model]["LB*"])
    line[0].legend(fontsize=7, loc="lower right")


def draw_dynamics(
    line: list[Axes],
    name: str,
    runs: Mapping[str, Mapping[str, list[float]]],
    labels: Mapping[str, str],
    optimum: float,
) -> None:
    """Draw one row: the bound with its optimum, and the two losses on the training and the test days."""
    for run, curves in runs.items():
        style: dict[str, Any] = {
            "color": COLOURS[run.split()[0]],
            "linestyle": STYLES.get(run, "-"),
            "linewidth": WIDTHS.get(run, 1.2),
        }
        for panel, column in zip(line, ("LB", *PANELS), strict=True):
            panel.plot(curves["iteration"], curves[column], label=labels[run], **style)
    line[0].axhline(optimum, color="k", linestyle=":", linewidth=1.0, label="exact optimum")
    line[0].set_ylim(optimum - 6.0, optimum + 0.5)
    for panel, title in zip(line, ("lower bound", *PANELS), strict=True):
        panel.set_xlabel("iteration")
        finished(panel, f"{name}: {title}" if panel is line[0] else title)


def marginals(outcomes: Mapping[str, Outcome], model: str) -> Figure:
    """Marginal densities of ψ (top) and of the parameters (bottom), by MCMC (grey) and the methods."""
    runs = {run: outcomes[f"{model} {run}"].curves for run in SHADES if f"{model} {run}" in outcomes}
    if "MCMC" not in runs:
        return private_figure(1.0, 1.0)
    names = MODELS[model].parameters.names
    figure, axes = new_figure(2, len(names))
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
