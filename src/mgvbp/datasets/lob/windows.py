"""The last ten snapshots before each label, cut out of the data when asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mgvbp.core import positive_integer
from mgvbp.datasets.lob.layout import Features, Indices

STEPS = 10
"""Snapshots in a window: what the paper's network takes."""


class Windows:
    """All runs of ``steps`` rows that cross no join, as if they were an array of shape (n, 40, steps).

    Nothing is copied until an index asks for it: 50,000 windows are a list of 50,000 row numbers beside the
    data. Indices work as in NumPy along the first axis (a number, a slice, row numbers, a mask) and give
    float32 arrays of their own; ``numpy.asarray(windows)`` gives all.

    Parameters
    ----------
    features : ndarray of shape (N, 40), float32
    joins : ndarray of int
        The rows at which another stock or day begins.
    steps : int

    Attributes
    ----------
    ends : ndarray of shape (n,)
        The row of ``features`` that is the last step of each window.

    Examples
    --------
    >>> import numpy as np
    >>> features = np.arange(12, dtype=np.float32).repeat(40).reshape(12, 40)
    >>> windows = Windows(features, joins=np.array([4]), steps=3)
    >>> windows.shape, windows.ends
    ((8, 40, 3), array([ 2,  3,  6,  7,  8,  9, 10, 11]))
    >>> windows[[1, 2]][:, 0]
    array([[1., 2., 3.],
           [4., 5., 6.]], dtype=float32)
    """

    ndim = 3
    dtype = np.dtype(np.float32)

    def __init__(self, features: Features, joins: Indices, steps: int = STEPS) -> None:
        self._features = features
        self._steps = np.arange(positive_integer(steps, "steps")) - (steps - 1)
        segment = np.searchsorted(joins, np.arange(len(features)), side="right")
        first = segment[: max(len(segment) - steps + 1, 0)]
        self.ends: Indices = np.flatnonzero(first == segment[steps - 1 :]) + steps - 1

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, 40, steps)."""
        return len(self.ends), self._features.shape[1], len(self._steps)

    def __getitem__(self, index: Any) -> Features:
        rows = self.ends[index][..., None] + self._steps
        # take() of whole rows and a transposed copy: twice as fast as indexing a sliding_window_view
        return np.ascontiguousarray(self._features.take(rows, axis=0).swapaxes(-1, -2))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("windows overlap in memory: an array of them is always a copy")
        return self[:] if dtype is None else self[:].astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"Windows{self.shape}"
