"""HAR for realised volatility: against least squares of statsmodels and arch, and the exact optimum."""

import os
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from arch.univariate import HARX
from scipy.optimize import minimize

from common import Optimum, assert_is_the_optimum, case, linear_bound
from mgvbp import Gaussian, InvalidInputError, InvalidTypeError, datasets
from mgvbp.models.har import lagged_means
from mgvbp.volatility.har import HAR, HARForecast, onward

TRUE = {"intercept": 1.0, "daily": 0.4, "weekly": 0.3, "monthly": 0.2, "sigma": 1.5}
NAMES = tuple(TRUE)


@cache
def realised(days=600):
    values = HAR().simulate(TRUE, days, rng=2)
    return pd.Series(values, pd.bdate_range("2015-01-01", periods=days), name="rv")


@cache
def fitted(convention="arch"):
    return HAR(convention=convention).fit(realised())


# --- maximum likelihood -------------------------------------------------------------------------------


def test_estimates_are_those_of_statsmodels():
    """Standard errors divide by n where least squares divides by n − 4; the robust ones are White's HC0."""
    v = realised().to_numpy()
    ols = sm.OLS(v[22:], lagged_means(v)[:-1]).fit()
    ml, n = fitted().ml, len(v) - 22
    np.testing.assert_allclose(list(ml.params.values())[:4], ols.params, rtol=1e-9)
    np.testing.assert_allclose(list(ml.std_errors.values())[:4], ols.bse * np.sqrt((n - 4) / n), rtol=1e-6)
    np.testing.assert_allclose(list(ml.robust_std_errors.values())[:4], ols.HC0_se, rtol=1e-5)
    assert ml.params["sigma"] == pytest.approx(np.sqrt(ols.ssr / n), rel=1e-12)
    assert ml.std_errors["sigma"] == pytest.approx(ml.params["sigma"] / np.sqrt(2 * n), rel=1e-5)
    assert ml.log_likelihood == pytest.approx(ols.llf, rel=1e-12)
    # statsmodels does not count σ
    assert fitted().aic == pytest.approx(ols.aic + 2.0, rel=1e-12)
    assert fitted().bic == pytest.approx(ols.bic + np.log(n), rel=1e-12)


def test_estimates_are_those_of_arch():
    other = HARX(realised(), lags=[1, 5, 22]).fit(disp="off")
    np.testing.assert_allclose(list(fitted().ml.params.values())[:4], other.params.iloc[:4], rtol=1e-6)
    assert fitted().ml.log_likelihood == pytest.approx(other.loglikelihood, rel=1e-9)
    assert fitted().aic == pytest.approx(other.aic, rel=1e-9)


# --- posterior ----------------------------------------------------------------------------------------


@cache
def exact_optimum():
    """By BFGS on the exact bound, over the mean and the Cholesky factor in units of the posterior's."""
    ml, model = fitted("paper").ml, HAR().likelihood(realised())
    root = np.linalg.cholesky(np.linalg.inv(-ml.hessian))
    rows, columns = np.tril_indices(5)

    def gaussian(x):
        L = np.zeros((5, 5))
        L[rows, columns] = np.where(rows == columns, np.exp(x[5:]), x[5:])
        L = root @ L
        return Gaussian(ml.psi + root @ x[:5], L @ L.T)

    found = minimize(lambda x: -linear_bound(model, gaussian(x)), np.zeros(20), method="BFGS")
    q = gaussian(found.x)
    return Optimum(-found.fun, q.mean, q.std**2)


def assert_optimal(result, optimum):
    exact = linear_bound(result.likelihood, result.posterior)
    assert_is_the_optimum(result.posterior, exact, optimum, np.sqrt(optimum.variance))


def test_the_posterior_is_the_exact_optimum():
    # 3% of a variance is 0.0002 nats: less than the default tolerance promises
    result, optimum = HAR(convention="paper").fit(realised(), tol=0.001), exact_optimum()
    assert_optimal(result, optimum)
    assert result.lower_bound == result.posterior.lower_bound
    assert result.log_likelihood <= result.ml.log_likelihood


def test_the_papers_data():
    if "MGVBP_DATA" not in os.environ:
        pytest.skip("MGVBP_DATA does not name a directory with the authors' files")
    volatility, table = datasets.load("sp500").frame["rk"], datasets.load("har")
    annual = volatility * table.frame.iloc[-1, 0] / volatility.iloc[-1]
    result = HAR(convention="paper").fit(annual[: 22 + len(table.train)], tol=0.001)
    # from the closed form of the bound, with gradients below 1e-12
    optimum = Optimum(
        -5080.0110579,
        [1.069662, 0.4885653, 0.4204284, -0.01115988, 1.593217],
        [0.04747974, 0.0008336603, 0.00158362, 0.000845643, 0.0002975457],
    )
    assert_optimal(result, optimum)


