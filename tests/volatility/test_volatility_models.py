"""Volatility models from the public API: against arch, against the exact optimum, and on bad input."""

import dataclasses
import os
import pickle
from itertools import cycle, product

import numpy as np
import pandas as pd
import pytest
from arch import arch_model
from arch.data import nasdaq, sp500
from scipy.stats import gamma, norm

import mgvbp
from mgvbp import Gaussian, InvalidInputError, InvalidTypeError, ScaleWarning, datasets
from mgvbp.errors import DivergenceError, NonFiniteWarning
from mgvbp.volatility import ARCH, EGARCH, FIGARCH, GARCH, GJR, Likelihood
from mgvbp.volatility.forecast import forecast, last_days
from mgvbp.volatility.result import estimate
from mgvbp.volatility.risk import mixture_quantile

SP500 = 100.0 * sp500.load()["Adj Close"].pct_change().dropna()
NASDAQ = 100.0 * nasdaq.load()["Adj Close"].pct_change().dropna()
SHORT = SP500[-1000:]

MODELS = {
    "ARCH(1)": (ARCH(1), {"vol": "ARCH", "p": 1}),
    "ARCH(2)": (ARCH(2), {"vol": "ARCH", "p": 2}),
    "GARCH(1,1)": (GARCH(1, 1), {"p": 1, "q": 1}),
    "GARCH(2,2)": (GARCH(2, 2), {"p": 2, "q": 2}),
    "GJR(1,1,1)": (GJR(1, 1, 1), {"p": 1, "o": 1, "q": 1}),
    "GJR(1,1,2)": (GJR(1, 1, 2), {"p": 1, "o": 1, "q": 2}),
    "GJR(0,1,1)": (GJR(0, 1, 1), {"p": 0, "o": 1, "q": 1}),
    "EGARCH(1,0,1)": (EGARCH(1, 0, 1), {"vol": "EGARCH", "p": 1, "q": 1}),
    "EGARCH(1,1,1)": (EGARCH(1, 1, 1), {"vol": "EGARCH", "p": 1, "o": 1, "q": 1}),
    "EGARCH(2,1,2)": (EGARCH(2, 1, 2), {"vol": "EGARCH", "p": 2, "o": 1, "q": 2}),
    "FIGARCH(0,0)": (FIGARCH(0, 0), {"vol": "FIGARCH", "p": 0, "q": 0}),
    "FIGARCH(0,1)": (FIGARCH(0, 1), {"vol": "FIGARCH", "p": 0, "q": 1}),
    "FIGARCH(1,1)": (FIGARCH(1, 1), {"vol": "FIGARCH", "p": 1, "q": 1}),
}
MEANS = {
    "zero": ({"mean": "zero"}, {"mean": "Zero"}),
    "constant": ({}, {"mean": "Constant"}),
    "ar": ({"lags": 2}, {"mean": "AR", "lags": 2}),
}
DISTS = {"normal": ({}, {}), "t": ({"dist": "t"}, {"dist": "t"})}


def pair(name, mean="constant", dist="normal", returns=SHORT):
    """Our model and arch's."""
    ours, theirs = MODELS[name]
    a, b = MEANS[mean], DISTS[dist]
    return type(ours)(*ours.orders, **a[0], **b[0]), arch_model(returns, **theirs, **a[1], **b[1])


