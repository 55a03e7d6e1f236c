"""The record of a run: one value an iteration."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array


@dataclass(frozen=True)
class Trace:
    """One entry an iteration, each an array of the same length.

    Attributes
    ----------
    lower_bound : the estimate from that iteration's draws (larger is better)
    smoothed : its moving average, over the last ``window`` iterations
    gap : ``½‖g‖² + ‖G‖²``, the predicted distance to the optimum in nats, noise included
    step_size : the step taken
    n_evaluations : evaluations so far
    dropped : draws left out because their value was not finite
    reductions : halvings of the step to keep the precision positive definite
    """

    lower_bound: Array
    smoothed: Array
    gap: Array
    step_size: Array
    n_evaluations: NDArray[np.int64]
    dropped: NDArray[np.int64]
    reductions: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lower_bound)


TRACE_DTYPES: dict[str, type] = {
    field.name: np.int64 if field.name in ("n_evaluations", "dropped", "reductions") else np.float64
    for field in fields(Trace)
}
