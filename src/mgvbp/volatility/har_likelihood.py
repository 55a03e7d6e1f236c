"""The likelihood of the heterogeneous autoregression, its maximum, and its paths into the future."""

from __future__ import annotations

import numpy as np

from mgvbp import models
from mgvbp.core import Array
from mgvbp.errors import InvalidInputError
from mgvbp.models import LAGS, NAMES
from mgvbp.problem import Parameters
from mgvbp.transforms import Positive, Real
from mgvbp.volatility.maximum import MaximumLikelihood

MONTH = LAGS[-1]
"""The days that the model looks back: as many at the start of a series are not explained."""
WHAT = "realised volatility"
"""What messages call the series."""
PARAMETERS = Parameters(**dict.fromkeys(NAMES, Real()), sigma=Positive())
"""θ = (β, log σ), with a name for each coefficient."""


class HARLikelihood(models.HAR):
    """The log-likelihood of realised volatilities after the first month, with a name for each coefficient."""

    def _parameters(self) -> Parameters:
        return PARAMETERS

    @property
    def n_obs(self) -> int:
        """How many days it is the likelihood of."""
        return len(self.y)

    @property
    def scale(self) -> Array:
        """Sizes by which the entries of θ move: the volatilities' for the intercept, else 1."""
        return np.array([self.y.std(), *np.ones(len(NAMES))])


def onward(theta: Array, past: Array, shocks: Array) -> Array:
    """The days after ``past`` (22 or more, N), (H, N), for ``shocks`` (H, N) and θ (N, 5)."""
    beta, sigma = theta[:, :-1].T, np.exp(theta[:, -1])
    v = np.concatenate([past, np.empty_like(shocks)])
    for t, shock in enumerate(shocks, start=len(past)):
        means = (v[t - lag : t].mean(axis=0) for lag in LAGS)
        v[t] = beta[0] + sum(b * mean for b, mean in zip(beta[1:], means, strict=True)) + sigma * shock
    return v[len(past) :]


def least_squares(likelihood: HARLikelihood) -> MaximumLikelihood:
    """The maximum of a `HARLikelihood`, in closed form with its Hessian in (β, log σ)."""
    X, y = likelihood.X, likelihood.y
    beta = np.linalg.lstsq(X, y)[0]
    squares = float(np.sum((y - X @ beta) ** 2))
    if squares == 0.0:
        raise InvalidInputError(
            f"the {WHAT} follows from its past without error: there is nothing to estimate"
        )
    psi = np.append(beta, 0.5 * np.log(squares / len(y)))
    hessian = np.zeros((len(psi), len(psi)))
    hessian[:-1, :-1] = -X.T @ X * len(y) / squares
    hessian[-1, -1] = -2.0 * len(y)
    return MaximumLikelihood(likelihood, psi, float(likelihood(psi[None])[0]), hessian)
