"""A limit on the time that a function of Python may take."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Deadline(BaseException):
    """The time is over. Not an `Exception`, which the function might catch as one of its own."""


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `Deadline` in the block after so many seconds; None is no limit.

    By an alarm signal, which interrupts Python code, also while it sleeps or waits, but not a call into a library
    that does not return. There is none on Windows, nor in a thread that is not the main one: there it does nothing.
    An alarm that was set before goes off when it would have, or right after the block.

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
    if seconds is None or not hasattr(signal, "setitimer") or not _in_main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise Deadline

    handler = signal.signal(signal.SIGALRM, ring)
    start = time.monotonic()
    delay, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    finally:  # also if it rang at the very end, between the two
        signal.signal(signal.SIGALRM, handler)
        if delay > 0.0:
            signal.setitimer(signal.ITIMER_REAL, max(delay - (time.monotonic() - start), 1e-6), interval)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
