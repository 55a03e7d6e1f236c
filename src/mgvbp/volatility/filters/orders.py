"""The coefficients of models with up to two lags."""

from __future__ import annotations

import numpy as np

from mgvbp._linalg import Array
from mgvbp.checks import positive_integer
from mgvbp.errors import InvalidInputError


def checked_orders(p: int, o: int, q: int) -> tuple[int, int, int]:
    """Three numbers of lags from 0 to 2, of which the first two are not both 0."""
    orders = (positive_integer(p, "p", 0), positive_integer(o, "o", 0), positive_integer(q, "q", 0))
    if max(orders) > 2 or p + o == 0:
        raise InvalidInputError(f"p, o and q must be 0, 1 or 2, and p + o at least 1; got {orders}")
    return orders


def two_lags(coefficients: Array, orders: tuple[int, int, int]) -> Array:
    """α, γ and β at lags one and two, (3, 2, S), from (ω, α, γ, β); zero where the model has none."""
    lags = np.zeros((3, 2, coefficients.shape[1]))
    row = 1
    for kind, order in enumerate(orders):
        lags[kind, :order] = coefficients[row : row + order]
        row += order
    return lags
