"""The models with the paper's sample: what is reported of a point, and the lower bound without noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import mgvbp
from mgvbp import datasets
from mgvbp.experiments.common import PRIOR_VARIANCE, Array, divergence
from mgvbp.volatility import ARCH, EGARCH, FIGARCH, GARCH, GJR, Likelihood, VolatilityModel

MODELS: dict[str, VolatilityModel] = {
    "ARCH": ARCH(1, convention="paper"),
    "GARCH(1,0,1)": GARCH(1, 1, convention="paper"),
    "GJR(1,1,1)": GJR(1, 1, 1, convention="paper"),
    "GJR(1,1,2)": GJR(1, 1, 2, convention="paper"),
    "EGARCH(1,0,1)": EGARCH(1, 0, 1, convention="paper"),
    "EGARCH(1,1,1)": EGARCH(1, 1, 1, convention="paper"),
    "FIGARCH(0,d,1)": FIGARCH(0, 1, convention="paper"),
    "FIGARCH(1,d,1)": FIGARCH(1, 1, convention="paper"),
}


@dataclass(frozen=True, eq=False)
class Target:
    """A model with both parts of the sample; the test days are filtered from their own start."""

    model: VolatilityModel
    parts: dict[str, tuple[Likelihood, dict[str, Array]]]
    """By prefix of the columns: the likelihood, and the squares of what stands for the volatility."""

    @property
    def likelihood(self) -> Likelihood:
        """Of the training days."""
        return self.parts[""][0]

    @property
    def prior(self) -> mgvbp.Gaussian:
        """N(0, 5 I) on ψ."""
        return mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=self.model.parameters.dim)

    def report(self, psi: Array) -> dict[str, Array]:
        """All that the tables say of points ψ, (S, d) -> (S,) each.

        MSE is the mean of ``(x − h)²`` and QLIKE that of ``x/h − log(x/h) − 1``, where x is r² or rv².
        """
        found: dict[str, Array] = {}
        for prefix, (likelihood, squares) in self.parts.items():
            paths = likelihood.paths(psi)
            h = paths.variance[:-1]
            found |= paths.values if not prefix else {}
            found[f"{prefix}log-lik"] = likelihood(psi)
            for proxy, x in squares.items():
                ratio = x[:, None] / h
                found[f"{prefix}MSE {proxy}"] = np.mean((x[:, None] - h) ** 2, axis=0)
                found[f"{prefix}QLIKE {proxy}"] = np.mean(ratio - np.log(ratio) - 1.0, axis=0)
        return found


@cache
def target(name: str) -> Target:
    """A model of `MODELS` with the paper's sample."""
    model, data = MODELS[name], datasets.load("sp500")
    frames = {"": data.train, "test ": data.test}
    return Target(
        model,
        {
            prefix: (
                model.likelihood(frame["r"].to_numpy()),
                {p: frame[p].to_numpy() ** 2 for p in ("r", "rv")},
            )
            for prefix, frame in frames.items()
        },
    )


def summary(
    report: Callable[[Array], dict[str, Array]], psi: Array, draws: Array | None = None
) -> dict[str, float]:
    """The columns at ψ (d,) and, as ``sd <column>``, half the width of the middle 68% of them over ``draws``."""
    values = {name: float(value[0]) for name, value in report(psi[None]).items()}
    if draws is not None:
        spread = {name: np.quantile(value, [0.16, 0.84]) for name, value in report(draws).items()}
        values |= {f"sd {name}": float(high - low) / 2.0 for name, (low, high) in spread.items()}
    return values


@cache
def quadrature(dim: int) -> tuple[Array, Array]:
    """Nodes (n, d) and weights of a tensor Gauss–Hermite rule: bounds of these models to 0.003 nats."""
    x, w = np.polynomial.hermite_e.hermegauss(7 if dim < 5 else 5)
    nodes = np.stack(np.meshgrid(*[x] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = (
        np.stack(np.meshgrid(*[w / w.sum()] * dim, indexing="ij"), axis=-1).reshape(-1, dim).prod(axis=1)
    )
    return nodes, weights


def exact_bound(likelihood: Callable[[Array], Array], prior: mgvbp.Gaussian, q: mgvbp.Gaussian) -> float:
    """The lower bound at q without Monte Carlo error."""
    nodes, weights = quadrature(q.dim)
    values = likelihood(q.mean + nodes @ np.linalg.cholesky(q.covariance).T)
    return float(weights @ values) - divergence(q, prior)
