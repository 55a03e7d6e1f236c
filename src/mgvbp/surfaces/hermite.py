"""Hermite polynomials of the draws: regressors that are orthogonal to the quadratic ones under N(0, I).

What a quadratic leaves of a smooth log density is mostly of degree three and four. Fitted alongside the quadratic,
these terms leave its expected coefficients unchanged and reduce their noise.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from math import comb

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.base import Indices


def num_polynomials(dim: int, degree: int, coordinates: int) -> int:
    """The number of polynomials of total degree ``degree`` that involve at most ``coordinates`` coordinates."""
    return sum(comb(dim, k) * comb(degree - 1, k - 1) for k in range(1, min(coordinates, degree) + 1))


def hermite_polynomials(eps: Array, degree: int, coordinates: int) -> Array:
    """All products of probabilists' Hermite polynomials of total degree ``degree``; (N, columns).

    Only products that involve at most ``coordinates`` different coordinates are formed.
    """
    tables = [np.ones_like(eps), eps]
    for k in range(1, degree):
        tables.append(eps * tables[k] - k * tables[k - 1])  # He_{k+1} = x He_k − k He_{k−1}
    H = np.stack(tables).transpose(0, 2, 1)  # (degree + 1, d, N)
    orders, which = _multi_indices(eps.shape[1], degree, coordinates)
    product = H[orders[:, 0], which[:, 0]]
    for t in range(1, orders.shape[1]):
        product = product * H[orders[:, t], which[:, t]]
    return product.T


@lru_cache(maxsize=64)
def _multi_indices(dim: int, degree: int, coordinates: int) -> tuple[Indices, Indices]:
    """The orders and the coordinates of each multi-index of total degree ``degree``, padded with order 0."""
    most = min(coordinates, degree, dim)
    orders, which = [], []
    for k in range(1, most + 1):
        padding = [0] * (most - k)
        parts = [p for p in product(range(1, degree + 1), repeat=k) if sum(p) == degree]
        for chosen in combinations(range(dim), k):
            orders += [[*p, *padding] for p in parts]
            which += [[*chosen, *padding]] * len(parts)
    return np.array(orders), np.array(which)
