"""The conditional mean of returns, and their likelihood: a function of draws of ψ, ready for `mgvbp.fit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import Array, as_floats, as_generator, one_of, positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.transforms import Real
from mgvbp.volatility.series import Series

if TYPE_CHECKING:
    from mgvbp.problem import Parameters
    from mgvbp.volatility.forecast import Forecast
    from mgvbp.volatility.laws import Law
    from mgvbp.volatility.model import VolatilityModel

MOST_LOG = 100.0
"""Larger logarithms and logits in ψ are replaced by this number, as in the authors' programs. An ω of e¹⁰⁰ already has
a likelihood of practically zero, and exp of a larger number could overflow."""


@dataclass(frozen=True)
class Mean:
    """``y_t = x_t'm + e_t`` with no regressors, a one, or a one and the last returns.

    Parameters
    ----------
    kind : {"zero", "constant", "ar"}
    lags : int
        Of an autoregression.
    """

    kind: str
    lags: int = 0

    def __post_init__(self) -> None:
        one_of(self.kind, ("zero", "constant", "ar"), "mean")
        positive_integer(self.lags, "lags", least=0)
        if (self.kind == "ar") != (self.lags > 0):
            raise InvalidInputError(
                f"mean='ar' goes with lags=1 or more and the others with none; got mean={self.kind!r}, "
                f"lags={self.lags}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients m."""
        if self.kind == "ar":
            return ("const", *(f"ar[{k}]" for k in range(1, self.lags + 1)))
        return ("mu",) if self.kind == "constant" else ()

    def design(self, values: Array) -> tuple[Array, Array]:
        """What is explained, (T − lags,), and its regressors, (T − lags, m)."""
        y = values[self.lags :]
        if self.kind == "zero":
            return y, np.empty((len(y), 0))
        past = [values[self.lags - k : len(values) - k] for k in range(1, self.lags + 1)]
        return y, np.column_stack([np.ones(len(y)), *past])

    def coefficients(self, values: Mapping[str, Array]) -> Array:
        """The coefficients m, (m, S), from the values of all parameters, each (S,)."""
        size = len(next(iter(values.values())))
        return np.array([values[name] for name in self.names]).reshape(-1, size)

    def step(self, coefficients: Array, past: Array) -> Array:
        """The mean of the next return, (S,), for coefficients (m, S) after returns (lags or more, S)."""
        mean = np.zeros(past.shape[1]) if self.kind == "zero" else coefficients[0].copy()
        for k in range(1, self.lags + 1):
            mean += coefficients[k] * past[-k]
        return mean

    def onward(self, coefficients: Array, past: Array, residuals: Array) -> tuple[Array, Array]:
        """Returns and their means (H, S) after returns ``past`` (lags or more, S), for the residuals (H, S)."""
        returns, location = np.concatenate([past, residuals]), np.empty_like(residuals)
        for t in range(len(residuals)):
            location[t] = self.step(coefficients, returns[: len(past) + t])
            returns[len(past) + t] += location[t]
        return returns[len(past) :], location


@dataclass(frozen=True, eq=False)
class Paths:
    """What a model says of a series at S draws of its parameters; draws are the last axis.

    Attributes
    ----------
    values : dict of str to ndarray of shape (S,)
        The parameters.
    mean : ndarray of shape (T + 1, S)
        The conditional mean of every day, and of the day after the last.
    variance : ndarray of shape (T + 1, S)
        The conditional variance of the same days.
    residuals : ndarray of shape (T, S)
    """

    values: dict[str, Array]
    mean: Array
    variance: Array
    residuals: Array


class Likelihood:
    """The log-likelihood of returns, as a function of an (S, d) array of ψ.

    Parameters
    ----------
    model : VolatilityModel
    series : Series
        All returns, history included.
    known : int
        How many of the first returns only start the recursions: the likelihood is that of the others given
        them. Start-up values and safeguards then come from the known returns alone.

    Attributes
    ----------
    parameters : Parameters
    """

    parameters: Parameters

    def __init__(self, model: VolatilityModel, series: Series, known: int = 0) -> None:
        self.model, self.series, self.known = model, series, known
        self.parameters = model.parameters
        real = {name for name, transform in self.parameters.transforms.items() if isinstance(transform, Real)}
        self._largest = np.array([np.inf if name in real else MOST_LOG for name in self.parameters.names])
        self.offset = model.mean.lags
        """Days at the start that only serve as lags of the mean."""
        self.first = max(0, known - self.offset)
        y, X = model.mean.design(series.values)
        self.sample = model.sample(y, X, reference=self.first or len(y))
        if not self.first < len(y):
            raise InvalidInputError(f"none of the {len(series)} returns is left to be explained")

    @property
    def y(self) -> Array:
        """The returns that it is the likelihood of."""
        return self.sample.y[self.first :]

    @property
    def n_obs(self) -> int:
        """The number of these returns."""
        return len(self.sample.y) - self.first

    @property
    def scale(self) -> Array:
        """A typical change of each entry of ψ: the returns' standard deviation for a constant mean, else 1."""
        scale = np.ones(self.parameters.dim)
        if self.model.mean.names:
            scale[0] = self.sample.y.std()
        return scale

    def __call__(self, theta: ArrayLike) -> Array:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,)."""
        values, mean, coefficients = self._coefficients(theta)
        law = self.model.law.of(values)
        return self.model.filter.log_likelihood(self.sample, mean, coefficients, law, self.first)

    def predict(self, theta: ArrayLike, steps: int, *, rng: int | np.random.Generator = 0) -> Forecast:
        """The days after the series, a path for each row of ``theta`` (S, d): what ``posterior.forecast`` calls."""
        return self.model.futures(self, as_floats(theta, "theta"), steps, as_generator(rng))

    forecast = predict

    def pointwise(self, theta: ArrayLike) -> Array:
        """The log-likelihood of each return, (S, d) -> (S, n_obs)."""
        paths = self.paths(theta)
        sigma = np.sqrt(paths.variance[self.first : -1])
        law = self.model.law.of(paths.values)
        return (law.log_density(paths.residuals[self.first :] / sigma) - np.log(sigma)).T

    def predictive(self, theta: ArrayLike) -> tuple[Array, Array, Law]:
        """Mean and standard deviation (n_obs, S) of each return given those before it, and the law of the errors."""
        paths, days = self.paths(theta), slice(self.first, -1)
        return paths.mean[days], np.sqrt(paths.variance[days]), self.model.law.of(paths.values)

    def paths(self, theta: ArrayLike) -> Paths:
        """Means, variances and residuals of every day at each row of ``theta``."""
        values, mean, coefficients = self._coefficients(theta)
        location = self.sample.X @ mean
        following = self.model.mean.step(mean, self.last_returns(mean.shape[1]))
        return Paths(
            values,
            np.vstack([location, following]),
            self.model.filter.variance(self.sample, mean, coefficients),
            self.sample.y[:, None] - location,
        )

    def last_returns(self, paths: int) -> Array:
        """The returns that the mean of the next one may depend on, the same on each of so many paths."""
        return np.repeat(self.series.values[-max(1, self.offset) :, None], paths, axis=1)

    def _coefficients(self, theta: ArrayLike) -> tuple[dict[str, Array], Array, Array]:
        """The values of the parameters, and the coefficients of the mean (m, S) and of the variance (k, S)."""
        values = self.parameters.constrain(np.minimum(as_floats(theta, "theta"), self._largest))
        return values, self.model.mean.coefficients(values), self.model.coefficients(values)

    def __repr__(self) -> str:
        return f"Likelihood({self.model!r}, {self.n_obs:,} returns)"
