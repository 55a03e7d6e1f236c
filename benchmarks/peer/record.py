"""What a peer leaves behind: Gaussians on its way, with what each had cost until then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Snapshot(NamedTuple):
    """A Gaussian and its price.

    ``scale`` is any factor (d, d) with ``scale @ scale.T`` the covariance; ``gradients`` counts evaluations of the
    gradient, each of which gives the value too, ``values`` those of the value alone; ``seconds`` are the processor's,
    without compilation.
    """

    values: int
    gradients: int
    seconds: float
    mean: Array
    scale: Array


class Budget(NamedTuple):
    """How long a run may be: a share of the peer's usual number of steps, and seconds."""

    share: float = 1.0
    seconds: float = 15.0


Run = Callable[[int, Budget], list[Snapshot]]
"""Of a seed and a budget; the last snapshot is the result."""


class Prepared(NamedTuple):
    """A peer with a problem compiled."""

    compile_seconds: float
    run: Run


def clock() -> float:
    """Seconds that the processor has spent on this process and on those it started (PyTensor's compiler)."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def marks(steps: int, number: int = 24) -> set[int]:
    """Steps at which to look, the last one among them: evenly spaced in their logarithms."""
    return {int(step) for step in np.geomspace(1, max(1, steps), number).round()}


def factor(covariance: Array) -> Array:
    """The lower factor; NaN where there is none, so that the result counts as broken down."""
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        return np.full_like(covariance, np.nan)
