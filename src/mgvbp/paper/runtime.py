"""Running times: the paper's tables runtime and runtime_npar, as ratios of methods measured in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import mgvbp
from mgvbp.models import LinearRegression
from mgvbp.paper import common
from mgvbp.paper.common import PRIOR_VARIANCE, ROUNDING, Array
from mgvbp.paper.labour import problem as labour
from mgvbp.paper.spec import Cells, Experiment, Outcome, Outcomes, Picture, Row, Table, reference
from mgvbp.paper.target import Target
from mgvbp.paper.volatility import target
from mgvbp.plots import private_figure

METHODS = {name: common.METHODS[name] for name in ("MGVB", "MGVBP", "QBVI")}
"""In the order of the paper's tables."""
SETTINGS: dict[str, Any] = {"step_size": 1e-4, "decay_after": None, "momentum": 0.4, "precision_scale": 2.0}
"""The steps are so short that the state hardly moves and no step is halved: every iteration is the same work."""
PROBLEMS: dict[str, tuple[Callable[[], Target], str]] = {
    "logistic full": (labour, "full"),
    "logistic diagonal": (labour, "diagonal"),
    "GARCH(1,0,1) full": (partial(target, "GARCH(1,0,1)"), "full"),
    "GJR(1,1,1) full": (partial(target, "GJR(1,1,1)"), "full"),
}
"""The paper's problems, and the family of the Gaussian of each."""
NUM_DRAWS, NUM_DRAWS_NPAR = 75, 100
"""Draws of an iteration in the paper's table runtime, and in runtime_npar."""
SIZES = {f"linear k = {k}": k for k in (2, 3, 5, 10, 15, 25, 50, 100, 150, 300, 500)}
"""Parameters k of the regressions, by the names of their cells; k + k² are variational. The paper ends at k = 150."""
THEIRS = 20
"""Replications in the authors' files."""
LARGE = 50
"""The growth is fitted from this size on. Below it most of the time goes into calls and not into numbers."""
ROWS = 1000
"""Rows of the simulated regression; the cost of its likelihood, which has a QR factor of X, does not depend on them."""

FRAME = "our steps work in the frame of the Cholesky factor, so that their costs need not differ as the paper's do"
CALLS = "most of our time at k = 50 is one that does not depend on k"
LIKELIHOOD = "the likelihood takes less of our time, so that the steps show"
PROBLEMS_NOTE = (
    "Seconds per 1,000 iterations with 75 draws. Verdicts are on the ratios, within three standard errors of both, as "
    "the paper's times are of MATLAB on another machine. Its authors' saved times say that in the logistic columns the "
    "two estimators are exchanged, and under loglik full and diagonal too; a ratio within a column is the same under "
    "either name."
)
SIZES_NOTE = (
    "Seconds per 100 iterations with 100 draws of a linear regression, which is what the authors' script measured "
    "(the paper says per iteration). The difference is that of MGVBP from MGVB, in per cent of MGVB; verdicts are "
    "on it, within three standard errors, where the paper's is taken to be as large as ours."
)
GROWTH_NOTE = "Time grows as (variational parameters)^slope; 1.5 is the k³ of matrix products."


class Posed(NamedTuple):
    """A log-likelihood, its prior and a Gaussian near the posterior to iterate at."""

    model: Callable[[Array], Array]
    prior: mgvbp.Gaussian
    near: mgvbp.Gaussian


def pose(make: Callable[[], Target], family: str) -> Posed:
    """A problem of another experiment: the Labour data, or a volatility model on the S&P 500 returns to train on."""
    at = make()
    return Posed(at.likelihood, at.prior, mgvbp.fit(at.likelihood, at.prior, family=family, rng=0))


def pose_linear(size: int) -> Posed:
    """A simulated linear regression with ``size`` parameters, log σ among them, at its known posterior."""
    rng = np.random.default_rng(size)
    X = rng.standard_normal((ROWS, size - 1))
    truth = rng.standard_normal(size - 1)
    model = LinearRegression(X, X @ truth + rng.standard_normal(ROWS))
    near = mgvbp.Gaussian(mean=np.append(truth, 0.0), variance=1.0 / ROWS)
    return Posed(model, mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=size), near)


