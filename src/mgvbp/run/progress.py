"""A progress bar on the terminal, for long fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mgvbp.core.checks import true_or_false

Reporter = Callable[[int, float, int], None]
"""Called with the iteration, the smoothed lower bound and the number of evaluations."""


@contextmanager
def progress_bar(enabled: bool, total: int | None) -> Iterator[Reporter]:
    """Yield a reporter that draws a bar, which moves to and fro if the total is not known, or that does nothing."""
    if not true_or_false(enabled, "progress"):
        yield lambda iteration, lower_bound, evaluations: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("lower bound {task.fields[bound]:.3f}, {task.fields[evaluations]:,} evaluations"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("fit", total=total, bound=float("-inf"), evaluations=0)

        def report(iteration: int, lower_bound: float, evaluations: int) -> None:
            bar.update(task, completed=iteration, bound=lower_bound, evaluations=evaluations)

        yield report
