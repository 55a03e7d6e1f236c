r"""Simple linear regression: how MGVB and its revisited version approach a posterior that is known.

:math:`y = 2x + \varepsilon` with :math:`\varepsilon \sim N(0, 1)` known, an intercept and a slope, prior N(0, 5 I): the
posterior is Gaussian in closed form. MGVB retracts along the natural gradient :math:`2\Sigma\nabla_\Sigma\Sigma`
(``precision_scale=2``), the revisited version along the Riemannian gradient :math:`\Sigma\nabla_\Sigma\Sigma`
(``precision_scale=1``). Gradients come from the regression estimator, which has no error on a quadratic: the paths
differ in nothing but the update.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.paper import mcmc
from mgvbp.paper.bounds import divergence
from mgvbp.paper.common import ARRIVED, PRIOR_VARIANCE, Array
from mgvbp.paper.spec import Cell, Experiment, Outcome, Row, Table, reference
from mgvbp.plots import private_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UPDATES = {"MGVB": 2.0, "MGVB rev.": 1.0}
"""The scale of the gradient of Σ, in units of the Riemannian gradient."""
STEP_SIZES = (0.02, 0.05, 0.1)
"""The table shows all of them, the figure the smallest and the largest."""
INITIAL_VARIANCE = 0.01
"""Variance of the first Gaussian, as in the experiment on the Istanbul data."""
NAMES = ("intercept", "slope")
COLUMNS = {"intercept": 0.0, "slope": 0.0, "100 var intercept": 0.0, "100 var slope": 0.0, "divergence": 0.0}


class Line:
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

    def log_likelihood(self, theta: Array) -> Array:
        """(S, 2) -> (S,), up to a constant."""
        return np.asarray(-0.5 * ((self.y - theta @ self.X.T) ** 2).sum(axis=1))

    def divergence(self, q: mgvbp.Gaussian) -> float:
        """KL(q ‖ posterior): the nats by which the lower bound of ``q`` is below its maximum, the log evidence."""
        return max(0.0, divergence(q, self.posterior))  # round-off may take it below zero

    def values(self, mean: Array, covariance: Array, divergence: float | None = None) -> dict[str, float]:
        """The numbers of a row of the table."""
        numbers = [*mean, *100.0 * np.diag(covariance)]
        found = dict(zip(COLUMNS, map(float, numbers), strict=False))
        return found if divergence is None else {**found, "divergence": divergence}


def follow(update: str, step_size: float, seed: int, iterations: int = 400) -> Outcome:
    """Run MGVB with one of the two updates and keep its path."""
    line, path = Line(seed), list[mgvbp.Gaussian]()
    settings: dict[str, Any] = {
        "step_size": step_size,
        "decay_after": None,
        "momentum": 0.0,
        "precision_scale": UPDATES[update],
        "patience": iterations,
        "max_iterations": iterations,
    }
    mgvbp.fit(
        line.log_likelihood,
        line.prior,
        method=mgvbp.MGVB(**settings),
        estimator="regression",
        initial_variance=INITIAL_VARIANCE,
        rng=seed,
        callback=lambda iteration: path.append(iteration.gaussian),
    )
    divergences = [line.divergence(q) for q in path]
    arrived = next((t for t, value in enumerate(divergences) if value <= ARRIVED), None)
    curves = {"divergence": divergences}
    for i, name in enumerate(NAMES):
        curves[f"mean {name}"] = [float(q.mean[i]) for q in path]
        curves[f"var {name}"] = [float(q.std[i] ** 2) for q in path]
    values = line.values(path[-1].mean, path[-1].covariance, divergences[-1])
    if arrived is not None:
        values["iterations"] = float(arrived)
    return Outcome(values, curves, {"method": update, **settings})


def fit_auto(seed: int) -> Outcome:
    """The default of `mgvbp.fit`."""
    line = Line(seed)
    q = mgvbp.fit(line.log_likelihood, line.prior, rng=seed)
    return Outcome(
        line.values(q.mean, q.covariance, line.divergence(q)), {}, {"method": "auto"}, q.n_evaluations
    )


def least_squares(seed: int) -> Outcome:
    """Maximum likelihood, with its exact covariance."""
    line = Line(seed)
    covariance = np.linalg.inv(line.X.T @ line.X)
    return Outcome(line.values(covariance @ line.X.T @ line.y, covariance), {}, {"method": "ML"})


def sample(seed: int, steps: int = 4000) -> Outcome:
    """MCMC with an ensemble of 20 walkers, started at draws from the exact posterior."""
    line = Line(seed)

    def values(chains: Chains) -> dict[str, float]:
        return line.values(chains.flat.mean(axis=0), np.cov(chains.flat.T))

    return mcmc.run(line.log_likelihood, line.prior, line.posterior, seed, values, steps, walkers=20)[0]


def exact(seed: int) -> Outcome:
    """The posterior in closed form."""
    line = Line(seed)
    return Outcome(line.values(line.posterior.mean, line.posterior.covariance, 0.0))


def path_name(update: str, step_size: float) -> str:
    """The name of the cell of a path."""
    return f"{update}, step {step_size:g}"


class SimpleLinearRegression(Experiment):
    """Figure SLR_low of the paper."""

    name = "slr"
    title = "Simple linear regression: the path to the posterior"

    def cells(self, quick: bool) -> list[Cell]:
        paths = [
            Cell(path_name(update, step), partial(follow, update, step))
            for step in STEP_SIZES
            for update in UPDATES
        ]
        baselines = [Cell("exact", exact), Cell("auto", fit_auto), Cell("ML", least_squares)]
        return [*paths, *baselines, Cell("MCMC", partial(sample, steps=500) if quick else sample)]

    def tables(self, outcomes: Mapping[str, Outcome]) -> list[Table]:
        truth = outcomes["exact"].values if "exact" in outcomes else {}
        rows = [
            Row(name, outcome.values, exact={} if name == "ML" else truth)
            for name, outcome in outcomes.items()
            if name != "exact"
        ]
        note = "exact: the posterior in closed form; divergence: KL(q ‖ posterior) in nats."
        if "MCMC" in outcomes:
            found = outcomes["MCMC"].values
            note += f" MCMC: R-hat {found['R-hat']:.3f}, effective sample size {found['ESS']:,.0f} or more."
        return [
            Table("slr", "Where the paths end", COLUMNS, rows, decimals=4, bound="divergence", note=note),
            speed_table(outcomes),
        ]

    def figures(self, outcomes: Mapping[str, Outcome]) -> dict[str, Figure]:
        wanted = ["exact", *(path_name(update, step) for step in STEP_SIZES for update in UPDATES)]
        return {"path": path_figure(outcomes)} if all(name in outcomes for name in wanted) else {}


def speed_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Iterations until the divergence is small, for each step size."""
    rows = []
    for step in STEP_SIZES:
        found = {update: outcomes.get(path_name(update, step)) for update in UPDATES}
        rows.append(
            Row(f"step {step:g}", {u: o.values.get("iterations") for u, o in found.items() if o is not None})
        )
    return Table(
        "slr_speed",
        f"Iterations until within {ARRIVED:g} nats of the posterior",
        dict.fromkeys(UPDATES, 0.0),
        rows,
        decimals=0,
        note="MGVB steps twice as far in Σ as its revisited version, along the same direction; in μ they are equal.",
    )


