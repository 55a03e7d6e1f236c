"""Evaluated draws with their gradients, and which of them are mirror images of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.auto.archive import Archive
from mgvbp.gaussian import Gaussian


class GradientArchive(Archive):
    """An `Archive` that also holds gradients (N, d); a draw with a non-finite gradient has value −inf.

    ``groups`` (N,), in ascending order, says which draws were made together: pairs ±ε are not independent.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.gradients = np.empty((0, dim))
        self.groups: NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def add_gradients(
        self, q: Gaussian, theta: Array, values: Array, gradients: Array, *, paired: bool
    ) -> None:
        """Take in draws from ``q``; if ``paired``, each two in a row are one group."""
        finite = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
        self.add(q, theta, np.where(finite, values, -np.inf))
        self.gradients = np.concatenate([self.gradients, np.where(finite[:, None], gradients, 0.0)])
        groups = np.arange(len(theta)) // (2 if paired else 1)
        first = self.groups[-1] + 1 if len(self.groups) else 0
        self.groups = np.concatenate([self.groups, first + groups])
