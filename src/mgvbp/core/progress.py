"""Where progress is shown: a bar on the terminal, or one line in a notebook that is written again and again.

rich draws bars in notebooks with widgets that few have installed, and warns if they are missing. A line that IPython
updates needs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from mgvbp.core.checks import true_or_false

INTERVAL = 0.1
"""Seconds between two updates of a line in a notebook: what a reader can follow, and no load for the page."""


@contextmanager
def progress(enabled: bool, name: str, total: int | None, line: str) -> Iterator[Callable[..., None]]:
    """Yield a function of what is ``done`` and of further numbers, which shows them if that is ``enabled``.

    Parameters
    ----------
    name : str
        What goes on, in a word.
    total : int or None
        The last value of ``done``, if it is known.
    line : str
        What is counted, and a format of the further numbers.
    """
    if not true_or_false(enabled, "progress"):
        yield lambda done, *numbers: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if console.is_jupyter:
        with updated_line() as show:
            of = "" if total is None else f" of {total:,}"
            yield lambda done, *numbers: show(f"{name}: {done:,}{of} {line.format(*numbers)}")
        return
    text, line_column = TextColumn("{task.description}"), TextColumn("{task.fields[line]}")
    columns = text, BarColumn(), MofNCompleteColumn(), line_column, TimeRemainingColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=total, line="")
        yield lambda done, *numbers: bar.update(task, completed=done, line=line.format(*numbers))


@contextmanager
def updated_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text in place of the one before; the last one stays."""
    display = import_module("IPython.display").display

    def content(text: str) -> dict[str, str]:
        return {"text/plain": text}

    handle = display(content("…"), raw=True, display_id=True)
    last, shown, text = -INTERVAL, "", ""

    def show(new: str) -> None:
        nonlocal last, shown, text
        text = new
        if time.monotonic() - last >= INTERVAL:
            handle.update(content(text), raw=True)
            last, shown = time.monotonic(), text

    try:
        yield show
    finally:
        if text != shown:
            handle.update(content(text), raw=True)
