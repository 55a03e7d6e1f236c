"""What the cells run, in three panels of settings.

The first panel has the authors' settings: those of their published code and saved results, from which most of the
printed numbers come. The second has the printed settings: the paper's table of hyper-parameters. In both all methods
take the same steps, ``precision_scale=2``, from one start with the same draws. The third follows the printed equations,
which halve the step of MGVBP and MGVB in the precision; it is for the comparison of speed.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import gaussian_kde

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.paper import mcmc
from mgvbp.paper.common import ARRIVED, METHODS, Array
from mgvbp.paper.hyperparameters import printed
from mgvbp.paper.labour.model import BETAS, optimum, problem
from mgvbp.paper.spec import Outcome

INITIAL_VARIANCE = 0.05
NUM_DRAWS = 75
"""Both as the paper prints them."""
SETTINGS = printed("Labour")


@dataclass(frozen=True)
class Panel:
    """How a panel runs its methods."""

    settings: dict[str, Any]
    num_draws: int
    draws: str
    start_sd: float
    """The start is drawn from N(0, start_sd² I)."""


PANELS = {
    "authors": Panel(
        printed(
            "Labour", precision_scale=2.0, decay_after=None, window=31, patience=1000, max_iterations=1000
        ),
        num_draws=50,
        draws="sobol",
        start_sd=0.01,
    ),
    "printed": Panel(SETTINGS | {"precision_scale": 2.0}, NUM_DRAWS, "mc", INITIAL_VARIANCE**0.5),
    "equations": Panel(SETTINGS | {"precision_scale": 1.0}, NUM_DRAWS, "mc", INITIAL_VARIANCE**0.5),
}
ESTIMATORS, FAMILIES = ("loglik", "h"), ("full", "diagonal")
SIZES = (10, 20, 30, 50, 75, 100, 150, 200, 300)
"""The numbers of draws of table logistic_S."""
SHOWN = BETAS[:2]
"""The parameters whose marginals the figure shows."""


def row_name(method: str, estimator: str, family: str) -> str:
    """A row's name in the reference file."""
    return method + (" h" if estimator == "h" else "") + (" diag" if family == "diagonal" else "")


class Path:
    """A callback that follows a run: its exact gap at each iteration, all else at every ``thin``-th."""

    def __init__(self, family: str, thin: int = 5) -> None:
        self.problem, self.optimum, self.thin = problem(), optimum(family), thin
        self.gaps: list[float] = []
        self.rows: list[dict[str, float]] = []

    def __call__(self, iteration: Any) -> None:
        """Keep what is shown of an iteration."""
        q, t = iteration.gaussian, iteration.iteration
        self.gaps.append(self.optimum - self.problem.bound(q, order=20))  # within 1e-5 nats of order 60
        if t % self.thin == 1:
            row = {"iteration": t, "bound": iteration.lower_bound, "gap": self.gaps[-1]}
            row |= self.problem.performance(q.mean)
            row |= {f"mean {b}": q.mean[i] for i, b in enumerate(BETAS)}
            row |= {f"var {b}": 100.0 * q.std[i] ** 2 for i, b in enumerate(BETAS)}
            self.rows.append({name: float(f"{x:.7g}") for name, x in row.items()})

    @property
    def arrived(self) -> int | None:
        """The first iteration within `ARRIVED` of the optimum."""
        return next((t for t, gap in enumerate(self.gaps, start=1) if gap <= ARRIVED), None)

    @property
    def curves(self) -> dict[str, list[float]]:
        """Each quantity over the iterations."""
        return {name: [row[name] for row in self.rows] for name in self.rows[0]}


