"""Where progress is shown: a bar on the terminal, or one line in a notebook that is written again and again.

rich draws bars in notebooks with widgets that few have installed, and warns if they are missing. A line that IPython
updates needs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

INTERVAL = 0.1
"""Seconds between two updates of a line in a notebook: what a reader can follow, and no load for the page."""


@contextmanager
def progress(
    name: str, total: int | None, columns: Callable[[Any], tuple[Any, ...]], line: str, **fields: Any
) -> Iterator[Callable[..., None]]:
    """Yield a function of ``completed`` and the other ``fields`` that shows them.

    Parameters
    ----------
    name : str
        What goes on, in a word.
    total : int or None
        The last value of ``completed``, if it is known.
    columns : callable
        The columns of the bar, made of the module ``rich.progress``.
    line : str
        A format of ``completed`` and the other fields: the line in a notebook.
    **fields
        Their values at the beginning.
    """
    import rich.progress
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        with updated_line() as show:
            of = "" if total is None else f" of {total:,}"
            yield lambda **values: show(f"{name}: {values['completed']:,}{of} {line.format(**values)}")
        return
    with rich.progress.Progress(*columns(rich.progress), console=console) as bar:
        task = bar.add_task(name, total=total, **fields)
        yield lambda **values: bar.update(task, **values)


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
