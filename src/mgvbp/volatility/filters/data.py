"""The data of a volatility filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgvbp.core import Array, as_floats
from mgvbp.errors import InvalidInputError
from mgvbp.families import frozen
from mgvbp.volatility.filters.startup import StartUp, checked_series


@dataclass(frozen=True, eq=False)
class FilterData:
    """Returns, the regressors of their mean, and what comes before the first of them.

    Parameters
    ----------
    y : array_like of shape (T,)
    X : array_like of shape (T, m)
        Has no columns where the mean is zero.
    startup : StartUp

    Examples
    --------
    >>> from mgvbp.volatility.filters.startup import paper_startup
    >>> returns = np.array([0.3, -1.2, 0.4])
    >>> len(FilterData(returns, np.ones((3, 1)), paper_startup(returns)))
    3
    """

    y: Array
    X: Array
    startup: StartUp

    def __post_init__(self) -> None:
        y, X = checked_series(self.y, "y"), as_floats(self.X, "X")
        if X.ndim != 2 or len(X) != len(y):
            raise InvalidInputError(f"X has shape {X.shape}; expected ({len(y)}, m): one row per return")
        if self.startup.bounds.shape[1] > len(y):
            raise InvalidInputError(
                f"startup is for {self.startup.bounds.shape[1]} days, but there are {len(y)} returns"
            )
        # copies, so that the caller's arrays stay as they are; read-only, as kernels are compiled by type
        startup = self.startup._replace(
            bounds=frozen(np.array(self.startup.bounds)), log_bounds=frozen(np.array(self.startup.log_bounds))
        )
        object.__setattr__(self, "y", frozen(np.array(y, order="C")))
        object.__setattr__(self, "X", frozen(np.array(X, order="C")))
        object.__setattr__(self, "startup", startup)

    def __reduce__(self) -> tuple[type[FilterData], tuple[Array, Array, StartUp]]:
        # what pickle restores by itself is not read-only, and would have all kernels compiled again
        return FilterData, (self.y, self.X, self.startup)

    def __len__(self) -> int:
        return len(self.y)
