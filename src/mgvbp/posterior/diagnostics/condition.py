r"""Condition numbers of the covariance and correlation matrices of a Gaussian of any family.

The family keeps the factor L of the precision :math:`P = L L^\top`. The condition number of :math:`Σ = P^{-1}` is the
largest eigenvalue of P times that of Σ. Both come from products with vectors (Lanczos), so that no matrix is formed.
Each eigenvalue is accurate even if the scales differ by more orders of magnitude than a number has digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian

ACCURACY = 1e-4
"""Relative error of an eigenvalue: a condition number needs no more digits."""


class Condition(NamedTuple):
    """Ratios of the largest eigenvalue to the smallest."""

    correlation: float
    """For the correlation matrix: how close the parameters are to being redundant, whatever their units."""
    covariance: float
    """For the covariance matrix: it also contains how much the scales of the parameters differ."""


def condition(q: Gaussian) -> Condition:
    """Condition numbers of ``q``.

    Examples
    --------
    >>> correlated = Gaussian(variance=np.array([[1.0, 0.8], [0.8, 1.0]]))
    >>> round(condition(correlated).correlation, 6)  # eigenvalues 1.8 and 0.2
    9.0
    >>> round(condition(Gaussian(variance=[1.0, 100.0])).covariance, 6)
    100.0
    """
    family, L, std = q.family, q.factor, q.std

    def precision(v: Array) -> Array:
        return family.times(L, family.to_frame(L, v))

    def covariance(v: Array) -> Array:
        return family.from_frame(L, family.solve(L, v))

    largest = partial(_largest, dim=q.dim)
    return Condition(
        largest(lambda v: std * precision(std * v)) * largest(lambda v: covariance(v / std) / std),
        largest(precision) * largest(covariance),
    )


def _largest(product: Callable[[Array], Array], dim: int) -> float:
    """The largest eigenvalue of a positive definite matrix, given as its product with a vector (d,)."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    if dim == 1:
        return float(product(np.ones(1))[0])
    start = np.random.default_rng(0).standard_normal(dim)
    matrix = LinearOperator((dim, dim), matvec=product, dtype=np.float64)
    return float(eigsh(matrix, k=1, v0=start, tol=ACCURACY, return_eigenvectors=False)[0])
