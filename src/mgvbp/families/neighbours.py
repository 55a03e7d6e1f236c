"""The expected Hessian on a pattern, by regression: each row of it is regressed on its neighbours."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.linalg import Array
from mgvbp.families.base import Indices


class Neighbours:
    """The pairs of a pattern in both directions, and each entry with itself, sorted by row.

    Parameters
    ----------
    dim : int
    a, b : arrays of shape (pairs,)
        The two ends of each pair.
    """

    def __init__(self, dim: int, a: Indices, b: Indices) -> None:
        own = np.arange(dim)
        rows, others = np.concatenate([a, b, own]), np.concatenate([b, a, own])
        sort = np.lexsort((others, rows))
        self.dim, self.rows, self.near = dim, rows[sort], others[sort]
        self.ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=dim))]).astype(np.intp)
        self.reverse = np.searchsorted(self.rows * dim + self.near, self.near * dim + self.rows)

    @cached_property
    def hubs(self) -> tuple[NDArray[np.bool_], int]:
        """Rows with so many neighbours that the other ends of their pairs know them better, and the most regressors.

        The limit is the least number for which no row, and no hub among hubs, has more neighbours.
        """
        degree = np.diff(self.ptr)
        for limit in np.unique(degree):
            hub = degree > limit
            among = np.bincount(self.rows[hub[self.rows] & hub[self.near]], minlength=self.dim)
            if among.max() <= limit:
                return hub, int(limit)
        raise AssertionError  # the largest degree leaves no hub

    def regressed(self, delta: Array, slopes: Array) -> Array | None:
        """The coefficients (pairs,) of the rows of ``slopes`` on those of ``delta``, both (d, S); None if S is small.

        Of a pair both rows tell, and their mean is taken; of a pair with a hub, which may have d neighbours, the other
        row.
        """
        from mgvbp.families.sparse_kernels import regress_rows  # numba takes a while to import

        hub, most = self.hubs
        if delta.shape[1] < most:
            return None
        H = np.zeros(len(self.near))
        arrays = self.ptr, self.near, hub, np.ascontiguousarray(delta), np.ascontiguousarray(slopes), H
        if not regress_rows(*arrays, False):
            return None
        mixed = hub[self.rows] & ~hub[self.near]
        H[mixed] = H[self.reverse[mixed]]
        if hub.any() and not regress_rows(*arrays, True):
            return None
        return np.asarray(0.5 * (H + H[self.reverse]))
