r"""Simple linear regression: how MGVB and its revisited version approach a posterior that is known.

:math:`y = 2x + \varepsilon` with :math:`\varepsilon \sim N(0, 1)` known, an intercept and a slope, prior N(0, 5 I): the
posterior is Gaussian in closed form. MGVB retracts along the natural gradient :math:`2\Sigma\nabla_\Sigma\Sigma`
(``precision_scale=2``), the revisited version along the Riemannian gradient :math:`\Sigma\nabla_\Sigma\Sigma`
(``precision_scale=1``). Gradients come from the regression estimator, which has no error on a quadratic: the paths
differ in nothing but the update.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.paper import manifold
from mgvbp.paper.common import ARRIVED, PRIOR_VARIANCE, Array, divergence
from mgvbp.paper.spec import Cells, Experiment, Outcome, Outcomes, Picture, Table, across, reference, rows_of
from mgvbp.paper.target import Path, Target, run_auto, run_mcmc, run_ml
from mgvbp.plots import private_figure

UPDATES = {"MGVB": 2.0, "MGVB rev.": 1.0}
"""The scale of the gradient of Σ, in units of the Riemannian gradient."""
STEP_SIZES = (0.02, 0.05, 0.1)
"""The table shows all of them, the figure the smallest and the largest."""
PATHS = {f"{update}, step {step:g}": (update, step) for step in STEP_SIZES for update in UPDATES}
"""Update and step size of each path, by the name of its cell."""
INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian, as in the experiment on the Istanbul data."""
NAMES = ("intercept", "slope")
COLUMNS = {"intercept": 0.0, "slope": 0.0, "100 var intercept": 0.0, "100 var slope": 0.0, "divergence": 0.0}
SPEED_NOTE = (
    "MGVB steps twice as far in Σ as its revisited version, along the same direction; in μ they are equal."
)


class Line(Target):
    """The simulated data, their log-likelihood and the exact posterior."""

    def __init__(self, seed: int) -> None:
        truth = reference("slr")["paper"]["slr"]["data"]
        x = np.linspace(0.0, truth["x end"], round(truth["x end"] / truth["x step"]) + 1)
        self.X = np.column_stack([np.ones_like(x), x])
        noise = np.sqrt(truth["noise variance"]) * np.random.default_rng([seed, 1]).standard_normal(len(x))
        self.y = truth["intercept"] + truth["slope"] * x + noise
        self.prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=2)
        precision = self.prior.precision + self.X.T @ self.X
        self.posterior = mgvbp.Gaussian(np.linalg.solve(precision, self.X.T @ self.y), precision=precision)

    def likelihood(self, theta: Array) -> Array:
        """(S, 2) -> (S,), up to a constant."""
        return np.asarray(-0.5 * ((self.y - theta @ self.X.T) ** 2).sum(axis=1))

    def divergence(self, q: mgvbp.Gaussian) -> float:
        """KL(q ‖ posterior): the nats by which the lower bound of ``q`` is below its maximum, the log evidence."""
        return max(0.0, divergence(q, self.posterior))  # round-off may take it below zero

    def shown(self, mean: Array, covariance: Array, **divergence: float) -> Outcome:
        """The numbers of a row of the table."""
        numbers = [*mean, *100.0 * np.diag(covariance)]
        return Outcome(dict(zip(COLUMNS, map(float, numbers), strict=False)) | divergence)

    def fitted(self, q: mgvbp.Gaussian) -> Outcome:
        """With the divergence from the posterior."""
        return self.shown(q.mean, q.covariance, divergence=self.divergence(q))

    def sampled(self, chains: Chains) -> Outcome:
        """The moments of the draws."""
        return self.shown(chains.flat.mean(axis=0), np.cov(chains.flat.T))

    def maximum_likelihood(self) -> Outcome:
        """Least squares, with its exact covariance."""
        covariance = np.linalg.inv(self.X.T @ self.X)
        return self.shown(covariance @ self.X.T @ self.y, covariance)

    def around(self, seed: int) -> mgvbp.Gaussian:
        """The exact posterior."""
        return self.posterior


