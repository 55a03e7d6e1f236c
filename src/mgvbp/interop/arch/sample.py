"""The series of an arch model: what starts its recursions, what it allows, and the priors of its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.interop.arch.polytope import Polytope
from mgvbp.interop.default_priors import UNIFORM


class Sample:
    """The series of a model, and what starts its recursions, as arch's own estimation has them."""

    def __init__(self, model: Any) -> None:
        self.model = model
        residuals = model.resids(model.starting_values())
        self.start = residuals
        self.backcast = model.volatility.backcast(residuals)
        self.bounds = model.volatility.variance_bounds(residuals)

    @property
    def y(self) -> Array:
        """The observations that are explained: those before them are lags."""
        return np.asarray(self.model._fit_y, np.float64)[-len(self.start) :]

    @property
    def index(self) -> Any:
        """The labels of these observations."""
        return self.model._y_series.index[: self.model._fit_indices[1]][-len(self.start) :]

    def path(self, row: Array) -> tuple[Array, Array]:
        """Residuals and variances (n,) at one draw of the parameters (k,)."""
        mean, volatility, _ = split(self.model, row)
        variance = np.empty(len(self.start))
        if isinstance(self.model, require("arch.univariate", "volatility").ARCHInMean):
            return self._in_mean(mean, volatility, variance), variance
        residuals = self.model.resids(mean)
        self.model.volatility.compute_variance(volatility, residuals, variance, self.backcast, self.bounds)
        return residuals, variance

    def _in_mean(self, mean: Array, volatility: Array, variance: Array) -> Array:
        """Residuals (n,) where a day's mean depends on its variance: both are found day by day."""
        model = self.model
        model._volatility_updater.initialize_update(volatility, self.backcast, len(variance))
        power = 0.5 * model._form_power
        series = (model._fit_y, model._fit_regressors)
        return np.asarray(model._recursion.recursion(*series, mean, volatility, variance, self.bounds, power))

    def pointwise(self, row: Array) -> Array:
        """The log-likelihood of each observation (n,), by the model itself: some means depend on the variances."""
        variance = np.empty(len(self.start))
        given = (row, variance, self.backcast, self.bounds)
        return -np.asarray(self.model._loglikelihood(*given, individual=True), np.float64)

    def log_likelihood(self, row: Array) -> float:
        """The log-likelihood of all observations."""
        return float(self.pointwise(row).sum())

    def region(self, estimate: Array) -> Polytope:
        """What the model allows: bounds and linear inequalities of mean, volatility and distribution."""
        model, volatility = self.model, self.model.volatility
        residuals, variance = self.path(estimate)
        parts = (
            (model.constraints(), model.bounds()),
            (volatility.constraints(), volatility.bounds(self.start)),
            (model.distribution.constraints(), model.distribution.bounds(residuals / np.sqrt(variance))),
        )
        rows, limits, first = [], [], 0
        for (matrix, least), bounds in parts:
            size = len(bounds)
            if not size:
                continue
            low, high = np.array(bounds, np.float64).T
            for coefficients, limit in (
                (np.asarray(matrix, np.float64).reshape(-1, size), least),
                (np.eye(size), low),
                (-np.eye(size), -high),
            ):
                wide = np.zeros((len(coefficients), len(estimate)))
                wide[:, first : first + size] = coefficients
                rows.append(wide)
                limits.append(np.asarray(limit, np.float64).ravel())
            first += size
        return Polytope(np.concatenate(rows), np.concatenate(limits))


def split(model: Any, row: Array) -> tuple[Array, Array, Array]:
    """The parameters (k,) of the mean, the volatility and the distribution."""
    mean, volatility = model.num_params, model.volatility.num_params
    return row[:mean], row[mean : mean + volatility], row[mean + volatility :]


class DegreesOfFreedom:
    """The gamma distribution with density ``ν exp(−ν/10) / 100`` (Juárez and Steel, 2010), whose mean is 20.

    Examples
    --------
    >>> DegreesOfFreedom().logpdf(np.array([10.0])).round(4)
    array([-3.3026])
    """

    def logpdf(self, value: Array) -> Array:
        """The log density of each value."""
        return np.asarray(np.log(value) - 0.1 * value - np.log(100.0))

    def __repr__(self) -> str:
        return "Gamma(2, 0.1)"


def default_priors(model: Any, names: tuple[str, ...], region: Polytope) -> Iterator[tuple[str, Any]]:
    """Degrees of freedom have a gamma prior, other parameters with bounds a uniform one; the rest is normal."""
    shape = (*names[model.num_params + model.volatility.num_params :], "")[0]
    for name, bounded in zip(names, region.bounded(), strict=True):
        if name == shape:  # its upper bound, 300 or 500, is there for arch's optimiser
            if "Student" in type(model.distribution).__name__:
                yield name, DegreesOfFreedom()
        elif bounded:
            yield name, UNIFORM
