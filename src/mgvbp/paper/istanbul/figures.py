"""The lower bound of each structure, and the race of the methods, over the iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.paper.common import ARRIVED, COLOURS
from mgvbp.paper.istanbul.runs import PANELS, STRUCTURES
from mgvbp.paper.spec import Outcome, reference
from mgvbp.plots import finished, private_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLES = {"MGVBP": "-", "MGVB": "--", "QBVI": ":"}
"""Dashes that let lines be seen that coincide."""


def bound_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """The paper's figure, and its last nats with the exact optima."""
    figure = private_figure(10, 4)
    left, right = figure.subplots(1, 2)
    for i, structure in enumerate(STRUCTURES):
        outcome = outcomes.get(f"{structure} as run")
        if outcome is None:
            continue
        optimum = reference("istanbul")["exact"]["istanbul_perf"][structure]["LB*"]
        for axis in (left, right):
            axis.plot(outcome.curves["iteration"], outcome.curves["bound"], color=f"C{i}", label=structure)
        right.axhline(optimum, color=f"C{i}", linestyle=":", linewidth=1)
    left.set(ylim=(-500, 1250), xlabel="iteration", ylabel="lower bound (smoothed)")
    right.set(ylim=(1140, 1190), xlabel="iteration")
    finished(left, "MGVBP, settings as run", loc="lower right", frameon=False)
    finished(right, "The same; dotted: exact optimum of each structure")
    return figure


def race_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """Nats below the optimum over the iterations, for each method."""
    figure = private_figure(11, 6)
    axes = figure.subplots(2, len(PANELS), sharex=True, sharey=True)
    for column, panel in enumerate(PANELS):
        for row, structure in enumerate(("full", "diagonal")):
            axis = axes[row, column]
            for method, style in STYLES.items():
                if outcome := outcomes.get(f"{panel}: {method} {structure}"):
                    seen = np.array(outcome.curves["gap"])
                    shown = np.where(seen < 1e5, np.maximum(seen, 1e-4), np.nan)
                    axis.semilogy(
                        outcome.curves["iteration"], shown, style, color=COLOURS[method], label=method
                    )
            axis.axhline(ARRIVED, color="0.6", linestyle=":", linewidth=1)
            finished(axis, f"{structure}: {panel}")
        axes[1, column].set_xlabel("iteration")
    for axis in axes[:, 0]:
        axis.set_ylabel("nats below the optimum")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure
