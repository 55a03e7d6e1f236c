"""FI-2010: five Finnish stocks over ten days of June 2010, from the files as they were published."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from mgvbp.core import one_of, positive_integer, true_or_false
from mgvbp.datasets.download import Progress
from mgvbp.datasets.files import VARIABLE
from mgvbp.datasets.lob.cache import open_compact
from mgvbp.datasets.lob.data import LOB, Books
from mgvbp.datasets.lob.joins import as_joins, find_joins
from mgvbp.datasets.lob.layout import horizon_column
from mgvbp.datasets.lob.text import write_text
from mgvbp.errors import DataUnavailableError, InvalidInputError

if TYPE_CHECKING:
    from rich.progress import TaskID

SOURCE = "etsin.fairdata.fi (dataset 73eb48d7-4dbc-4a10-a52a-da745b47a649)"
"""Where the authors published the files."""
NORMALISATIONS = {"zscore": "ZScore", "minmax": "MinMax", "decpre": "DecPre"}
"""What we call the normalisations, and what the names of the files call them."""
FOLDS = 9
"""Fold k trains on the first k of ten days and tests on the next."""


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
        A file is damaged; the message has the line and the column.

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
    with _bars(true_or_false(progress, "progress")) as bar:
        for file, given in zip(files, known, strict=True):
            features, labels = open_compact(file, bar(file.name))
            rows = find_joins(features) if given is None else as_joins(given, len(features))
            parts.append(Books(features, labels, rows, horizon))
    return LOB(*parts)


def write_fi2010(data: LOB, directory: str | PathLike[str], fold: int = 7) -> tuple[Path, Path]:
    """Write data as the text files of a fold of FI-2010, z-scored and without auctions.

    The derived features, rows 41 to 144, are zeros. Numbers have the eight digits of the published files.

    Returns
    -------
    tuple of Path
        The files to train and to test.
    """
    train, test = (Path(directory, _name(part, fold, "zscore", False)) for part in ("Train", "Test"))
    for path, books in ((train, data.train), (test, data.test)):
        write_text(path, books.features, books.labels)
    return train, test


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


@contextmanager
def _bars(enabled: bool) -> Iterator[Callable[[str], Progress | None]]:
    """Yield what makes a reporter for a file, or None; its bar appears with the first report."""
    if not enabled:
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bars

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Bars(*columns, console=Console(stderr=True)) as bars:

        def bar(name: str) -> Progress:
            tasks: list[TaskID] = []

            def report(done: int, total: int | None) -> None:
                if not tasks:
                    tasks.append(bars.add_task(name))
                bars.update(tasks[0], completed=done, total=total)

            return report

        yield bar