def take_turns(
    posed: Posed, options: dict[str, Any], seed: int, repeats: int, iterations: int
) -> tuple[dict[str, Array], int]:
    """Seconds an iteration of each method, (repeats,), and how many steps had to be halved.

    In every round each method has its turn, in an order that changes.
    What slows the machine then slows all of them alike. One thread does all the work, and the clock is that of this
    thread, which stands still while other programs have the core.
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
    for turn in range(-1, repeats):  # round −1 warms up; the last round overwrites its times
        for name in map(str, order.permutation(list(runs))):
            run = runs[name]
            start = time.thread_time()
            for _ in range(iterations):
                halvings += run.tell(posed.model(run.ask())).reductions
            seconds[name][turn] = (time.thread_time() - start) / iterations
    return seconds, halvings


def time_methods(
    posed: Callable[[], Posed], options: dict[str, Any], repeats: int, iterations: int, seed: int
) -> Outcome:
    """The three methods on one problem, as seconds an iteration."""
    seconds, halvings = take_turns(posed(), options, seed, repeats, iterations)
    settings = {**SETTINGS, **options, "repeats": repeats, "iterations a repeat": iterations}
    evaluations = (repeats + 1) * iterations * len(METHODS) * options["num_draws"]
    curves = {name: times.tolist() for name, times in seconds.items()}
    return Outcome({"halvings": halvings}, curves, settings, evaluations)


def cells(quick: bool) -> Cells:
    """A cell has one problem and all methods, so that these share whatever slows the machine."""
    found: Cells = {}
    turns = (10, 10) if quick else (60, 25)
    for estimator, (name, problem) in product(("h", "loglik"), PROBLEMS.items()):
        options = {"family": problem[1], "estimator": estimator, "num_draws": NUM_DRAWS}
        found[f"{estimator} {name}"] = partial(time_methods, partial(pose, *problem), options, *turns)
    options = {"family": "full", "estimator": "h", "num_draws": NUM_DRAWS_NPAR}
    for name, size in list(SIZES.items())[: 9 if quick else None]:
        turns = (6, 2) if quick else (30, max(2, (1000 if size < LARGE else 300) // size))
        found[name] = partial(time_methods, partial(pose_linear, size), options, *turns)
    return found


# --- tables and figure --------------------------------------------------------------------------------


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
    columns |= {"MGVB/MGVBP": ROUNDING, "QBVI/MGVBP": ROUNDING}
    rows = problem_rows(outcomes)
    yield Table("runtime", "Running times by method", columns, rows, note=PROBLEMS_NOTE)
    columns = {"MGVB": np.inf, "MGVBP": np.inf, "QBVI": np.inf, "difference": ROUNDING}
    columns |= {"± points": np.inf, "QBVI/MGVBP": np.inf}
    title, rows = "Running times by number of variational parameters", size_rows(outcomes)
    yield Table("runtime_npar", title, columns, rows, decimals=4, note=SIZES_NOTE)
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
        paper, allowed = dict(printed), {}
        for method in ("MGVB", "QBVI"):
            column = f"{method}/MGVBP"
            ours[column] = ratio(curves, method)
            paper[column] = printed[f"{method} median"] / printed["MGVBP median"]
            # three standard errors of the difference: of our ratio by its rounds, of the paper's by its sds
            relative = math.hypot(*(printed[f"{m} sd"] / printed[f"{m} mean"] for m in (method, "MGVBP")))
            theirs = 1.2533 * paper[column] * relative / THEIRS**0.5
            allowed[column] = ROUNDING + 3.0 * math.hypot(uncertainty(curves, method) / 1.96, theirs)
        rows.append(Row(name, ours, paper, reason=LIKELIHOOD, tolerances=allowed))
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
        allowed = {"difference": ROUNDING + 3.0 * 2.0**0.5 * ours["± points"] / 1.96}
        rows.append(Row(f"{size + size**2:,} (k = {size})", ours, paper, reason=FRAME, tolerances=allowed))
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


def figures(outcomes: Outcomes) -> dict[str, Picture]:
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


EXPERIMENT = Experiment("runtime", cells, tables, figures, data=("labour", "sp500"))
