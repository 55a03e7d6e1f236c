"""What all filters share: draws in blocks, blocks in threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numba
import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import Array, positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.filters.data import FilterData
from mgvbp.volatility.filters.lanes import LANES, Flags

if TYPE_CHECKING:
    from mgvbp.volatility.laws import Law

THREADED = 2**22
"""Jobs of this many draws × days are split among threads: one thread works on them for about 4 ms."""
MOST_LAGS = 2
"""The most lags of α, γ and β: what the kernels of GARCH and EGARCH have room for."""


class Filter(ABC):
    """The conditional variances of a model as a function of its coefficients.

    Draws are the last axis of every array. A draw that makes no sense gets −inf or NaN, and changes nothing for
    the others. Large jobs are split among ``NUMBA_NUM_THREADS`` threads.
    """

    @abstractmethod
    def _rows(self, sample: FilterData, coefficients: Array) -> Array:
        """The numbers that the kernel needs of each draw, (R, S), from the coefficients (k, S)."""

    @abstractmethod
    def _fill(self, sample: FilterData, mean: Array, rows: Array, h: Array, plainly: Flags) -> None:
        """Write the variances of a block to ``h`` (T + 1, LANES), and which draws left the window (LANES,).

        ``mean`` is (m, LANES) and ``rows`` (R, LANES).
        """

    @np.errstate(all="ignore")
    def log_likelihood(
        self,
        sample: FilterData,
        mean: ArrayLike,
        coefficients: ArrayLike,
        law: Law,
        first: int = 0,
    ) -> Array:
        """The log-likelihood of each draw.

        Parameters
        ----------
        sample : FilterData
            Of T days with m regressors.
        mean : array_like of shape (m, S)
            Coefficients of the regressors.
        coefficients : array_like of shape (k, S)
        law : Law
            The distribution of the errors, with its shape parameters (S,).
        first : int
            The first day that counts; the filter runs through all.

        Returns
        -------
        ndarray of shape (S,)
        """
        rows = in_blocks(law.rows(np.shape(coefficients)[1]))

        def summed(block: int, mean: Array, h: Array, plainly: Flags) -> Array:
            sums = np.empty((2, LANES))
            law.kernel(sample.y, sample.X, mean, h, rows[block], first, plainly, sums)
            return sums

        logs, terms = self._over_blocks(sample, mean, coefficients, summed)
        return law.total(len(sample) - first, logs, terms)

    @np.errstate(all="ignore")
    def variance(self, sample: FilterData, mean: ArrayLike, coefficients: ArrayLike) -> Array:
        """The conditional variances of each draw, (T + 1, S): every day's, and at last tomorrow's.

        Safeguards apply to the days of the sample, not to tomorrow's variance.
        """
        return self._over_blocks(sample, mean, coefficients, lambda block, mean, h, plainly: h)

    def _over_blocks(
        self,
        sample: FilterData,
        mean: ArrayLike,
        coefficients: ArrayLike,
        result: Callable[[int, Array, Array, Flags], Array],
    ) -> Array:
        """Filter all blocks and put their results side by side; in threads where there is enough to do."""
        values = np.asarray(coefficients, dtype=np.float64)
        draws = values.shape[1]
        means, rows = in_blocks(np.asarray(mean, dtype=np.float64)), in_blocks(self._rows(sample, values))

        def work(block: int) -> Array:
            h, plainly = np.empty((len(sample) + 1, LANES)), np.empty(LANES, dtype=np.bool_)
            self._fill(sample, means[block], rows[block], h, plainly)
            return result(block, means[block], h, plainly)

        threads = min(len(rows), vars(numba.config)["NUMBA_NUM_THREADS"])
        if threads > 1 and draws * len(sample) >= THREADED:
            with ThreadPoolExecutor(threads) as pool:
                results = list(pool.map(work, range(len(rows))))
        else:
            results = [work(block) for block in range(len(rows))]
        return np.concatenate(results, axis=1)[:, :draws]


class LaggedFilter(Filter):
    """What the filters of GARCH and EGARCH share: coefficients (ω, α, γ, β), with up to two lags of the last three.

    Parameters
    ----------
    p, o, q : int
        The numbers of α, γ and β, 0 to 2.
    """

    def __init__(self, p: int, o: int, q: int) -> None:
        check_orders(MOST_LAGS, p=p, o=o, q=q)
        if p + o == 0:
            raise InvalidInputError(
                "the variance needs a term in past returns: 1 or 2 lags of α (p) or of γ (o)"
            )
        self.orders = (p, o, q)

    def _by_lag(self, coefficients: Array) -> Array:
        """α, γ and β at lags one and two, (3, 2, S); zero where the model has none."""
        lags = np.zeros((3, MOST_LAGS, coefficients.shape[1]))
        row = 1
        for kind, order in zip(lags, self.orders, strict=True):
            kind[:order] = coefficients[row : row + order]
            row += order
        return lags


def check_orders(most: int, **orders: int) -> None:
    """Complain of a number of lags that is not an integer from 0 to ``most``."""
    for name, order in orders.items():
        if positive_integer(order, name, least=0) > most:
            raise InvalidInputError(f"{name} must be at most {most}; got {order}")


def in_blocks(rows: Array) -> Array:
    """Rows of draws (R, S) as blocks (B, R, LANES), the last draw repeated where S falls short."""
    blocks = -(-rows.shape[1] // LANES)
    missing = np.repeat(rows[:, -1:], blocks * LANES - rows.shape[1], axis=1)
    full = np.concatenate([rows, missing], axis=1)
    return np.ascontiguousarray(full.reshape(len(rows), blocks, LANES).transpose(1, 0, 2))
