"""The conditional mean of returns: zero, a constant, or an autoregression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mgvbp.core import Array, one_of, positive_integer
from mgvbp.errors import InvalidInputError


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