# --- arch ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "mean", "dist"),
    [(name, *kind) for name, kind in zip(MODELS, cycle(product(MEANS, DISTS)), strict=False)],
)
def test_log_likelihood_and_variances_are_those_of_arch(name, mean, dist):
    """Each model with one mean and distribution in turn; the filters' tests have all combinations."""
    model, other = pair(name, mean, dist)
    likelihood = model.likelihood(SHORT)
    grid = model.starts(likelihood)
    psi = grid[:: len(grid) // 3] + np.random.default_rng(0).normal(
        0.0, 0.1, (len(grid[:: len(grid) // 3]), 1)
    )
    found, paths = likelihood(psi), likelihood.paths(psi)
    for s, row in enumerate(psi):
        fixed = other.fix(np.array(list(model.parameters.constrain(row).values())))
        assert found[s] == pytest.approx(fixed.loglikelihood, abs=1e-8)
        volatility = fixed.conditional_volatility.to_numpy()[likelihood.offset :]
        np.testing.assert_allclose(np.sqrt(paths.variance[:-1, s]), volatility, rtol=1e-10)
        np.testing.assert_allclose(
            paths.residuals[:, s], fixed.resid.to_numpy()[likelihood.offset :], rtol=1e-9, atol=1e-12
        )
        analytic = fixed.forecast(horizon=1, reindex=False)
        # to forecast, arch casts back anew, from other residuals: it shows where lags reach before the sample
        rel = 1e-6 if name.startswith("FIGARCH") else 1e-9
        assert paths.variance[-1, s] == pytest.approx(analytic.variance.iloc[0, 0], rel=rel)
        assert paths.mean[-1, s] == pytest.approx(analytic.mean.iloc[0, 0], rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(likelihood.pointwise(psi).sum(axis=1), found, rtol=0, atol=1e-8)


@pytest.mark.parametrize("returns", [SP500, NASDAQ], ids=["sp500", "nasdaq"])
@pytest.mark.parametrize(
    ("name", "dist"),
    [("GARCH(1,1)", "normal"), ("GJR(1,1,1)", "t"), ("EGARCH(1,1,1)", "t"), ("FIGARCH(1,1)", "normal")],
)
def test_estimates_are_those_of_arch(name, dist, returns):
    model, other = pair(name, "constant", dist, returns)
    result, fitted = model.fit(returns), other.fit(disp="off")
    assert result.ml.log_likelihood > fitted.loglikelihood - 1e-3
    assert result.posterior.converged
    if result.ml.log_likelihood < fitted.loglikelihood + 1e-2:  # else arch stopped short
        theirs = dict(zip(model.parameters.names, fitted.params, strict=True))
        errors = dict(zip(model.parameters.names, fitted.std_err, strict=True))
        plain = other.fit(disp="off", cov_type="classic").std_err
        classic = dict(zip(model.parameters.names, plain, strict=True))
        on_edge = {name for name, value in result.ml.params.items() if 0.0 <= value < 1e-5}
        for parameter, value in theirs.items():
            entry = result.posterior[parameter]
            assert abs(entry.mean - value) < 2.0 * entry.std, parameter
            assert result.ml.params[parameter] == pytest.approx(value, abs=0.05 * errors[parameter])
            if not on_edge:  # there arch's Hessian is a one-sided guess, which the other errors depend on
                assert result.ml.std_errors[parameter] == pytest.approx(classic[parameter], rel=0.1)
                assert result.ml.robust_std_errors[parameter] == pytest.approx(errors[parameter], rel=0.15)
        assert {name for name, error in result.ml.std_errors.items() if np.isnan(error)} == on_edge


@pytest.mark.parametrize("name", ["GARCH(1,1)", "GJR(1,1,1)", "FIGARCH(1,1)"])
@pytest.mark.parametrize("mean", ["constant", "ar"])
def test_simulated_forecasts_agree_with_the_analytic_ones(name, mean):
    """Many paths of one parameter; 20 numbers within 4.5 standard errors: a level of 1.4e-4."""
    model, other = pair(name, mean)
    likelihood = model.likelihood(SHORT)
    values = model.fit(SHORT).ml.params
    analytic = other.fix(np.array(list(values.values()))).forecast(horizon=10, reindex=False)
    psi = model.parameters.unconstrain(values)[None]
    paths = 10_000 if name.startswith("FI") else 100_000  # a path of FIGARCH costs more
    future = forecast(likelihood, psi, 10, np.random.default_rng(3), paths)
    error = future.variance.std(axis=1) / np.sqrt(paths)
    assert (
        np.abs(future.variance.mean(axis=1) - analytic.residual_variance.to_numpy()[0]) < 4.5 * error + 1e-5
    ).all()
    error = future.returns.std(axis=1) / np.sqrt(paths)
    assert (np.abs(future.mean - analytic.mean.to_numpy()[0]) < 4.5 * error).all()


def test_only_estimates_on_the_edge_have_no_standard_error():
    ml = GJR(2, 2, 1, dist="t").fit(SP500[-1500:]).ml
    at_zero = {name for name, value in ml.params.items() if abs(value) < 1e-5}
    assert 0 < len(at_zero) < len(ml.params)
    assert {name for name, error in ml.std_errors.items() if np.isnan(error)} == at_zero
    assert {name for name, error in ml.robust_std_errors.items() if np.isnan(error)} == at_zero


def test_the_best_of_several_searches_is_the_estimate(result):
    far = result.ml.psi + 3.0 * np.eye(len(result.ml.psi))[1]
    both = estimate(result.likelihood, far, result.ml.psi)
    assert both.log_likelihood == pytest.approx(result.ml.log_likelihood, abs=1e-6)
    assert both.converged


def test_a_search_that_did_not_arrive_says_so(result):
    ml = dataclasses.replace(result.ml, converged=False)
    assert "at its maximum" in result.summary()
    assert "where the search for its maximum ended" in dataclasses.replace(result, ml=ml).summary()


@pytest.mark.parametrize("shift", [150.0, -500.0])
def test_a_mean_far_from_zero_is_found(shift):
    plain, shifted = GARCH(1, 1).fit(SHORT), GARCH(1, 1).fit(SHORT + shift)
    assert shifted.ml.log_likelihood == pytest.approx(plain.ml.log_likelihood, abs=1e-4)
    assert shifted.ml.params["mu"] == pytest.approx(plain.ml.params["mu"] + shift, abs=1e-3)
    assert shifted.posterior["mu"].mean == pytest.approx(
        shifted.ml.params["mu"], abs=0.5 * plain.posterior["mu"].std
    )
    assert shifted.posterior["beta[1]"].mean == pytest.approx(plain.posterior["beta[1]"].mean, abs=0.01)


# --- the exact optimum -----------------------------------------------------------------------------------

OPTIMA = [
    # model, maximum of the log-likelihood, of the lower bound, the mean and standard deviation of ψ there
    (
        ARCH(1, convention="paper"),
        -2256.116172,
        -2262.246061,
        [-0.6550752, 0.5769737],
        [0.0492258, 0.2653547],
    ),
    (
        GARCH(1, 1, convention="paper"),
        -2017.592437,
        -2027.500797,
        [-3.155673, -1.208857, 3.122412],
        [0.1563101, 0.1402813, 0.3625105],
    ),
    (
        GJR(1, 1, 1, convention="paper"),
        -1990.852451,
        -2003.554558,
        [-3.136964, -2.108251, -1.305695, 3.470587],
        [0.1462936, 0.2126336, 0.1482755, 0.4528783],
    ),
    (
        GJR(1, 1, 2, convention="paper"),
        -1990.806654,
        -2003.186689,
        [-3.114594, -2.032577, -1.184756, 2.328075, 0.9977972],
        [0.1527719, 0.2130276, 0.1582688, 0.8346204, 1.285874],
    ),
    (
        EGARCH(1, 0, 1, convention="paper"),
        -2032.722360,
        -2048.246017,
        [-0.003379758, 0.4132681, 0.9291762],
        [0.008982992, 0.03514221, 0.01019013],
    ),
    (
        EGARCH(1, 1, 1, convention="paper"),
        -1989.608445,
        -2010.246165,
        [-0.0144057, 0.3500246, -0.1716093, 0.9297002],
        [0.008209419, 0.03382424, 0.01891448, 0.009485499],
    ),
    (
        FIGARCH(0, 1, convention="paper"),
        -2015.093965,
        -2022.568567,
        [-2.310352, 0.5899965, 0.5917296],
        [0.1741694, 0.4168056, 0.2876522],
    ),
    (
        FIGARCH(1, 1, convention="paper"),
        -2014.721012,
        -2022.673050,
        [-2.305762, -0.5748617, 0.6733225, 0.6920917],
        [0.1734897, 1.86895, 0.4221181, 0.2238497],
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def paper_returns():
    if "MGVBP_DATA" not in os.environ:
        pytest.skip("MGVBP_DATA does not name a directory with the authors' files")
    return datasets.load("sp500").train["r"]


@pytest.mark.parametrize(
    ("model", "maximum", "bound", "mean", "sd"), OPTIMA, ids=[repr(row[0]) for row in OPTIMA]
)
def test_fits_reach_the_exact_optimum(model, maximum, bound, mean, sd, paper_returns):
    result = model.fit(paper_returns)
    assert result.ml.log_likelihood == pytest.approx(maximum, abs=1e-3)
    again = mgvbp.fit(
        result.likelihood, model.prior(paper_returns), initial_mean=np.zeros(len(mean)), max_evaluations=5000
    )
    for posterior in (result.posterior, again):
        assert posterior.converged
        assert posterior.n_evaluations <= 5000
        # the reported bound is an average over the last draws: the certificate and its error tell by how much
        assert posterior.lower_bound == pytest.approx(bound, abs=0.02 + 3.0 * posterior.lower_bound_se)
        fresh = posterior.diagnose(20_000, rng=1)
        assert fresh.elbo == pytest.approx(bound, abs=0.02 + 3.0 * fresh.elbo_se)
        # 0.02 nats allow 0.2 standard deviations, and more in a direction of large correlations
        assert (np.abs(posterior.mean - mean) < 0.3 * np.array(sd)).all()
        np.testing.assert_allclose(posterior.std, sd, rtol=0.15)


# --- what a result has ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return GJR(1, 1, 1, dist="t").fit(SHORT)


def test_dates_are_kept(result):
    for series in (result.conditional_volatility, result.residuals, *result.volatility_band(0.9)):
        assert isinstance(series, pd.Series)
        pd.testing.assert_index_equal(series.index, SHORT.index)
    late = GARCH(1, 1, lags=3).fit(SHORT)
    pd.testing.assert_index_equal(late.conditional_volatility.index, SHORT.index[3:])
    plain = GARCH(1, 1).fit(SHORT.to_numpy())
    assert isinstance(plain.conditional_volatility, np.ndarray)


def test_the_band_holds_the_mean_and_widens_with_its_level(result):
    low, high = result.volatility_band(0.9)
    lower, higher = result.volatility_band(0.99)
    middle = result.conditional_volatility
    assert ((low < middle) & (middle < high)).all()
    assert ((lower < low) & (high < higher)).all()


def test_standardised_residuals_are_standardised(result):
    z = result.standardized_residuals
    assert z.std() == pytest.approx(1.0, abs=0.05)
    # what a GARCH model is for: no correlation is left in the squares (5% critical value of Ljung-Box, 10 lags)
    squares = z.to_numpy() ** 2 - (z**2).mean()
    acf = np.array([squares[k:] @ squares[:-k] for k in range(1, 11)]) / (squares @ squares)
    assert len(z) * (acf**2).sum() < 18.3


def test_information_criteria(result):
    d, n = len(result.model.parameters.names), len(SHORT)
    assert result.aic == pytest.approx(2 * d - 2 * result.ml.log_likelihood)
    assert result.bic == pytest.approx(np.log(n) * d - 2 * result.ml.log_likelihood)
    assert result.lower_bound < result.log_likelihood < result.ml.log_likelihood


def test_one_day_risk_is_that_of_simulation(result):
    """200,000 simulated returns; 3% and 5% are about four standard errors."""
    r = result.forecast(1, draws=200_000, rng=1).returns[0]
    for alpha in (0.01, 0.05):
        var, es = result.var(alpha), result.expected_shortfall(alpha)
        assert var == pytest.approx(-np.quantile(r, alpha), rel=0.03)
        assert es == pytest.approx(-r[r < -var].mean(), rel=0.05)
        assert es > var > 0.0


def test_risk_over_a_week_is_that_of_the_sum(result):
    total = result.forecast(5, rng=7).returns.sum(axis=0)
    assert result.var(0.05, horizon=5, rng=7) == pytest.approx(-np.quantile(total, 0.05))
    assert result.expected_shortfall(0.05, horizon=5, rng=7) > result.var(0.05, horizon=5, rng=7)


def test_the_summary_shows_both_estimates(result):
    text = result.summary()
    for name in result.model.parameters.names:
        assert name in text
    assert "GJR(1, 1, 1" in text
    assert f"{result.lower_bound:.3f}" in text
    assert "2018-12-31" in text


def test_a_prior_on_the_constrained_scale():
    """A sharp prior on α wins over the data."""
    model = GARCH(1, 1, mean="zero")
    prior = model.parameters.prior(
        omega=gamma(2.0), **{"alpha[1]": norm(0.3, 0.001), "beta[1]": norm(0.5, 1.0)}
    )
    assert model.fit(SHORT, prior).posterior["alpha[1]"].mean == pytest.approx(0.3, abs=0.003)


def test_the_scale_of_the_returns_does_not_matter():
    """With c times the returns: ω times c², μ times c, and the log evidence less T log c."""
    c, model = 8.0, GARCH(1, 1)
    one, other = model.fit(SHORT), model.fit(c * SHORT)
    assert other.ml.log_likelihood == pytest.approx(one.ml.log_likelihood - len(SHORT) * np.log(c), abs=1e-6)
    assert other.lower_bound - one.lower_bound == pytest.approx(
        -len(SHORT) * np.log(c),
        abs=0.02 + 3 * (one.posterior.lower_bound_se + other.posterior.lower_bound_se),
    )
    assert other.posterior["omega"].mean == pytest.approx(c**2 * one.posterior["omega"].mean, rel=0.05)


def test_simulated_series_come_back():
    truth = {"mu": 0.1, "omega": 0.1, "alpha[1]": 0.1, "beta[1]": 0.8}
    y = GARCH(1, 1).simulate(truth, 4000, rng=5)
    assert y.var() == pytest.approx(1.0, rel=0.2)  # ω/(1 − α − β)
    posterior = GARCH(1, 1).fit(y).posterior
    for name, value in truth.items():
        assert abs(posterior[name].mean - value) < 3.5 * posterior[name].std, name


# --- new returns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mean"), [*zip(MODELS, cycle(MEANS), strict=False)])
def test_the_likelihood_of_new_returns_is_what_the_old_ones_leave(name, mean):
    model, _ = pair(name, mean)
    first, both = SHORT[:600], SHORT[:700]
    psi = model.starts(model.likelihood(first))[:4]
    after = Likelihood(model, model.series(both), known=600)
    assert after.n_obs == 100
    # the whole with the start-up values of the first part
    whole = Likelihood(model, model.series(both))
    whole.sample = after.sample
    np.testing.assert_allclose(model.likelihood(first)(psi) + after(psi), whole(psi), rtol=0, atol=1e-8)


@pytest.mark.parametrize("convention", ["arch", "paper"])
def test_what_is_known_does_not_depend_on_what_comes(convention):
    """Start-up values and safeguards come from the known returns alone, however few they are."""
    model = GARCH(1, 1, convention=convention)
    values = SHORT.to_numpy()[:100]
    other = np.append(values[:40], -3.0 * values[40:] + 1.0)
    one, two = (Likelihood(model, model.series(v), known=40) for v in (values, other))
    psi = model.starts(model.likelihood(values))[:3]
    np.testing.assert_array_equal(one.paths(psi).variance[:41], two.paths(psi).variance[:41])


def test_updating_gives_the_posterior_of_all_returns():
    """Up to what the earlier posteriors were not Gaussian: within 0.3 standard deviations here."""
    model = GARCH(1, 1)
    at_once, prior = model.fit(SP500[:2000]), model.prior(SP500[:2000])
    before = model.fit(SP500[:1800], prior)
    result = before.update(SP500[1800:1900]).update(SP500[1900:2000])
    scale = at_once.posterior.std
    assert np.abs((before.posterior.mean - at_once.posterior.mean) / scale).max() > 0.4
    assert np.abs((result.posterior.mean - at_once.posterior.mean) / scale).max() < 0.3
    np.testing.assert_allclose(result.posterior.std, scale, rtol=0.2)
    assert result.ml.log_likelihood == pytest.approx(at_once.ml.log_likelihood, abs=1e-6)
    pd.testing.assert_index_equal(result.conditional_volatility.index, SP500.index[:2000])


def test_updates_must_come_later(result):
    with pytest.raises(InvalidInputError, match="not after"):
        result.update(SHORT[-5:])


# --- bad input ------------------------------------------------------------------------------------------------

GAP = SHORT.copy()
GAP.iloc[17] = np.nan
BAD = [
    (lambda: GARCH(1, 1).fit(GAP), InvalidInputError, r"1 values .* first at 20\d\d-\d\d-\d\d"),
    (lambda: GARCH(1, 1).fit(np.full(100, 2.0)), InvalidInputError, "constant at 2.0"),
    (lambda: GARCH(1, 1).fit(SHORT[:10]), InvalidInputError, "10 values; .* at least 30"),
    (lambda: GARCH(1, 1).fit([]), InvalidInputError, "0 values"),
    (lambda: GARCH(1, 1).fit("returns.csv"), InvalidTypeError, "must be numbers"),
    (lambda: GARCH(1, 1).fit(np.zeros((50, 2))), InvalidInputError, "one series"),
    (
        lambda: GARCH(1, 1).fit(1e200 * SHORT),
        InvalidInputError,
        "too large to be squared, up to .*e.200: multiply",
    ),
    (
        lambda: GARCH(1, 1).fit(1e-200 * SHORT),
        InvalidInputError,
        "too small to be squared, up to .*e-200: multiply",
    ),
    (
        lambda: GARCH(1, 1).fit(SHORT).update([1e200]),
        InvalidInputError,
        r"too large to be squared, up to 1e\+200",
    ),
    (lambda: GARCH(3, 1), InvalidInputError, "p must be at most 2"),
    (lambda: GARCH(0, 1), InvalidInputError, "term in past returns"),
    (lambda: EGARCH(0, 0, 1), InvalidInputError, "term in past returns"),
    (lambda: FIGARCH(2, 1), InvalidInputError, "p must be at most 1"),
    (lambda: GARCH(1.5, 1), InvalidTypeError, "p must be an integer"),
    (lambda: GARCH(1, 1, mean="ar"), InvalidInputError, "lags=1 or more"),
    (lambda: GARCH(1, 1, mean="garch"), InvalidInputError, "'zero', 'constant', 'ar'"),
    (lambda: GARCH(1, 1, dist="cauchy"), InvalidInputError, "'normal', 't'"),
    (lambda: GARCH(1, 1, convention="matlab"), InvalidInputError, "'arch', 'paper'"),
    (lambda: GARCH(1, 1).simulate({"omega": 1.0}, 10), InvalidInputError, r"expected mu, omega, alpha\[1\]"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("level", [0.0, 0.5, 1.0, -1.0])
def test_bad_levels(result, level):
    with pytest.raises(InvalidInputError, match="alpha must be between"):
        result.var(level)


@pytest.mark.parametrize("horizon", [0, -3])
def test_bad_horizons(result, horizon):
    with pytest.raises(InvalidInputError, match="horizon must be at least 1"):
        result.forecast(horizon)


def test_badly_scaled_returns_get_advice_and_a_fit():
    with pytest.warns(ScaleWarning, match=r"fit 100 \* returns"):
        small = GARCH(1, 1).fit(SHORT / 100.0)
    large = GARCH(1, 1).fit(SHORT)
    assert small.posterior.converged
    assert small.posterior["beta[1]"].mean == pytest.approx(large.posterior["beta[1]"].mean, abs=0.01)


@pytest.mark.parametrize("prices", [sp500.load()["Adj Close"], nasdaq.load()["Adj Close"][-40:]])
def test_prices_get_a_warning(prices):
    with pytest.warns(
        ScaleWarning, match=r"Adj Close looks like prices.*fit returns, .*np\.log\(prices\)"
    ) as caught:
        ARCH(1).fit(prices)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_what_is_not_prices_gets_no_warning():
    """Returns around a large mean, squares, and absolute values: all positive, but no random walk."""
    for series in (SHORT + 500.0, SHORT**2 + 1e-6, SHORT.abs() + 1e-6):
        ARCH(1).fit(series)


@pytest.mark.parametrize("level", ["a", None, 0.01j, object()])
def test_levels_are_numbers(result, level):
    for ask in (result.var, result.expected_shortfall, result.volatility_band):
        with pytest.raises(InvalidTypeError, match=r"(alpha|level) must be a number"):
            ask(level)


def test_one_level_at_a_time(result):
    for ask in (result.var, result.forecast(2).var, result.volatility_band):
        with pytest.raises(InvalidInputError, match=r"must be between 0 and .*; got \[0.01, 0.05\]"):
            ask([0.01, 0.05])


# --- forecasts of long series, of explosive models, after updates, from a file ----------------------------


@pytest.mark.parametrize("model", [GARCH(2, 2, lags=2), EGARCH(1, 1, 1, dist="t"), FIGARCH(1, 1)], ids=repr)
def test_futures_of_one_draw_are_those_of_its_copies(model, monkeypatch):
    """Three futures each of four draws: the same as one future each of the draws three times over, to rounding.

    However few are filtered at once, and though only the days that matter are kept.
    """
    likelihood = model.likelihood(SP500[-1200:])
    theta = model.starts(likelihood)[:4] + 0.1 * np.arange(4)[:, None]
    shared = forecast(likelihood, theta, 5, np.random.default_rng(1), paths=11)
    assert shared.returns.shape == shared.location.shape == shared.variance.shape == (5, 11)
    monkeypatch.setattr("mgvbp.volatility.forecast.CELLS", 3 * 1200)
    apart = forecast(likelihood, np.tile(theta, (3, 1)), 5, np.random.default_rng(1))
    np.testing.assert_allclose(shared.returns, apart.returns[:, :11], rtol=1e-9)
    np.testing.assert_allclose(shared.location, apart.location[:, :11], rtol=1e-9)
    whole = model.onward(likelihood, likelihood.paths(theta), np.ones((5, 4)))
    ends = model.onward(likelihood, last_days(likelihood, theta), np.ones((5, 4)))
    np.testing.assert_allclose(ends, whole, rtol=1e-12)


def test_as_many_paths_as_asked_for_from_few_draws(result):
    for draws in (1, 7, 501, 1700):
        future = result.forecast(3, draws=draws, rng=1)
        assert future.returns.shape == (3, draws)
        assert len(np.unique(future.variance[0])) == min(draws, 500)  # the first day needs no shock
    # the mean over 500 draws is that over many: 5 standard errors
    many = result.likelihood.paths(result.posterior.sample(5000, rng=2)).variance[-1]
    assert future.variance[0].mean() == pytest.approx(many.mean(), abs=5.0 * many.std() / np.sqrt(500))


def test_risk_of_tomorrow_needs_no_paths(monkeypatch):
    """One filter run of the draws, of which the last day is kept."""
    result = GARCH(1, 1).fit(SHORT)
    from_paths = result.paths.mean[-1], np.sqrt(result.paths.variance[-1]), None
    fresh = dataclasses.replace(result)
    found = fresh.var(0.01), fresh.var(0.05)
    np.testing.assert_allclose(found, [-mixture_quantile(a, *from_paths) for a in (0.01, 0.05)], rtol=1e-9)
    assert "paths" not in vars(fresh)


def exploding():
    """Two draws: an autoregression that doubles returns every day, and one that takes a tenth of them."""
    model = ARCH(1, lags=1)
    values = {"const": [0.0, 0.0], "ar[1]": [2.0, 0.1], "omega": [1.0, 1.0], "alpha[1]": [0.1, 0.1]}
    return model.likelihood(SHORT), model.parameters.unconstrain({k: np.array(v) for k, v in values.items()})


def test_exploding_futures_are_told_left_out_of_means_and_losses_in_risk():
    likelihood, theta = exploding()
    with pytest.warns(NonFiniteWarning, match="20 of 200 futures explode") as caught:
        future = forecast(
            likelihood, np.repeat(theta, [1, 9], axis=0), 2000, np.random.default_rng(1), paths=200
        )
    assert len(caught) == 1
    assert caught[0].filename == __file__
    calm = forecast(likelihood, theta[1:], 2000, np.random.default_rng(2), paths=200)
    assert future.returns.shape == (2000, 200)
    np.testing.assert_allclose(future.volatility[-1], calm.volatility[-1], rtol=0.2)
    np.testing.assert_allclose(future.quantile(0.5, "volatility")[-1], 1.05, rtol=0.1)
    for numbers in (future.mean, future.quantile([0.05, 0.95]), future.to_frame().to_numpy()):
        assert np.isfinite(numbers).all()
    # every tenth path is an infinite loss; from there on the others follow
    assert future.var(0.05) == future.expected_shortfall(0.05) == future.expected_shortfall(0.3) == np.inf
    sound = np.sort(future.returns[:, np.arange(200) % 10 > 0].sum(axis=0))
    assert future.var(0.1) == np.inf
    assert -sound[0] > future.var(0.101) > -sound[1]
    assert -sound[41] < future.var(0.3) < -sound[38]


def test_before_they_explode_they_count():
    likelihood, theta = exploding()
    future = forecast(likelihood, theta, 100, np.random.default_rng(1), paths=200)
    assert future.sound.all()
    assert future.mean[-1] > 1e20 or future.mean[-1] < -1e20


def test_futures_that_all_explode_are_an_error():
    likelihood, theta = exploding()
    with pytest.raises(DivergenceError, match="all 10 futures explode within 2000 days"):
        forecast(likelihood, theta[:1], 2000, np.random.default_rng(1), paths=10)


def test_an_explosive_posterior_gives_risk_and_a_warning():
    fitted = EGARCH(1, 1, 1, convention="paper").fit(SHORT)
    wide = dataclasses.replace(fitted, posterior=Gaussian(fitted.posterior.mean, variance=0.01))
    with pytest.warns(NonFiniteWarning, match=r"of 10,000 futures explode: .* infinite losses"):
        assert fitted.var(0.45, 300) < wide.var(0.45, 300) < np.inf
    with pytest.warns(NonFiniteWarning):
        assert np.isfinite(wide.forecast(300).volatility).all()


def test_after_an_update_likelihood_and_criteria_are_those_of_all_returns():
    model = GARCH(1, 1)
    updated, whole = model.fit(SHORT[:980]).update(SHORT[980:]), model.likelihood(SHORT)
    assert updated.log_likelihood == pytest.approx(whole(updated.posterior.mean[None])[0], abs=1e-8)
    assert updated.log_likelihood < updated.ml.log_likelihood < updated.log_likelihood + 5.0
    heading, bound, likelihood = updated.summary().splitlines()[1:4]
    assert (
        "20 new of 1,000 returns, 2015-01-12 to 2018-12-31; the lower bound is that of the new ones"
        in heading
    )
    assert f"lower bound {updated.posterior.lower_bound:.3f}" in bound
    assert f"log-likelihood {updated.log_likelihood:.3f} at the posterior mean" in likelihood


def test_new_returns_may_be_equal_to_each_other():
    updated = GARCH(1, 1).fit(SHORT.to_numpy()).update([0.0, 0.0])
    assert updated.likelihood.n_obs == 2
    assert updated.returns.values[-2:].tolist() == [0.0, 0.0]


def test_a_pickle_has_no_paths(result):
    copy = pickle.loads(pickle.dumps(result))
    assert result.paths.variance.nbytes > 20 * len(pickle.dumps(result.likelihood))
    assert len(pickle.dumps(result)) < result.paths.variance.nbytes / 4
    assert copy.var(0.01) == result.var(0.01)
    np.testing.assert_array_equal(copy.paths.variance, result.paths.variance)
