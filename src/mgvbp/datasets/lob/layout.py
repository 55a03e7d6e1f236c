"""What stands where in FI-2010: the rows of its files, the columns of our arrays, what the numbers mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

FILE_ROWS = 149
FIRST_LABEL_ROW = FILE_ROWS - len(HORIZONS) + 1
"""Counted from 1. The rows between the book and the labels are derived features, which we do not use."""

ASK, ASK_VOLUME, BID, BID_VOLUME = (slice(first, None, 4) for first in range(4))
"""Columns of the prices and volumes of all levels."""


def horizon_column(horizon: int) -> int:
    """The column of the labels that belongs to a horizon in events."""
    if not isinstance(horizon, (int, np.integer)) or isinstance(horizon, bool) or horizon not in HORIZONS:
        raise InvalidInputError(
            f"horizon must be one of {', '.join(map(str, HORIZONS))} (events ahead); got {horizon!r}"
        )
    return HORIZONS.index(horizon)
