"""Returns from CSV files: what is written is what is read, and what is wrong with a bad file is named."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common import case
from mgvbp import InvalidInputError, MissingDependencyError
from mgvbp.volatility.reading import default_returns, read_returns


def write(tmp_path, content):
    path = tmp_path / "file.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- what is written is what is read ------------------------------------------------------------------


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.floats(-50.0, 50.0), min_size=3, max_size=30).filter(lambda v: min(v) < 0.0),
    separator=st.sampled_from(",;\t"),
    date_format=st.sampled_from(
        ["%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%Y-%m-%d 00:00:00-05:00", "%d-%b-%Y", None]
    ),
    name=st.sampled_from(["r", "Return", "log ret", "x"]),
    latest_first=st.booleans(),
    packed=st.booleans(),
    blank=st.integers(0, 2),
)
def test_round_trip(tmp_path, values, separator, date_format, name, latest_first, packed, blank):
    """Any separator, date format and order, with missing values at both ends, packed or not."""
    cells = [""] * blank + [repr(value) for value in values] + ["NaN"] * blank
    days = pd.date_range("2020-01-30", periods=len(cells), freq="B")
    dates = [""] * len(cells) if date_format is None else [f"{day:{date_format}}" for day in days]
    rows = [f"{date}{separator}text{separator}{cell}" for date, cell in zip(dates, cells, strict=True)]
    if latest_first and date_format is not None:
        rows.reverse()
    content = "\r\n".join([f"day{separator}note{separator}{name}", *rows, "", ""]).encode()
    series = read_returns(write(tmp_path, gzip.compress(content) if packed else content))
    np.testing.assert_array_equal(series.to_numpy(), values)
    assert series.name == name
    index = range(len(values)) if date_format is None else days[blank : len(cells) - blank]
    assert list(series.index) == list(index)


def test_prices_become_log_returns(tmp_path):
    prices = 100.0 * np.exp(np.cumsum(np.random.default_rng(0).normal(0.0, 0.01, 50)))
    days = pd.date_range("2024-01-01", periods=50, name="Date")
    path = tmp_path / "prices.csv"
    pd.DataFrame({"Open": 1.0, "Close": 2.0, "Adj Close": prices}, index=days).to_csv(path)
    series = read_returns(path, prices=True)
    np.testing.assert_allclose(series, 100.0 * np.diff(np.log(prices)), rtol=0.0, atol=1e-12)
    assert series.name == "Adj Close"
    assert list(series.index) == list(days[1:])
    assert read_returns(path, "Close", prices=True).eq(0.0).all()


def test_columns_are_known_by_their_names(tmp_path):
    for heading, prices, chosen in (
        ("date,volume,RET", False, "RET"),
        ("date,Log_Returns,close", False, "Log_Returns"),
        ("date,close,r", True, "close"),
        ("date,price,close", True, "close"),
        ("date,adj. close,close", True, "adj. close"),
    ):
        path = write(tmp_path, f"{heading}\n2024-01-01,1,2\n2024-01-02,3,0.5\n2024-01-03,7,9\n")
        with case(heading):
            assert read_returns(path, prices=prices).name == chosen


def test_files_as_they_come(tmp_path):
    for content, column, expected in (
        ("2024-01-01,1,0.5\n2024-01-02,2,-1.5\n", "3", [0.5, -1.5]),  # no heading
        ("1\n-2\n3", None, [1, -2, 3]),
        ("date,r,,\n2024-01-01,1,,\n2024-01-02,-1,,\n", None, [1, -1]),  # columns without one
        (",r\n2024-01-01,1\n2024-01-02,-1\n", None, [1, -1]),  # as pandas writes an index
        ("date,r\n2024-01-01,1,\n2024-01-02,-1,,\n", None, [1, -1]),  # separators at the end
        ("date,r\n2024-01-01,1\n2024-01-02,-1\n\nSource: us\n", None, [1, -1]),  # a remark below
    ):
        with case(content):
            assert read_returns(write(tmp_path, content), column).tolist() == expected


def test_dates_as_they_come(tmp_path):
    """Day and month are told apart where a day is above 12; eight digits are a date in front, a number elsewhere."""
    american = read_returns(write(tmp_path, "date,r\n01/02/2020,1\n01/13/2020,-1\n"))
    european = read_returns(write(tmp_path, "date,r\n01/02/2020,1\n13/02/2020,-1\n"))
    assert american.index[0] == pd.Timestamp(2020, 1, 2)
    assert european.index[0] == pd.Timestamp(2020, 2, 1)
    assert list(read_returns(write(tmp_path, "r,volume\n-1,20141230\n1,20141231\n")).index) == [0, 1]


def test_default_returns_are_those_of_arch():
    from arch.data import sp500

    close = sp500.load()["Adj Close"]
    np.testing.assert_allclose(default_returns(), 100.0 * np.diff(np.log(close)), rtol=0.0, atol=1e-11)
    assert default_returns().index[-1] == close.index[-1]


# --- what is wrong is named ---------------------------------------------------------------------------

BAD = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n\n", "is empty"),
    "separators alone": (b",,\n,,\n", "is empty but for ','"),
    "heading alone": (b"date,r\n", "heading and no rows"),
    "binary": (bytes(range(256)), "not a text file in UTF-8.*CSV"),
    "workbook": (b"PK\x03\x04\x00\x00", "not a text file in UTF-8.*CSV"),
    "latin-1": ("Tag,Überschuss\n1,2".encode("latin-1"), "not a text file in UTF-8"),
    "broken gzip": (gzip.compress(b"date,r\n" * 1000)[:40], "cannot be unpacked"),
    "not gzip": (b"\x1f\x8b" + bytes(20), "cannot be (read|unpacked)"),
    "page": (
        b"<!DOCTYPE html>\n<p>Not found</p>\n",
        "no column of numbers; the columns are '<!DOCTYPE html>'",
    ),
    "text": (b"date,a,b\n2024-01-01,x,y\n", "no column of numbers; the columns are 'date', 'a', 'b'"),
    "several": (b"date,a,b\n2024-01-01,1,2\n", "several.*--column.*--prices.*the columns are 'a', 'b'"),
    "missing": (b"date,r\n2024-01-01,1\n2024-01-02,\n2024-01-03,NA\n2024-01-04,2\n", "2 missing .*line 3 of"),
    "missing in one column": (b'r\n1\n""\n3\n', "1 missing .*line 3 of"),
    "all missing": (b"date,r\n2024-01-01,\n", "'r' of file.csv has no numbers"),
    "repeated date": (b"date,r\n2024-01-01,1\n2024-01-02,-1\n2024-01-02,2\n", "line 4 .*repeats 2024-01-02"),
    "mixed order": (b"date,r\n2024-01-01,1\n2024-01-03,-1\n2024-01-02,2\n", "line 4 .*before .*sort"),
    "decimal comma": (b"date;r\n2024-01-01;1,5\n", "line 2 .*'1,5'.*decimal point, not a comma"),
    "decimal commas": (b"date,r\n2024-01-01,1,5\n", "line 2 .*3 cells.*2.*decimal commas or thousands"),
    "thousands": (b'date,r\n2024-01-01,"1,234.5"\n', "'1,234.5'.*no thousands separators"),
    "per cent": (b"date,r\n2024-01-01,1.5%\n", "'1.5%'.*per cent"),
    "word": (b"date,r\n2024-01-01,1.5\n2024-01-02,holiday\n", "line 3 .*'holiday', not a plain number"),
    "infinite": (b"date,r\n2024-01-01,-inf\n", "'-inf', not a plain number"),
    "overflow": (b"date,r\n2024-01-01,1e999\n", "'1e999', not a plain number"),
    "python": (b"r\n1_000\n-1\n", "'1_000', not a plain number"),
    "prices": (b"date,close\n2024-01-01,100\n2024-01-02,101\n2024-01-03,99\n", "looks like prices.*--prices"),
    "no date": (b"date,r\nyesterday,1\n", "'yesterday', which is no date.*2024-12-31"),
    "serial date": (b"date,r\n43467,1\n", "'43467', which is no date"),
    "impossible date": (b"date,r\n2024-01-01,1\n2024-13-01,2\n", "line 3 .*'2024-13-01', not a date like"),
    "date left out": (b"date,r\n2024-01-01,1\n,2\n", "line 3 .*'', not a date like"),
    "day or month": (b"date,r\n01/02/2024,1\n02/02/2024,2\n", "day or with the month first"),
    "repeated heading": (
        b"date,r, r \n2024-01-01,1,2\n2024-01-02,-1,3\n",
        "2 columns of file.csv are called 'r'",
    ),
    "huge cell": (b'"' + b"x" * 140_000 + b'",r\n1,2\n', "not a CSV file: field larger"),
}


def test_bad_files(tmp_path):
    for name, (content, message) in BAD.items():
        with case(name), pytest.raises(InvalidInputError, match=message):
            read_returns(write(tmp_path, content))


def test_bad_arguments(tmp_path):
    path = write(tmp_path, "date,r,s\n2024-01-01,1,2\n2024-01-02,-1,3\n")
    with pytest.raises(InvalidInputError, match=r"no column 'R'; the columns are 'date', 'r', 's'"):
        read_returns(path, "R")
    with pytest.raises(InvalidInputError, match=r"price -1.0.*leave out prices=True \(--prices\)"):
        read_returns(path, "r", prices=True)
    with pytest.raises(InvalidInputError, match=r"there is no file .*none.csv"):
        read_returns(tmp_path / "none.csv")
    with pytest.raises(InvalidInputError, match=r"cannot be read: Is a directory"):
        read_returns(tmp_path)


def test_volatilities_are_not_taken_for_prices(tmp_path):
    """Positive numbers that change by a third from one to the next."""
    values = np.exp(np.random.default_rng(0).normal(0.0, 0.3, 100))
    path = write(tmp_path, "\n".join(["x", *map(str, values)]))
    np.testing.assert_array_equal(read_returns(path), values)


@pytest.mark.parametrize(
    ("module", "call"), [("pandas", lambda: read_returns("x")), ("arch", default_returns)]
)
def test_missing_packages(monkeypatch, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=rf"package {module}: pip install 'mgvbp\[volatility\]'"):
        call()
