"""A series as users give it: numbers of any source in the order of time, or an error that says what is wrong."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from common import case
from mgvbp import InvalidInputError, InvalidTypeError
from mgvbp.volatility.series import Series

DAYS = pd.bdate_range("2020-01-01", periods=6)
VALUES = np.array([0.3, -0.1, 0.2, 0.5, -0.4, 0.1])
INDICES = {
    "dates": DAYS,
    "time zone": DAYS.tz_localize("America/New_York"),
    "another zone": DAYS.tz_localize("UTC"),
    "days": DAYS.to_period("D"),
    "weeks": pd.period_range("2020-01-01", periods=6, freq="W"),
    "date objects": pd.Index(list(DAYS.date)),
    "numbers": pd.RangeIndex(6),
    "words": pd.Index([f"day {i}" for i in range(6)]),
}


def pieces(index):
    whole = pd.Series(VALUES, index)
    return Series.of(whole[:4]), whole[4:]


# --- the order of dates -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dates", "time zone", "days", "weeks", "date objects"])
def test_dates_must_increase(kind):
    ordered = pd.Series(VALUES, INDICES[kind])
    assert Series.of(ordered).index.equals(INDICES[kind])
    shuffled = ordered.iloc[[0, 2, 1, 3, 4, 5]]
    for wrong in (ordered[::-1], shuffled):
        with pytest.raises(
            InvalidInputError, match=r"dates of returns are not in order: sort .*sort_index\(\)"
        ):
            Series.of(wrong)
    assert Series.of(shuffled.sort_index()).values.tolist() == VALUES.tolist()


def test_a_date_comes_once_and_numbers_and_words_need_no_order():
    with pytest.raises(
        InvalidInputError, match="2 dates that were there before, the first of them 2020-01-02: "
    ):
        Series.of(pd.Series(VALUES, DAYS[[0, 1, 1, 1, 2, 3]]))
    with pytest.raises(InvalidInputError, match="1 days without a date"):
        Series.of(pd.Series(VALUES, DAYS.insert(2, pd.NaT)[:6]))
    for index in (pd.Index([3, 1, 1, 2, 9, 4]), pd.Index(list("badcfe"))):
        assert Series.of(pd.Series(VALUES, index)).index.equals(index)


# --- more days ----------------------------------------------------------------------------------------


def test_new_days_of_the_same_kind_go_on():
    for kind, index in INDICES.items():
        first, more = pieces(index)
        both = first.then(more)
        with case(kind):
            assert both.index.equals(index)
            np.testing.assert_array_equal(both.values, VALUES)
    seconds, nanoseconds = pieces(DAYS.as_unit("s"))[0], pieces(DAYS.as_unit("ns"))[1]  # units are no kinds
    assert seconds.then(nanoseconds).index.equals(DAYS)


def test_new_days_of_another_kind():
    for old, new, message in (
        ("dates", "time zone", r"datetime64 \[America/New_York\], those before them by datetime64:"),
        ("time zone", "another zone", r"datetime64 \[UTC\], .* by datetime64 \[America/New_York\]:"),
        ("dates", "days", r"period \[D\], .* by datetime64:"),
        ("days", "weeks", r"period \[W-SUN\], .* by period \[D\]:"),
        ("dates", "numbers", "integer, .* by datetime64:"),
        ("numbers", "dates", "datetime64, .* by integer:"),
        ("date objects", "words", "string, .* by date:"),
    ):
        with (
            case(old, new),
            pytest.raises(InvalidInputError, match="the new returns are indexed by " + message),
        ):
            pieces(INDICES[old])[0].then(pieces(INDICES[new])[1])


def test_dates_are_not_dropped():
    first, more = pieces(DAYS)
    with pytest.raises(
        InvalidInputError, match=r"must have dates, after 2020-01-06, .* give a pandas Series"
    ):
        first.then(more.to_numpy())
    plain = pieces(INDICES["numbers"])[0].then(more.to_numpy())  # these were no dates
    np.testing.assert_array_equal(plain.values, VALUES)


def test_all_new_dates_are_in_order():
    first, more = pieces(DAYS)
    with pytest.raises(InvalidInputError, match="dates of the new returns are not in order"):
        first.then(more[::-1])
    with pytest.raises(InvalidInputError, match=r"the volatilities start at .* not after"):
        first.then(pd.Series(VALUES[:4], DAYS[:4]), "the volatilities")


def test_only_new_days_may_be_equal():
    assert Series.of(VALUES).then([0.0, 0.0]).values[-2:].tolist() == [0.0, 0.0]
    with pytest.raises(InvalidInputError, match=r"constant at 0\.0"):
        Series.of([0.0, 0.0])


# --- numbers ------------------------------------------------------------------------------------------


def test_what_is_no_number():
    for values in (
        VALUES + 0j, [0.1, 0.2 + 1j], VALUES > 0.0, ["0.1", "0.2"], [b"0.1", b"0.2"], DAYS, [[0.1], [0.2, 0.3]],
        pd.Series([0.1, True], dtype=object), pd.Series([0.1, "0.2"], dtype=object), pd.Series(["0.1", "0.2"]),
    ):  # fmt: skip
        with case(values), pytest.raises(InvalidTypeError, match="returns must be numbers; got "):
            Series.of(values)
    with pytest.raises(InvalidInputError, match="missing or infinite, the first at 1"):
        Series.of([0.1, None, 0.2])


def test_what_is_a_number():
    for values in (
        [1, 2], np.array([1, 2], dtype=np.uint8), np.array([1, 2], dtype=np.float32), [Decimal(1), Decimal(2)],
        pd.Series([1, 2], dtype="Int64"), pd.DataFrame({"r": [1.0, 2.0]}),
    ):  # fmt: skip
        with case(values):
            assert Series.of(values).values.tolist() == [1.0, 2.0]
