"""How the time of an iteration grows with the number of parameters: a table of slopes, and the figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.paper.common import Array
from mgvbp.paper.runtime.timing import METHODS
from mgvbp.paper.spec import Outcome, Row, Table, reference
from mgvbp.plots import private_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (2, 3, 5, 10, 15, 25, 50, 100, 150, 300, 500)
"""Parameters k; the variational ones are k + k². The paper ends at 150."""
LARGE = 50
"""The growth is fitted from this size on. Below it most of the time goes into calls and not into numbers."""
CALLS = "most of our time at k = 50 is one that does not depend on k"


def linear_name(size: int) -> str:
    """The name of the cell of a regression with ``size`` parameters."""
    return f"linear k = {size}"


def measured(outcomes: Mapping[str, Outcome]) -> dict[int, dict[str, list[float]]]:
    """The times of the regressions that were run, by their size."""
    return {size: outcomes[linear_name(size)].curves for size in SIZES if linear_name(size) in outcomes}


def series(outcomes: Mapping[str, Outcome]) -> dict[str, tuple[Array, Array]]:
    """Sizes k and median seconds an iteration, for each method."""
    found = measured(outcomes)
    sizes = np.array(list(found), dtype=float)
    return {
        name: (sizes, np.array([np.median(curves[name]) for curves in found.values()])) for name in METHODS
    }


def printed_series() -> dict[str, tuple[Array, Array]]:
    """The same of the paper, which prints the seconds of 100 iterations."""
    printed = reference("runtime")["paper"]["runtime_npar"]
    sizes = np.array([float(size) for size in printed])
    return {
        name: (sizes, np.array([row[name] for row in printed.values()]) / 100.0) for name in ("MGVB", "MGVBP")
    }


def slope(points: tuple[Array, Array], least: int, most: int) -> float:
    """The slope of log time on log(k + k²), by least squares over least ≤ k ≤ most; nan for fewer than two sizes."""
    sizes, seconds = points
    used = (sizes >= least) & (sizes <= most)
    if np.count_nonzero(used) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[used] + sizes[used] ** 2), np.log(seconds[used]), 1)[0])


def growth_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Slopes of the logarithms, over the paper's sizes and over the larger ones."""
    found, paper = series(outcomes), printed_series()
    rows = []
    for name, points in found.items():
        ours = {"k 50 to 150": slope(points, LARGE, 150), "k 150 to 500": slope(points, 150, 500)}
        theirs = {"k 50 to 150": slope(paper[name], LARGE, 150)} if name in paper else {}
        rows.append(Row(name, ours, theirs, reason=CALLS))
    note = "Time grows as (variational parameters)^slope; 1.5 is the k³ of matrix products."
    return Table(
        "growth",
        "Growth of the time per iteration",
        {"k 50 to 150": 0.15, "k 150 to 500": 0.15},
        rows,
        note=note,
    )


def growth_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """Milliseconds an iteration against the number of variational parameters, both on log scales."""
    figure = private_figure(8.0, 5.0)
    axes = figure.add_subplot()
    colours = {"MGVB": "#d1603d", "MGVBP": "#0b6e99", "QBVI": "#5b8c3e"}
    here, paper = {"marker": "o", "ls": "-"}, {"marker": "s", "ls": ":", "mfc": "white"}
    for who, style, lines in (("here", here, series(outcomes)), ("paper", paper, printed_series())):
        for name, (sizes, seconds) in lines.items():
            label = f"{name}, {who}: slope {slope((sizes, seconds), LARGE, int(sizes[-1])):.2f}"
            axes.loglog(sizes + sizes**2, 1e3 * seconds, color=colours[name], ms=5, label=label, **style)
    axes.axvline(LARGE + LARGE**2, color="#b0b6bd", lw=0.8, ls="--")
    axes.set(xlabel="variational parameters, k + k²", ylabel="milliseconds an iteration")
    axes.set_title(
        f"Linear regression, 100 draws; slopes fitted right of the dashed line (k ≥ {LARGE})", fontsize=11
    )
    axes.grid(which="major", color="#e3e6ea", lw=0.7)
    axes.legend(frameon=False)
    return figure
