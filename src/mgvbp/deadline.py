"""A limit on the time that a function of Python may take."""

from __future__ import annotations

import signal
import threading
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
    """
    if seconds is None or not hasattr(signal, "setitimer") or not _in_main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise Deadline

    earlier = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, earlier)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
