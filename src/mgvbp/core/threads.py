"""One BLAS thread for the algebra of a search, whose matrices are small.

OpenBLAS would give such matrices to all cores, where its threads wait for each other more than they compute. Beside
other work on the machine a search then takes several times as long. The user's function keeps its threads.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

SMALL = 200
"""Most parameters for which one thread is enough. With more, and full covariances, several threads are faster on an
idle machine."""


def one_thread(dim: int) -> AbstractContextManager[object]:
    """A context in which BLAS has one thread; no limit if there are many parameters.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_thread(8):
    ...     {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    {1}
    """
    if dim > SMALL:
        return nullcontext()
    from threadpoolctl import get_cached_controller

    limit: AbstractContextManager[object] = get_cached_controller().limit(limits=1, user_api="blas")
    return limit
