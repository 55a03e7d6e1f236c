"""A limit on the time that a function of Python may take."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 1.0
"""Least number of seconds until the alarm is repeated: so long a function has to close its files after the first."""


class Deadline(BaseException):
    """The time is over. Not an `Exception`, which the function might catch as one of its own."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `Deadline` in the block after so many seconds; None is no limit.

    An alarm signal interrupts Python code, also while it sleeps or waits, but not a library that does not return. Where
    no alarm is `available`, there is no limit. A block that catches the alarm (``except:``) has `Deadline` raised at
    its end. An alarm that somebody else had set goes off when it would have, or right after the block.

    Examples
    --------
    >>> import time
    >>> try:
    ...     with deadline(0.01):
    ...         time.sleep(10.0)
    ... except Deadline:
    ...     print("over")
    over
    """
    if seconds is None or not available():
        yield
        return
    inside, rung = True, False

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal rung
        rung = True
        if inside:
            raise Deadline

    handler = signal.signal(signal.SIGALRM, ring)
    start = time.monotonic()
    delay, interval = signal.setitimer(signal.ITIMER_REAL, seconds, max(seconds, AGAIN))
    try:
        try:
            yield
        finally:
            inside = False
    finally:  # It may also ring between the end of the block and the line above.
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        if delay > 0.0:
            signal.setitimer(signal.ITIMER_REAL, max(delay - (time.monotonic() - start), 1e-6), interval)
    if rung:
        raise Deadline


def available() -> bool:
    """Whether there is an alarm: not on Windows, nor in a thread that is not the main one."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
