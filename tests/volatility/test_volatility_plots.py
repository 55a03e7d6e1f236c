"""Pictures of volatility models: what is drawn is what the result says, on whatever days and axes."""

import dataclasses
import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib import dates, rcParams
from matplotlib.figure import Figure
from scipy import stats

from common import case
from mgvbp import InvalidInputError, InvalidTypeError, MissingDependencyError
from mgvbp.volatility import GARCH, GJR, Likelihood
from mgvbp.volatility.plots import (
    plot_forecast,
    plot_parameters,
    plot_residuals,
    plot_result,
    plot_returns,
    plot_volatility,
)
from mgvbp.volatility.series import Series

VALUES = {"mu": 0.05, "omega": 0.05, "alpha[1]": 0.05, "gamma[1]": 0.1, "beta[1]": 0.85, "nu": 8.0}
DAYS = pd.bdate_range("2020-01-01", periods=500, name="date")
RETURNS = GJR(1, 1, 1, dist="t").simulate(VALUES, len(DAYS), rng=1)


@pytest.fixture(scope="module")
def dated():
    return GJR(1, 1, 1, dist="t").fit(pd.Series(RETURNS, index=DAYS, name="index"))


@pytest.fixture(scope="module")
def plain():
    """Without dates, with two days that are lags alone."""
    return GARCH(1, 1, lags=2).fit(RETURNS)


@pytest.fixture(params=["dated", "plain"])
def result(request):
    return request.getfixturevalue(request.param)


def line(ax, label=None):
    """The points (x, y) of the line with this label, or of the only line."""
    (found,) = [line for line in ax.lines if label is None or line.get_label() == label]
    return found.get_xdata(orig=False), found.get_ydata()


def band(ax, label):
    """Lower and upper ends by x of the band with this label."""
    (found,) = [area for area in ax.collections if area.get_label() == label]
    x, y = found.get_paths()[0].vertices.T
    ends = pd.Series(y).groupby(x).agg(["min", "max"])
    return ends["min"].to_numpy(), ends["max"].to_numpy()


def positions(result):
    """Where its days belong on the axis."""
    if result.returns.index is None:
        return np.arange(2, 500)
    return dates.date2num(DAYS.to_numpy())


# --- what is drawn ------------------------------------------------------------------------------------


def test_returns_and_two_standard_deviations(result):
    ax = plot_returns(result)
    x, y = line(ax)
    np.testing.assert_array_equal(x, positions(result))
    np.testing.assert_array_equal(y, RETURNS[result.likelihood.offset :])
    low, high = band(ax, "conditional mean ± 2 standard deviations")
    np.testing.assert_allclose(high - low, 4.0 * np.asarray(result.conditional_volatility))
    np.testing.assert_allclose(0.5 * (low + high), y - np.asarray(result.residuals), atol=1e-12)


def test_volatility_and_its_band(result):
    ax = plot_volatility(result, level=0.5)
    x, y = line(ax)
    np.testing.assert_array_equal(x, positions(result))
    np.testing.assert_array_equal(y, result.conditional_volatility)
    assert ax.get_ylabel() == plot_forecast(result).get_ylabel() == "volatility, unit of returns"
    for drawn, expected in zip(band(ax, "50% credible band"), result.volatility_band(0.5), strict=True):
        np.testing.assert_allclose(drawn, expected)


