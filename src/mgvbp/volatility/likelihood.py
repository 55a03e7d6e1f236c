"""The likelihood of a series under a volatility model: a function of draws of ψ, ready for `mgvbp.fit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import Array, as_floats
from mgvbp.errors import InvalidInputError
from mgvbp.transforms import Real
from mgvbp.volatility.risk import standard_log_density
from mgvbp.volatility.series import Series

if TYPE_CHECKING:
    from mgvbp.problem import Parameters
    from mgvbp.volatility.model import VolatilityModel

MOST_LOG = 100.0
"""Logarithms and logits in ψ above this are taken for it, as in the authors' programs. An ω of e¹⁰⁰ already has a
likelihood of practically zero, and exp of a larger number could overflow."""


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

    @property
    def nu(self) -> Array | None:
        """The degrees of freedom (S,) of Student-t errors; None for normal ones."""
        return self.values.get("nu")


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
        """How many they are."""
        return len(self.sample.y) - self.first

    @property
    def scale(self) -> Array:
        """Sizes by which the entries of ψ move: the returns' for a constant, else 1."""
        scale = np.ones(self.parameters.dim)
        if self.model.mean.names:
            scale[0] = self.sample.y.std()
        return scale

    def __call__(self, theta: ArrayLike) -> Array:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,)."""
        values = self._values(theta)
        return self.model.filter.log_likelihood(
            self.sample, *self._coefficients(values), values.get("nu"), self.first
        )

    def pointwise(self, theta: ArrayLike) -> Array:
        """The log-likelihood of each return, (S, d) -> (S, n_obs)."""
        paths = self.paths(theta)
        sigma = np.sqrt(paths.variance[self.first : -1])
        return (standard_log_density(paths.residuals[self.first :] / sigma, paths.nu) - np.log(sigma)).T

    def paths(self, theta: ArrayLike) -> Paths:
        """Means, variances and residuals of every day at each row of ``theta``."""
        values = self._values(theta)
        mean, coefficients = self._coefficients(values)
        location = self.sample.X @ mean
        past = np.repeat(self.series.values[-max(1, self.offset) :, None], mean.shape[1], axis=1)
        following = self.model.mean.step(mean, past)
        return Paths(
            values,
            np.vstack([location, following]),
            self.model.filter.variance(self.sample, mean, coefficients),
            self.sample.y[:, None] - location,
        )

    def _values(self, theta: ArrayLike) -> dict[str, Array]:
        return self.parameters.constrain(np.minimum(as_floats(theta, "theta"), self._largest))

    def _coefficients(self, values: dict[str, Array]) -> tuple[Array, Array]:
        """Those of the mean (m, S), and those of the variance (k, S)."""
        return self.model.mean.coefficients(values), self.model.coefficients(values)

    def __repr__(self) -> str:
        return f"Likelihood({self.model!r}, {self.n_obs:,} returns)"
