"""Running times: the paper's tables runtime and runtime_npar, as ratios of methods measured in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import mgvbp
from mgvbp import datasets
from mgvbp.experiments import common
from mgvbp.experiments.common import PRIOR_VARIANCE, Array
from mgvbp.experiments.spec import Cell, Experiment, Outcome, Row, Table, reference
from mgvbp.models import LinearRegression, LogisticRegression
from mgvbp.plots import private_figure
from mgvbp.volatility import GARCH, GJR, VolatilityModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {name: common.METHODS[name] for name in ("MGVB", "MGVBP", "QBVI")}
"""In the order of the paper's tables."""
SETTINGS: dict[str, Any] = {"step_size": 1e-4, "decay_after": None, "momentum": 0.4, "precision_scale": 2.0}
"""Steps so short that the state hardly moves: each method repeats the work of one iteration, none is halved."""
NUM_DRAWS, NUM_DRAWS_NPAR = 75, 100
ROWS = 1000
"""Of the simulated regression; the likelihood's cost does not depend on them."""
SIZES = (2, 3, 5, 10, 15, 25, 50, 100, 150, 300, 500)
"""Parameters k; the variational ones are k + k². The paper ends at 150."""
LARGE = 50
"""From here on the growth is fitted: below, the time is that of calls, not of numbers."""


class Posed(NamedTuple):
    """A log-likelihood, its prior and a Gaussian near the posterior to iterate at."""

    model: Callable[[Array], Array]
    prior: mgvbp.Gaussian
    near: mgvbp.Gaussian


def pose_logistic(family: str) -> Posed:
    """The Labour data."""
    data = datasets.labour()
    model = LogisticRegression(data.X_train, data.y_train)
    return _with_fit(model, mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(data.names)), family)


def pose_volatility(family: str, *, model: VolatilityModel) -> Posed:
    """The S&P 500 returns to train on."""
    returns = datasets.load("sp500").train["r"]
    prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=model.parameters.dim)
    return _with_fit(model.likelihood(returns), prior, family)


def _with_fit(model: Callable[[Array], Array], prior: mgvbp.Gaussian, family: str) -> Posed:
    return Posed(model, prior, mgvbp.fit(model, prior, family=family, rng=0))


def pose_linear(size: int) -> Posed:
    """A simulated linear regression with ``size`` parameters, log σ among them, at its known posterior."""
    rng = np.random.default_rng(size)
    X = rng.standard_normal((ROWS, size - 1))
    truth = rng.standard_normal(size - 1)
    model = LinearRegression(X, X @ truth + rng.standard_normal(ROWS))
    near = mgvbp.Gaussian(mean=np.append(truth, 0.0), variance=1.0 / ROWS)
    return Posed(model, mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=size), near)


class Times(NamedTuple):
    """Seconds an iteration of each method, (repeats,), and how many steps had to be halved."""

    seconds: dict[str, Array]
    halvings: int


def take_turns(posed: Posed, options: dict[str, Any], seed: int, repeats: int, iterations: int) -> Times:
    """Time the methods: in every round each has its turn, in changing order.

    What slows the machine then slows all of them alike. The clock is that of this thread, which stands still
    while other programs have the core; one thread does all the work.
    """
    runs = {
        name: method(**SETTINGS).start(
            posed.prior,
            initial_mean=posed.near.mean,
            initial_variance=posed.near.covariance,
            rng=seed,
            **options,
        )
        for name, method in METHODS.items()
    }
    order, seconds = np.random.default_rng(seed), {name: np.empty(repeats) for name in runs}
    halvings = 0
    for turn in range(-1, repeats):  # the round before the first warms up: the last one overwrites it
        for name in map(str, order.permutation(list(runs))):
            run = runs[name]
            start = time.thread_time()
            for _ in range(iterations):
                halvings += run.tell(posed.model(run.ask())).reductions
            seconds[name][turn] = (time.thread_time() - start) / iterations
    return Times(seconds, halvings)


