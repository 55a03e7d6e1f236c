"""Logistic regression on the Labour data: its exact lower bound, the measures of a fit, and what is run.

The methods run in three panels of settings. The first panel has the authors' settings: those of their published code
and saved results, from which most of the printed numbers come. The second has the printed settings: the paper's table
of hyper-parameters. In both all methods take the same steps, ``precision_scale=2``, from one start with the same draws.
The third follows the printed equations, which halve the step of MGVBP and MGVB in the precision; it is for the
comparison of speed.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import gaussian_kde

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.datasets import labour
from mgvbp.models import LogisticRegression
from mgvbp.paper.common import ARRIVED, METHODS, PRIOR_VARIANCE, Array, divergence, hermite, printed
from mgvbp.paper.seeds import over_seeds
from mgvbp.paper.spec import Cells, Outcome, reference
from mgvbp.paper.target import Path, Target, run_auto, run_mcmc, run_ml

MEASURES = ("acc", "prec", "rec", "f1")
PERFORMANCE = tuple(f"{part} {measure}" for part, measure in product(("train", "test"), MEASURES))
BETAS = tuple(f"β{i}" for i in range(8))
SHOWN = BETAS[:2]
"""The parameters whose marginals the figure shows."""
INITIAL_VARIANCE = 0.05
NUM_DRAWS = 75
"""Both as the paper prints them."""
SETTINGS = printed("Labour data")


@dataclass(frozen=True)
class Panel:
    """How a panel runs its methods."""

    settings: dict[str, Any]
    num_draws: int
    draws: str
    start_sd: float
    """The start is drawn from N(0, start_sd² I)."""


AUTHORS = SETTINGS | {
    "precision_scale": 2.0, "decay_after": None, "window": 31, "patience": 1000, "max_iterations": 1000,
}  # fmt: skip
PANELS = {
    "authors": Panel(AUTHORS, 50, "sobol", 0.01),
    "printed": Panel(SETTINGS | {"precision_scale": 2.0}, NUM_DRAWS, "mc", INITIAL_VARIANCE**0.5),
    "equations": Panel(SETTINGS | {"precision_scale": 1.0}, NUM_DRAWS, "mc", INITIAL_VARIANCE**0.5),
}
ESTIMATORS, FAMILIES = ("loglik", "h"), ("full", "diagonal")
SIZES = (10, 20, 30, 50, 75, 100, 150, 200, 300)
"""The numbers of draws of table logistic_S."""
THIN = 5
"""The figures show every fifth iteration."""
SEEDS = 8
"""Runs of a row with the authors' settings: our number is their mean."""
FOLLOWED = (("β1", "β0"), ("β7", "β1"), ("β7", "β3"), ("β6", "β5"))
"""The pairs whose covariances are followed over the iterations."""


def expectation(model: LogisticRegression, q: mgvbp.Gaussian, order: int = 60) -> float:
    """E_q of the log-likelihood: one Gauss–Hermite sum for the scalar x_iᵀθ of each row."""
    nodes, weights = hermite(order)
    signed = (2.0 * model.y - 1.0)[:, None] * model.X
    spread = np.sqrt(np.einsum("ni,ij,nj->n", signed, q.covariance, signed))
    values = log_expit(signed @ q.mean + nodes * spread)
    return float(weights @ values.sum(axis=1))


def exact_lower_bound(
    model: LogisticRegression, prior: mgvbp.Gaussian, q: mgvbp.Gaussian, order: int = 60
) -> float:
    """The lower bound at ``q`` without Monte Carlo error: expectation minus KL(q ‖ prior)."""
    return expectation(model, q, order) - divergence(q, prior)


