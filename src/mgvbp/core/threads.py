"""One BLAS thread for the algebra of a search, whose matrices are small.

OpenBLAS would give such matrices to all cores, where its threads wait for each other more than they compute. Beside
other work on the machine a search then takes several times as long. The user's function keeps its threads, unless
another fit in another thread of Python is computing meanwhile: the limit is one of the process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SMALL = 200
"""Most parameters for which one thread is enough. With more, and full covariances, several threads are faster on an
idle machine."""


class _Limit:
    """The limit of this process: the first who asks for it sets it, the last to leave takes it back."""

    def __init__(self) -> None:
        self.lock, self.users = threading.Lock(), 0
        self.limiter: Any = None

    def enter(self) -> None:
        from threadpoolctl import get_cached_controller

        with self.lock:
            if self.users == 0:
                self.limiter = get_cached_controller().limit(limits=1, user_api="blas")
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self.limiter.restore_original_limits()


_LIMIT = _Limit()


@contextmanager
def one_thread(dim: int) -> Iterator[None]:
    """A context in which BLAS has one thread; no limit if there are many parameters.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_thread(8):
    ...     {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    {1}
    """
    if dim > SMALL:
        yield
        return
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()
