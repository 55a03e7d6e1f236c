"""Returns and variances of the days to come, simulated over the posterior and over future shocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.core import Array, as_floats, one_of, positive_integer, probabilities
from mgvbp.errors import DivergenceError, InvalidInputError, NonFiniteWarning, warn_user
from mgvbp.volatility.likelihood import Likelihood, Paths
from mgvbp.volatility.simulation import quietly

PATHS = 10_000
"""Simulated futures behind forecasts."""
MOST_CELLS = 2**27
"""The most days × paths of a forecast: 1 GB an array. With 10,000 paths these are 13,000 days, or 50 years."""
CELLS = 2**22
"""The most draws × days that are filtered at once: 32 MB an array."""
LOOK_BACK = 1000
"""The most past days that the variance of the next one depends on: the lags of FIGARCH."""
EXPLODED = 1e100
"""Returns and volatilities from here on have exploded. The square is far below the largest float, 1.8e308, so that
sums of the squares of all smaller numbers are finite."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """Simulated futures; paths are the last axis.

    A path may explode, where the posterior has room for it. Means and quantiles of a day leave out the paths whose
    numbers on that day are not finite, or beyond 1e100. For value at risk and expected shortfall, which leaving
    them out would understate, a path that explodes is an infinite loss.

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
        return np.asarray(self.location.mean(axis=1, where=self.sound))

    @property
    def volatility(self) -> Array:
        """The root of the expected variance of each day, (H,)."""
        return np.asarray(np.sqrt(self.variance.mean(axis=1, where=self.sound)))

    @cached_property
    def sound(self) -> NDArray[np.bool_]:
        """Which days of which paths have not exploded, (H, N)."""
        small = (np.abs(self.returns) < EXPLODED) & (np.abs(self.location) < EXPLODED)
        return np.asarray(small & (self.variance >= 0.0) & (self.variance < EXPLODED**2))

    def quantile(self, p: ArrayLike, of: str = "returns") -> Array:
        """Quantiles at levels ``p`` (K,) of each day's return or volatility, (H, K)."""
        levels = np.atleast_1d(probabilities(p, "p"))
        one_of(of, ("returns", "volatility"), "of")
        days = zip(self.returns if of == "returns" else self.variance, self.sound, strict=True)
        quantiles = np.array([np.quantile(day[sound], levels) for day, sound in days])
        return quantiles if of == "returns" else np.sqrt(quantiles)

    def var(self, alpha: float = 0.01) -> float:
        """Value at risk of the sum of all days' returns: the loss exceeded with probability ``alpha``."""
        return -self._total(checked_level(alpha))[1]

    def expected_shortfall(self, alpha: float = 0.01) -> float:
        """The expected loss over all days given that it exceeds the value at risk."""
        total, quantile = self._total(checked_level(alpha))
        return -float(total[total <= quantile].mean())

    def _total(self, alpha: float) -> tuple[Array, float]:
        """The sums of all days' returns (N,), and their quantile."""
        sound = self.sound.all(axis=0)
        total = np.where(sound, np.where(self.sound, self.returns, 0.0).sum(axis=0), -np.inf)
        # between an infinite loss and another number there is nothing to interpolate
        beyond = alpha * (len(total) - 1) < np.count_nonzero(~sound)
        return total, -np.inf if beyond else float(np.quantile(total, alpha))

    def to_frame(self, levels: ArrayLike = (0.05, 0.95)) -> Any:
        """A pandas frame with one row a day ahead: expectations and quantiles."""
        means = {"mean": self.mean, "volatility": self.volatility}
        kinds = {f"{kind}_": self.quantile(levels, kind) for kind in ("returns", "volatility")}
        return frame_of_days(means, levels, kinds)

    def __repr__(self) -> str:
        return f"Forecast({self.returns.shape[0]} days, {self.returns.shape[1]:,} paths)"


