"""The HAR regression with the paper's sample, and what is reported of a point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import mgvbp
from mgvbp import datasets
from mgvbp.models import HAR
from mgvbp.paper import target as base
from mgvbp.paper.bounds import linear_lower_bound
from mgvbp.paper.common import PRIOR_VARIANCE, Array


@dataclass(frozen=True, eq=False)
class Target(base.Target):
    """The regression on the training days, and the days to test it on; θ = (β, log σ) has 5 entries."""

    model: HAR
    test: HAR

    @property
    def likelihood(self) -> HAR:
        """The log-likelihood of the training days, (S, 5) -> (S,)."""
        return self.model

    @property
    def prior(self) -> mgvbp.Gaussian:
        """N(0, 5 I) on (β, log σ)."""
        return mgvbp.Gaussian(variance=PRIOR_VARIANCE, dim=5)

    def report(self, theta: Array) -> dict[str, Array]:
        """All columns of the tables at points θ, (S, 5) -> (S,) each; QLIKE is that of volatilities, times 100."""
        found = {f"beta[{i}]": theta[:, i] for i in range(4)} | {"sigma": np.exp(theta[:, 4])}
        for prefix, part in (("", self.model), ("test ", self.test)):
            fitted = theta[:, :4] @ part.X.T
            # a line far off may predict a volatility below zero, which has no logarithm
            ratio = part.y / np.where(fitted > 0.0, fitted, np.nan)
            found[f"{prefix}log-lik"] = part(theta)
            found[f"{prefix}MSE rv"] = ((part.y - fitted) ** 2).sum(axis=1) / (len(part.y) - 4)
            found[f"{prefix}QLIKE rv"] = 100.0 * np.mean(ratio - np.log(ratio) - 1.0, axis=1)
        return found

    def exact_bound(self, q: mgvbp.Gaussian) -> float:
        """The lower bound at q in closed form."""
        return linear_lower_bound(self.model, self.prior, q)

    def maximum_likelihood(self) -> tuple[Array, int]:
        """(β, log σ) by least squares with σ² = SSE / (n − 4), which takes no evaluation of the likelihood."""
        X, y = self.model.X, self.model.y
        beta = np.linalg.lstsq(X, y)[0]
        return np.append(beta, 0.5 * np.log(np.sum((y - X @ beta) ** 2) / (len(y) - 4))), 0


@cache
def target() -> Target:
    """The paper's sample."""
    data = datasets.load("har")

    def model(frame: Any) -> HAR:
        return HAR.from_columns(*(frame[column].to_numpy() for column in (data.target, *data.features)))

    return Target(model(data.train), model(data.test))
