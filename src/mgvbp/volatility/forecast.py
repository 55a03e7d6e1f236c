"""Returns and variances of the days to come, simulated over the posterior and over future shocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.checks import as_floats, positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.simulation import standard_shocks

if TYPE_CHECKING:
    from mgvbp.volatility.likelihood import Likelihood

CHUNK = 500
"""Draws that are filtered at once: what bounds the memory."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """Simulated futures; paths are the last axis.

    Attributes
    ----------
    returns : ndarray of shape (H, N)
    location, variance : ndarray of shape (H, N)
        Conditional mean and variance of each day on each path; the first rows need no shock, only parameters.
    """

    returns: Array
    location: Array
    variance: Array

    @property
    def mean(self) -> Array:
        """The expected return of each day, (H,)."""
        return np.asarray(self.location.mean(axis=1))

    @property
    def volatility(self) -> Array:
        """The root of the expected variance of each day, (H,)."""
        return np.asarray(np.sqrt(self.variance.mean(axis=1)))

    def quantile(self, p: ArrayLike, of: str = "returns") -> Array:
        """Quantiles at levels ``p`` (K,) of each day's return or volatility, (H, K)."""
        levels = np.atleast_1d(as_floats(p, "p"))
        if not ((levels > 0.0) & (levels < 1.0)).all():
            raise InvalidInputError(f"p must be between 0 and 1; got {p!r}")
        if of not in ("returns", "volatility"):
            raise InvalidInputError(f"of must be 'returns' or 'volatility'; got {of!r}")
        paths = self.returns if of == "returns" else np.sqrt(self.variance)
        return np.quantile(paths, levels, axis=1).T

    def var(self, alpha: float = 0.01) -> float:
        """Value at risk of the sum of all days' returns: the loss exceeded with probability ``alpha``."""
        return -float(np.quantile(self.returns.sum(axis=0), checked_level(alpha)))

    def expected_shortfall(self, alpha: float = 0.01) -> float:
        """The expected loss over all days given that it exceeds the value at risk."""
        total = self.returns.sum(axis=0)
        return -float(total[total <= np.quantile(total, checked_level(alpha))].mean())

    def to_frame(self, levels: ArrayLike = (0.05, 0.95)) -> Any:
        """A pandas frame with one row a day ahead: expectations and quantiles."""
        import pandas as pd

        frame = pd.DataFrame(
            {"mean": self.mean, "volatility": self.volatility},
            index=pd.RangeIndex(1, len(self.mean) + 1, name="day"),
        )
        for kind in ("returns", "volatility"):
            for level, column in zip(np.atleast_1d(levels), self.quantile(levels, kind).T, strict=True):
                frame[f"{kind}_{100 * level:g}%"] = column
        return frame

    def __repr__(self) -> str:
        return f"Forecast({self.returns.shape[0]} days, {self.returns.shape[1]:,} paths)"


def forecast(likelihood: Likelihood, theta: Array, horizon: int, rng: np.random.Generator) -> Forecast:
    """Simulate ``horizon`` days beyond the series, one path for each row of ``theta`` (N, d)."""
    days = positive_integer(horizon, "horizon")
    parts = [_continue(likelihood, theta[i : i + CHUNK], days, rng) for i in range(0, len(theta), CHUNK)]
    return Forecast(*(np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True)))


def _continue(
    likelihood: Likelihood, theta: Array, days: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    model, paths = likelihood.model, likelihood.paths(theta)
    shocks = standard_shocks(days, len(theta), paths.nu, rng)
    variance, residuals = model.onward(likelihood, paths, shocks)
    m = np.array([paths.values[name] for name in model.mean.names]).reshape(-1, len(theta))
    lags = max(1, model.mean.lags)
    returns, location = np.empty((lags + days, len(theta))), np.empty((days, len(theta)))
    returns[:lags] = likelihood.series.values[-lags:, None]
    for t in range(days):
        location[t] = model.mean.step(m, returns[: lags + t])
        returns[lags + t] = location[t] + residuals[t]
    return returns[lags:], location, variance


def checked_level(alpha: float) -> float:
    """A probability below one half."""
    if not 0.0 < alpha < 0.5:
        raise InvalidInputError(
            f"alpha must be between 0 and 0.5, the probability of a larger loss; got {alpha!r}"
        )
    return float(alpha)