def forecast(
    likelihood: Likelihood,
    theta: Array,
    horizon: int,
    rng: np.random.Generator,
    paths: int | None = None,
) -> Forecast:
    """Simulate ``horizon`` days beyond the series, on ``paths`` paths that share the rows of ``theta`` (S, d).

    Without ``paths`` there is one for each row. The sample is filtered once a row, however many paths it has.
    """
    rows = len(theta)
    number = rows if paths is None else paths
    days = checked_horizon(horizon, number)
    each = -(-number // rows)
    ahead = _continue(likelihood, last_days(likelihood, theta), days, each, rng)
    future = Forecast(*(array[:, :number] for array in ahead))
    if not future.sound.any(axis=1).all():
        raise DivergenceError(
            f"all {number:,} futures explode within {days} days: fit more returns, a sharper prior or another model"
        )
    if exploded := int(np.count_nonzero(~future.sound.all(axis=0))):
        warn_user(
            f"{exploded:,} of {number:,} futures explode: means and quantiles of a day leave them out, value at risk "
            "and expected shortfall take them for infinite losses; try a shorter horizon, more returns or a sharper "
            "prior",
            NonFiniteWarning,
            "exploding-forecasts",
        )
    return future


def last_days(likelihood: Likelihood, theta: Array, days: int = LOOK_BACK) -> Paths:
    """The part of the paths at ``theta`` (S, d) that a forecast needs: their last ``days``, and the day after."""
    chunk = max(1, CELLS // len(likelihood.series))
    parts = []
    for i in range(0, len(theta), chunk):
        whole = likelihood.paths(theta[i : i + chunk])
        ends = whole.mean[-1 - days :], whole.variance[-1 - days :], whole.residuals[-days:]
        parts.append((whole.values, *(end.copy() for end in ends)))  # a view would keep all days
    values, *arrays = zip(*parts, strict=True)
    return Paths(
        {name: np.concatenate([part[name] for part in values]) for name in values[0]},
        *(np.concatenate(ends, axis=1) for ends in arrays),
    )


@quietly
def _continue(
    likelihood: Likelihood, past: Paths, days: int, each: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Returns, means and variances of ``each`` future of each of S draws, (days, each · S)."""
    model, draws = likelihood.model, past.mean.shape[1]
    number = each * draws
    law = model.law.of({name: np.tile(past.values[name], each) for name in model.law.transforms})
    shocks = law.sample((days, number), rng).reshape(days, each, draws)
    variance, residuals = (array.reshape(days, number) for array in model.onward(likelihood, past, shocks))
    m = np.tile(model.mean.coefficients(past.values), each)
    return *model.mean.onward(m, likelihood.last_returns(number), residuals), variance


def frame_of_days(means: dict[str, Array], levels: ArrayLike, quantiles: dict[str, Array]) -> Any:
    """A pandas frame with one row a day ahead: ``means`` (H,), and ``quantiles`` (H, K) under a prefix each."""
    import pandas as pd

    columns = {
        f"{prefix}{100 * level:g}%": column
        for prefix, days in quantiles.items()
        for level, column in zip(np.atleast_1d(levels), days.T, strict=True)
    }
    horizon = len(next(iter(means.values())))
    return pd.DataFrame({**means, **columns}, index=pd.RangeIndex(1, horizon + 1, name="day"))


def checked_horizon(horizon: int, paths: int = PATHS) -> int:
    """The days of a forecast on so many paths, if the machine may have room for it."""
    days = positive_integer(horizon, "horizon")
    if days * positive_integer(paths, "draws") > MOST_CELLS:
        raise InvalidInputError(
            f"a forecast of {days:,} days on {paths:,} paths has no room in memory: horizon must be at most "
            f"{MOST_CELLS // paths:,} with so many paths"
        )
    return days


def checked_level(alpha: float) -> float:
    """A probability below one half."""
    return checked_probability(alpha, "alpha", 0.5, ", the probability of a larger loss")


def checked_losses(alpha: ArrayLike) -> tuple[float, ...]:
    """One or several probabilities of a loss, each below one half."""
    levels = np.atleast_1d(as_floats(alpha, "alpha"))
    if levels.ndim != 1 or not len(levels):
        raise InvalidInputError(f"alpha must be a number or a list of numbers; got {alpha!r}")
    return tuple(map(checked_level, levels.tolist()))


def checked_probability(value: float, name: str, most: float = 1.0, what: str = "") -> float:
    """One number between 0 and ``most``, both excluded; ``what`` it is, for messages."""
    number = as_floats(value, name)
    if number.shape or not 0.0 < number < most:
        raise InvalidInputError(f"{name} must be between 0 and {most:g}{what}; got {value!r}")
    return float(number)