def test_the_unit_does_not_matter():
    """In the convention of arch the prior moves along: so does the posterior, and the bound by n log 100."""
    cents = HAR().fit(100.0 * realised())
    shift = np.array([0.0, 0.0, 0.0, 0.0, np.log(100.0)])
    unit = np.array([100.0, 1.0, 1.0, 1.0, 1.0])
    moved = unit * fitted().posterior.mean + shift
    assert np.abs((cents.posterior.mean - moved) / cents.posterior.std).max() < 0.05
    np.testing.assert_allclose(cents.posterior.std, unit * fitted().posterior.std, rtol=0.03)
    assert cents.lower_bound == pytest.approx(fitted().lower_bound - 578 * np.log(100.0), abs=0.02)


def test_the_priors():
    v = realised().to_numpy()
    prior = HAR().prior(v)
    np.testing.assert_allclose(prior.mean, [0.0, 0.0, 0.0, 0.0, np.log(v.std())])
    np.testing.assert_allclose(prior.std**2, [np.mean(v**2), 1.0, 1.0, 1.0, 5.0])
    paper = HAR(convention="paper").prior(v)
    np.testing.assert_array_equal(paper.mean, np.zeros(5))
    np.testing.assert_allclose(paper.std**2, 5.0)
    narrow = HAR().fit(v, Gaussian(mean=[0.0] * 5, variance=1e-6))
    assert np.abs(narrow.posterior.mean[1:4]).max() < 0.1


def test_parameters_have_names():
    assert fitted().posterior.labels == NAMES
    for name, value in TRUE.items():  # the true values are within 4 posterior standard deviations
        assert abs(fitted().posterior[name].mean - value) < 4.0 * fitted().posterior[name].std


def test_an_update_is_a_fit_of_everything():
    first = HAR().fit(realised()[:400], fitted().prior)
    second = first.update(realised()[400:])
    gap = (second.posterior.mean - fitted().posterior.mean) / fitted().posterior.std
    assert np.abs(gap).max() < 0.1
    np.testing.assert_allclose(second.posterior.std, fitted().posterior.std, rtol=0.05)
    # a first posterior within its certificate may be 0.1 sd off, which changes the second bound by a tenth of a nat
    assert first.lower_bound + second.lower_bound == pytest.approx(fitted().lower_bound, abs=0.2)
    assert second.ml.params == pytest.approx(fitted().ml.params)
    assert second.likelihood.n_obs == 200
    assert second.conditional_volatility.index.equals(realised().index[22:])
    whole = HAR().likelihood(realised())
    assert second.log_likelihood == pytest.approx(whole(second.posterior.mean[None])[0], rel=1e-12)
    assert second.aic == pytest.approx(fitted().aic)
    heading = second.summary().splitlines()[1]
    assert heading.startswith(
        "rv: 200 new of 578 days, 2015-01-01 to 2017-04-19; the lower bound is that of the new"
    )
    assert "new" not in fitted().summary()


# --- paths --------------------------------------------------------------------------------------------


def test_fitted_values_and_residuals_are_means_over_the_posterior():
    """Within 5 standard errors of 20,000 draws, on every day; the band has its share of the draws.

    The posterior is made wider, and correlated throughout, so that no term is too small to be seen.
    """
    sd = np.array([0.5, 0.05, 0.05, 0.05, 0.3])
    wide = Gaussian(fitted().posterior.mean, np.outer(sd, sd) * (0.6 * np.eye(5) + 0.4))
    result = replace(fitted(), posterior=wide)
    theta = result.posterior.sample(20_000, rng=1)
    X, y = lagged_means(realised())[:-1:40], realised().to_numpy()[22::40]
    lines = theta[:, :4] @ X.T
    for found, draws in (
        (result.conditional_volatility, lines),
        (result.residuals, y - lines),
        (result.standardized_residuals, (y - lines) * np.exp(-theta[:, 4:])),
    ):
        error = (np.asarray(found)[::40] - draws.mean(axis=0)) / (draws.std(axis=0) / np.sqrt(20_000))
        assert np.abs(error).max() < 5.0
    low, high = (np.asarray(end)[::40] for end in result.volatility_band(0.8))
    inside = ((lines > low) & (lines < high)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.8, atol=5.0 * np.sqrt(0.16 / 20_000))


def test_dates_are_kept():
    for found in (fitted().conditional_volatility, fitted().residuals, *fitted().volatility_band()):
        assert found.index.equals(realised().index[22:])
    assert isinstance(HAR().fit(realised().to_numpy()).residuals, np.ndarray)


# --- forecasts ----------------------------------------------------------------------------------------


