"""How far a long fit is, on the terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mgvbp.core.progress import progress

Reporter = Callable[[int, float, int], None]
"""Called with the iteration, the smoothed lower bound and the number of evaluations."""


@contextmanager
def progress_bar(
    enabled: bool, total: int | None, remark: Callable[[], str] = lambda: ""
) -> Iterator[Reporter]:
    """Yield a reporter that draws a bar, which moves to and fro if the total is not known, or that does nothing.

    ``remark`` is asked at every iteration for what else to show.
    """
    with progress(enabled, "fit", total, "iterations, lower bound {:.3f}, {:,} evaluations{}") as show:
        yield lambda iteration, lower_bound, evaluations: show(
            iteration, lower_bound, evaluations, remark() if enabled else ""
        )
