"""Running times: the paper's tables runtime and runtime_npar, as ratios of methods measured in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from mgvbp.paper.runtime.growth import LARGE, SIZES, growth_figure, growth_table, linear_name, measured
from mgvbp.paper.runtime.tables import problems_table, sizes_table
from mgvbp.paper.runtime.timing import Posed, pose_linear, pose_logistic, pose_volatility, time_methods
from mgvbp.paper.spec import Cell, Experiment, Outcome, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_DRAWS, NUM_DRAWS_NPAR = 75, 100
"""Draws of an iteration in the paper's table runtime, and in runtime_npar."""
PROBLEMS: dict[str, tuple[Callable[[str], Posed], str]] = {
    "logistic full": (pose_logistic, "full"),
    "logistic diagonal": (pose_logistic, "diagonal"),
    "GARCH(1,0,1) full": (partial(pose_volatility, model="GARCH(1,0,1)"), "full"),
    "GJR(1,1,1) full": (partial(pose_volatility, model="GJR(1,1,1)"), "full"),
}
"""How to pose each of the paper's problems, and the family of its Gaussian."""
ESTIMATORS = ("h", "loglik")


class Runtime(Experiment):
    """Times of the three methods on the paper's problems, and their growth with the number of parameters."""

    name = "runtime"
    title = "Running times"
    data = ("labour", "sp500")

    def cells(self, quick: bool) -> list[Cell]:
        """A cell has one problem and all methods, so that these share whatever slows the machine."""
        cells = []
        repeats, iterations = (10, 10) if quick else (60, 25)
        for estimator in ESTIMATORS:
            for name, (pose, family) in PROBLEMS.items():
                options = {"family": family, "estimator": estimator, "num_draws": NUM_DRAWS}
                posed = partial(pose, family)
                run = partial(
                    time_methods, pose=posed, options=options, repeats=repeats, iterations=iterations
                )
                cells.append(Cell(f"{estimator} {name}", run))
        options = {"family": "full", "estimator": "h", "num_draws": NUM_DRAWS_NPAR}
        for size in SIZES[:9] if quick else SIZES:
            repeats, iterations = (6, 2) if quick else (30, max(2, (1000 if size < LARGE else 300) // size))
            posed = partial(pose_linear, size)
            run = partial(time_methods, pose=posed, options=options, repeats=repeats, iterations=iterations)
            cells.append(Cell(linear_name(size), run))
        return cells

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        """Times by problem, times by size, and their growth."""
        return [problems_table(outcomes), sizes_table(outcomes), growth_table(outcomes)]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        """Time against the number of variational parameters."""
        return {"growth": growth_figure(outcomes)} if len(measured(outcomes)) > 1 else {}


EXPERIMENT = Runtime()