def test_days_go_on_as_the_companion_matrix_says():
    beta, past = np.array([1.0, 0.4, 0.3, 0.2]), realised().to_numpy()[-22:]
    weights = np.concatenate([[0.4], np.zeros(21)]) + 0.2 / 22.0
    weights[:5] += 0.3 / 5.0
    companion = np.eye(22, k=-1)
    companion[0] = weights
    state, expected = past[::-1], []
    for _ in range(30):
        state = companion @ state
        state[0] += beta[0]
        expected.append(state[0])
    theta = np.append(beta, 0.0)[None]
    found = onward(theta, past[:, None], np.zeros((30, 1)))[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    shocks = np.zeros((30, 1))
    shocks[0] = 2.0  # times σ = 1: the path moves by the weights of the moving average
    moved = onward(theta, past[:, None], shocks)[:, 0] - found
    np.testing.assert_allclose(moved[:2], [2.0, 2.0 * weights[0]], rtol=1e-12)


def test_tomorrow_has_the_moments_of_the_posterior_predictive():
    """Mean x'E[β]; variance x'Cov(β)x + E[σ²]; 5 standard errors of 200,000 paths."""
    result, n = fitted(), 200_000
    tomorrow = result.forecast(1, draws=n, rng=4).volatility[0]
    x, q = lagged_means(realised())[-1], result.posterior
    mean, variance = x @ q.mean[:4], x @ q.covariance[:4, :4] @ x
    variance += np.exp(2.0 * q.mean[4] + 2.0 * q.covariance[4, 4])
    assert tomorrow.mean() == pytest.approx(mean, abs=5.0 * np.sqrt(variance / n))
    assert tomorrow.var() == pytest.approx(variance, rel=5.0 * np.sqrt(2.0 / n))


def test_far_ahead_is_the_mean_of_the_process():
    """With parameters that are known: 1/(1 − 0.9) = 10, and the variance of a long simulation."""
    theta = HAR.parameters.unconstrain(TRUE)
    shocks = np.random.default_rng(5).standard_normal((400, 4000))
    far = onward(np.tile(theta, (4000, 1)), np.full((22, 4000), 20.0), shocks)[-1]
    assert far.mean() == pytest.approx(10.0, abs=5.0 * far.std() / np.sqrt(4000))
    long = HAR().simulate(TRUE, 20_000, rng=6)
    assert long.mean() == pytest.approx(10.0, abs=0.6)
    assert long.std() == pytest.approx(far.std(), rel=0.1)


def test_the_forecast_tells_its_quantiles():
    ahead = fitted().forecast(5, draws=1000, rng=1)
    assert ahead.volatility.shape == (5, 1000)
    np.testing.assert_array_equal(ahead.quantile(0.5)[:, 0], np.median(ahead.volatility, axis=1))
    frame = ahead.to_frame(levels=[0.1, 0.9])
    assert list(frame) == ["mean", "10%", "90%"]
    assert list(frame.index) == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(frame["mean"], ahead.volatility.mean(axis=1))


# --- reports and bad input ----------------------------------------------------------------------------


def test_the_summary():
    lines = fitted().summary().splitlines()
    assert "rv: 578 days, 2015-01-01 to 2017-04-19" in lines[1]
    assert [line.split()[0] for line in lines[6:]] == list(NAMES)
    shown, sd = float(lines[7].split()[5]), fitted().posterior["daily"].std
    assert shown == pytest.approx(fitted().ml.params["daily"], abs=0.01 * sd)  # three digits of it


def test_the_plot():
    for result in (HAR().fit(realised()[:52]), fitted()):
        figure = result.plot(horizon=7)
        figure.canvas.draw()
        past, future = figure.axes
        np.testing.assert_array_equal(past.lines[1].get_ydata(), result.conditional_volatility)
        np.testing.assert_array_equal(future.lines[1].get_ydata(), result.forecast(7).mean)


def test_bad_arguments():
    value, kind, fit = InvalidInputError, InvalidTypeError, HAR().fit
    for call, error, message in (
        (lambda: fit(np.ones(51)), value, "51 values; this model needs at least 52"),
        (lambda: fit(np.ones(100)), value, "constant"),
        (lambda: fit(np.append(np.arange(99.0), np.nan)), value, "missing"),
        (lambda: fit(np.arange(200.0).reshape(2, 100)), value, "one series"),
        (lambda: fit(["a"] * 100), kind, "numbers"),
        (lambda: fit(1e200 * realised()), value, "too large to be squared"),
        (lambda: HAR(convention="corsi"), value, "convention"),
        (lambda: HAR().simulate({**TRUE, "daily": 0.6}, 10), value, "below 1"),
        (lambda: fitted().volatility_band(95), value, "level"),
        (lambda: fitted().volatility_band("a"), kind, "level must be a number"),
        (lambda: fitted().volatility_band([0.5, 0.9]), value, "level must be between"),
        (lambda: fitted().update(realised()[-5:]), value, "not after"),
        (
            lambda: fitted().update([np.nan]),
            value,
            "the new days of realised volatility has 1 values that are missing",
        ),
        (lambda: fitted().forecast(10**9), value, "horizon must be at most"),
        (lambda: HARForecast(np.ones((1, 1))).quantile(1.0), value, "between 0 and 1"),
    ):
        with case(message), pytest.raises(error, match=message):
            call()
