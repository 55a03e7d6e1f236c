"""FI-2010: five Finnish stocks over ten days of June 2010, from the files as they were published."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import one_of, positive_integer, positive_number, true_or_false
from mgvbp.datasets.files import VARIABLE
from mgvbp.datasets.lob.books import ASK, BID, FEATURE_NAMES, LOB, Books, Features, Indices, horizon_column
from mgvbp.datasets.lob.text import open_compact
from mgvbp.errors import DataUnavailableError, InvalidInputError, InvalidTypeError

SOURCE = "etsin.fairdata.fi (dataset 73eb48d7-4dbc-4a10-a52a-da745b47a649)"
"""Where the authors published the files."""
NORMALISATIONS = {"zscore": "ZScore", "minmax": "MinMax", "decpre": "DecPre"}
"""What we call the normalisations, and what the names of the files call them."""
FOLDS = 9
"""Fold k trains on the first k of ten days and tests on the next."""
JUMP = 10.0
"""A move of the mid-price is a join if it is this many times the usual one."""


def load_fi2010(
    directory: str | PathLike[str] | None = None,
    fold: int = 7,
    horizon: int = 10,
    normalisation: str = "zscore",
    auction: bool = False,
    *,
    joins: tuple[ArrayLike, ArrayLike] | None = None,
    progress: bool = False,
) -> LOB:
    """Load a fold of FI-2010 (Ntakaris et al. 2018) as windows of the order book.

    The data are not part of mgvbp: download them from etsin.fairdata.fi (dataset
    73eb48d7-4dbc-4a10-a52a-da745b47a649) and unpack them. The first call reads the text, some hundred
    megabytes, and keeps a compact copy in the cache (`mgvbp.datasets.cache_directory`); later ones map that
    copy into memory, and so do not load what they do not use.

    Parameters
    ----------
    directory : path, optional
        Where the files are, however deep: ``Train_Dst_NoAuction_ZScore_CF_7.txt`` and its like, in upper or
        lower case. By default the directory that the environment variable ``MGVBP_DATA`` names.
    fold : int
        From 1 to 9: days 1 to ``fold`` to train, the next day to test.
    horizon : {10, 20, 30, 50, 100}
        Events ahead of the label.
    normalisation : {"zscore", "minmax", "decpre"}
    auction : bool
        Take the files that have the auctions too.
    joins : (train, test), optional
        The rows of each part at which another stock or day begins. By default `find_joins` looks for them.
    progress : bool
        Show a bar while text is read.

    Returns
    -------
    LOB
        ``train`` and ``test``, each with windows ``X`` of shape (n, 40, 10), which is indexed like an array,
        and classes ``y``: 0 up, 1 stationary, 2 down.

    Raises
    ------
    DataUnavailableError
        The files are not there.
    FileFormatError
        A file is damaged; the message says where.

    Examples
    --------
    >>> from mgvbp.datasets import load_fi2010
    >>> data = load_fi2010("BenchmarkDatasets")  # doctest: +SKIP
    >>> data.train.X[:2].shape, data.train.y[:2]  # doctest: +SKIP
    ((2, 40, 10), array([1, 1]))
    """
    horizon_column(horizon)
    known = (None, None) if joins is None else tuple(joins)
    if len(known) != 2:
        raise InvalidInputError(f"joins must be a pair, of the rows to train and to test; got {len(known)}")
    place = _directory(directory)
    names = [_name(part, fold, normalisation, auction) for part in ("Train", "Test")]
    files = [_find(place, name) for name in names]
    parts = []
    for file, given in zip(files, known, strict=True):
        features, labels = open_compact(file, true_or_false(progress, "progress"))
        rows = find_joins(features) if given is None else as_joins(given, len(features))
        parts.append(Books(features, labels, rows, horizon))
    return LOB(*parts)


def find_joins(features: Features, jump: float = JUMP) -> Indices:
    """Find the rows at which another stock or day begins, by the jumps of the mid-price.

    The mid-price m is the mean of the columns ask_price_1 and bid_price_1, and the usual move u the median of
    its moves |m_t − m_{t−1}| other than 0: about half a tick. A move of more than ``jump`` times u is a join.

    All stocks of a file are normalised together by a straight line in each column, so that their price levels stay
    apart, by hundreds of usual moves, and the rule is the same for all three normalisations. A day that opens near the
    last close is missed, and a jump within a day is taken for a join. Each costs nine windows out of tens of thousands;
    who knows the joins gives them to `load_fi2010`. The rule was tested on simulated books, and not on FI-2010.

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
    if not isinstance(features, np.ndarray) or features.shape[1:] != (len(FEATURE_NAMES),):
        raise InvalidTypeError(
            f"features must be an array of shape (N, {len(FEATURE_NAMES)}), an order book a row; got {features!r}"
        )
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
    inside = rows.ndim == 1 and rows.dtype.kind in "iu" and rows.min() >= 1 and rows.max() < num_rows
    if not inside or (np.diff(rows.astype(np.intp)) <= 0).any():
        raise InvalidInputError(
            f"joins must be row numbers that increase from at least 1 to at most {num_rows - 1}: each is the first "
            f"row of a new stock or day among {num_rows} rows; got {joins!r}"
        )
    return rows.astype(np.intp)


def _name(part: str, fold: int, normalisation: str, auction: bool) -> str:
    if positive_integer(fold, "fold") > FOLDS:
        raise InvalidInputError(f"fold must be at most {FOLDS}; got {fold}")
    kind = NORMALISATIONS[one_of(normalisation, NORMALISATIONS, "normalisation")]
    return f"{part}_Dst_{'' if true_or_false(auction, 'auction') else 'No'}Auction_{kind}_CF_{fold}.txt"


def _directory(directory: str | PathLike[str] | None) -> Path:
    given = os.environ.get(VARIABLE) if directory is None else directory
    if not given:
        raise DataUnavailableError(
            f"download FI-2010 by hand from {SOURCE}, unpack it, and give its directory or name that in the "
            f"environment variable {VARIABLE}"
        )
    if not Path(given).is_dir():
        raise DataUnavailableError(f"there is no directory {given}; FI-2010 is to be had from {SOURCE}")
    return Path(given)


def _find(directory: Path, name: str) -> Path:
    found = sorted(path for path in directory.rglob("*") if path.name.lower() == name.lower())
    if not found:
        raise DataUnavailableError(
            f"there is no {name} below {directory}; FI-2010 is to be had from {SOURCE}"
        )
    if len(found) > 1:
        raise InvalidInputError(
            f"there is more than one {name} below {directory}: {', '.join(map(str, found))}; "
            "give the directory of one of them"
        )
    return found[0]
