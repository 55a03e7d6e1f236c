"""The models with the paper's sample, and what is reported of a point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import minimize

import mgvbp
from mgvbp import datasets
from mgvbp.paper import target as base
from mgvbp.paper.bounds import grid_lower_bound
from mgvbp.paper.common import PRIOR_VARIANCE, Array
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
class Target(base.Target):
    """A model with both parts of the sample; its filter starts anew on the test days.

    Attributes
    ----------
    model : VolatilityModel
    parts : dict of str to tuple
        By the prefix of the columns, which is "" for the training days and "test " for the others: the likelihood, and
        the squares of what stands for the volatility.
    """

    model: VolatilityModel
    parts: dict[str, tuple[Likelihood, dict[str, Array]]]

    @property
    def likelihood(self) -> Likelihood:
        """The log-likelihood of the training days, (S, d) -> (S,)."""
        return self.parts[""][0]

    @property
    def prior(self) -> mgvbp.Gaussian:
        """N(0, 5 I) on ψ."""
        return mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=self.model.parameters.dim)

    def report(self, psi: Array) -> dict[str, Array]:
        """All columns of the tables at points ψ, (S, d) -> (S,) each.

        MSE is the mean of ``(x − h)²`` and QLIKE that of ``x/h − log(x/h) − 1``, where h is the variance of a day and x
        is r² or rv².
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

    def exact_bound(self, q: mgvbp.Gaussian) -> float:
        """The lower bound at q by a rule whose error is below 0.003 nats for these models."""
        return grid_lower_bound(self.likelihood, self.prior, q, order=7 if q.dim < 5 else 5)

    def maximum_likelihood(self) -> tuple[Array, int]:
        """ψ (d,) of the largest likelihood by BFGS from the best point of a coarse grid, and the evaluations."""
        starts = self.model.starts(self.likelihood)

        def loss(psi: Array) -> float:
            return -float(self.likelihood(psi[None])[0])

        best: Array = starts[int(np.argmax(self.likelihood(starts)))]
        found = minimize(loss, best, jac="3-point", method="BFGS", options={"gtol": 1e-4})
        return np.asarray(found.x), len(starts) + int(found.nfev)


@cache
def target(name: str) -> Target:
    """A model of `MODELS` with the paper's sample."""
    model, data = MODELS[name], datasets.load("sp500")
    parts = {}
    for prefix, frame in (("", data.train), ("test ", data.test)):
        squares = {proxy: frame[proxy].to_numpy() ** 2 for proxy in ("r", "rv")}
        parts[prefix] = model.likelihood(frame["r"].to_numpy()), squares
    return Target(model, parts)
