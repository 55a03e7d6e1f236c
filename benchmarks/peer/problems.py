"""The thirteen log densities, each for NumPy and for JAX, with the exact optimum of a full Gaussian.

The ten of the zoo were chosen before any result was seen: one for each of ten kinds, with d from 2 to 30.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mgvbp import datasets
from mgvbp.paper.spec import reference
from mgvbp.volatility import GARCH
from peer.record import Array

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS))
base, zoo, posteriors = import_module("zoo.base"), import_module("zoo"), import_module("posteriors.reference")
logpdf: Any = import_module("zoo.logpdf")

ZOO = (
    "banana_2",  # curved
    "gp_hyperparameters",  # Gaussian process, d = 3
    "hmm_poisson",  # hidden Markov chain, 4
    "quantile_wage",  # not smooth, 5
    "student_regression",  # robust, 6
    "probit_mroz",  # generalised linear, 7
    "lotka_volterra",  # differential equation, 8
    "eight_schools_noncentred",  # hierarchical, 10
    "multinomial_wine",  # many classes, 16
    "stochastic_volatility",  # latent series, 30
)
NAMES = ("labour", "garch", "istanbul", *ZOO)
LABOUR_OPTIMUM, GARCH_OPTIMUM = -356.6384849425426, -2027.500797113209
PRIOR_SD = float(np.sqrt(5.0))
TOTAL = 0.9998
"""What α + β stays below."""


@dataclass(frozen=True)
class Problem:
    """A log density on R^d.

    Attributes
    ----------
    log_density : callable
        NumPy, (S, d) -> (S,).
    density : callable
        ``density(theta, xp)`` of the zoo.
    optimum : float or None
        The largest lower bound of any Gaussian; None where it is not known.
    log_evidence : float or None
        By quadrature, chains or importance sampling, with an error below 0.003 nats; None where it is not known.
    """

    name: str
    dim: int
    log_density: Callable[[Array], Array]
    density: Callable[[Any, Any], Any]
    optimum: float | None
    log_evidence: float | None = None

    def traced(self, theta: Any) -> Any:
        """The JAX function of one draw, (d,) -> scalar."""
        return self.density(theta[None], base.jax_backend())[0]


def load(name: str) -> Problem:
    """A problem by its name; both its versions are compared at a few points first."""
    problem = {"garch": garch, "istanbul": istanbul}.get(name, lambda: from_zoo(name))()
    import_module("jax").config.update("jax_enable_x64", True)
    theta = 0.3 * np.random.default_rng(0).standard_normal((4, problem.dim))
    values = [float(problem.traced(row)) for row in theta]
    np.testing.assert_allclose(values, problem.log_density(theta), rtol=1e-8, err_msg=name)
    return problem


def from_zoo(name: str) -> Problem:
    """A target of the tests; Labour's optimum is known more precisely, by quadrature."""
    target = zoo.TARGETS["logistic_labour" if name == "labour" else name]
    stored = json.loads((TESTS / "zoo" / "reference.json").read_text())[target.name]["full"]["lower_bound"]
    optimum = LABOUR_OPTIMUM if name == "labour" else stored
    known = posteriors.references().get(target.name)
    evidence = None if known is None else known.log_evidence
    return Problem(name, target.dim, target.log_density, target.density, optimum, evidence)


def garch() -> Problem:
    """GARCH(1,1) in the paper's convention; S&P 500 returns if they are at hand, else simulated ones."""
    real = datasets.find("sp500") is not None
    returns = datasets.load("sp500" if real else "synthetic-sp500").train["r"].to_numpy()
    model = GARCH(1, 1, convention="paper")
    likelihood, prior = model.likelihood(returns), model.prior(returns)
    squares = returns**2

    def density(theta: Any, xp: Any) -> Any:
        omega = xp.exp(xp.minimum(theta[:, 0], 100.0))
        alpha = TOTAL * logpdf.sigmoid(xp, theta[:, 1])
        beta = (TOTAL - alpha) * logpdf.sigmoid(xp, theta[:, 2])

        def step(carry: Any, square: Any) -> Any:
            h, total = carry
            total = total - 0.5 * (xp.log(h) + square / h + logpdf.LOG_2PI)
            return omega + alpha * square + beta * h, total

        start = omega + alpha * squares.mean() + 0.7 * beta
        _, total = xp.loop(step, (start, 0.0 * start), squares)
        return total + logpdf.prior(xp, theta, 0.0, PRIOR_SD)

    return Problem(
        "garch",
        3,
        lambda theta: np.asarray(likelihood(theta) + prior.log_density(theta)),
        density,
        GARCH_OPTIMUM if real else None,
    )


def istanbul() -> Problem:
    """Linear regression, θ = (β, log σ); simulated data of the same shape where the real ones are missing."""
    real = datasets.find("istanbul") is not None
    data = datasets.load("istanbul" if real else "synthetic-istanbul")
    X = np.column_stack([np.ones(len(data.train)), data.train[data.features]])
    y = data.train[data.target].to_numpy()

    def density(theta: Any, xp: Any) -> Any:
        residual = logpdf.normal(xp, y, theta[:, :-1] @ X.T, theta[:, -1:])
        return residual.sum(-1) + logpdf.prior(xp, theta, 0.0, PRIOR_SD)

    def log_density(theta: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(density(theta, base.NUMPY))

    optimum = reference("istanbul")["exact"]["istanbul_perf"]["full"]["LB*"] if real else None
    return Problem("istanbul", X.shape[1] + 1, log_density, density, optimum)
