"""How far a long fit is, on the terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from mgvbp.core.progress import progress

Reporter = Callable[[int, float, int], None]
"""Called with the iteration, the smoothed lower bound and the number of evaluations."""


def progress_bar(enabled: bool, total: int | None) -> AbstractContextManager[Reporter]:
    """A reporter that draws a bar, which moves to and fro if the total is not known, or that does nothing."""
    return progress(enabled, "fit", total, "iterations, lower bound {:.3f}, {:,} evaluations")
