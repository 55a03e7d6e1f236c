"""The bound with two marginals, the exact gap, the measures and the moments over the iterations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.paper.common import ARRIVED, COLOURS, METHODS
from mgvbp.paper.labour.model import PERFORMANCE, optimum
from mgvbp.paper.labour.runs import ESTIMATORS, FAMILIES, PANELS, SHOWN, row_name
from mgvbp.paper.spec import Outcome, reference
from mgvbp.plots import finished, private_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(axis: Axes, outcome: Outcome | None, curve: str, **style: Any) -> None:
    """Draw a curve over the iterations, if the cell has run."""
    if outcome is not None:
        axis.plot(outcome.curves["iteration"], outcome.curves[curve], **style)


def marginal(axis: Axes, outcome: Outcome | None, b: str, **style: Any) -> None:
    """Draw the normal density of a parameter, if the cell has run."""
    if outcome is not None:
        mean, sd = outcome.values[f"mean {b}"], (outcome.values[f"var {b}"] / 100.0) ** 0.5
        grid = np.linspace(mean - 4.0 * sd, mean + 4.0 * sd, 200)
        axis.plot(grid, np.exp(-0.5 * ((grid - mean) / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi)), **style)


def bound_figure(outcomes: Mapping[str, Outcome]) -> Figure | None:
    """Figure labour_LBmargins: the bound over the iterations, and two marginals with MCMC and ML, for each family."""
    families = [f for f in FAMILIES if f"authors {row_name('MGVBP', 'loglik', f)}" in outcomes]
    if not families:
        return None
    figure = private_figure(13, 3.8 * len(families))
    for row, family in zip(figure.subplots(len(families), 3, squeeze=False), families, strict=True):
        for method, estimator in product(METHODS, ESTIMATORS):
            name = row_name(method, estimator, family)
            style = {"color": COLOURS[method], "ls": "--" if estimator == "h" else "-", "lw": 1.2}
            draw(row[0], outcomes.get(f"authors {name}"), "bound", label=name, **style)
        best = optimum(family)
        row[0].axhline(best, color="red", lw=0.8, label="exact optimum")
        row[0].set(ylim=(best - 12.0, best + 1.5), xlabel="iteration", ylabel="lower bound")
        finished(row[0], f"{family} covariance", frameon=False)
        for axis, b in zip(row[1:], SHOWN, strict=True):
            for method, dashes in (("MGVBP", "-"), ("MGVB", "--")):
                cell = outcomes.get(f"authors {row_name(method, 'loglik', family)}")
                marginal(
                    axis, cell, b, color=COLOURS[method], ls=dashes, label=row_name(method, "loglik", family)
                )
            marginal(axis, outcomes.get(f"auto {family}"), b, color="black", ls=":", label="auto")
            if "MCMC" in outcomes:
                curves = outcomes["MCMC"].curves
                axis.fill_between(curves[f"grid {b}"], curves[f"density {b}"], color="0.85", label="MCMC")
            if "ML" in outcomes:
                axis.axvline(outcomes["ML"].values[f"mean {b}"], color="red", lw=0.8, label="ML")
            axis.set(xlabel=b, ylabel="density", ylim=(0.0, None))
            finished(axis, f"{b}, {family} covariance")
        row[1].legend(frameon=False, fontsize="small")
    return figure


def speed_figure(outcomes: Mapping[str, Outcome]) -> Figure | None:
    """The exact gap over the iterations, with a row for each family and a column for each panel."""
    panels = [p for p in PANELS if all(f"{p} {row_name('MGVBP', 'h', f)}" in outcomes for f in FAMILIES)]
    if not panels:
        return None
    figure = private_figure(4.3 * len(panels), 6.5)
    axes = figure.subplots(2, len(panels), squeeze=False, sharey=True, sharex=True)
    for (i, family), (j, panel) in product(enumerate(FAMILIES), enumerate(panels)):
        for method, dashes in zip(METHODS, ("-", "--", ":"), strict=True):
            name = f"{panel} {row_name(method, 'h', family)}"
            draw(axes[i, j], outcomes.get(name), "gap", color=COLOURS[method], ls=dashes, label=method)
        axes[i, j].axhline(ARRIVED, color="grey", lw=0.8)
        axes[i, j].set_yscale("log")
        finished(axes[i, j], f"{family} covariance, {panel}")
        axes[1, j].set_xlabel("iteration")
        axes[i, 0].set_ylabel("nats below the optimum")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def metrics_figure(outcomes: Mapping[str, Outcome]) -> Figure | None:
    """Figure Labour_Perf: the measures over the iterations, training rows above, test rows below."""
    names = [row_name(method, "loglik", family) for method in ("MGVBP", "MGVB") for family in FAMILIES]
    if any(f"authors {name}" not in outcomes for name in names):
        return None
    figure = private_figure(13, 6)
    axes = figure.subplots(2, 4, sharex=True)
    for axis, column in zip(axes.flat, PERFORMANCE, strict=True):
        for name in names:
            style = {"color": COLOURS[name.split()[0]], "ls": ":" if "diag" in name else "-"}
            draw(axis, outcomes[f"authors {name}"], column, label=name, **style)
        axis.axhline(
            reference("labour")["exact"]["logistic_perf"]["full"][column],
            color="red",
            lw=0.8,
            label="exact optimum",
        )
        axis.set_ylim(0.6, None)
        finished(axis, column)
    for axis in axes[1]:
        axis.set_xlabel("iteration")
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def learning_figure(outcomes: Mapping[str, Outcome]) -> Figure | None:
    """Figure Labour_PostMeanCov: means and variances of MGVBP over the iterations."""
    styles = {
        ("loglik", "full"): "-",
        ("h", "full"): "--",
        ("loglik", "diagonal"): ":",
        ("h", "diagonal"): "-.",
    }
    cells = {key: outcomes.get(f"authors {row_name('MGVBP', *key)}") for key in styles}
    if any(cell is None for cell in cells.values()):
        return None
    figure = private_figure(13, 6)
    axes = figure.subplots(2, 4, sharex=True)
    exact = reference("labour")["exact"]
    for row, (prefix, label) in zip(axes, (("mean", "logistic_mu"), ("var", "logistic_var")), strict=True):
        for axis, b in zip(row, ("β0", "β1", "β3", "β7"), strict=True):
            for key, dashes in styles.items():
                draw(
                    axis,
                    cells[key],
                    f"{prefix} {b}",
                    color="C0",
                    ls=dashes,
                    lw=1.2,
                    label=row_name("MGVBP", *key),
                )
            for family, colour in (("full", "red"), ("diagonal", "orange")):
                axis.axhline(exact[label][family][b], color=colour, lw=0.8, label=f"exact, {family}")
            finished(axis, f"{'mean' if prefix == 'mean' else '100 × variance'} of {b}")
    for axis in axes[1]:
        axis.set(xlabel="iteration")
    axes[0, 3].legend(frameon=False, fontsize="small")
    return figure