def follow(update: str, step_size: float, seed: int, iterations: int = 400) -> Outcome:
    """Run MGVB with one of the two updates and keep its path."""
    line = Line(seed)
    path = Path[mgvbp.Gaussian](lambda iteration: iteration.gaussian)
    settings: dict[str, Any] = {
        "step_size": step_size,
        "decay_after": None,
        "momentum": 0.0,
        "precision_scale": UPDATES[update],
        "patience": iterations,
        "max_iterations": iterations,
    }
    line.by_method(
        "MGVB", settings, seed, estimator="regression", initial_variance=INITIAL_VARIANCE, callback=path
    )
    curves = {"divergence": [line.divergence(q) for q in path.seen]}
    for i, name in enumerate(NAMES):
        curves[f"mean {name}"] = [float(q.mean[i]) for q in path.seen]
        curves[f"var {name}"] = [float(q.std[i] ** 2) for q in path.seen]
    values = line.fitted(path.seen[-1]).values
    arrived = (t for t, value in enumerate(curves["divergence"]) if value <= ARRIVED)
    if (steps := next(arrived, None)) is not None:
        values["iterations"] = float(steps)
    return Outcome(values, curves, {"method": update, **settings})


def exact(seed: int) -> Outcome:
    """The posterior in closed form."""
    line = Line(seed)
    return line.fitted(line.posterior)


def cells(quick: bool) -> Cells:
    """All paths, the posterior, `auto`, ML and MCMC; quick: with a short chain."""
    found: Cells = {name: partial(follow, *path) for name, path in PATHS.items()}
    found |= {"exact": exact, "auto": partial(run_auto, Line), "ML": partial(run_ml, Line)}
    return found | {"MCMC": partial(run_mcmc, Line, steps=500 if quick else 4000, walkers=20)}


def tables(outcomes: Outcomes) -> Iterator[Table]:
    """Where the paths end, and the iterations until the divergence is small."""
    names = [*PATHS, "auto", "ML", "MCMC"]
    truth = outcomes["exact"].values if "exact" in outcomes else {}
    note = "exact: the posterior in closed form; divergence: KL(q ‖ posterior) in nats."
    if "MCMC" in outcomes:
        found = outcomes["MCMC"].values
        note += f" MCMC: R-hat {found['R-hat']:.3f}, effective sample size {found['ESS']:,.0f} or more."
    rows = rows_of(outcomes, names, exact={name: truth for name in names if name != "ML"})
    yield Table("slr", "Where the paths end", COLUMNS, rows, decimals=4, bound="divergence", note=note)
    race = {
        f"step {step:g}": {update: f"{update}, step {step:g}" for update in UPDATES} for step in STEP_SIZES
    }
    title = f"Iterations until within {ARRIVED:g} nats of the posterior"
    rows = across(outcomes, race, "iterations")
    yield Table("slr_speed", title, dict.fromkeys(UPDATES, 0.0), rows, decimals=0, note=SPEED_NOTE)


def figures(outcomes: Outcomes) -> dict[str, Picture]:
    """Figures manifold and SLR_low: (μ, Σ) of intercept and slope, and the divergence, at two steps."""
    if not outcomes.keys() >= {"exact", *PATHS}:
        return {}
    figure = private_figure(12.0, 6.5)
    steps = STEP_SIZES[0], STEP_SIZES[-1]
    axes = figure.subplots(len(steps), 3)
    truth = outcomes["exact"].values
    for row, step in zip(axes, steps, strict=True):
        for update, style in zip(UPDATES, ("o-", "s--"), strict=True):
            curves = outcomes[f"{update}, step {step:g}"].curves
            for axis, name in zip(row, NAMES, strict=False):
                axis.plot(curves[f"mean {name}"], curves[f"var {name}"], style, ms=3, lw=1, label=update)
            row[2].plot(curves["divergence"], style[1:], label=update)
        for axis, name in zip(row, NAMES, strict=False):
            target = truth[name], truth[f"100 var {name}"] / 100.0
            axis.plot(*target, "o", ms=11, mfc="none", mec="red", mew=2, label="true posterior")
            axis.set(xlabel=f"μ, {name}", ylabel=f"Σ, {name}", title=f"{name}, step {step:g}")
        row[2].axhline(ARRIVED, color="grey", lw=0.8)
        row[2].set(xlabel="iteration", ylabel="KL to the posterior, nats", title=f"step {step:g}")
        row[2].set(yscale="log", ylim=(1e-5, None))
    for axis in axes[0]:
        axis.legend(frameon=False)
    return {"manifold": manifold.figure(), "path": figure}


EXPERIMENT = Experiment("slr", cells, tables, figures)
