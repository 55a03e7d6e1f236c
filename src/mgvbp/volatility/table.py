"""The cells of a CSV file, whatever wrote it, and the numbers in a column of them."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mgvbp.core import Array
from mgvbp.errors import InvalidInputError

MISSING = frozenset({"", ".", "-", "na", "n/a", "nan", "null", "none"})
NUMBER_LIKE = re.compile(r"[-+$€£]? ?[\d.,' ]*\d\.?(e[-+]?\d+)? ?[%$€£]?", re.IGNORECASE)
"""Numbers as people write them; only those with a decimal point and nothing else are taken."""


@dataclass(frozen=True, eq=False)
class Table:
    """The cells of a file, one for each of ``names`` in each of ``rows``, and the ``lines`` these came from."""

    path: Path
    names: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        """The cells of a column."""
        where = self.names.index(name)
        return [row[where] for row in self.rows]

    def present(self, name: str) -> list[str]:
        """Those that have something in them."""
        return [cell for cell in self.column(name) if cell.lower() not in MISSING]

    def take(self, rows: slice) -> Table:
        """Some of the rows."""
        return Table(self.path, self.names, self.rows[rows], self.lines[rows])

    def at(self, row: int) -> str:
        """Where a row is, for messages."""
        return f"line {self.lines[row]} of {self.path.name}"

    def mostly_numbers(self, name: str) -> bool:
        """Whether more than half of a column's cells look like numbers."""
        cells = self.present(name)
        return 2 * sum(NUMBER_LIKE.fullmatch(cell) is not None for cell in cells) > len(cells)

    def numbers(self, name: str) -> Array:
        """The numbers of a column; NaN where nothing is."""
        values = np.full(len(self.rows), np.nan)
        for i, cell in enumerate(self.column(name)):
            if cell.lower() not in MISSING:
                values[i] = plain_number(cell)
                if not np.isfinite(values[i]):
                    raise InvalidInputError(
                        f"{name!r} in {self.at(i)} is {cell[:30]!r}, not a plain number: write a decimal point, not "
                        "a comma, and no thousands separators, per cent or currency signs"
                    )
        return values


def plain_number(cell: str) -> float:
    """The number, or NaN if it is none."""
    try:
        return float(cell) if NUMBER_LIKE.fullmatch(cell) else np.nan
    except ValueError:
        return np.nan


def read_table(path: Path) -> Table:
    """Read a CSV file with commas, semicolons or tabs, packed or not; columns without a heading get numbers."""
    text = _text(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if not first:
        raise InvalidInputError(f"{path} is empty")
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        cells = [([cell.strip() for cell in row], reader.line_num) for row in reader]
    except csv.Error as error:
        raise InvalidInputError(f"{path} is not a CSV file: {error} in line {reader.line_num}") from None
    filled = [(row, line) for row, line in cells if any(row)]
    if not filled:
        raise InvalidInputError(f"{path} is empty but for {separator!r}")
    names = filled[0][0]
    if any(NUMBER_LIKE.fullmatch(cell) for cell in names):  # there is no heading
        names = [str(k) for k in range(1, len(names) + 1)]
    else:
        filled = filled[1:]
    name, times = Counter(filter(None, names)).most_common(1)[0]
    if times > 1:
        raise InvalidInputError(
            f"{times} columns of {path.name} are called {name[:30]!r}: rename all but one"
        )
    if not filled:
        raise InvalidInputError(f"{path} has a heading and no rows")
    for row, line in filled:
        if any(row[len(names) :]):
            raise InvalidInputError(
                f"line {line} of {path.name} has {len(row)} cells and the first line {len(names)}, with "
                f"{separator!r} between them: are there decimal commas or thousands separators?"
            )
    rows = [(row + [""] * len(names))[: len(names)] for row, _ in filled]
    return Table(path, names, rows, [line for _, line in filled])


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        if b"\0" in content:
            raise UnicodeError
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidInputError(f"there is no file {path}") from None
    except OSError as error:  # a bad gzip file is one of these too
        raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise InvalidInputError(f"{path} cannot be unpacked: {error}") from None
    except UnicodeError:
        raise InvalidInputError(
            f"{path} is not a text file in UTF-8: save the table as CSV (comma-separated, UTF-8)"
        ) from None
