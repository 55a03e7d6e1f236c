"""A series of returns as it comes from a user: checked, with its dates kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError, ScaleWarning, warn_user
from mgvbp.families import frozen

SCALES = (0.1, 10_000.0)
"""Returns with a variance outside of these get advice on their scale; the limits are those of `arch`."""
LIMITS = (1e-100, 1e100)
"""The largest number of a series is in between: the squares of all are floats then, and so are the sums of squares."""
STEADY = 0.1
"""Prices change by less than this fraction from one to the next, by about 1% a day; volatilities by about 30%."""
WALK = 0.9
"""Long series of prices have a larger first autocorrelation, even if they return to a mean; returns have one near 0."""
DATES = ("datetime64", "datetime", "date", "period")
"""The kinds of pandas index that are dates."""


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers in the order of time, (T,)."""

    values: Array
    index: Any = None
    """The dates, a pandas Index, where the numbers came as a pandas Series."""
    name: str = "returns"

    @classmethod
    def of(cls, data: Any, what: str = "returns", least: int = 1, whole: bool = True) -> Series:
        """Check an array, a pandas Series or a frame with one column: ``least`` finite numbers, dates in order.

        Only new days after others, which are not the ``whole`` series, may be constant.
        """
        if isinstance(data, Series):
            data = data.labelled(data.values)
        index = getattr(data, "index", None)
        index = index if hasattr(index, "to_numpy") else None  # a list has a method of this name
        columns = getattr(data, "columns", None)
        name = getattr(data, "name", None) if columns is None else columns[0] if len(columns) else None
        values = _numbers(data, what)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise InvalidInputError(
                f"{what} has shape {values.shape}; expected one series, such as a column of the frame"
            )
        if not np.isfinite(values).all():
            bad = np.flatnonzero(~np.isfinite(values))
            where = bad[0] if index is None else index[bad[0]]
            raise InvalidInputError(
                f"{what} has {len(bad):,} values that are missing or infinite, the first at {where}: drop them "
                "first, as with returns.dropna()"
            )
        if len(values) < least:
            raise InvalidInputError(f"{what} has {len(values)} values; this model needs at least {least}")
        if whole and len(values) > 1 and values.min() == values.max():
            raise InvalidInputError(f"{what} is constant at {values[0]}: there is no volatility to model")
        size = np.abs(values).max(initial=0.0)
        if size > LIMITS[1] or (whole and size < LIMITS[0]):
            raise InvalidInputError(
                f"{what} is too {'large' if size > 1.0 else 'small'} to be squared, up to {size:.3g}: multiply it by a "
                "constant, such that numbers are around 1"
            )
        if _dated(index):
            _check_order(index, what)
        return cls(frozen(values.copy()), index, what if name is None else str(name))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, days: slice) -> Series:
        """Some of the days."""
        return Series(self.values[days], None if self.index is None else self.index[days], self.name)

    @property
    def span(self) -> str:
        """The first and the last date; empty if there are no dates."""
        return "" if self.index is None else f"{day_name(self.index[0])} to {day_name(self.index[-1])}"

    def days(self, start: int) -> Any:
        """The days from ``start`` on: dates if there are any, else numbers."""
        return np.arange(start, len(self)) if self.index is None else self.index[start:]

    @property
    def axis(self) -> NDArray[Any]:
        """Where the days are on the axis of a figure: at their dates or numbers, or else counted."""
        index = self.index
        if hasattr(index, "to_timestamp"):  # periods
            index = index.to_timestamp()
        if getattr(index, "tz", None) is not None:
            index = index.tz_localize(None)
        days = np.arange(len(self)) if index is None else np.asarray(index)
        return days if days.dtype.kind in "Miuf" else np.arange(len(self))

    def then(self, new: Any, what: str = "the new returns") -> Series:
        """The series with ``new`` values behind it; ``what`` they are, for messages."""
        more = Series.of(new, what, whole=False)
        index = None
        if _dated(self.index) and more.index is None:
            raise InvalidInputError(
                f"{what} must have dates, after {day_name(self.index[-1])}, as those before them have: give a "
                "pandas Series"
            )
        if self.index is not None and more.index is not None:
            if _kind(more.index) != _kind(self.index):
                raise InvalidInputError(
                    f"{what} are indexed by {_kind(more.index)}, those before them by {_kind(self.index)}: "
                    "convert the index of one of them"
                )
            if not more.index[0] > self.index[-1]:
                raise InvalidInputError(
                    f"{what} start at {more.index[0]}, which is not after {self.index[-1]}"
                )
            index = self.index.append(more.index)
        return Series(frozen(np.concatenate([self.values, more.values])), index, self.name)

    def labelled(self, values: Array, name: str | None = None) -> Any:
        """``values`` of the last days, as many as they are: a pandas Series if this one came as such."""
        if self.index is None:
            return values
        import pandas as pd

        return pd.Series(values, index=self.index[len(self) - len(values) :], name=name or self.name)


