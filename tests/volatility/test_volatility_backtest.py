"""The rolling backtest: no look-ahead, the same numbers as single fits, and tests that see what is wrong."""

import warnings
from dataclasses import replace
from functools import cache
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import mgvbp
from common import case
from mgvbp import InvalidInputError, InvalidTypeError
from mgvbp.volatility import EGARCH, FIGARCH, GARCH, HAR
from mgvbp.volatility.backtest import TOL, backtest
from mgvbp.volatility.scores import christoffersen, kupiec
from mgvbp.volatility.series import Series

TRUE = {"mu": 0.05, "omega": 0.05, "alpha[1]": 0.1, "beta[1]": 0.85}
ALPHA = (0.01, 0.05)
module = import_module("mgvbp.volatility.backtest")  # the package has the function by this name


@cache
def returns(days=900, rng=3):
    values = GARCH(1, 1).simulate(TRUE, days, rng=rng)
    return pd.Series(values, pd.bdate_range("2015-01-01", periods=days), name="r")


@cache
def example():
    return backtest(GARCH(1, 1), returns(), start=800, refit=40)


# --- look-ahead ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (GARCH(1, 1), {}),
        (GARCH(1, 1, convention="paper"), {}),
        (GARCH(1, 1, lags=2), {}),
        (GARCH(1, 1), {"mode": "update"}),
        (GARCH(1, 1, dist="t"), {"window": 800}),
        (EGARCH(1, 1, 0), {}),
        (FIGARCH(0, 1), {"window": 800}),
    ],
    ids=repr,
)
def test_no_forecast_knows_the_day_or_what_comes_after(model, options):
    """Days 830, in the middle of a block, and 841, the first after a fit; fits of fewer days take longer."""
    r = returns().to_numpy()[:865]
    whole = backtest(model, r, start=811, refit=30, **options)
    for day in (830, 841):
        changed = r.copy()
        changed[day:] = 4.0 - 2.5 * changed[day:]
        again = backtest(model, changed, start=811, refit=30, **options)
        upto = day - 811 + 1
        # to the last digits, which the Fourier transforms of FIGARCH round by the longest day
        np.testing.assert_allclose(again.var[:upto], whole.var[:upto], rtol=1e-12)
        np.testing.assert_allclose(again.es[:upto], whole.es[:upto], rtol=1e-12)
        np.testing.assert_allclose(again.log_scores[: upto - 1], whole.log_scores[: upto - 1], rtol=1e-12)
        assert np.abs(again.var[upto] / whole.var[upto] - 1.0).min() > 1e-3
        assert again.log_scores[upto - 1] != whole.log_scores[upto - 1]


# --- against single fits ------------------------------------------------------------------------------


def assert_first_day(found, row, result):
    for j, alpha in enumerate(ALPHA):
        assert found.var[row, j] == pytest.approx(result.var(alpha), rel=1e-12)
        assert found.es[row, j] == pytest.approx(result.expected_shortfall(alpha), rel=1e-12)


def test_the_day_after_a_fit_has_the_risk_of_that_fit():
    for day in (800, 840, 880):
        assert_first_day(example(), day - 800, GARCH(1, 1).fit(returns()[:day], tol=TOL))
    assert example().fits == 3


def test_between_fits_the_filter_goes_on():
    """The variances of the second and third day by hand, from those of the first, for each draw."""
    result = GARCH(1, 1).fit(returns()[:800], tol=TOL)
    values, h = result.paths.values, result.paths.variance[-1]
    for row in (1, 2):
        residual = returns().iloc[799 + row] - values["mu"]
        h = values["omega"] + values["alpha[1]"] * residual**2 + values["beta[1]"] * h
        mixture = values["mu"], np.sqrt(h)
        expected = -module.mixture_quantile(ALPHA, *mixture)
        np.testing.assert_allclose(example().var[row], expected, rtol=1e-10)
        expected = module.mixture_log_density(returns().iloc[800 + row], *mixture)
        assert example().log_scores[row] == pytest.approx(float(expected), rel=1e-10)


def test_a_window_forgets():
    found = backtest(GARCH(1, 1), returns(), start=880, refit=40, window=500)
    assert_first_day(found, 0, GARCH(1, 1).fit(returns()[380:880], tol=TOL))


def test_updates_are_those_of_the_result():
    found = backtest(GARCH(1, 1), returns(), start=800, refit=40, mode="update")
    result = GARCH(1, 1).fit(returns()[:800], tol=TOL)
    assert_first_day(found, 0, result)
    for day in (840, 880):
        result = result.update(returns()[day - 40 : day])
        assert_first_day(found, day - 800, result)
    np.testing.assert_allclose(found.var, example().var, rtol=0.1)
    assert not np.array_equal(found.var[40:], example().var[40:])


# --- what the tests of coverage see -------------------------------------------------------------------


def test_the_true_model_covers():
    """Exceedances of 4 × 400 forecasts, between the 0.1% and 99.9% quantiles of what chance gives."""
    found = [backtest(GARCH(1, 1), returns(800, rng), start=400, refit=200) for rng in range(4)]
    for alpha, count in zip(ALPHA, sum(b.exceedances.sum(axis=0) for b in found), strict=True):
        assert binom.ppf(0.001, 1600, alpha) <= count <= binom.ppf(0.999, 1600, alpha)
    assert np.mean([b.log_score for b in found]) == pytest.approx(
        np.mean([true_score(b) for b in found]), abs=0.02
    )


