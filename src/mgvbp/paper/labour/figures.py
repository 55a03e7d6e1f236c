"""The bound with two marginals, the exact gap, the measures and the moments over the iterations."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.paper.common import ARRIVED, COLOURS, DASHES, METHODS
from mgvbp.paper.labour.runs import (
    ESTIMATORS,
    FAMILIES,
    FOLLOWED,
    PANELS,
    PERFORMANCE,
    SHOWN,
    optimum,
    row_name,
)
from mgvbp.paper.spec import Outcome, Outcomes, reference
from mgvbp.plots import finished, private_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEARNING = {
    ("loglik", "full"): "-",
    ("h", "full"): "--",
    ("loglik", "diagonal"): ":",
    ("h", "diagonal"): "-.",
}
"""The runs of MGVBP in figure Labour_PostMeanCov, with their dashes."""


def figures(outcomes: Outcomes) -> dict[str, Figure | None]:
    """The figures whose runs have finished."""
    return {
        "bound": bound_figure(outcomes),
        "speed": speed_figure(outcomes),
        "metrics": metrics_figure(outcomes),
        "learning": learning_figure(outcomes),
    }


def draw(axis: Axes, outcome: Outcome | None, curve: str, **style: Any) -> None:
    """Draw a curve over the iterations, and a line at the iteration of the result, if the cell has run."""
    if outcome is not None:
        axis.plot(outcome.curves["iteration"], outcome.curves[curve], **style)
        axis.axvline(outcome.curves["best"][0], color=style["color"], ls=style["ls"], lw=0.6, alpha=0.6)


def marginal(axis: Axes, outcome: Outcome | None, b: str, **style: Any) -> None:
    """Draw the normal density of a parameter, if the cell has run."""
    if outcome is not None:
        mean, sd = outcome.values[f"mean {b}"], (outcome.values[f"var {b}"] / 100.0) ** 0.5
        grid = np.linspace(mean - 4.0 * sd, mean + 4.0 * sd, 200)
        axis.plot(grid, np.exp(-0.5 * ((grid - mean) / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi)), **style)


def bound_figure(outcomes: Outcomes) -> Figure | None:
    """Figure labour_LBmargins: the bound over the iterations, and two marginals with MCMC and ML, for each family."""
    families = [f for f in FAMILIES if f"authors {row_name('MGVBP', 'loglik', f)}" in outcomes]
    if not families:
        return None
    figure = private_figure(13, 3.8 * len(families))
    for (first, *others), family in zip(
        figure.subplots(len(families), 3, squeeze=False), families, strict=True
    ):
        for method, estimator in product(METHODS, ESTIMATORS):
            name = row_name(method, estimator, family)
            style = {"color": COLOURS[method], "ls": "--" if estimator == "h" else "-", "lw": 1.2}
            draw(first, outcomes.get(f"authors {name}"), "bound", label=name, **style)
        best = optimum(family)
        first.axhline(best, color="red", lw=0.8, label="exact optimum")
        first.set(ylim=(best - 12.0, best + 1.5), xlabel="iteration", ylabel="lower bound")
        finished(first, f"{family} covariance", frameon=False)
        for axis, b in zip(others, SHOWN, strict=True):
            for method in ("MGVBP", "MGVB"):
                name = row_name(method, "loglik", family)
                style = {"color": COLOURS[method], "ls": DASHES[method], "label": name}
                marginal(axis, outcomes.get(f"authors {name}"), b, **style)
            marginal(axis, outcomes.get(f"auto {family}"), b, color="black", ls=":", label="auto")
            if "MCMC" in outcomes:
                curves = outcomes["MCMC"].curves
                axis.fill_between(curves[f"grid {b}"], curves[f"density {b}"], color="0.85", label="MCMC")
            if "ML" in outcomes:
                axis.axvline(outcomes["ML"].values[f"mean {b}"], color="red", lw=0.8, label="ML")
            axis.set(xlabel=b, ylabel="density", ylim=(0.0, None))
            finished(axis, f"{b}, {family} covariance")
        others[0].legend(frameon=False, fontsize="small")
    return figure


def speed_figure(outcomes: Outcomes) -> Figure | None:
    """The exact gap over the iterations, with a row for each family and a column for each panel."""
    panels = [p for p in PANELS if all(f"{p} {row_name('MGVBP', 'h', f)}" in outcomes for f in FAMILIES)]
    if not panels:
        return None
    figure = private_figure(4.3 * len(panels), 6.5)
    axes = figure.subplots(2, len(panels), squeeze=False, sharey=True, sharex=True)
    for (i, family), (j, panel) in product(enumerate(FAMILIES), enumerate(panels)):
        for method, dashes in DASHES.items():
            name = f"{panel} {row_name(method, 'h', family)}"
            draw(axes[i, j], outcomes.get(name), "gap", color=COLOURS[method], ls=dashes, label=method)
        axes[i, j].axhline(ARRIVED, color="grey", lw=0.8)
        axes[i, j].set_yscale("log")
        finished(axes[i, j], f"{family} covariance, {panel}")
        axes[1, j].set_xlabel("iteration")
        axes[i, 0].set_ylabel("nats below the optimum")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def metrics_figure(outcomes: Outcomes) -> Figure | None:
    """Figure Labour_Perf: the measures over the iterations, training rows above, test rows below."""
    names = [row_name(method, "loglik", family) for method in ("MGVBP", "MGVB") for family in FAMILIES]
    if any(f"authors {name}" not in outcomes for name in names):
        return None
    exact = reference("labour")["exact"]["logistic_perf"]["full"]
    figure = private_figure(13, 6)
    axes = figure.subplots(2, 4, sharex=True)
    for axis, column in zip(axes.flat, PERFORMANCE, strict=True):
        for name in names:
            style = {"color": COLOURS[name.split()[0]], "ls": ":" if "diag" in name else "-"}
            draw(axis, outcomes[f"authors {name}"], column, label=name, **style)
        axis.axhline(exact[column], color="red", lw=0.8, label="exact optimum")
        axis.set_ylim(0.6, None)
        finished(axis, column)
    for axis in axes[1]:
        axis.set_xlabel("iteration")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def learning_figure(outcomes: Outcomes) -> Figure | None:
    """Figure Labour_PostMeanCov: means, variances and covariances of MGVBP over the iterations."""
    names = {row_name("MGVBP", *key): dashes for key, dashes in LEARNING.items()}
    if any(f"authors {name}" not in outcomes for name in names):
        return None
    figure = private_figure(13, 9)
    axes = figure.subplots(3, 4, sharex=True)
    exact, some = reference("labour")["exact"], ("β0", "β1", "β3", "β7")
    shown = [(f"mean {b}", f"mean of {b}", exact["logistic_mu"]["full"][b]) for b in some]
    shown += [(f"var {b}", f"100 × variance of {b}", exact["logistic_var"]["full"][b]) for b in some]
    shown += [
        (f"cov {b} {a}", f"100 × covariance of {b}, {a}", exact["logistic_cov"][b][a]) for b, a in FOLLOWED
    ]
    for axis, (curve, title, best) in zip(axes.flat, shown, strict=True):
        for name, dashes in names.items():
            if not (curve.startswith("cov") and "diag" in name):  # zero by structure
                style = {"color": "C0", "ls": dashes, "lw": 1.2, "label": name}
                draw(axis, outcomes[f"authors {name}"], curve, **style)
        axis.axhline(best, color="red", lw=0.8, label="exact, full")
        kind, _, b = curve.partition(" ")
        if kind != "cov":
            diagonal = exact["logistic_mu" if kind == "mean" else "logistic_var"]["diagonal"][b]
            axis.axhline(diagonal, color="orange", lw=0.8, label="exact, diagonal")
        finished(axis, title)
    for axis in axes[2]:
        axis.set(xlabel="iteration")
    axes[0, 3].legend(frameon=False, fontsize="small")
    return figure
