"""Centre and scale data, so that one prior suits features in any units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from mgvbp.core import Array


@dataclass(frozen=True)
class Scaling:
    """The map ``(x − location) / scale`` of each column, or of a vector.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[1.0, 7.0], [3.0, 7.0]]), centre=True)
    >>> scaling.location, scaling.scale
    (array([2., 7.]), array([1., 1.]))
    >>> scaling(np.array([[5.0, 8.0]]))
    array([[3., 1.]])
    """

    location: Array
    scale: Array

    @classmethod
    def of(cls, values: Array, *, centre: bool) -> Self:
        """Means and standard deviations over the first axis; without ``centre`` 0 and root mean squares.

        The scale of a constant column is 1.
        """
        location = values.mean(axis=0) if centre else np.zeros(values.shape[1:])
        deviations = values - location
        largest = np.abs(deviations).max(axis=0)
        constant = largest <= 10.0 * np.finfo(float).eps * np.abs(values).max(axis=0)
        largest = np.where(constant, 1.0, largest)
        # relative to the largest, so that no square overflows or underflows
        scale = largest * np.sqrt(np.mean((deviations / largest) ** 2, axis=0))
        return cls(np.asarray(location), np.where(constant, 1.0, scale))

    def __call__(self, values: Array) -> Array:
        """``values`` on the new scale."""
        return np.asarray((values - self.location) / self.scale)