def test_forecast_after_the_last_days(result):
    ax = plot_forecast(result, horizon=5, level=0.8, rng=3)
    future = result.forecast(5, rng=3)
    x, y = line(ax, "root of the expected variance")
    np.testing.assert_array_equal(x, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(y, future.volatility)
    for label, levels in {"80%": [0.1, 0.9], "50%": [0.25, 0.75]}.items():
        np.testing.assert_allclose(band(ax, label), future.quantile(levels, "volatility").T)
    past = ax.lines[0]
    np.testing.assert_array_equal(past.get_xdata(), np.arange(-59, 1))
    np.testing.assert_array_equal(past.get_ydata(), np.asarray(result.conditional_volatility)[-60:])
    last = "2021-11-30" if result.returns.index is not None else "the last return"
    assert ax.get_xlabel() == f"days after {last}"


def test_a_forecast_that_is_given_is_drawn(dated):
    """Whatever ``horizon`` and ``rng`` say, on its own axes and on the page."""
    given = dated.forecast(4, draws=100, rng=9)
    for ax in (plot_forecast(dated, horizon=7, forecast=given), plot_result(dated, forecast=given).axes[2]):
        x, y = line(ax, "root of the expected variance")
        np.testing.assert_array_equal(x, [1, 2, 3, 4])
        np.testing.assert_array_equal(y, given.volatility)


def test_residuals_against_the_fitted_distribution(result):
    ax = plot_residuals(result, level=0.8)
    n = len(result.paths.residuals)
    law = stats.norm()
    if "nu" in result.posterior:
        nu = result.posterior["nu"].mean
        law = stats.t(nu, scale=1.0 / stats.t(nu).std())
    x, y = ax.lines[1].get_data()
    np.testing.assert_allclose(x, law.ppf((np.arange(n) + 0.5) / n), atol=1e-12)
    np.testing.assert_array_equal(y, np.sort(result.standardized_residuals))
    order = stats.beta(np.arange(1, n + 1), np.arange(n, 0, -1))
    np.testing.assert_allclose(band(ax, "80% band"), [law.ppf(order.ppf(0.1)), law.ppf(order.ppf(0.9))])
    assert stats.kstest(y, law.cdf).pvalue > 0.01  # the model is right here: the points lie on the diagonal


def test_parameters_beside_maximum_likelihood(result):
    names = result.model.parameters.names
    axes = plot_parameters(result)
    assert [ax.get_title(loc="left") for ax in axes] == list(names)
    for ax, name in zip(axes, names, strict=True):
        heights, edges, _ = ax.patches[0].get_data()
        middle = 0.5 * (edges[1:] + edges[:-1])
        marginal = result.posterior[name]
        assert abs(np.average(middle, weights=heights) - marginal.mean) < 0.05 * marginal.std
        (container,) = ax.containers
        assert container.lines[0].get_xdata() == [result.ml.params[name]]
        (segments,) = container.lines[2][0].get_segments()
        np.testing.assert_allclose(np.ptp(segments[:, 0]), 2.0 * result.ml.std_errors[name])


def test_an_estimate_without_standard_error_is_a_point(plain):
    flat = dataclasses.replace(plain, ml=dataclasses.replace(plain.ml, hessian=np.zeros((6, 6))))
    for ax in plot_parameters(flat):
        assert ax.containers[0].lines[2] == ()


def test_one_page_has_it_all(result):
    figure = plot_result(result, horizon=7)
    titles = {ax.get_title(loc="left"): ax for ax in figure.axes}
    assert list(titles) == [
        "Returns",
        "Conditional volatility",
        "Volatility forecast",
        "Standardised residuals",
        *result.model.parameters.names,
    ]
    assert titles["Returns"].get_shared_x_axes().joined(titles["Returns"], titles["Conditional volatility"])
    assert line(titles["Volatility forecast"], "root of the expected variance")[0].size == 7
    assert figure.get_suptitle() == f"{result.returns.name}: {result.model!r}"
    assert result.plot(horizon=7).get_suptitle() == figure.get_suptitle()


# --- days and scales ----------------------------------------------------------------------------------


def test_kinds_of_days(dated):
    words, numbers = pd.Index([f"day {i}" for i in range(500)]), pd.RangeIndex(7, 507)
    zoned, periods = DAYS.tz_localize("America/New_York"), DAYS.to_period("D")
    for index, drawn in (
        (zoned, DAYS),
        (periods, DAYS),
        (numbers, np.arange(7, 507)),
        (words, np.arange(500)),
    ):
        series = Series(dated.returns.values, index, "index")
        ax = plot_volatility(dataclasses.replace(dated, likelihood=Likelihood(dated.model, series)))
        expected = dates.date2num(drawn.to_numpy()) if drawn is DAYS else drawn
        np.testing.assert_array_equal(line(ax)[0], expected)
        assert isinstance(ax.xaxis.get_major_formatter(), dates.ConciseDateFormatter) == (drawn is DAYS)


def test_the_scale_of_volatilities_has_ticks(plain):
    """However wide it is; ``spread`` is in units of e."""
    day = np.arange(499)
    for spread, unit in product((0.0, 0.02, 0.3, 1.0, 3.0), (0.013, 1.0, 170.0)):
        wave = unit * np.exp(spread * np.sin(day) + 0.01 * np.cos(day))
        shown = dataclasses.replace(plain)
        variance = np.repeat(wave[:, None] ** 2, 3, axis=1)
        shown.__dict__["paths"] = dataclasses.replace(plain.paths, variance=variance)
        ax = plot_volatility(shown)
        low, high = ax.get_ylim()
        ticks = [tick for tick in ax.get_yticks() if low <= tick <= high]
        with case(spread, unit):
            assert 2 <= len(ticks) <= 12
            assert len({ax.yaxis.get_major_formatter()(tick) for tick in ticks}) == len(ticks)


# --- axes and state -----------------------------------------------------------------------------------


def test_on_axes_that_are_given(dated):
    for plot in (plot_returns, plot_volatility, plot_forecast, plot_residuals):
        given = Figure().subplots()
        assert plot(dated, given) is given
        assert given.lines
        with case(plot), pytest.raises(InvalidTypeError, match="ax must be matplotlib axes"):
            plot(dated, Figure())
    axes = list(Figure().subplots(2, 3).flat)
    assert plot_parameters(dated, axes) == axes
    with pytest.raises(InvalidInputError, match="axes must be 6, one for each panel; got 5"):
        plot_parameters(dated, axes[:5])


def test_pyplot_is_left_alone(dated):
    from matplotlib import pyplot

    before = pyplot.get_fignums(), dict(rcParams)
    plot_result(dated)
    assert (pyplot.get_fignums(), dict(rcParams)) == before


def test_bad_arguments(dated):
    for plot in (plot_volatility, plot_forecast, plot_residuals):
        with pytest.raises(InvalidInputError, match=r"level must be between 0 and 1; got 1\.5"):
            plot(dated, level=1.5)
    with pytest.raises(InvalidInputError, match="horizon must be at least 1"):
        plot_result(dated, horizon=0)
    with pytest.raises(InvalidTypeError, match="horizon must be an integer"):
        plot_forecast(dated, horizon=2.5)


def test_without_matplotlib(dated, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"matplotlib.*pip install 'mgvbp\[plots\]'"):
        plot_result(dated)
