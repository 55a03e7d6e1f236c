"""The data of a volatility filter: returns, what comes before the first, and the bounds of the variances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families import frozen

MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)
"""E|z| of a standard normal z; EGARCH subtracts it whatever the errors' distribution, as `arch` does."""
DECAY, BACKCAST_DAYS = 0.94, 75
"""`arch` starts from a mean of the first 75 squares, with the weights 0.94^t."""
SMALLEST, LARGEST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
"""The range of positive floats: bounds that only stop what is not positive, or infinite."""
LOG_LARGEST = math.log(LARGEST)


class StartUp(NamedTuple):
    """Pre-sample values and safeguards of all filters.

    Attributes
    ----------
    variance, square, negative_square : float
        GARCH: h, e² and e² 1[e < 0] before the first day.
    log_variance, surprise : float
        EGARCH: log h and |z| − √(2/π) before the first day, where z = 0.
    distant_square : float
        FIGARCH: e² before the first day.
    bounds : ndarray of shape (2, B)
        GARCH and FIGARCH: a variance below the first row is raised to it; one above the second, u, becomes
        u + log(h/u), or u + 1000 if infinite. A column a day; the last stands for all days after it, too.
    log_bounds : ndarray of shape (3, B)
        EGARCH: the same with variances as bounds, where h above u becomes u + log h − c, with c in the third row.
    log_overflow : float
        EGARCH: what log h is taken for where h is too large for a float.
    """

    variance: float
    square: float
    negative_square: float
    log_variance: float
    surprise: float
    distant_square: float
    bounds: Array
    log_bounds: Array
    log_overflow: float


def arch_startup(residuals: ArrayLike) -> StartUp:
    """The conventions of the package arch: all values from residuals (T,) of a least-squares fit of the mean.

    The back-cast is the mean of the first 75 squares with weights 0.94^t. The bounds are a millionth and a
    million times the exponentially weighted variance, but no less than 1e-8 of the sample's variance and than
    one more than its largest square.

    Examples
    --------
    >>> round(arch_startup([1.0, -2.0, 0.5]).variance, 3)
    1.764
    """
    squares = np.asarray(residuals, dtype=np.float64) ** 2
    if not squares.any():
        raise InvalidInputError("the residuals are all zero: there is no variance to start from")
    weights = DECAY ** np.arange(min(BACKCAST_DAYS, len(squares)))
    backcast = float(squares[: len(weights)] @ weights / weights.sum())
    smooth = np.empty(len(squares))
    smooth[0] = backcast
    for t in range(1, len(squares)):
        smooth[t] = DECAY * smooth[t - 1] + (1.0 - DECAY) * squares[t - 1]
    lower = np.maximum(1e-6 * smooth, 1e-8 * np.var(np.asarray(residuals, dtype=np.float64)))
    # arch has another limit, 1e7 (1 + max e²), which no mean of squares times 1e6 can reach
    upper = np.maximum(1e6 * smooth, 1.0 + squares.max())
    return StartUp(
        variance=backcast,
        square=backcast,
        negative_square=0.5 * backcast,
        log_variance=math.log(backcast),
        surprise=0.0,
        distant_square=backcast,
        bounds=np.array([lower, upper]),
        log_bounds=np.array([lower, upper, np.log(upper)]),
        log_overflow=LOG_LARGEST,
    )


def paper_startup(returns: ArrayLike) -> StartUp:
    """The conventions behind the paper's tables: constants, but for the mean square of the returns (T,).

    Only EGARCH has bounds. Those of the others are the range of floats, so that a variance which is not
    positive, or infinite, makes its draw hopeless rather than undefined.

    Examples
    --------
    >>> paper_startup([1.0, -2.0, 1.0]).square
    2.0
    """
    squares = np.asarray(returns, dtype=np.float64) ** 2
    square = float(squares.mean())
    return StartUp(
        variance=0.7,
        square=square,
        negative_square=0.5 * square,
        log_variance=0.7,
        surprise=-MEAN_ABSOLUTE,
        distant_square=0.5,
        bounds=np.array([[SMALLEST], [LARGEST]]),
        log_bounds=np.array([[1e-4 * math.exp(0.7)], [1e4 * squares.max()], [0.0]]),
        log_overflow=800.0,
    )


@dataclass(frozen=True, eq=False)
class FilterData:
    """Returns, the regressors of their mean, and what comes before the first of them.

    Parameters
    ----------
    y : ndarray of shape (T,)
    X : ndarray of shape (T, m)
        Has no columns where the mean is zero.
    startup : StartUp

    Examples
    --------
    >>> returns = np.array([0.3, -1.2, 0.4])
    >>> len(FilterData(returns, np.ones((3, 1)), paper_startup(returns)))
    3
    """

    y: Array
    X: Array
    startup: StartUp

    def __post_init__(self) -> None:
        # copies, so that the caller's arrays stay as they are; read-only, as kernels are compiled by type
        bounds, log_bounds = (frozen(a.copy()) for a in (self.startup.bounds, self.startup.log_bounds))
        object.__setattr__(self, "startup", self.startup._replace(bounds=bounds, log_bounds=log_bounds))
        for name in ("y", "X"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), order="C")))

    def __reduce__(self) -> tuple[type[FilterData], tuple[Array, Array, StartUp]]:
        # what pickle restores by itself is not read-only, and would have all kernels compiled again
        return FilterData, (self.y, self.X, self.startup)

    def __len__(self) -> int:
        return len(self.y)
