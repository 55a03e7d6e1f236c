"""The text files of FI-2010: 149 lines with a number for each snapshot, row by row in and out."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from mgvbp.core import Array
from mgvbp.datasets.download import Progress
from mgvbp.datasets.lob.layout import CLASS_NAMES, FEATURE_NAMES, FILE_ROWS, FIRST_LABEL_ROW, Features, Labels
from mgvbp.errors import FileFormatError

LONGEST_LINE = 2**26
"""The most bytes of a line: ten times those of FI-2010. What has a longer line is another file."""

NUMBER = "%16.7e"
"""As MATLAB's ``save -ascii`` writes, with \\r\\n at the end of a line. The sizes that users of the published
files report are of this kind: 607,324,298 = 149 (16 · 254,750 + 2)."""

LARGEST = float(np.finfo(np.float32).max)
"""The largest number that our arrays, of single precision, can hold."""


def read_text(path: Path, report: Progress | None = None) -> tuple[Features, Labels]:
    """Read the book and the labels of a file, one line in memory at a time.

    Of lines 41 to 144, the derived features, the numbers are counted and not read.

    Raises
    ------
    FileFormatError
        The file is none of FI-2010 or is damaged; the message has the line and the column.
    """
    size = path.stat().st_size
    features, labels = np.empty((0, 0), np.float32), np.empty((0, 0), np.int8)
    with path.open("rb") as file:
        for number in range(1, FILE_ROWS + 1):
            line = file.readline(LONGEST_LINE)
            if len(line) == LONGEST_LINE:
                raise FileFormatError(f"{path}, line {number} is longer than any line of FI-2010")
            columns = _count(line)
            if columns == 0:
                raise FileFormatError(f"{path} has {number - 1} lines of numbers; expected {FILE_ROWS}")
            if number == 1:
                features = np.empty((columns, len(FEATURE_NAMES)), np.float32)
                labels = np.empty((columns, FILE_ROWS - FIRST_LABEL_ROW + 1), np.int8)
            if columns != len(features):
                raise FileFormatError(
                    f"{path}, line {number}: {columns} columns, but line 1 has {len(features)}"
                    + ("" if line.endswith(b"\n") else "; the file ends here: it was cut off")
                )
            if number <= features.shape[1]:
                features[:, number - 1] = _numbers(line, path, number)
            elif number >= FIRST_LABEL_ROW:
                labels[:, number - FIRST_LABEL_ROW] = _classes(_numbers(line, path, number), path, number)
            if report is not None:
                report(file.tell(), size)
        if _count(file.readline(LONGEST_LINE)):
            raise FileFormatError(f"{path} has more than {FILE_ROWS} lines of numbers")
    return features, labels


def _count(line: bytes) -> int:
    """Words in a line: bytes above the blank that come after one that is not."""
    inside = np.frombuffer(b" " + line, np.uint8) > ord(" ")
    return int(np.count_nonzero(inside[1:] > inside[:-1]))


def _numbers(line: bytes, path: Path, number: int) -> Array:
    try:
        values: Array = np.loadtxt([line.decode("ascii")], np.float64, comments=None, ndmin=1)
    except ValueError:
        pass
    else:
        if (np.abs(values) <= LARGEST).all():
            return values
    for column, word in enumerate(line.split(), start=1):
        if not _is_number(word):
            shown = word[:40].decode("ascii", "replace")
            raise FileFormatError(f"{path}, line {number}, column {column}: {shown!r} is not a finite number")
    raise FileFormatError(f"{path}, line {number} is not a row of numbers: it must end with \\n or \\r\\n")


def _is_number(word: bytes) -> bool:
    try:
        value = math.nan if b"_" in word else float(word)
    except ValueError:
        return False
    return abs(value) <= LARGEST


def _classes(values: Array, path: Path, number: int) -> Array:
    wrong = np.flatnonzero(~np.isin(values, (1.0, 2.0, 3.0)))
    if len(wrong):
        known = ", ".join(f"{label} ({name})" for label, name in enumerate(CLASS_NAMES, start=1))
        place = f"{path}, line {number}, column {wrong[0] + 1}"
        raise FileFormatError(f"{place}: the label {values[wrong[0]]:g} is none of {known}")
    return values - 1.0


def write_text(path: Path, features: Features, labels: Labels) -> None:
    """Write the book and the labels as FI-2010 does; the derived features, lines 41 to 144, are zeros."""
    unused = (NUMBER % 0.0 * len(features)).encode() + b"\r\n"
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            for column in features.T:
                file.write(_line(column))
            for _ in range(features.shape[1] + 1, FIRST_LABEL_ROW):
                file.write(unused)
            for column in labels.T:
                file.write(_line(column + 1))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _line(values: np.ndarray[tuple[int], np.dtype[np.float32 | np.int8]]) -> bytes:
    return (NUMBER * len(values) % tuple(values.tolist())).encode() + b"\r\n"
