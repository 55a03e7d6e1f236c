r"""Where samplers work: coordinates in which the target has about mean 0 and covariance I.

The first frame is that of the fit, :math:`\theta = \mu + L^{-\top} \epsilon`. Where the fit is too narrow or too wide
the draws of the warm-up show it, and a `Frame` of theirs is laid over it: :math:`\epsilon = m + R z`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgvbp.core.linalg import Array

DRAWS_EACH = 5
"""Draws for each coefficient of a mean and a covariance that are taken from draws.

With half of them the samplers' covariance is off by a third in some direction, in 10 dimensions; twice as many would
leave a fit that is too narrow uncorrected until the first doubling of the chains, from 10 dimensions on.
"""


@dataclass(frozen=True, eq=False)
class Frame:
    """The affine map ``ε = mean + root z``; without a root the map is ``ε = z``.

    Parameters
    ----------
    mean : ndarray of shape (d,)
    root : ndarray of shape (d, d), or None
        Lower triangular; ``root rootᵀ`` is the covariance.

    Examples
    --------
    >>> frame = Frame(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [1.0, 1.0]]))
    >>> frame.outward(frame.inward(np.array([3.0, 5.0])))
    array([3., 5.])
    """

    mean: Array | float = 0.0
    root: Array | None = None

    def inward(self, position: Array) -> Array:
        """``z`` of ε (d,)."""
        if self.root is None:
            return position
        return np.asarray(np.linalg.solve(self.root, position - self.mean))

    def outward(self, z: Array) -> Array:
        """``ε`` of z (d,)."""
        return z if self.root is None else self.mean + self.root @ z

    def direction(self, v: Array) -> Array:
        """``root v``: how ε moves where z moves by v."""
        return v if self.root is None else self.root @ v

    def gradient(self, g: Array) -> Array:
        """``rootᵀ g``: the gradient by z, of that by ε."""
        return g if self.root is None else self.root.T @ g


def num_coefficients(dim: int) -> int:
    """How many numbers a weight, a mean and a covariance are."""
    return 1 + dim + dim * (dim + 1) // 2


def frame_of(draws: Array) -> Frame | None:
    """The frame with the mean and covariance of ``draws`` (n, d); None if they are too few to know it."""
    n, dim = draws.shape
    if n < DRAWS_EACH * num_coefficients(dim):
        return None
    covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    try:
        return Frame(draws.mean(axis=0), np.asarray(np.linalg.cholesky(covariance), np.float64))
    except np.linalg.LinAlgError:  # walkers that have hardly moved
        return None
