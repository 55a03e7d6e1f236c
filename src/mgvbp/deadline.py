"""A limit on the time that a function of Python may take."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 1.0
"""Seconds until the alarm is repeated, at the least: what is cleared up after the first has that long."""


class Deadline(BaseException):
    """The time is over. Not an `Exception`, which the function might catch as one of its own."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `Deadline` in the block after so many seconds; None is no limit.

    By an alarm signal, which interrupts Python code, also while it sleeps or waits, but not a call into a library
    that does not return. Where it is not `available` it does nothing. The alarm is repeated, and a block that caught it
    (``except:``) and came to its end all the same is over time too: `Deadline` is raised then. An alarm that was set
    before goes off when it would have, or right after the block.

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
    finally:  # also if it rang at the very end, between the two
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


def interrupt(thread: threading.Thread) -> None:
    """Raise `Deadline` in another thread, once it executes Python: not while it sleeps, or in a library."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Deadline))