def true_score(found):
    model = GARCH(1, 1)
    likelihood = mgvbp.volatility.Likelihood(model, found.series, known=found.start)
    return likelihood.pointwise(model.parameters.unconstrain(TRUE)[None]).mean()


def test_a_break_is_seen():
    """Losses three times as large after the only fit, which has no ARCH term to follow them."""
    r = np.random.default_rng(0).standard_normal(600)
    r[400:] *= 3.0
    found = backtest(GARCH(1, 0), r, start=400, refit=200)
    assert all(test.p_value < 1e-6 for test in found.kupiec)
    calm = backtest(GARCH(1, 0), np.where(np.arange(600) < 400, r, r / 3.0), start=400, refit=200)
    assert all(test.p_value > 0.01 for test in calm.kupiec)


def test_the_tests_are_those_of_the_exceedances():
    b = example()
    np.testing.assert_array_equal(b.exceedances, b.returns[:, None] < -b.var)
    assert b.exceedances.any()
    for j, alpha in enumerate(ALPHA):
        assert b.kupiec[j] == kupiec(b.exceedances[:, j], alpha)
        assert b.christoffersen[j] == christoffersen(b.exceedances[:, j], alpha)
    assert (b.es > b.var).all()
    assert (b.var[:, 0] > b.var[:, 1]).all()
    assert b.log_score == b.log_scores.mean()


# --- reports ------------------------------------------------------------------------------------------


def test_the_frame_keeps_the_dates_and_without_them_days_are_counted():
    frame = example().to_frame()
    assert frame.index.equals(returns().index[800:])
    np.testing.assert_array_equal(frame["return"], returns()[800:])
    np.testing.assert_array_equal(frame["var_5%"], example().var[:, 1])
    np.testing.assert_array_equal(frame["es_1%"], example().es[:, 0])
    np.testing.assert_array_equal(frame["exceeded_5%"], frame["return"] < -frame["var_5%"])
    plain = backtest(GARCH(1, 1), returns().to_numpy(), start=800, refit=40, alpha=0.05)
    np.testing.assert_array_equal(plain.dates, np.arange(800, 900))
    np.testing.assert_allclose(plain.var[:, 0], example().var[:, 1], rtol=1e-13)


def test_the_summary():
    lines = example().summary().splitlines()
    first, last = (f"{returns().index[day]:%Y-%m-%d}" for day in (800, -1))
    assert f"100 days from {first} to {last}, 3 fits" in lines[1]
    for alpha, line, test in zip(("1%", "5%"), lines[4:], example().kupiec, strict=True):
        assert line.split()[:3] == [alpha, str(test.exceedances), f"{test.expected:.1f}"]


def test_the_plot_marks_the_exceedances():
    b, dates = example(), returns().index
    for index in (None, dates, dates.to_period("D")):
        figure = replace(b, series=Series(returns().to_numpy(), index)).plot()
        figure.canvas.draw()
        marks = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
        assert [len(line.get_xdata()) for line in marks] == list(b.exceedances.sum(axis=0)[::-1])


# --- arguments ----------------------------------------------------------------------------------------


def test_the_default_start_is_half_of_the_series_or_a_year():
    assert backtest(GARCH(1, 0), returns()[:254], alpha=0.05).start == 250
    assert backtest(GARCH(1, 0), returns(600), refit=300, alpha=0.05).start == 300


def test_one_warning_of_all_fits_that_did_not_converge(monkeypatch):
    def doubtful(*args, **options):
        warnings.warn("not converged", mgvbp.ConvergenceWarning, stacklevel=2)
        result = fit(*args, **options)
        result.posterior.converged = False
        return result

    fit = module.fit_volatility
    monkeypatch.setattr(module, "fit_volatility", doubtful)
    with pytest.warns(mgvbp.ConvergenceWarning, match="3 of 3 fits") as caught:
        backtest(GARCH(1, 1), returns(), start=800, refit=40)
    assert len(caught) == 1


def test_bad_arguments():
    for arguments, error, message in (
        ({"start": 20}, InvalidInputError, "at least 30"),
        ({"start": 899}, InvalidInputError, "two more"),
        ({"refit": 0}, InvalidInputError, "at least 1"),
        ({"window": 10}, InvalidInputError, "at least 30"),
        ({"window": 100, "mode": "update"}, InvalidInputError, "forgets nothing"),
        ({"mode": "again"}, InvalidInputError, "one of"),
        ({"alpha": 5.0}, InvalidInputError, "between 0 and 0.5"),
        ({"alpha": []}, InvalidInputError, "a list of numbers"),
        ({"alpha": "5%"}, InvalidTypeError, "number"),
        ({"alpha": [0.01, 0.05, 0.01]}, InvalidInputError, "different"),
        ({"alpha": [0.01, 0.01 + 1e-12]}, InvalidInputError, "different"),  # one name in the frame
        *[({"model": model}, InvalidTypeError, "such as GARCH") for model in (HAR(), "garch", GARCH)],
    ):
        with case(arguments), pytest.raises(error, match=message):
            backtest(**{"model": GARCH(1, 1), "returns": returns(), **arguments})
