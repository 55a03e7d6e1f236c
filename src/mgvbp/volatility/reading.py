"""Returns from a CSV file, whatever wrote it: which column they are, their dates, and what is wrong with them."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core import as_path, require
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.series import steady

if TYPE_CHECKING:
    import pandas as pd

RETURNS = ("r", "ret", "return", "returns", "logret", "logreturn", "logreturns")
PRICES = ("adjclose", "adjustedclose", "close", "price")
"""Names of columns, letters and digits alone, the best first: an adjusted price does not jump at dividends."""
MISSING = frozenset({"", ".", "-", "na", "n/a", "nan", "null", "none"})
"""The texts of cells without a number."""
NUMBER_LIKE = re.compile(r"[-+$€£]? ?[\d.,' ]*\d\.?(e[-+]?\d+)? ?[%$€£]?", re.IGNORECASE)
"""Numbers as people write them. Of these, only plain numbers with a decimal point are read; the others are refused."""
FORMATS = ("ISO8601", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y")
"""The formats of dates that are tried, as pandas writes them."""
DATE_LIKE = re.compile(r"(1[89]|2[01])\d{6}$|\d{4}-\d\d$|\w+[-/. ]+\w+[-/. ,]+\w+")
"""A first look at a cell: eight digits, year and month, or three parts between marks."""
OFFSET = r"(?<=:\d\d)(\.\d+)?([-+]\d\d:?\d\d|Z)$"
"""The time zone at the end of a time. It is cut off, since local time has no jumps in spring and autumn."""


def read_returns(path: str | PathLike[str], column: str | None = None, prices: bool = False) -> pd.Series:
    r"""Read a series of returns from a CSV file.

    Commas, semicolons and tabs are told apart, ``.gz`` files are unpacked, and rows without a value are dropped at
    both ends. The dates are in the first column that can be read as such, if there is one; a file with the latest
    date first is turned round.

    Parameters
    ----------
    path : str or path
    column : str, optional
        By default the one called r, ret, return, returns or logret (with ``prices``: adj close, close or price),
        else the only column of numbers. Columns without a heading are called 1, 2, and so on.
    prices : bool
        The column has prices: the returns are 100 times the differences of their logarithms.

    Returns
    -------
    pandas.Series
        With the dates, or else the numbers of the rows, as its index.

    Raises
    ------
    InvalidInputError
        There is no such file, it is not a CSV file, or what it has is not a series of returns.
    MissingDependencyError
        pandas is not installed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "prices.csv")
    >>> _ = path.write_text("Date;Close\n2024-01-04;100\n2024-01-03;102\n2024-01-02;100")
    >>> read_returns(path, prices=True).round(2)
    Date
    2024-01-03    1.98
    2024-01-04   -1.98
    Name: Close, dtype: float64
    """
    pandas = require("pandas", "volatility")
    file = as_path(path)
    table = _cells(pandas, file)
    day = _date_column(pandas, file, table, named=column is not None)
    chosen = _chosen(file, table, day, column, prices)
    series = _numbers(file, table[chosen])
    dates = None if day is None else table[day][series.index]
    series = series.reset_index(drop=True) if dates is None else _by_date(pandas, file, series, dates)
    if prices:
        if not (series > 0.0).all():
            raise InvalidInputError(
                f"{chosen!r} of {file.name} has the price {series.min()}, and prices are positive: if these are "
                "returns, leave out prices=True (--prices)"
            )
        return log_returns(series)
    if steady(series.to_numpy()):
        raise InvalidInputError(
            f"{chosen!r} of {file.name} looks like prices, since its numbers are all positive and change little "
            "from one to the next: prices=True (--prices) turns prices into returns"
        )
    return series


def default_returns() -> pd.Series:
    """Daily returns of the S&P 500 in per cent, 1999 to 2018, from the prices that the package `arch` ships."""
    require("arch", "volatility")
    from arch.data import sp500

    close = sp500.load()["Adj Close"]
    return log_returns(close).rename("S&P 500")


def log_returns(prices: pd.Series) -> pd.Series:
    """The differences of log prices, in per cent."""
    logs: pd.Series = 100.0 * np.log(prices)
    return logs.diff().iloc[1:]


# --- cells --------------------------------------------------------------------------------------------


def _cells(pandas: Any, file: Path) -> pd.DataFrame:
    """The text of each cell, with the numbers of the lines as the index; columns without a heading get numbers."""
    lines = _text(file).splitlines(keepends=True)
    first = next((line for line in lines if line.strip()), "")
    separator = max(",;\t", key=first.count)
    reader = csv.reader(lines, delimiter=separator)
    try:
        cells = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise InvalidInputError(f"{file} is not a CSV file: {error} in line {reader.line_num}") from None
    # of one column, a missing cell is a line with two quotation marks
    rows = {line: row for line, row in cells if any(row) or '""' in lines[line - 1]}
    if not rows:
        raise InvalidInputError(f"{file} is empty{f' but for {separator!r}' if first else ''}")
    heading = next(iter(rows))
    names = rows[heading]
    if any(NUMBER_LIKE.fullmatch(name) for name in names):  # they are numbers, and there is no heading
        names = [""] * len(names)
    else:
        del rows[heading]
    if not rows:
        raise InvalidInputError(f"{file} has a heading and no rows")
    names = [name or str(k) for k, name in enumerate(names, start=1)]
    for line, row in rows.items():
        if any(row[len(names) :]):
            raise InvalidInputError(
                f"line {line} of {file.name} has {len(row)} cells and the first line {len(names)}, with "
                f"{separator!r} between them: are there decimal commas or thousands separators?"
            )
    padded = [(row + [""] * len(names))[: len(names)] for row in rows.values()]
    table: pd.DataFrame = pandas.DataFrame(padded, index=list(rows), columns=names)
    for name in table.columns[table.columns.duplicated()]:
        raise InvalidInputError(
            f"{names.count(name)} columns of {file.name} are called {name[:30]!r}: rename all but one"
        )
    return table


def _text(file: Path) -> str:
    try:
        content = file.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        if b"\0" in content:
            raise UnicodeError
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidInputError(f"there is no file {file}") from None
    except OSError as error:  # a bad gzip file is one of these too
        raise InvalidInputError(f"{file} cannot be read: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise InvalidInputError(f"{file} cannot be unpacked: {error}") from None
    except UnicodeError:
        raise InvalidInputError(
            f"{file} is not a text file in UTF-8: save the table as CSV (comma-separated, UTF-8)"
        ) from None


# --- numbers ------------------------------------------------------------------------------------------


def _chosen(file: Path, table: pd.DataFrame, day: str | None, column: str | None, prices: bool) -> str:
    """The name of the column that has the returns, or prices."""
    if column is not None:
        if column not in table:
            raise InvalidInputError(f"{file.name} has no column {column!r}; {_list(table)}")
        return column
    names: list[str] = list(table.columns)
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(names)}
    for name in PRICES if prices else RETURNS:
        if name in plain:
            return plain[name]
    found = [name for name in names if name != day and _mostly_numbers(table[name])]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InvalidInputError(f"{file.name} has no column of numbers; {_list(table)}")
    hint = "" if prices else ", and prices=True (--prices) if it has prices"
    raise InvalidInputError(
        f"{file.name} has several columns of numbers: give column= (--column){hint}; {_list(table[found])}"
    )


def _list(table: pd.DataFrame) -> str:
    shown = ", ".join(repr(name[:30]) for name in table.columns[:20])
    return f"the columns are {shown}{', ...' if table.shape[1] > 20 else ''}"


def _mostly_numbers(cells: pd.Series) -> bool:
    present = cells[~cells.str.lower().isin(MISSING)]
    return 2 * int(present.str.fullmatch(NUMBER_LIKE).sum()) > len(present)


def _number(cell: str) -> float:
    """The number of a cell: NaN if it is missing, and infinite if it is not a plain one."""
    if cell.lower() in MISSING:
        return np.nan
    try:
        return float(cell) if NUMBER_LIKE.fullmatch(cell) else np.inf
    except ValueError:
        return np.inf


def _numbers(file: Path, cells: pd.Series) -> pd.Series:
    """The numbers of a column, without missing ones at both ends."""
    numbers: pd.Series = cells.map(_number)
    name = numbers.name
    for line in numbers.index[np.isinf(numbers)]:
        raise InvalidInputError(
            f"{name!r} in line {line} of {file.name} is {cells[line][:30]!r}, not a plain number: write a decimal "
            "point, not a comma, and no thousands separators, per cent or currency signs"
        )
    numbers = numbers.loc[numbers.first_valid_index() : numbers.last_valid_index()]
    missing = numbers.index[numbers.isna()]
    if len(missing) == len(numbers):
        raise InvalidInputError(f"{name!r} of {file.name} has no numbers")
    if len(missing):
        raise InvalidInputError(
            f"{name!r} has {len(missing):,} missing values between others, the first in line {missing[0]} of "
            f"{file.name}: remove these rows, or fill them in"
        )
    return numbers


# --- dates --------------------------------------------------------------------------------------------


def _date_column(pandas: Any, file: Path, table: pd.DataFrame, *, named: bool) -> str | None:
    """The first column whose first cell is a date; where the returns are ``named``, "date" may number the rows."""
    names: list[str] = list(table.columns)
    for i, name in enumerate(names):
        cell: str = next((cell for cell in table[name] if cell.lower() not in MISSING), "")
        called_date = name.lower() == "date"
        elsewhere = i > 0 and not called_date  # where 20141231 is a number, such as a volume
        if DATE_LIKE.match(cell) and not (elsewhere and cell.isdigit()) and _readings(pandas, [cell]):
            return name
        if called_date and not (named and cell.isdigit()):
            raise InvalidInputError(
                f"{name!r} of {file.name} starts with {cell[:30]!r}, which is no date that we can read: write dates "
                "as in 2024-12-31; if it only numbers the rows, name the returns with column= (--column)"
            )
    return None


def _readings(pandas: Any, cells: Any) -> list[Any]:
    """The dates of the cells in each format in which the first can be read, or in all if it can in none."""
    local = pandas.Series(cells).str.replace(OFFSET, "", regex=True)
    tried = [pandas.DatetimeIndex(pandas.to_datetime(local, format=f, errors="coerce")) for f in FORMATS]
    return [dates for dates in tried if not pandas.isna(dates[0])]


def _by_date(pandas: Any, file: Path, series: pd.Series, cells: pd.Series) -> pd.Series:
    """The series from the first day to the last, with the dates in ``cells`` as its index."""
    tried = _readings(pandas, cells)
    good = [dates for dates in tried if dates.notna().all()]
    name = cells.name

    def at(row: int) -> str:
        return f"{name!r} in line {cells.index[row]} of {file.name}"

    if not good:
        row = max((int(np.argmax(dates.isna())) for dates in tried), default=0)
        raise InvalidInputError(f"{at(row)} is {cells.iloc[row][:30]!r}, not a date like those before")
    dates = good[0]
    if not all(other.equals(dates) for other in good):
        raise InvalidInputError(
            f"{name!r} of {file.name} can be read with the day or with the month first: write dates as in 2024-12-31"
        )
    if not dates.is_unique:
        row = int(np.argmax(dates.duplicated()))
        raise InvalidInputError(f"{at(row)} repeats {cells.iloc[row]}")
    series = series.set_axis(dates.rename(name))
    if dates.is_monotonic_increasing:
        return series
    if dates.is_monotonic_decreasing:
        return series[::-1]
    row = int(np.argmax(dates[1:] < dates[:-1])) + 1
    raise InvalidInputError(f"{at(row)} is before the one above it: sort the rows by their dates")
