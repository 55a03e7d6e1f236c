"""The record of a run: one row of numbers for each iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array


@dataclass(frozen=True)
class Trace:
    """Arrays with one entry for each iteration.

    Attributes
    ----------
    phase : what the iteration's draws were for; ``step`` for the named methods
    lower_bound : the estimate after that iteration's draws (larger is better)
    smoothed : the bound's moving average over the last ``window`` iterations; for ``auto`` that of the best iterate
    gap : predicted distance to the optimum in nats, noise included
    noise : standard deviation of the gap, where the method knows it; else inf
    step_size : the step taken
    radius : trust radius in nats; inf for methods without one
    num_draws : draws of that iteration
    n_evaluations : evaluations so far
    dropped : draws left out because their value was not finite
    reductions : halvings of the step to keep the precision positive definite
    """

    phase: NDArray[np.str_]
    lower_bound: Array
    smoothed: Array
    gap: Array
    noise: Array
    step_size: Array
    radius: Array
    num_draws: NDArray[np.int64]
    n_evaluations: NDArray[np.int64]
    dropped: NDArray[np.int64]
    reductions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lower_bound)

    @property
    def dropped_late(self) -> int:
        """Draws left out in the second half of the run: earlier ones were met on the way, and hardly matter."""
        return int(self.dropped[self.n_evaluations > self.n_evaluations[-1] // 2].sum())


COUNTS = ("num_draws", "n_evaluations", "dropped", "reductions")
TRACE_DTYPES: dict[str, str] = {
    field.name: "U8" if field.name == "phase" else "int64" if field.name in COUNTS else "float64"
    for field in fields(Trace)
}
DRAWS, EVALUATIONS = (list(TRACE_DTYPES).index(name) for name in ("num_draws", "n_evaluations"))
"""Where these columns are in a `Row`."""
Row = tuple[float | int | str, ...]
"""The columns of a `Trace` for one iteration."""


def trace_of(rows: Sequence[Row]) -> Trace:
    """The trace of these rows."""
    columns = zip(*rows, strict=True) if rows else [()] * len(TRACE_DTYPES)
    named = zip(TRACE_DTYPES.items(), columns, strict=True)
    return Trace(**{name: np.array(column, dtype) for (name, dtype), column in named})


def rows_of(trace: Trace) -> tuple[Row, ...]:
    """The rows of a trace, one for each iteration."""
    return tuple(zip(*(getattr(trace, name).tolist() for name in TRACE_DTYPES), strict=True))
