"""The text files of FI-2010, 149 lines with a number for each snapshot, and compact copies of them."""

from __future__ import annotations

import hashlib
import secrets
import warnings
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from mgvbp.core.storage import DAMAGE
from mgvbp.datasets.files import cache_directory
from mgvbp.datasets.lob.books import FEATURE_NAMES, HORIZONS, Features, Labels
from mgvbp.errors import DataUnavailableError, FileFormatError

LINES = 149
DERIVED = LINES - len(FEATURE_NAMES) - len(HORIZONS)
"""The lines between the book and the labels are derived features, which we do not use."""


def open_compact(text: Path, progress: bool = False) -> tuple[Features, Labels]:
    """The arrays of a text file, mapped into memory from its compact copy, a fourteenth of the size.

    The copy is made first if there is none of this text: its name stands for path, size and time of the last change.
    """
    state = text.stat()
    key = hashlib.sha256(f"{text.resolve()} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:16]
    features, labels = (
        cache_directory() / "fi2010" / f"{text.stem}-{key}.{name}.npy" for name in ("features", "labels")
    )
    try:
        return _mapped(features), _mapped(labels)
    except DAMAGE:  # not there yet, or cut off
        arrays = read_text(text, progress)
    try:
        _save(features, arrays[0])
        _save(labels, arrays[1])
    except OSError as error:
        raise DataUnavailableError(
            f"a compact copy of {text.name} must be written to {features.parent}, which failed: {error}"
        ) from None
    return _mapped(features), _mapped(labels)


def _mapped(path: Path) -> Any:
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _save(path: Path, array: Features | Labels) -> None:
    """Completely or not at all, whatever other processes do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{secrets.token_hex(8)}.npy")
    np.save(partial, array, allow_pickle=False)
    partial.replace(path)


def read_text(path: Path, progress: bool = False) -> tuple[Features, Labels]:
    """Read the book and the labels of a file, with a bar on the terminal if wanted."""
    with _opened(path, progress) as file:
        book = _table(file, path, 1, len(FEATURE_NAMES))
        for _ in islice(file, DERIVED):
            pass
        classes = _table(file, path, LINES - len(HORIZONS) + 1, len(HORIZONS))
        rest = file.read(2**20).strip()
    if rest or classes.shape[1] != book.shape[1] or not np.isin(classes, (1, 2, 3)).all():
        raise FileFormatError(
            f"{path} is not a file of FI-2010: its last {len(HORIZONS)} lines must be 145 to {LINES}, with a label "
            f"1, 2 or 3 in each of the {book.shape[1]} columns of the book"
        )
    return np.ascontiguousarray(book.T), np.ascontiguousarray((classes.T - 1).astype(np.int8))


def _opened(path: Path, progress: bool) -> AbstractContextManager[IO[bytes]]:
    if not progress:
        return path.open("rb")
    from rich import progress as bars
    from rich.console import Console

    return bars.open(path, "rb", description=path.name, console=Console(stderr=True))


def _table(file: IO[bytes], path: Path, first: int, number: int) -> Features:
    """The next lines as a table (number, N) of finite numbers."""
    last = first + number - 1
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of no lines at all
            table: Features = np.loadtxt(islice(file, number), np.float32, comments=None, ndmin=2)
        if len(table) < number:
            raise ValueError(f"there are {len(table)} of them")
        if not np.isfinite(table).all():
            line, column = np.argwhere(~np.isfinite(table))[0]
            raise ValueError(f"no finite number of single precision at row {line}, column {column + 1}")
    except ValueError as error:
        raise FileFormatError(
            f"lines {first} to {last} must be rows of numbers, and are not: {error} ({path})"
        ) from None
    return table
