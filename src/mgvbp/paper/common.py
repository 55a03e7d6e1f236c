"""What experiments have in common: the paper's methods, prior and settings, and when a run has arrived."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mgvbp

Array = NDArray[np.float64]
Method = mgvbp.MGVBP | mgvbp.MGVB | mgvbp.QBVI

METHODS: dict[str, type[Method]] = {"MGVBP": mgvbp.MGVBP, "MGVB": mgvbp.MGVB, "QBVI": mgvbp.QBVI}
COLOURS = {"MGVBP": "C0", "MGVB": "C1", "QBVI": "C2"}
DASHES = {"MGVBP": "-", "MGVB": "--", "QBVI": ":"}
"""Dashes that let lines be seen that coincide."""
PRIOR_VARIANCE = 5.0
"""The paper's prior is N(0, 5 I) in every experiment except the non-differentiable model."""
ARRIVED = 0.05
"""A run has arrived when its exact bound is at most 0.05 nats below the exact optimum."""
ROUNDING = 0.000501
"""Half a unit of the paper's third decimal, and a little for our own rounding."""

COLUMNS = ("step_size", "decay_after", "clip_natural_gradient", "clip_initial", "max_iterations")
"""The paper's β, t', the largest norm of a natural gradient, that of the first one, and t_max."""
SHARED = {"momentum": 0.4, "window": 30, "patience": 500}
"""The same in every row: ω, the window w of the moving average, and the patience P."""
ROWS: dict[str, tuple[float, int, float, float, int]] = {
    "Labour": (0.01, 1000, 3000.0, 1000.0, 1200),
    "GARCH": (0.01, 1000, 1000.0, 1000.0, 1200),
    "Istanbul": (0.07, 1000, 50_000.0, 500.0, 1200),
    "Non-diff. model": (0.1, 5000, 150.0, 1000.0, 5000),
}
"""The paper's table of hyper-parameters; what the authors' code ran stands beside each experiment."""


def printed(row: str, **changes: Any) -> dict[str, Any]:
    """The settings of a method as the paper prints them for a row, with ``changes``."""
    return {**dict(zip(COLUMNS, ROWS[row], strict=True)), **SHARED, **changes}


@contextmanager
def quietly() -> Iterator[None]:
    """Hide the library's warnings: the stored outcome shows shortened steps and runs that end early."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        yield