def fit(
    panel: Panel, method: str, estimator: str, family: str, seed: int, callback: Path | None = None
) -> mgvbp.Posterior:
    """One of the paper's methods; the seed alone decides its start and its draws."""
    scale = {"precision_scale": 2.0} if method == "QBVI" else {}  # by its definition
    start = panel.start_sd * np.random.default_rng([seed, 1]).standard_normal(len(BETAS))
    return mgvbp.fit(
        problem().model,
        problem().prior,
        method=METHODS[method](**panel.settings | scale),
        family=family,
        estimator=estimator,
        num_draws=panel.num_draws,
        draws=panel.draws,
        initial_mean=start,
        initial_variance=INITIAL_VARIANCE,
        rng=seed,
        callback=callback,
    )


def run_method(panel: Panel, method: str, estimator: str, family: str, seed: int) -> Outcome:
    """The run of a row of the tables, with its path."""
    path = Path(family)
    q = fit(panel, method, estimator, family, seed, path)
    values = problem().values(q.mean, q.covariance)
    values |= {"LB*": q.lower_bound, "gap": optimum(family) - problem().bound(q)}
    if path.arrived is not None:
        values["arrived"] = float(path.arrived)
    settings = {"method": method, "estimator": estimator, "family": family, **asdict(panel)}
    return Outcome(values, path.curves, settings, q.n_evaluations)


def run_size(panel: Panel, seed: int) -> Outcome:
    """A row of logistic_S: MGVBP without a callback, so that only its own time is measured."""
    begin = time.perf_counter()
    q = fit(panel, "MGVBP", "loglik", "full", seed)
    seconds = (time.perf_counter() - begin) / len(q.trace)
    values = problem().values(q.mean, q.covariance)
    values |= {"LB*": q.lower_bound, "gap": optimum("full") - problem().bound(q)}
    values |= {"LB start": float(q.trace.lower_bound[0]), "s/iter": seconds}
    return Outcome(values, {}, {"method": "MGVBP", **asdict(panel)}, q.n_evaluations)


def run_auto(family: str, seed: int) -> Outcome:
    """The default of `mgvbp.fit`; LB* is the exact bound at its result."""
    q = mgvbp.fit(problem().model, problem().prior, family=family, rng=seed)
    bound = problem().bound(q)
    values = problem().values(q.mean, q.covariance) | {"LB*": bound, "gap": optimum(family) - bound}
    return Outcome(values, {}, {"method": "auto", "family": family}, q.n_evaluations)


def run_ml(seed: int) -> Outcome:
    """Maximum likelihood, with the inverse Hessian as covariance; nothing in it is random."""
    X, signs = problem().model.X, 2.0 * problem().model.y - 1.0

    def loss(beta: Array) -> tuple[float, Array]:
        margin = signs * (X @ beta)
        return -float(log_expit(margin).sum()), -(signs * expit(-margin)) @ X

    found = minimize(loss, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-5})
    p = expit(X @ found.x)
    covariance = np.asarray(np.linalg.inv((X.T * (p * (1.0 - p))) @ X), dtype=np.float64)
    return Outcome(problem().values(found.x, covariance), {}, {"method": "ML"}, found.nfev)


def run_mcmc(seed: int, steps: int = 20_000, walkers: int = 40) -> Outcome:
    """The ensemble sampler, and the densities of the two parameters that the figure shows."""

    def values(chains: Chains) -> dict[str, float]:
        errors = {f"mcse {b}": float(error) for b, error in zip(BETAS, chains.mcse, strict=True)}
        return problem().values(chains.flat.mean(axis=0), np.cov(chains.flat.T)) | errors

    model, prior = problem().model, problem().prior
    around = mgvbp.fit(model, prior, rng=seed)
    outcome, chains = mcmc.run(model, prior, around, seed, values, steps, walkers)
    curves: dict[str, list[float]] = {}
    for i, b in enumerate(SHOWN):
        draws = chains.flat[:: max(1, len(chains.flat) // 20_000), i]
        grid = np.linspace(draws.min(), draws.max(), 200)
        curves |= {f"grid {b}": grid.tolist(), f"density {b}": gaussian_kde(draws)(grid).tolist()}
    return replace(outcome, curves=curves)