def time_methods(
    seed: int,
    *,
    pose: Callable[[], Posed],
    options: dict[str, Any],
    repeats: int,
    iterations: int,
) -> Outcome:
    """The three methods on one problem, as seconds an iteration."""
    seconds, halvings = take_turns(pose(), options, seed, repeats, iterations)
    settings = {**SETTINGS, **options, "repeats": repeats, "iterations a repeat": iterations}
    evaluations = (repeats + 1) * iterations * len(METHODS) * options["num_draws"]
    return Outcome(
        {"halvings": halvings},
        {name: times.tolist() for name, times in seconds.items()},
        settings,
        evaluations,
    )


PROBLEMS: dict[str, tuple[Callable[[], Posed], str]] = {
    "logistic full": (partial(pose_logistic, "full"), "full"),
    "logistic diagonal": (partial(pose_logistic, "diagonal"), "diagonal"),
    "GARCH(1,0,1) full": (partial(pose_volatility, "full", model=GARCH(1, 1, convention="paper")), "full"),
    "GJR(1,1,1) full": (partial(pose_volatility, "full", model=GJR(1, 1, 1, convention="paper")), "full"),
}
ESTIMATORS = ("h", "loglik")


class Runtime(Experiment):
    """Times of the three methods on the paper's problems, and their growth with the number of parameters."""

    name = "runtime"
    title = "Running times"
    data = ("labour", "sp500")

    def cells(self, quick: bool) -> list[Cell]:
        """One a problem and estimator with all methods in it, so that they share whatever slows the machine."""
        cells = []
        for estimator in ESTIMATORS:
            for name, (pose, family) in PROBLEMS.items():
                options = {"family": family, "estimator": estimator, "num_draws": NUM_DRAWS}
                repeats, iterations = (10, 10) if quick else (60, 25)
                run = partial(
                    time_methods, pose=pose, options=options, repeats=repeats, iterations=iterations
                )
                cells.append(Cell(f"{estimator} {name}", run))
        for size in SIZES[:9] if quick else SIZES:
            options = {"family": "full", "estimator": "h", "num_draws": NUM_DRAWS_NPAR}
            repeats, iterations = (
                (6, 2) if quick else (30, max(2, 1000 // size if size < LARGE else 300 // size))
            )
            pose = partial(pose_linear, size)
            run = partial(time_methods, pose=pose, options=options, repeats=repeats, iterations=iterations)
            cells.append(Cell(linear_name(size), run))
        return cells

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        """Times by problem, times by size, growth."""
        return [problems_table(outcomes), sizes_table(outcomes), growth_table(outcomes)]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        """Time against the number of variational parameters."""
        return {"growth": growth_figure(outcomes)} if len(measured(outcomes)) > 1 else {}


def linear_name(size: int) -> str:
    """The name of the cell of a regression."""
    return f"linear k = {size}"


def ratio(curves: Mapping[str, list[float]], method: str, base: str = "MGVBP") -> float:
    """The median over the rounds of the ratio within a round."""
    return float(np.median(np.divide(curves[method], curves[base])))


def uncertainty(curves: Mapping[str, list[float]], method: str, base: str = "MGVBP") -> float:
    """Half of a 95% interval of `ratio`: the error of a median, from quartiles, which bad rounds do not move."""
    low, high = np.percentile(np.divide(curves[method], curves[base]), [25, 75])
    return float(1.96 * 1.2533 * (high - low) / 1.349 / np.sqrt(len(curves[base])))


def problems_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Seconds per 1,000 iterations, and the ratios, which alone are compared."""
    columns = {f"{name} {what}": np.inf for name in METHODS for what in ("mean", "median", "sd")}
    columns |= {"MGVB/MGVBP": 0.1, "± MGVB": np.inf, "QBVI/MGVBP": 0.1, "± QBVI": np.inf}
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
        rows.append(
            Row(name, ours, paper, reason="the likelihood takes less of our time, so that the steps show")
        )
    note = (
        "Seconds per 1,000 iterations with 75 draws. Verdicts are on the ratios, within 0.1: the paper's times are of "
        "MATLAB on another machine. Its authors' saved times say that in the logistic columns the two estimators are "
        "exchanged, and under loglik full and diagonal too; a ratio within a column is the same under either name."
    )
    return Table("runtime", "Running times by method", columns, rows, note=note)


def sizes_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Seconds per 100 iterations by the number of variational parameters."""
    printed = reference("runtime")["paper"]["runtime_npar"]
    rows = []
    for size, curves in measured(outcomes).items():
        ours = {name: 100.0 * float(np.median(times)) for name, times in curves.items()}
        ours["difference"] = 100.0 * (1.0 - ratio(curves, "MGVBP", "MGVB"))
        ours["± points"] = 100.0 * uncertainty(curves, "MGVBP", "MGVB")
        ours["QBVI/MGVBP"] = ratio(curves, "QBVI")
        paper = printed.get(str(size), {})
        rows.append(Row(f"{size + size**2:,} (k = {size})", ours, paper, reason=FRAME))
    columns = {"MGVB": np.inf, "MGVBP": np.inf, "QBVI": np.inf, "difference": 5.0}
    columns |= {"± points": np.inf, "QBVI/MGVBP": np.inf}
    note = (
        "Seconds per 100 iterations with 100 draws of a linear regression, which is what the authors' script measured "
        "(the paper says per iteration). The difference is that of MGVBP from MGVB, in per cent of MGVB; verdicts are "
        "on it, within 5 points."
    )
    return Table(
        "runtime_npar", "Running times by number of variational parameters", columns, rows, 4, note=note
    )


FRAME = "our steps work in the frame of the Cholesky factor, so that their costs need not differ as the paper's do"


def growth_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Slopes in log-log, over the paper's sizes and over all."""
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


CALLS = "most of our time at k = 50 is one that does not depend on k"


def measured(outcomes: Mapping[str, Outcome]) -> dict[int, dict[str, list[float]]]:
    """The times of the regressions that were run, by their size."""
    return {size: outcomes[linear_name(size)].curves for size in SIZES if linear_name(size) in outcomes}


def series(outcomes: Mapping[str, Outcome]) -> dict[str, tuple[Array, Array]]:
    """Of each method: sizes k and median seconds an iteration."""
    found = measured(outcomes)
    sizes = np.array(list(found), dtype=float)
    return {
        name: (sizes, np.array([np.median(curves[name]) for curves in found.values()])) for name in METHODS
    }


def printed_series() -> dict[str, tuple[Array, Array]]:
    """The paper's, which are of 100 iterations."""
    printed = reference("runtime")["paper"]["runtime_npar"]
    sizes = np.array([float(size) for size in printed])
    return {
        name: (sizes, np.array([row[name] for row in printed.values()]) / 100.0) for name in ("MGVB", "MGVBP")
    }


def slope(points: tuple[Array, Array], least: int, most: int) -> float:
    """Of log time on log(k + k²), by least squares over least ≤ k ≤ most; nan for fewer than two sizes."""
    sizes, seconds = points
    used = (sizes >= least) & (sizes <= most)
    if np.count_nonzero(used) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[used] + sizes[used] ** 2), np.log(seconds[used]), 1)[0])


def growth_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """Milliseconds an iteration against the number of variational parameters, both on log scales."""
    figure = private_figure(8.0, 5.0)
    axes = figure.add_subplot()
    colours = {"MGVB": "#d1603d", "MGVBP": "#0b6e99", "QBVI": "#5b8c3e"}
    for who, lines in (("here", series(outcomes)), ("paper", printed_series())):
        for name, (sizes, seconds) in lines.items():
            style = (
                {"marker": "o", "ls": "-"} if who == "here" else {"marker": "s", "ls": ":", "mfc": "white"}
            )
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


EXPERIMENT = Runtime()
