"""Returns from a CSV file, whatever wrote it: which column they are, their dates, and what is wrong with them."""

from __future__ import annotations

import re
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core import Array, as_path, require
from mgvbp.errors import InvalidInputError
from mgvbp.volatility.table import Table, read_table

if TYPE_CHECKING:
    import pandas as pd

RETURNS = ("r", "ret", "return", "returns", "logret", "logreturn", "logreturns")
PRICES = ("adjclose", "adjustedclose", "close", "price")
"""Names of columns, letters and digits alone, the best first: an adjusted price does not jump at dividends."""
FORMATS = ("ISO8601", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y")
"""The formats of dates that are tried, as pandas writes them."""
DATE_LIKE = re.compile(r"(1[89]|2[01])\d{6}$|\d{4}-\d\d$|\w+[-/. ]+\w+[-/. ,]+\w+")
"""A first look at a cell: eight digits, year and month, or three parts between marks."""
OFFSET = re.compile(r"(?<=:\d\d)(\.\d+)?([-+]\d\d:?\d\d|Z)$")
"""The time zone at the end of a time. It is cut off, since local time has no jumps in spring and autumn."""
STEADY = 0.1
"""Positive numbers that change by less than this share from one to the next, in the median, look like prices."""


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
    table = read_table(as_path(path))
    day = _date_column(pandas, table, named=column is not None)
    chosen = _choose(table, day, column, prices)
    values = table.numbers(chosen)
    kept = _without_blank_ends(table, chosen, values)
    table, values = table.take(kept), values[kept]
    series: pd.Series = pandas.Series(values, name=chosen)
    if day is not None:
        series.index = _dates(pandas, table, day)
        series = _in_order(table, series)
    if prices:
        return _from_prices(table, series)
    if len(values) > 2 and values.min() > 0.0 and np.median(np.abs(np.diff(values)) / values[1:]) < STEADY:
        raise InvalidInputError(
            f"{chosen!r} of {table.path.name} looks like prices, since its numbers are all positive and change "
            "little from one to the next: prices=True (--prices) turns prices into returns"
        )
    return series


def default_returns() -> pd.Series:
    """Daily returns of the S&P 500 in per cent, 1999 to 2018, from the prices that the package `arch` ships."""
    require("arch", "volatility")
    from arch.data import sp500

    close = sp500.load()["Adj Close"]
    return log_returns(close).rename("S&P 500")


# --- which column -------------------------------------------------------------------------------------


def _choose(table: Table, day: str | None, column: str | None, prices: bool) -> str:
    if column is not None:
        if column not in table.names:
            raise InvalidInputError(f"{table.path.name} has no column {column!r}; {_list(table.names)}")
        return column
    plain = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in reversed(table.names)}
    for name in PRICES if prices else RETURNS:
        if name in plain:
            return plain[name]
    found = [name for name in table.names if name != day and table.mostly_numbers(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise InvalidInputError(f"{table.path.name} has no column of numbers; {_list(table.names)}")
    hint = "" if prices else ", and prices=True (--prices) if it has prices"
    raise InvalidInputError(
        f"{table.path.name} has several columns of numbers: give column= (--column){hint}; {_list(found)}"
    )


def _list(names: list[str]) -> str:
    shown = ", ".join(repr(name[:30]) for name in names[:20])
    return f"the columns are {shown}{', ...' if len(names) > 20 else ''}"


def _without_blank_ends(table: Table, name: str, values: Array) -> slice:
    present = np.flatnonzero(~np.isnan(values))
    if not present.size:
        raise InvalidInputError(f"{name!r} of {table.path.name} has no numbers")
    kept = slice(int(present[0]), int(present[-1]) + 1)
    missing = np.flatnonzero(np.isnan(values[kept]))
    if missing.size:
        raise InvalidInputError(
            f"{name!r} has {missing.size:,} missing values between others, the first in "
            f"{table.take(kept).at(missing[0])}: remove these rows, or fill them in"
        )
    return kept


# --- dates and prices ---------------------------------------------------------------------------------


def _date_column(pandas: Any, table: Table, *, named: bool) -> str | None:
    """The first column whose first cell is a date; where the returns are ``named``, "date" may number the rows."""
    for i, name in enumerate(table.names):
        cell = (table.present(name) or [""])[0]
        called_date = name.lower() == "date"
        elsewhere = i > 0 and not called_date  # where 20141231 is a number, such as a volume
        if DATE_LIKE.match(cell) and not (elsewhere and cell.isdigit()) and _formats(pandas, cell):
            return name
        if called_date and not (named and cell.isdigit()):
            raise InvalidInputError(
                f"{name!r} of {table.path.name} starts with {cell[:30]!r}, which is no date that we can read: "
                "write dates as in 2024-12-31; if it only numbers the rows, name the returns with column= (--column)"
            )
    return None


def _formats(pandas: Any, cell: str) -> list[str]:
    cell = OFFSET.sub("", cell)
    return [f for f in FORMATS if pandas.notna(pandas.to_datetime(cell, format=f, errors="coerce"))]


def _dates(pandas: Any, table: Table, name: str) -> Any:
    cells = [OFFSET.sub("", cell) for cell in table.column(name)]
    tried = [
        pandas.to_datetime(cells, format=f, errors="coerce") for f in _formats(pandas, cells[0]) or FORMATS
    ]
    good = [dates for dates in tried if dates.notna().all()]
    if not good:
        row = max(int(np.argmax(dates.isna())) for dates in tried)
        raise InvalidInputError(
            f"{name!r} in {table.at(row)} is {cells[row][:30]!r}, not a date like those before"
        )
    if not all(dates.equals(good[0]) for dates in good):
        raise InvalidInputError(
            f"{name!r} of {table.path.name} can be read with the day or with the month first: write dates as in "
            "2024-12-31"
        )
    return good[0].rename(name)


def _in_order(table: Table, series: pd.Series) -> pd.Series:
    """The series from the first day to the last."""
    dates = series.index
    if not dates.is_unique:
        row = int(np.argmax(dates.duplicated()))
        raise InvalidInputError(
            f"{dates.name!r} in {table.at(row)} repeats {table.column(str(dates.name))[row]}"
        )
    if dates.is_monotonic_increasing:
        return series
    if dates.is_monotonic_decreasing:
        return series[::-1]
    row = int(np.argmax(dates[1:] < dates[:-1])) + 1
    raise InvalidInputError(
        f"{dates.name!r} in {table.at(row)} is before the one above it: sort the rows by their dates"
    )


def _from_prices(table: Table, series: pd.Series) -> pd.Series:
    if not (series > 0.0).all():
        raise InvalidInputError(
            f"{series.name!r} of {table.path.name} has the price {series.min()}, and prices are positive: if these "
            "are returns, leave out prices=True (--prices)"
        )
    return log_returns(series)


def log_returns(prices: pd.Series) -> pd.Series:
    """The differences of log prices, in per cent."""
    logs: pd.Series = 100.0 * np.log(prices)
    return logs.diff().iloc[1:]
