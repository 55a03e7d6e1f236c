"""What limit-order-book data are when loaded: windows of the book and the class that follows each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from mgvbp.core import Array, positive_integer
from mgvbp.errors import InvalidInputError

Features = NDArray[np.float32]
"""(N, 40): one snapshot of the book a row."""
Labels = NDArray[np.int8]
"""(N, 5): one column a horizon; 0, 1, 2 are the `CLASS_NAMES`."""
Indices = NDArray[np.intp]

LEVELS = 10
FEATURE_NAMES = tuple(
    f"{side}_{what}_{level}"
    for level in range(1, LEVELS + 1)
    for side in ("ask", "bid")
    for what in ("price", "volume")
)
"""The columns of the book from the best level to the tenth: the first 40 rows of a file."""

HORIZONS = (10, 20, 30, 50, 100)
"""Events ahead, in the order of the last five rows of a file."""
EVENTS_PER_ROW = 10
"""A snapshot stands for ten events: a horizon of 10 events is one snapshot ahead."""
CLASS_NAMES = ("up", "stationary", "down")
"""The classes 0, 1, 2 of our arrays; the files have 1, 2, 3."""

ASK, ASK_VOLUME, BID, BID_VOLUME = (slice(first, None, 4) for first in range(4))
"""Columns of the prices and volumes of all levels."""
STEPS = 10
"""Snapshots in a window: what the paper's network takes."""


def horizon_column(horizon: int) -> int:
    """The column of the labels that belongs to a horizon in events."""
    if not isinstance(horizon, (int, np.integer)) or isinstance(horizon, bool) or horizon not in HORIZONS:
        raise InvalidInputError(
            f"horizon must be one of {', '.join(map(str, HORIZONS))} (events ahead); got {horizon!r}"
        )
    return HORIZONS.index(horizon)


class Windows:
    """All runs of ``steps`` rows that cross no join, as if they were an array of shape (n, 40, steps).

    Nothing is copied until an index asks for it: 50,000 windows are a list of 50,000 row numbers beside the data, the
    ``ends`` (n,) of the windows. Indices work as in NumPy along the first axis (a number, a slice, row numbers, a mask)
    and give float32 arrays of their own; ``numpy.asarray(windows)`` gives all.

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


@dataclass(frozen=True, eq=False, repr=False)
class Books:
    """One part of the data: snapshots of order books and what the mid-price did after each.

    Attributes
    ----------
    features : ndarray of shape (N, 40), float32
        A snapshot a row, normalised; the columns are ``feature_names``.
    labels : ndarray of shape (N, 5), int8
        The class at each of the five horizons.
    joins : ndarray of int
        Rows at which another stock or day begins.
    horizon : int
        Events ahead of ``y``.
    truth : ndarray of shape (N, 3) or None
        The probabilities that the classes were drawn with; None for real data.
    X : Windows
        The last ten snapshots, as an array of shape (n, 40, 10) that is cut out when indexed.
    y : ndarray of shape (n,), int
        The class after each window: 0, 1, 2 are the ``class_names`` up, stationary, down.
    """

    features: Features
    labels: Labels
    joins: Indices
    horizon: int
    truth: Array | None = None

    class_names: ClassVar[tuple[str, ...]] = CLASS_NAMES
    feature_names: ClassVar[tuple[str, ...]] = FEATURE_NAMES

    @cached_property
    def X(self) -> Windows:
        return Windows(self.features, self.joins)

    @cached_property
    def y(self) -> Indices:
        y: Indices = self.labels[self.X.ends, horizon_column(self.horizon)].astype("intp")
        return y

    @property
    def probabilities(self) -> Array | None:
        """The ``truth`` of each window, (n, 3)."""
        return None if self.truth is None else self.truth[self.X.ends]

    @property
    def bayes_accuracy(self) -> float | None:
        """The expected share of classes that the best possible rule gets right; None for real data."""
        return None if self.probabilities is None else float(self.probabilities.max(axis=1).mean())

    def __repr__(self) -> str:
        return f"Books({len(self.X)} windows in {len(self.joins) + 1} pieces, {self.horizon} events ahead)"


@dataclass(frozen=True, eq=False)
class LOB:
    """Limit-order-book data to train and to test with; both parts are `Books`."""

    train: Books
    test: Books