def path_figure(outcomes: Mapping[str, Outcome]) -> Figure:
    """The paths of (μ, Σ) for intercept and slope, and the divergence, at the smallest and at the largest step."""
    figure = private_figure(12.0, 6.5)
    steps = STEP_SIZES[0], STEP_SIZES[-1]
    axes = figure.subplots(len(steps), 3)
    truth = outcomes["exact"].values
    for row, step in zip(axes, steps, strict=True):
        for update, style in zip(UPDATES, ("o-", "s--"), strict=True):
            curves = outcomes[path_name(update, step)].curves
            for axis, name in zip(row, NAMES, strict=False):
                axis.plot(curves[f"mean {name}"], curves[f"var {name}"], style, ms=3, lw=1, label=update)
            row[2].plot(curves["divergence"], style[1:], label=update)
        for axis, name in zip(row, NAMES, strict=False):
            target = truth[name], truth[f"100 var {name}"] / 100.0
            axis.plot(*target, "o", ms=11, mfc="none", mec="red", mew=2, label="true posterior")
            axis.set(xlabel=f"μ, {name}", ylabel=f"Σ, {name}", title=f"{name}, step {step:g}")
        row[2].axhline(ARRIVED, color="grey", lw=0.8)
        row[2].set(
            yscale="log",
            ylim=(1e-5, None),
            xlabel="iteration",
            ylabel="KL to the posterior, nats",
            title=f"step {step:g}",
        )
    for axis in axes[0]:
        axis.legend(frameon=False)
    return figure


EXPERIMENT = SimpleLinearRegression()
