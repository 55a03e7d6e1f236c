r"""Where NUTS works: coordinates in which the target has about covariance I.

The first frame is that of the fit, :math:`\theta = \mu + L^{-\top} \epsilon`. Where the fit is too narrow or too wide
the draws of the warm-up show it, and a `Frame` of theirs is laid over it: :math:`\epsilon = R z`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgvbp.core.linalg import Array

DRAWS_EACH = 5
"""Draws for each coefficient of a covariance that is taken from draws.

It was chosen so that the warm-up, 500 draws, is enough for 10 parameters; with twice as many draws a fit of that size
which is too narrow would not be corrected before the first doubling.
"""


@dataclass(frozen=True, eq=False)
class Frame:
    """The linear map ``ε = R z``; R (d, d) is the lower factor of a covariance, or None for I.

    Examples
    --------
    >>> frame = Frame(np.array([[2.0, 0.0], [1.0, 1.0]]))
    >>> frame.direction(np.array([1.0, 0.0])), frame.gradient(np.array([1.0, 0.0]))
    (array([2., 1.]), array([2., 0.]))
    """

    root: Array | None = None

    def direction(self, v: Array) -> Array:
        """``R v``: how ε moves where z moves by v (d,)."""
        return v if self.root is None else self.root @ v

    def gradient(self, g: Array) -> Array:
        """``Rᵀ g``: the gradient by z, of that by ε (d,)."""
        return g if self.root is None else self.root.T @ g


def num_coefficients(dim: int) -> int:
    """How many numbers a weight, a mean and a covariance are."""
    return 1 + dim + dim * (dim + 1) // 2


def frame_of(draws: Array) -> Frame | None:
    """The frame with the covariance of ``draws`` (n, d); None if they are too few to know it."""
    n, dim = draws.shape
    if n < DRAWS_EACH * num_coefficients(dim):
        return None
    covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    try:
        return Frame(np.asarray(np.linalg.cholesky(covariance), np.float64))
    except np.linalg.LinAlgError:  # walkers that have hardly moved
        return None
