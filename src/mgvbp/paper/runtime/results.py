"""The tables runtime and runtime_npar, in seconds and as ratios of methods, and how times grow with the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.paper.common import Array
from mgvbp.paper.runtime.timing import LARGE, METHODS, SIZES
from mgvbp.paper.spec import Outcomes, Row, Table, reference
from mgvbp.plots import private_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRAME = "our steps work in the frame of the Cholesky factor, so that their costs need not differ as the paper's do"
CALLS = "most of our time at k = 50 is one that does not depend on k"
LIKELIHOOD = "the likelihood takes less of our time, so that the steps show"
PROBLEMS_NOTE = (
    "Seconds per 1,000 iterations with 75 draws. Verdicts are on the ratios, within 0.1: the paper's times are of "
    "MATLAB on another machine. Its authors' saved times say that in the logistic columns the two estimators are "
    "exchanged, and under loglik full and diagonal too; a ratio within a column is the same under either name."
)
SIZES_NOTE = (
    "Seconds per 100 iterations with 100 draws of a linear regression, which is what the authors' script measured "
    "(the paper says per iteration). The difference is that of MGVBP from MGVB, in per cent of MGVB; verdicts are "
    "on it, within 5 points."
)
GROWTH_NOTE = "Time grows as (variational parameters)^slope; 1.5 is the k³ of matrix products."


def ratio(curves: Mapping[str, list[float]], method: str, base: str = "MGVBP") -> float:
    """The ratio of two methods within a round, as its median over the rounds."""
    return float(np.median(np.divide(curves[method], curves[base])))


def uncertainty(curves: Mapping[str, list[float]], method: str, base: str = "MGVBP") -> float:
    """Half the width of a 95% interval of `ratio`.

    For normal numbers the standard error of a median is 1.2533 σ/√n, and σ is the distance of the quartiles over 1.349.
    The quartiles do not move with a few bad rounds.
    """
    low, high = np.percentile(np.divide(curves[method], curves[base]), [25, 75])
    return float(1.96 * 1.2533 * (high - low) / 1.349 / np.sqrt(len(curves[base])))


def tables(outcomes: Outcomes) -> Iterator[Table]:
    """Seconds by problem and by size, and their growth. Only ratios of methods are compared with the paper."""
    columns = {f"{name} {what}": np.inf for name in METHODS for what in ("mean", "median", "sd")}
    columns |= {"MGVB/MGVBP": 0.1, "± MGVB": np.inf, "QBVI/MGVBP": 0.1, "± QBVI": np.inf}
    title = "Running times by method"
    yield Table("runtime", title, columns, problem_rows(outcomes), note=PROBLEMS_NOTE)
    columns = {"MGVB": np.inf, "MGVBP": np.inf, "QBVI": np.inf, "difference": 5.0}
    columns |= {"± points": np.inf, "QBVI/MGVBP": np.inf}
    title = "Running times by number of variational parameters"
    yield Table("runtime_npar", title, columns, size_rows(outcomes), decimals=4, note=SIZES_NOTE)
    paper, rows = printed_series(), []
    for name, points in series(outcomes).items():
        ours = {"k 50 to 150": slope(points, LARGE, 150), "k 150 to 500": slope(points, 150, 500)}
        theirs = {"k 50 to 150": slope(paper[name], LARGE, 150)} if name in paper else {}
        rows.append(Row(name, ours, theirs, reason=CALLS))
    columns = {"k 50 to 150": 0.15, "k 150 to 500": 0.15}
    yield Table("growth", "Growth of the time per iteration", columns, rows, note=GROWTH_NOTE)


def problem_rows(outcomes: Outcomes) -> list[Row]:
    """Seconds per 1,000 iterations, and the ratios."""
    rows = []
    for name, printed in reference("runtime")["paper"]["runtime"].items():
        if name not in outcomes:
            continue
        curves = outcomes[name].curves
        ours: dict[str, float] = {}
        for method, times in curves.items():
            thousand = 1000.0 * np.array(times)
            ours |= {f"{method} mean": float(thousand.mean()), f"{method} median": float(np.median(thousand))}
            ours[f"{method} sd"] = float(thousand.std(ddof=1))
        paper = dict(printed)
        for method in ("MGVB", "QBVI"):
            ours[f"{method}/MGVBP"] = ratio(curves, method)
            paper[f"{method}/MGVBP"] = printed[f"{method} median"] / printed["MGVBP median"]
        rows.append(Row(name, ours, paper, reason=LIKELIHOOD))
    return rows


def size_rows(outcomes: Outcomes) -> list[Row]:
    """Seconds per 100 iterations by the number of variational parameters."""
    rows = []
    for size, curves in measured(outcomes).items():
        ours = {name: 100.0 * float(np.median(times)) for name, times in curves.items()}
        ours["difference"] = 100.0 * (1.0 - ratio(curves, "MGVBP", "MGVB"))
        ours["± points"] = 100.0 * uncertainty(curves, "MGVBP", "MGVB")
        ours["QBVI/MGVBP"] = ratio(curves, "QBVI")
        paper = reference("runtime")["paper"]["runtime_npar"].get(str(size), {})
        rows.append(Row(f"{size + size**2:,} (k = {size})", ours, paper, reason=FRAME))
    return rows


def measured(outcomes: Outcomes) -> dict[int, dict[str, list[float]]]:
    """The times of the regressions that were run, by their size."""
    return {size: outcomes[name].curves for name, size in SIZES.items() if name in outcomes}


def series(outcomes: Outcomes) -> dict[str, tuple[Array, Array]]:
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


def figures(outcomes: Outcomes) -> dict[str, Figure | None]:
    """Milliseconds an iteration against the number of variational parameters, both on log scales."""
    if len(measured(outcomes)) < 2:
        return {}
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
    return {"growth": figure}
