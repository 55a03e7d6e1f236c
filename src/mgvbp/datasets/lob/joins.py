"""Where one stock or day ends and the next begins: the files do not say."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import positive_number
from mgvbp.datasets.lob.layout import ASK, BID, Features, Indices
from mgvbp.errors import InvalidInputError

JUMP = 10.0
"""A move of the mid-price is a join if it is this many times the usual one."""


def find_joins(features: Features, jump: float = JUMP) -> Indices:
    """Find the rows at which another stock or day begins, by the jumps of the mid-price.

    The mid-price m is the mean of the columns ask_price_1 and bid_price_1, and the usual move u the median of
    its moves |m_t − m_{t−1}| other than 0: about half a tick. A move of more than ``jump`` times u is a join.

    All stocks of a file are normalised together, so that their price levels stay apart, and each of the three
    normalisations is a straight line in every column: z-score (x − mean)/sd, min-max (x − min)/(max − min),
    decimal precision x/10^k. Moves and u are multiplied by the same number, and the rule is the same for all
    three. (The lines of the two columns differ a little; their mean is one in m up to the changes of the
    spread, which are small beside a jump.)

    Prices of stocks are hundreds of usual moves apart. A day that opens within ``jump`` of them from the last
    close is missed, and a jump within a day is taken for a join. Each costs nine windows out of tens of
    thousands: crossing in the first case, left out in the second. Who knows the joins gives them to
    `load_fi2010`. The rule was tested on simulated books, whose joins are known, and not on FI-2010.

    Parameters
    ----------
    features : ndarray of shape (N, 40)
    jump : float

    Returns
    -------
    ndarray of int
        First rows of the pieces but the first, in order.

    Examples
    --------
    >>> import numpy as np
    >>> features = np.zeros((6, 40), dtype=np.float32)
    >>> features[:, 0] = features[:, 2] = [15.00, 15.01, 15.01, 18.20, 18.19, 18.20]
    >>> find_joins(features)
    array([3])
    """
    jump = positive_number(jump, "jump")
    mid = 0.5 * (features[:, ASK.start].astype(np.float64) + features[:, BID.start])
    moves = np.abs(np.diff(mid))
    changes = moves[moves > 0.0]
    if len(changes) == 0:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(moves > jump * np.median(changes)) + 1


def as_joins(joins: ArrayLike, num_rows: int) -> Indices:
    """The user's joins as an array: whole numbers in order, from 1 to ``num_rows`` − 1."""
    rows = np.asarray(joins)
    if rows.size == 0:
        return np.empty(0, dtype=np.intp)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise InvalidInputError(
            f"joins must be a sequence of row numbers; got an array of shape {rows.shape}, dtype {rows.dtype}"
        )
    if rows.min() < 1 or rows.max() >= num_rows or (np.diff(rows.astype(np.intp)) <= 0).any():
        raise InvalidInputError(
            f"joins must increase from at least 1 to at most {num_rows - 1}: each is the first row of a new "
            f"stock or day among {num_rows} rows; got {rows}"
        )
    return rows.astype(np.intp)
