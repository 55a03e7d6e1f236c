"""The heterogeneous autoregressive model of realised volatility (HAR)."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.models.base import checked_design
from mgvbp.models.linear import LinearRegression

LAGS = (1, 5, 22)
"""The numbers of trading days in a day, a week and a month."""
NAMES = ("intercept", "daily", "weekly", "monthly")
"""The columns of the regression."""


class HAR(LinearRegression):
    """Corsi's (2009) regression of volatility on its means over the last day, week and month; θ = (β, log σ).

    ``v_t = β_0 + β_1 v_{t−1} + β_2 mean(v_{t−5}, ..., v_{t−1}) + β_3 mean(v_{t−22}, ..., v_{t−1}) + σ ε_t``,
    with standard normal errors. `predictive` takes rows of `lagged_means`, of which the last is tomorrow's,
    with or without their first column of ones.

    Parameters
    ----------
    volatility : array_like of shape (T,)
        Daily volatilities, oldest first. The first 22 are used as lags only.

    Examples
    --------
    >>> v = 10.0 + np.sin(np.arange(60.0))
    >>> model = HAR(v)
    >>> model
    HAR(38 rows, 4 columns)
    >>> model.predictive([[1.0, 0.4, 0.3, 0.2, 0.0]], lagged_means(v)[-1:]).round(3)
    array([[10.306]])
    """

    def __init__(self, volatility: ArrayLike) -> None:
        series = as_floats(volatility, "volatility")
        LinearRegression.__init__(self, lagged_means(series)[:-1], series[LAGS[-1] :], NAMES)

    @classmethod
    def from_columns(cls, target: ArrayLike, daily: ArrayLike, weekly: ArrayLike, monthly: ArrayLike) -> Self:
        """The model of a table that has the lagged means as columns, each of shape (N,)."""
        columns = [as_floats(c, name) for c, name in zip((daily, weekly, monthly), NAMES[1:], strict=True)]
        if columns[0].ndim != 1 or len({column.shape for column in columns}) > 1:
            shapes = ", ".join(f"{name} {c.shape}" for c, name in zip(columns, NAMES[1:], strict=True))
            raise InvalidInputError(f"the columns must be vectors of one length; got {shapes}")
        model = cls.__new__(cls)
        LinearRegression.__init__(model, np.column_stack([np.ones(len(columns[0])), *columns]), target, NAMES)
        return model

    def _checked_rows(self, X: ArrayLike) -> Array:
        design = checked_design(X)
        if design.shape[1] == len(LAGS):
            design = np.column_stack([np.ones(len(design)), design])
        return super()._checked_rows(design)


def lagged_means(volatility: ArrayLike) -> Array:
    """An intercept and the means over the last 1, 5 and 22 days, (T,) -> (T − 21, 4).

    Row i holds what is known after day i + 22, counted from 1: it predicts the day after.
    """
    series = as_floats(volatility, "volatility")
    if series.ndim != 1 or len(series) <= LAGS[-1]:
        raise InvalidInputError(
            f"volatility has shape {series.shape}; expected a series of more than {LAGS[-1]} days"
        )
    means = [sliding_window_view(series, lag)[LAGS[-1] - lag :].mean(axis=1) for lag in LAGS]
    return np.column_stack([np.ones(len(means[0])), *means])
