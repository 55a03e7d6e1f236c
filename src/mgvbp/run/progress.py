"""How far a long fit is, on the terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mgvbp.core.checks import true_or_false
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
    if not true_or_false(enabled, "progress"):
        yield lambda iteration, lower_bound, evaluations: None
        return
    line = "iterations, lower bound {bound:.3f}, {evaluations:,} evaluations{remark}"
    with progress("fit", total, columns, line, bound=float("-inf"), evaluations=0, remark="") as show:
        yield lambda iteration, lower_bound, evaluations: show(
            completed=iteration, bound=lower_bound, evaluations=evaluations, remark=remark()
        )


def columns(rich: Any) -> tuple[Any, ...]:
    """The parts of the bar, of the module ``rich.progress``."""
    return (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeRemainingColumn(),
        rich.TextColumn(
            "lower bound {task.fields[bound]:.3f}, {task.fields[evaluations]:,} evaluations{task.fields[remark]}"
        ),
    )