def measures(X: Array, y: Array, beta: Array) -> list[float]:
    """Accuracy, macro averages of precision and recall, and the harmonic mean of these two."""
    predicted = X @ beta > 0.0
    hits = [float(np.sum(predicted[y == label] == label)) for label in (0, 1)]
    precision = sum(hits[k] / max(1, np.sum(predicted == k)) for k in (0, 1)) / 2
    recall = sum(hits[k] / np.sum(y == k) for k in (0, 1)) / 2
    return [sum(hits) / len(y), float(precision), float(recall), float(2 / (1 / precision + 1 / recall))]


class Labour(Target):
    """The posterior of the coefficients, and the measures of a fit."""

    def __init__(self, family: str) -> None:
        self.data = labour()
        self.likelihood = self.model = LogisticRegression(self.data.X_train, self.data.y_train)
        self.prior = mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=len(self.data.names))
        self.family = family

    def bound(self, q: mgvbp.Gaussian, order: int = 60) -> float:
        """The exact lower bound at ``q``."""
        return exact_lower_bound(self.model, self.prior, q, order)

    def gap(self, q: mgvbp.Gaussian, order: int = 60) -> float:
        """The nats by which it is below the optimum of the family."""
        return optimum(str(self.family)) - self.bound(q, order)

    def values(self, mean: Array, covariance: Array) -> dict[str, float]:
        """By name: the measures at the mean, the means, and the variances and covariances times 100."""
        data = self.data
        numbers = measures(data.X_train, data.y_train, mean) + measures(data.X_test, data.y_test, mean)
        pairs = {f"cov {BETAS[i]} {BETAS[j]}": (i, j) for i in range(8) for j in range(i)}
        return {
            **dict(zip(PERFORMANCE, numbers, strict=True)),
            **{f"mean {b}": float(mean[i]) for i, b in enumerate(BETAS)},
            **{f"var {b}": float(100.0 * covariance[i, i]) for i, b in enumerate(BETAS)},
            **{name: float(100.0 * covariance[pair]) for name, pair in pairs.items()},
        }

    def fitted(self, q: mgvbp.Posterior) -> Outcome:
        """LB* is what a method reports; for `auto`, which is not noisy, it is the exact bound."""
        bound = self.bound(q) if q.method == "auto" else q.lower_bound
        return Outcome(self.values(q.mean, q.covariance) | {"LB*": bound, "gap": self.gap(q)})

    def sampled(self, chains: Chains) -> Outcome:
        """The moments with their errors, and the densities of the parameters that the figure shows."""
        errors = {f"mcse {b}": float(error) for b, error in zip(BETAS, chains.mcse, strict=True)}
        curves: dict[str, list[float]] = {}
        for i, b in enumerate(SHOWN):
            draws = chains.flat[:: max(1, len(chains.flat) // 20_000), i]
            grid = np.linspace(draws.min(), draws.max(), 200)
            curves |= {f"grid {b}": grid.tolist(), f"density {b}": gaussian_kde(draws)(grid).tolist()}
        return Outcome(self.values(chains.flat.mean(axis=0), np.cov(chains.flat.T)) | errors, curves)

    def maximum_likelihood(self) -> Outcome:
        """By BFGS, with the inverse Hessian as covariance."""
        X, signs = self.model.X, 2.0 * self.model.y - 1.0

        def loss(beta: Array) -> tuple[float, Array]:
            margin = signs * (X @ beta)
            return -float(log_expit(margin).sum()), -(signs * expit(-margin)) @ X

        found = minimize(loss, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-5})
        p = expit(X @ found.x)
        covariance = np.asarray(np.linalg.inv((X.T * (p * (1.0 - p))) @ X), dtype=np.float64)
        return Outcome(self.values(found.x, covariance), {}, {"optimiser": "BFGS"}, found.nfev)

    def seen(self, iteration: Any) -> dict[str, float]:
        """What the figures show of an iteration, to seven digits; the short rule is within 1e-5 nats of the long."""
        q = iteration.gaussian
        row = {"bound": iteration.lower_bound, "gap": self.gap(q, order=20)}
        values = self.values(q.mean, q.covariance)
        pairs = {f"cov {b} {a}" for b, a in FOLLOWED}
        row |= {name: x for name, x in values.items() if name in pairs or not name.startswith("cov")}
        return {name: float(f"{x:.7g}") for name, x in row.items()}


@cache
def problem(family: str = "full", seed: int = 0) -> Labour:
    """The paper's posterior, and a family to approximate it."""
    return Labour(family)


def optimum(family: str) -> float:
    """The largest lower bound that a Gaussian of the family has."""
    found: float = reference("labour")["exact"]["logistic_perf"][family]["LB*"]
    return found


def row_name(method: str, estimator: str, family: str) -> str:
    """A row's name in the reference file."""
    return method + (" h" if estimator == "h" else "") + (" diag" if family == "diagonal" else "")


def fit(panel: Panel, method: str, estimator: str, family: str, seed: int, **options: Any) -> mgvbp.Posterior:
    """One of the paper's methods; the seed alone decides its start and its draws."""
    scale = {"precision_scale": 2.0} if method == "QBVI" else {}  # by its definition
    return problem(family).by_method(
        method,
        panel.settings | scale,
        seed,
        estimator=estimator,
        num_draws=panel.num_draws,
        draws=panel.draws,
        initial_mean=panel.start_sd * np.random.default_rng([seed, 1]).standard_normal(len(BETAS)),
        initial_variance=INITIAL_VARIANCE,
        **options,
    )


def run_method(panel: Panel, method: str, estimator: str, family: str, seed: int, seeds: int = 1) -> Outcome:
    """The runs of a row of the tables: means and spread over the seeds, and the path of the first run."""
    at, path = problem(family), Path(problem(family).seen)
    runs = [
        fit(panel, method, estimator, family, seed + i, callback=None if i else path) for i in range(seeds)
    ]
    values = over_seeds([at.fitted(q).values for q in runs])
    shown = path.seen[::THIN]
    curves = {"iteration": path.iterations[::THIN], "best": [float(np.nanargmax(runs[0].trace.smoothed) + 1)]}
    curves |= {name: [row[name] for row in shown] for name in shown[0]}
    arrival = path.arrival(lambda row: row["gap"] <= ARRIVED, "arrived")
    settings = {"method": method, "estimator": estimator, "family": family, **asdict(panel)}
    return Outcome(values | arrival, curves, settings, sum(q.n_evaluations for q in runs))


def run_size(panel: Panel, seed: int) -> Outcome:
    """A row of logistic_S: MGVBP without a callback, so that only its own time is measured."""
    begin = time.perf_counter()
    q = fit(panel, "MGVBP", "loglik", "full", seed)
    seconds = (time.perf_counter() - begin) / len(q.trace)
    values = {"LB start": float(q.trace.lower_bound[0]), "s/iter": seconds}
    return Outcome(
        problem().fitted(q).values | values, {}, {"method": "MGVBP", **asdict(panel)}, q.n_evaluations
    )


def cells(quick: bool) -> Cells:
    """Everything; quick: the authors' runs with full covariance, and `auto`."""
    quickly = product(["authors"], METHODS, ["loglik"], ["full"])
    seeds = {"authors": 3 if quick else SEEDS}
    runs = quickly if quick else product(PANELS, METHODS, ESTIMATORS, FAMILIES)
    found: Cells = {
        f"{p} {row_name(m, e, f)}": partial(run_method, PANELS[p], m, e, f, seeds=seeds.get(p, 1))
        for p, m, e, f in runs
    }
    found |= {f"auto {f}": partial(run_auto, partial(problem, f)) for f in FAMILIES[: 1 if quick else 2]}
    if not quick:
        at = partial(problem, "full")
        found |= {"ML": partial(run_ml, at), "MCMC": partial(run_mcmc, at, steps=20_000)}
        found |= {f"S = {S}": partial(run_size, replace(PANELS["authors"], num_draws=S)) for S in SIZES}
    return found
