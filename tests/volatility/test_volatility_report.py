"""The report of a volatility model: its files hold what the result says, and nothing else is touched."""

import sys
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import mgvbp
from common import case
from mgvbp import InvalidInputError, InvalidTypeError, MissingDependencyError
from mgvbp.volatility import GARCH, VolatilityResult
from mgvbp.volatility.report import parameter_table, risk_table, volatility_table, write_report

TEXTS = ["summary.txt", "parameters.csv", "volatility.csv", "forecast.csv", "risk.csv"]
PICTURES = ["overview.png", "volatility.png", "forecast.png", "residuals.png", "parameters.png"]
VALUES = {"mu": 0.05, "omega": 0.05, "alpha[1]": 0.1, "beta[1]": 0.85}
DAYS = pd.bdate_range("2020-01-01", periods=400)
RETURNS = GARCH(1, 1).simulate(VALUES, len(DAYS), rng=1)


@pytest.fixture(scope="module")
def result():
    return GARCH(1, 1, lags=1).fit(pd.Series(RETURNS, index=DAYS, name="index"))


@pytest.fixture(scope="module")
def report(result, tmp_path_factory):
    """A directory, two levels deep, that was not there."""
    directory = tmp_path_factory.mktemp("reports") / "new" / "report"
    written = write_report(result, directory, horizon=5, alphas=(0.02, 0.1), rng=7)
    assert set(written) == set(directory.iterdir())
    assert {path.name for path in written} == {*TEXTS, *PICTURES, "overview.svg", "posterior.npz"}
    return directory


def read(path, index):
    """To the last digit, which pandas' own reader of numbers is not."""
    table = pd.read_csv(path, dtype=str).set_index(index)
    return table.astype(float)


# --- what the files hold ------------------------------------------------------------------------------


def test_parameters(report, result):
    table = read(report / "parameters.csv", "parameter")
    assert list(table.index) == ["const", "ar[1]", "omega", "alpha[1]", "beta[1]"]
    for name, row in table.iterrows():
        marginal = result.posterior[name]
        assert (row["mean"], row["sd"]) == (marginal.mean, marginal.std)
        quantiles = row[["2.5%", "25%", "50%", "75%", "97.5%"]].to_numpy()
        np.testing.assert_array_equal(quantiles, marginal.quantile([0.025, 0.25, 0.5, 0.75, 0.975]))
        assert row["ml"] == result.ml.params[name]
        assert row["std_error"] == result.ml.std_errors[name]
        assert row["robust_std_error"] == result.ml.robust_std_errors[name]


def test_volatility(report, result):
    """One row a day but for the first, which is a lag."""
    table = read(report / "volatility.csv", "date")
    assert list(pd.to_datetime(table.index)) == list(DAYS[1:])
    assert table.index[0] == "2020-01-02"
    assert list(table) == ["return", "volatility", "volatility_5%", "volatility_95%", "standardized_residual"]
    expected = [
        RETURNS[1:],
        result.conditional_volatility,
        *result.volatility_band(0.9),
        result.standardized_residuals,
    ]
    np.testing.assert_array_equal(table.to_numpy().T, expected)


def test_forecast(report, result):
    table = read(report / "forecast.csv", "day")
    expected = result.forecast(5, rng=7).to_frame()
    assert list(table.index) == ["1", "2", "3", "4", "5"]
    assert list(table) == list(expected)
    np.testing.assert_array_equal(table, expected)


def test_risk(report, result):
    table = read(report / "risk.csv", ["days", "alpha"])
    assert list(table.index) == [("1", "0.02"), ("1", "0.1"), ("5", "0.02"), ("5", "0.1")]
    for (days, alpha), row in table.iterrows():
        assert row["value_at_risk"] == result.var(float(alpha), int(days), rng=7)
        assert row["expected_shortfall"] == result.expected_shortfall(float(alpha), int(days), rng=7)
        assert row["expected_shortfall"] > row["value_at_risk"] > 0.0
    assert risk_table(result, horizon=1, alphas=[0.05])["days"].tolist() == [1]


