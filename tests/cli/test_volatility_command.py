"""``mgvbp volatility``: the same numbers as in Python, sensible without options, and one line for what is wrong."""

import numpy as np
import pandas as pd
import pytest

from mgvbp.cli import main
from mgvbp.cli.volatility import ORDERS, print_table
from mgvbp.volatility import GARCH, GJR, default_returns, read_returns

VALUES = {"mu": 0.05, "omega": 0.05, "alpha[1]": 0.1, "beta[1]": 0.85}
DAYS = pd.bdate_range("2020-01-01", periods=1000, name="date")
"""Enough for posteriors that are almost Gaussian: a fit of 300 takes ten times as long."""
RETURNS = GARCH(1, 1).simulate(VALUES, len(DAYS), rng=1)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Returns beside another column of numbers."""
    path = tmp_path_factory.mktemp("data") / "returns.csv"
    pd.DataFrame({"r": RETURNS, "other": RETURNS[::-1]}, index=DAYS).to_csv(path)
    return str(path)


def run(capsys, *arguments):
    """Exit code, lines on stdout, lines on stderr."""
    code = main(["volatility", *arguments])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err.splitlines()


def numbers(lines, title):
    """The rows of the table below ``title`` that are numbers."""
    start = next(i for i, text in enumerate(lines) if text.startswith(title))
    rows = []
    for text in lines[start + 1 :]:
        if not text.strip():
            break
        try:
            rows.append([float(cell) for cell in text.split()])
        except ValueError:
            continue
    return np.array(rows)


# --- the numbers --------------------------------------------------------------------------------------


def test_it_prints_what_python_says(file, capsys):
    code, out, err = run(capsys, file, "--horizon", "3", "--alpha", "0.02,0.1", "--seed", "5")
    result = GJR(1, 1, 1, dist="t").fit(read_returns(file), rng=5)
    assert (code, err) == (0, [])
    summary = result.summary().splitlines()
    assert out[: len(summary)] == summary
    assert out[0] == "GJR(1, 1, 1, mean='constant', dist='t', convention='arch')"
    forecast = result.forecast(3, rng=5).to_frame().reset_index().to_numpy()
    np.testing.assert_allclose(numbers(out, "forecast"), forecast, rtol=1e-3)
    risk = [
        [days, alpha, result.var(alpha, days, 5), result.expected_shortfall(alpha, days, 5)]
        for days in (1, 3)
        for alpha in (0.02, 0.1)
    ]
    np.testing.assert_allclose(numbers(out, "risk"), risk, rtol=1e-3)


def test_integers_are_printed_in_full(capsys):
    print_table("days", pd.DataFrame({"day": [1, 10_001], "x": [0.123456, 12345.6]}))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[-2:]] == [["1", "0.1235"], ["10001", "1.235e+04"]]


def test_without_a_file_it_takes_the_returns_of_arch(capsys):
    code, out, err = run(capsys, "--horizon", "1")
    assert (code, err) == (0, [])
    assert out[0] == "no file given: the S&P 500 prices that the package arch ships"
    assert any(text.startswith(f"S&P 500: {len(default_returns()):,} returns, 1999-01-05") for text in out)


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ("--model arch --order 2 --dist normal", "ARCH(2, mean='constant', dist='normal', convention='arch')"),
        ("--model garch --mean zero", "GARCH(1, 1, mean='zero', dist='t', convention='arch')"),
        ("--model gjr --order 1,0,1 --mean ar", "GJR(1, 0, 1, lags=1, dist='t', convention='arch')"),
        ("--model egarch --lags 2", "EGARCH(1, 1, 1, lags=2, dist='t', convention='arch')"),
        ("--model figarch --order 0,1 --dist normal --convention paper",
         "FIGARCH(0, 1, mean='zero', dist='normal', convention='paper')"),
    ],
)  # fmt: skip
def test_every_model(file, capsys, arguments, model):
    code, out, _ = run(capsys, file, *arguments.split(), "--horizon", "1")
    assert (code, out[0]) == (0, model)


def test_out_writes_the_report(file, capsys, tmp_path, monkeypatch):
    """With bars for both steps, on a terminal; these go to stderr."""
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    arguments = ("--model", "garch", "--column", "other", "--horizon", "2", "--alpha", "0.05", "--seed", "3")
    code, out, err = run(capsys, file, *arguments, "--out", str(tmp_path / "report"))
    assert code == 0
    assert any("evaluations" in text for text in err)
    assert any("report" in text and "100%" in text for text in err)
    result = GARCH(1, 1, dist="t").fit(read_returns(file, "other"), rng=3)
    risk = pd.read_csv(tmp_path / "report" / "risk.csv")
    expected = [result.var(0.05), result.var(0.05, 2, rng=3)]
    np.testing.assert_allclose(risk["value_at_risk"], expected, rtol=1e-14)
    assert (tmp_path / "report" / "summary.txt").read_text().startswith(result.summary())
    assert out[-1].startswith(f"written to {tmp_path / 'report'}: ")
    assert set(out[-1].partition(": ")[2].split(", ")) == {p.name for p in (tmp_path / "report").iterdir()}
    assert not any(text.startswith("forecast ") for text in out)


def test_prices(capsys, tmp_path):
    prices = 100.0 * np.exp(np.cumsum(np.append(0.0, RETURNS)) / 100.0)
    pd.Series(prices, name="close").to_csv(tmp_path / "prices.csv", index=False)
    path = str(tmp_path / "prices.csv")
    code, out, _ = run(capsys, path, "--prices", "--model", "garch", "--horizon", "1")
    assert code == 0
    assert out[1].startswith("close: 1,000 returns")
    bound = GARCH(1, 1, dist="t").fit(RETURNS).lower_bound
    assert float(out[2].split()[2].rstrip(",")) == pytest.approx(bound, abs=0.02)
    code, _, err = run(capsys, path)
    assert code == 1
    assert "--prices" in err[0]


# --- what is wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/none.csv"], "there is no file"),
        (["{file}", "--column", "x"], "no column 'x'; the columns are 'date', 'r', 'other'"),
        (["{file}", "--prices", "--column", "r"], "prices are positive"),
        (["{file}", "--order", "1,1"], "--order of gjr is p,o,q; got 1,1"),
        (["{file}", "--order", "3,1,1"], "p must be at most 2; got 3"),
        (["{file}", "--mean", "zero", "--lags", "2"], "mean='ar' goes with lags=1 or more"),
        (["--column", "r"], "--column and --prices go with a FILE"),
        (["--prices"], "--column and --prices go with a FILE"),
        (["{tmp}/none.csv", "--horizon", "1000000000"], "horizon must be at most 13,421 with so many paths"),
    ],
)
def test_errors_are_one_line_and_exit_with_one(file, capsys, tmp_path, arguments, message):
    code, _, err = run(capsys, *(text.format(file=file, tmp=tmp_path) for text in arguments))
    assert code == 1
    (line,) = err
    assert line.startswith("mgvbp: ")
    assert message in line


@pytest.mark.parametrize("below", ["", "/report", "/a/b"])
def test_a_file_as_out_is_refused_before_the_fit(file, capsys, monkeypatch, below):
    monkeypatch.setattr(GJR, "fit", None)  # a call would be a TypeError
    code, out, err = run(capsys, file, "--out", file + below)
    assert (code, out) == (1, [])
    assert err == [f"mgvbp: {file} is a file; give a directory, new or not"]


@pytest.mark.parametrize(
    "arguments",
    [
        "--model foo", "--order x", "--order 1,", "--order -1,1", "--mean median", "--lags 0", "--dist cauchy",
        "--convention mine", "--horizon 0", "--horizon 1.5", "--alpha 0.7", "--alpha x", "--alpha ,", "--alpha nan",
        "--seed -1", "a.csv b.csv",
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_two(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["volatility", *arguments.split()])
    assert "usage: mgvbp" in capsys.readouterr().err


def test_advice_is_one_line(capsys, tmp_path):
    """Returns that are not in per cent are fitted, with a word on that."""
    pd.Series(RETURNS / 100.0, name="r").to_csv(tmp_path / "small.csv", index=False)
    code, out, err = run(capsys, str(tmp_path / "small.csv"), "--model", "arch", "--horizon", "1")
    assert code == 0
    (line,) = err
    assert line.startswith("mgvbp: r has the variance ")
    assert "fit 100 * returns" in line
    assert out[0].startswith("ARCH(1, ")


def test_a_file_gives_no_commands_to_the_terminal(capsys, tmp_path):
    """Escapes in a heading or a cell would colour the screen, or worse."""
    path, rows = tmp_path / "\x1b[2Jfile.csv", [f"{value}" for value in RETURNS / 100.0]
    for lines in (["\x1b[31mr\x07", *rows], ["r", *rows, "\x1b]0;title\x07"], ["a,\x1b[31m", "x,y"]):
        path.write_text("\n".join(lines))
        run_ = run(capsys, str(path), "--model", "arch", "--horizon", "1")
        assert run_[1] or run_[2]
        assert not [c for text in (*run_[1], *run_[2]) for c in text if not c.isprintable()]


def test_help_names_every_model_and_its_orders(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["volatility", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name, letters in ORDERS.items():
        assert f"{name} {letters}" in text
    assert "S&P 500" in text
