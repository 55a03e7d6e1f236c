"""What is run: the three methods, timed in turns on one problem."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import mgvbp
from mgvbp.models import LinearRegression
from mgvbp.paper import common
from mgvbp.paper.common import PRIOR_VARIANCE, Array
from mgvbp.paper.labour import problem as labour
from mgvbp.paper.spec import Cells, Outcome
from mgvbp.paper.target import Target
from mgvbp.paper.volatility import target

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
LARGE = 50
"""The growth is fitted from this size on. Below it most of the time goes into calls and not into numbers."""
ROWS = 1000
"""Rows of the simulated regression; the cost of its likelihood, which has a QR factor of X, does not depend on them."""


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


class Times(NamedTuple):
    """Seconds an iteration of each method, (repeats,), and how many steps had to be halved."""

    seconds: dict[str, Array]
    halvings: int


def take_turns(posed: Posed, options: dict[str, Any], seed: int, repeats: int, iterations: int) -> Times:
    """Time the methods: in every round each has its turn, in an order that changes.

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
    return Times(seconds, halvings)


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