def test_summary(report, result):
    text = (report / "summary.txt").read_text(encoding="utf-8")
    assert text.startswith(result.summary() + "\n")
    assert f"{result.var(0.02, 5, rng=7):.4g}" in text
    assert f"{result.forecast(5, rng=7).volatility[-1]:.4g}" in text


def test_posterior(report, result):
    loaded = mgvbp.load(report / "posterior.npz")
    np.testing.assert_array_equal(loaded.mean, result.posterior.mean)
    assert loaded["beta[1]"].mean == result.posterior["beta[1]"].mean


def test_pictures(report):
    from matplotlib.image import imread

    for name in PICTURES:
        pixels = imread(report / name)[..., :3]
        assert min(pixels.shape[:2]) >= 250
        assert 0.01 < (pixels < 0.95).any(axis=2).mean() < 0.6  # something on white
    assert ElementTree.parse(report / "overview.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_futures_are_simulated_once(result, tmp_path, monkeypatch):
    calls, forecast = [], VolatilityResult.forecast
    monkeypatch.setattr(
        VolatilityResult,
        "forecast",
        lambda *args, **options: calls.append(args[1:]) or forecast(*args, **options),
    )
    monkeypatch.setattr("mgvbp.volatility.report._write_picture", lambda draw, path: draw())
    write_report(result, tmp_path, horizon=3)
    assert calls == [(3,)]


def test_days_without_dates_are_counted(tmp_path):
    result = GARCH(1, 1, lags=1).fit(RETURNS)
    assert volatility_table(result).index.name == "day"
    assert volatility_table(result).index.tolist() == list(range(1, 400))
    assert parameter_table(result).index.name == "parameter"


# --- the directory ------------------------------------------------------------------------------------


def test_again_and_beside_other_files(report, result, tmp_path, capsys):
    """The same numbers give the same bytes; what else is there stays; nothing is said."""
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "risk.csv").write_text("old")
    for path in write_report(result, str(tmp_path), 5, (0.02, 0.1), rng=7):
        if path.suffix not in (".npz", ".svg"):  # an archive has the time in it, matplotlib's SVG addresses
            assert path.read_bytes() == (report / path.name).read_bytes(), path.name
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert capsys.readouterr() == ("", "")


def test_a_file_is_no_directory(result, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"file is a file; give a directory"):
        write_report(result, tmp_path / "file", 1)
    with pytest.raises(InvalidInputError, match=r"below cannot be written: Not a directory"):
        write_report(result, tmp_path / "file" / "below", 1)
    (tmp_path / "report" / "summary.txt").mkdir(parents=True)
    with pytest.raises(InvalidInputError, match=r"summary\.txt cannot be written: Is a directory"):
        write_report(result, tmp_path / "report", 1)
    assert (tmp_path / "file").read_text() == "mine"


def test_bad_arguments_and_missing_packages_leave_nothing_behind(result, tmp_path, monkeypatch):
    for options, error, message in (
        ({"horizon": 0}, InvalidInputError, "horizon must be at least 1"),
        ({"horizon": "10"}, InvalidTypeError, "horizon must be an integer"),
        ({"horizon": 10**9}, InvalidInputError, "horizon must be at most"),
        ({"alphas": (0.01, 0.7)}, InvalidInputError, "alpha must be between 0 and 0.5"),
    ):
        with case(options), pytest.raises(error, match=message):
            write_report(result, tmp_path / "report", **options)
    for module in ("pandas", "matplotlib"):
        monkeypatch.setitem(sys.modules, module, None)
        message = rf"package {module}: pip install 'mgvbp\[volatility\]'"
        with case(module), pytest.raises(MissingDependencyError, match=message):
            write_report(result, tmp_path / "report")
        monkeypatch.undo()
    assert not (tmp_path / "report").exists()