def day_name(day: Any) -> str:
    """A date without a time if it has none, or whatever else stands for a day."""
    return str(day).removesuffix(" 00:00:00")


def advise(series: Series) -> None:
    """Warn of numbers that look like prices, or are so small or large that a factor of 100 is probably missing."""
    variance = float(np.var(series.values))
    if _walks(series.values):
        warn_user(
            f"{series.name} looks like prices, since its numbers are all positive and each is close to the one before: "
            "fit returns, such as 100 * np.diff(np.log(prices)), instead",
            ScaleWarning,
            "prices",
        )
    elif not SCALES[0] <= variance < SCALES[1]:
        factor = 10.0 ** -round(math.log10(math.sqrt(variance)))
        warn_user(
            f"{series.name} has the variance {variance:.3g}; numbers around 1 are easier to read and to put a prior "
            f"on: fit {factor:g} * returns instead",
            ScaleWarning,
        )


def steady(values: Array) -> bool:
    """Whether numbers are all positive and, in the median, change by less than `STEADY` from one to the next."""
    if len(values) < 3 or values.min() <= 0.0:
        return False
    return bool(np.median(np.abs(np.diff(values)) / values[1:]) < STEADY)


def _walks(values: Array) -> bool:
    """Whether numbers are steady and wander as prices do, rather than scatter around a large mean.

    The first autocorrelation of a random walk of n days is above 1 − 20/n in 99 of 100 cases (Dickey and Fuller 1979).
    """
    rest = values - values.mean()
    correlation = float(rest[1:] @ rest[:-1] / (rest @ rest))
    return steady(values) and correlation > min(WALK, 1.0 - 20.0 / len(values))


def _numbers(data: Any, what: str) -> Array:
    """``data`` as floats; complex numbers, truth values and numbers in quotes are refused."""
    try:
        given = np.asarray(data)
        mixed = given.dtype.kind == "O"
        refused = mixed and any(
            isinstance(entry, (str, bytes, bool, np.bool_, complex)) for entry in given.flat
        )
        if given.dtype.kind in "fiuO" and not refused:
            return np.asarray(data, dtype=np.float64)
        kind = f" of {given.dtype}"
    except (TypeError, ValueError, OverflowError):
        kind = ""
    raise InvalidTypeError(f"{what} must be numbers; got {type(data).__name__}{kind}")


# --- the index ----------------------------------------------------------------------------------------


def _dated(index: Any) -> bool:
    return index is not None and index.inferred_type in DATES


def _kind(index: Any) -> str:
    """The kind of an index, in words: only indices of one kind can be put in order."""
    detail = getattr(index, "tz", None) or (index.freqstr if index.inferred_type == "period" else "")
    return f"{index.inferred_type} [{detail}]" if detail else str(index.inferred_type)


def _check_order(index: Any, what: str) -> None:
    """Dates must increase, and each must be there once."""
    if index.hasnans:
        raise InvalidInputError(
            f"{what} has {int(index.isna().sum()):,} days without a date: drop them first"
        )
    if not index.is_unique:
        twice = index[index.duplicated()]
        raise InvalidInputError(
            f"{what} has {len(twice):,} dates that were there before, the first of them {day_name(twice[0])}: keep one "
            "of each, as with returns[~returns.index.duplicated()]"
        )
    if not index.is_monotonic_increasing:
        raise InvalidInputError(
            f"the dates of {what} are not in order: sort them, as with returns.sort_index()"
        )
