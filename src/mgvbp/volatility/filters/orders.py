"""The numbers of lags of a model, and its coefficients by lag."""

from __future__ import annotations

import numpy as np

from mgvbp.core import Array, positive_integer
from mgvbp.errors import InvalidInputError

MOST_LAGS = 2
"""The most lags of α, γ and β: what the kernels of GARCH and EGARCH have room for."""


def checked_orders(most: int = MOST_LAGS, /, **orders: int) -> None:
    """Check that each number of lags is an integer from 0 to ``most``."""
    for name, order in orders.items():
        if positive_integer(order, name, least=0) > most:
            raise InvalidInputError(f"{name} must be at most {most}; got {order}")


def checked_lags(p: int, o: int, q: int) -> tuple[int, int, int]:
    """The numbers of lags of α, γ and β, each 0 to 2; α and γ together have at least one."""
    checked_orders(p=p, o=o, q=q)
    if p + o == 0:
        raise InvalidInputError("the variance needs a term in past returns: 1 or 2 lags of α (p) or of γ (o)")
    return p, o, q


def by_lag(coefficients: Array, orders: tuple[int, int, int]) -> Array:
    """α, γ and β at lags one and two, (3, 2, S), from (ω, α, γ, β); zero where the model has none."""
    lags = np.zeros((3, MOST_LAGS, coefficients.shape[1]))
    row = 1
    for kind, order in enumerate(orders):
        lags[kind, :order] = coefficients[row : row + order]
        row += order
    return lags
