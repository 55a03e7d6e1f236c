"""Models of statsmodels: densities, fits and predictions against statsmodels' own, on its own data sets."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.sandbox.regression.gmm import IV2SLS
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

import mgvbp
from common import case
from mgvbp import InvalidInputError, InvalidTypeError, UnknownNameError
from mgvbp.interop.curvature import around
from mgvbp.interop.default_priors import UNIFORM, DefaultPrior


def nile():
    series = sm.datasets.nile.load_pandas().data["volume"]
    series.index = np.arange(1871, 1971)
    return np.asarray(series)


def growth():
    data = sm.datasets.macrodata.load_pandas().data[["realgdp", "realcons"]]
    return 100.0 * np.log(data).diff().dropna().reset_index(drop=True)


def sunspots():
    return np.asarray(sm.datasets.sunspots.load_pandas().data["SUNACTIVITY"])


def visits(rows, columns=4):
    data = sm.datasets.randhie.load_pandas()
    return data.endog.iloc[:rows], sm.add_constant(data.exog.iloc[:rows, :columns])


def spector():
    data = sm.datasets.spector.load_pandas()
    return data.endog, sm.add_constant(data.exog)


def votes():
    data = sm.datasets.anes96.load_pandas()
    return data.endog, data.exog.iloc[:, :2]


def ar():
    return sm.tsa.SARIMAX(sunspots(), order=(2, 0, 0), trend="c")


def level():
    return sm.tsa.UnobservedComponents(nile(), "llevel")


def vector():
    return sm.tsa.VARMAX(growth(), order=(1, 0))


def switching():
    return sm.tsa.MarkovRegression(growth()["realgdp"], k_regimes=2, switching_variance=True)


def known(model, params):
    """The model with an estimate that is given, so that no time is spent on its maximum."""

    class Results:
        pass

    results = Results()
    results.model, results.params = model, np.asarray(params, np.float64)
    return mgvbp.from_statsmodels(results)


AR = [14.8, 1.39, -0.69, 275.0]
LEVEL = [15000.0, 1500.0]
VECTOR = [0.3, 0.6, 0.01, 0.57, 0.12, 0.2, 0.78, 0.41, 0.52]
SWITCHING = [0.94, 0.04, 0.8, 0.75, 0.16, 1.2]


# --- densities ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "params"), [(ar, AR), (level, LEVEL), (vector, VECTOR), (switching, SWITCHING)]
)
def test_state_space_models_are_their_loglike_of_transformed_parameters(build, params):
    theirs = build()
    model = known(theirs, params)
    theta = model.start.sample(5, rng=1)
    values = model.values(theta)
    np.testing.assert_allclose(model(theta), [theirs.loglike(row) for row in values], rtol=1e-9)
    np.testing.assert_allclose(
        model.parameters.unconstrain(model.parameters.constrain(theta)), theta, atol=1e-6
    )
    # the log-Jacobian against differences of the whole map
    step = 1e-5
    moved = theta[:, None] + step * np.eye(theta.shape[1])
    back = theta[:, None] - step * np.eye(theta.shape[1])
    slopes = [(model.values(a) - model.values(b)) / (2.0 * step) for a, b in zip(moved, back, strict=True)]
    np.testing.assert_allclose(model.parameters.log_jacobian(theta), np.linalg.slogdet(slopes)[1], atol=1e-6)


def test_a_variance_has_one_theta():
    """statsmodels' own map is u², which two u have in common: the posterior would have two modes."""
    model = known(level(), LEVEL)
    np.testing.assert_allclose(
        model.parameters.unconstrain({"sigma2.irregular": 4.0, "sigma2.level": 9.0}), np.log([4.0, 9.0])
    )


def test_linear_models_have_the_scale_that_statsmodels_concentrates_out():
    y, X = spector()
    weights = np.linspace(0.5, 2.0, len(y))
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(len(y)), np.arange(len(y))))
    for theirs in (sm.OLS(y, X), sm.WLS(y, X, weights=weights), sm.GLS(y, X, sigma=covariance)):
        with case(type(theirs).__name__):
            model = mgvbp.from_statsmodels(theirs)
            beta = theirs.fit().params
            errors = theirs.wendog - theirs.wexog @ (beta + 0.01)
            row = np.append(beta + 0.01, np.mean(errors**2))
            theta = model.parameters.unconstrain(dict(zip(model.parameters.names, row, strict=True)))
            np.testing.assert_allclose(model(theta[None]), theirs.loglike(beta + 0.01), rtol=1e-10)


def test_the_dispersion_of_a_glm_is_a_parameter():
    data = sm.datasets.scotland.load_pandas()
    theirs = sm.GLM(data.endog, sm.add_constant(data.exog), family=sm.families.Gamma(sm.families.links.Log()))
    result = theirs.fit()
    model = mgvbp.from_statsmodels(result)
    assert model.parameters.names[-1] == "scale"
    params = np.append(result.params, 0.004)
    theta = model.parameters.unconstrain(dict(zip(model.parameters.names, params, strict=True)))
    np.testing.assert_allclose(model(theta[None]), theirs.loglike(result.params, scale=0.004))


@pytest.mark.parametrize(
    "build",
    [
        lambda: sm.Logit(*spector()),
        lambda: sm.NegativeBinomial(*visits(400)),
        lambda: sm.ZeroInflatedPoisson(*visits(400)),
        lambda: sm.MNLogit(*votes()),
        lambda: sm.GLM(*visits(400), family=sm.families.Poisson()),
        lambda: sm.OLS(*spector()),
    ],
)
def test_scores_are_the_gradients_of_the_log_likelihood(build):
    model = mgvbp.from_statsmodels(build())
    theta = model.start.sample(3, rng=2)
    values, gradients = model.value_and_grad(theta)
    np.testing.assert_allclose(values, model(theta))
    width = 1e-4 * model.start.std
    for i, step in enumerate(np.diag(width)):
        slopes = (model(theta + step) - model(theta - step)) / (2.0 * width[i])
        np.testing.assert_allclose(gradients[:, i], slopes, rtol=1e-4, atol=1e-4 / model.start.std[i])


def test_pointwise_likelihoods_add_up_and_go_to_arviz():
    y, X = spector()
    Xs, trials, k = binomial_shares()
    some = np.linspace(0.5, 2.0, len(y))
    families, series = sm.families, level()
    for theirs in (
        series,
        sm.Probit(y, X),
        sm.MNLogit(*votes()),
        sm.OLS(y, X),
        sm.WLS(y, X, weights=some),
        sm.GLS(y, X, sigma=some),
        sm.GLS(y, X, sigma=2.0),
        sm.GLM(y, X, family=families.Gaussian(), var_weights=some),
        sm.GLM(y + 1.0, X, family=families.Gamma(families.links.Log()), exposure=some),
        sm.GLM(y + 1.0, X, family=families.InverseGaussian(families.links.Log()), freq_weights=some),
        sm.GLM(y, X, family=families.Poisson(), offset=some),
        sm.GLM(np.column_stack([k, trials - k]), Xs, family=families.Binomial()),
    ):
        model = known(theirs, LEVEL) if theirs is series else mgvbp.from_statsmodels(theirs)
        theta = model.start.sample(3, rng=0)
        found = model.pointwise(theta)
        with case(model):
            assert found.shape == (3, len(model.model.endog))
            np.testing.assert_allclose(found.sum(axis=1), model(theta))
    assert mgvbp.from_statsmodels(sm.GLS(y, X, sigma=0.5 + 0.5 * np.eye(32))).pointwise is None
    assert mgvbp.from_statsmodels(sm.GLSAR(y, X, rho=1)).pointwise is None
    posterior = mgvbp.fit(mgvbp.from_statsmodels(sm.Probit(*spector())))
    tree = posterior.to_arviz(num_draws=20)
    assert tree["log_likelihood"]["y"].shape == (1, 20, 32)
    assert "GPA" in tree["posterior"]


def test_a_mixed_model_is_the_full_likelihood_up_to_a_constant():
    """Against the normal density with the covariance written out, its scale integrated out under 1/scale."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 5)
    x = rng.normal(size=40)
    y = 1.0 + 0.5 * x + rng.normal(size=8)[groups] + rng.normal(size=40)
    theirs = sm.MixedLM(y, np.column_stack([np.ones(40), x]), groups)
    model = mgvbp.from_statsmodels(theirs)
    theta = model.start.sample(4, rng=0)
    same = np.equal.outer(groups, groups)
    exact = []
    for *beta, ratio in model.values(theta):
        covariance = np.eye(40) + ratio * same
        errors = y - np.column_stack([np.ones(40), x]) @ beta
        squares = errors @ np.linalg.solve(covariance, errors)
        exact.append(-0.5 * np.linalg.slogdet(covariance)[1] - 20.0 * np.log(squares))
    np.testing.assert_allclose(np.diff(model(theta)), np.diff(exact), atol=1e-8)
    assert theirs.reml  # statsmodels' own model is left alone
    posterior = mgvbp.fit(model)
    assert posterior.converged
    result = theirs.fit()
    np.testing.assert_allclose(posterior.mean[:2], result.fe_params, atol=0.2 * result.bse_fe.max())


# --- fits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build",
    [
        lambda: sm.NegativeBinomial(*visits(20_000, 9)),
        lambda: sm.GLM(*visits(20_000, 9), family=sm.families.Poisson()),
        lambda: OrderedModel(*votes(), distr="logit"),
    ],
)
def test_with_many_rows_the_posterior_is_that_of_maximum_likelihood(build):
    theirs = build()
    result = theirs.fit(
        **({} if isinstance(theirs, sm.GLM) else {"method": "bfgs", "disp": 0, "maxiter": 300})
    )
    posterior = mgvbp.fit(mgvbp.from_statsmodels(result))
    assert posterior.converged
    assert posterior.parameters.names == tuple(result.params.index)
    for name, estimate in result.params.items():
        with case(name):
            assert abs(posterior[name].mean - estimate) < 0.1 * result.bse[name]
            assert posterior[name].std == pytest.approx(result.bse[name], rel=0.05)


def test_an_autoregression_agrees_with_maximum_likelihood():
    result = ar().fit(disp=0, cov_type="approx")
    posterior = mgvbp.fit(mgvbp.from_statsmodels(result))
    assert posterior.converged
    for name, estimate, error in zip(result.model.param_names, result.params, result.bse, strict=True):
        with case(name):
            # the mean of a variance is above its mode by (1/2) √(2/309) of its standard deviations, three times over
            assert abs(posterior[name].mean - estimate) < (0.3 if name == "sigma2" else 0.1) * error
            assert posterior[name].std == pytest.approx(error, rel=0.1)


def grid(log_density, mean, std, points=41):
    """Means and covariance of a density of two numbers, by a sum over a grid."""
    axes = [np.linspace(m - 6.0 * s, m + 6.0 * s, points) for m, s in zip(mean, std, strict=True)]
    theta = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = log_density(theta)
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    centre = weights @ theta
    return centre, (theta - centre).T @ ((theta - centre) * weights[:, None])


def test_a_small_model_agrees_with_its_exact_posterior():
    """The local level model of the Nile, whose density is written out here and summed over a grid."""
    theirs = level()
    spread = np.std(nile())

    def log_density(theta):
        variances = np.exp(theta)
        prior = stats.halfnorm(scale=spread).logpdf(np.sqrt(variances)) - 0.5 * theta - np.log(2.0)
        return [theirs.loglike(row) for row in variances] + (prior + theta).sum(axis=1)

    posterior = mgvbp.fit(mgvbp.from_statsmodels(theirs), family="mixture")
    mean, covariance = grid(log_density, posterior.mean, posterior.std)
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_array_less(np.abs(posterior.mean - mean), 0.1 * std)
    np.testing.assert_allclose(posterior.std, std, rtol=0.05)


def test_near_a_unit_root_the_tail_is_not_lost():
    """An AR(1) of 100 days with φ near 1: the exact density, summed over Fisher's scale and log σ².

    On the scale that statsmodels has the tail is of order |u|⁻³, and the standard deviation was 15% small.
    """
    rng = np.random.default_rng(1)
    y = np.zeros(100)
    y[0] = rng.normal() / np.sqrt(1.0 - 0.98**2)
    for t in range(1, 100):
        y[t] = 0.98 * y[t - 1] + rng.normal()
    model = mgvbp.from_statsmodels(sm.tsa.SARIMAX(y, order=(1, 0, 0)))
    posterior = mgvbp.fit(model)
    fisher, size = np.meshgrid(np.linspace(-1.0, 9.0, 400), np.linspace(-1.5, 1.5, 120), indexing="ij")
    phi, variance = np.tanh(fisher), np.exp(size)
    squares = (
        y[0] ** 2 * (1.0 - phi**2) + y[1:] @ y[1:] - 2.0 * phi * (y[1:] @ y[:-1]) + phi**2 * (y[:-1] @ y[:-1])
    )
    log_likelihood = 0.5 * np.log1p(-(phi**2)) - 50.0 * size - 0.5 * squares / variance
    prior = stats.halfnorm(scale=np.std(y)).logpdf(np.sqrt(variance)) - 0.5 * size
    log_density = log_likelihood + prior + np.log1p(-(phi**2)) + size
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = (weights * phi).sum()
    std = np.sqrt((weights * (phi - mean) ** 2).sum())
    assert abs(posterior["ar.L1"].mean - mean) < 0.05 * std
    assert posterior["ar.L1"].std == pytest.approx(std, rel=0.06)
    theta = np.array([[-30.0, 0.0], [0.3, 0.0], [12.0, 0.0]])
    np.testing.assert_allclose(model.values(theta)[:, 0], -np.tanh(theta[:, 0]), rtol=1e-12)
    # far out the map itself has lost its slope, |u| being e³⁰/2
    np.testing.assert_allclose(
        model.parameters.log_jacobian(theta)[1:], -2.0 * np.log(np.cosh(theta[1:, 0])), rtol=1e-6
    )


def test_a_variance_that_is_estimated_as_zero_is_no_obstacle():
    posterior = mgvbp.fit(mgvbp.from_statsmodels(sm.tsa.UnobservedComponents(nile(), "lltrend")))
    assert posterior.converged
    low, high = posterior["sigma2.trend"].quantile([0.05, 0.95])
    assert 0.0 < low < high < posterior["sigma2.level"].mean


def test_where_the_default_optimiser_leaves_the_values_another_finds_a_start():
    """Counts without the dispersion that the model allows for: BFGS goes to where the likelihood is nan."""
    rng = np.random.default_rng(0)
    x = sm.add_constant(rng.normal(size=300))
    y = rng.poisson(np.exp(x @ [0.2, 0.4])) * (rng.random(300) > 0.3)
    model, simpler = sm.ZeroInflatedNegativeBinomialP(y, x), sm.ZeroInflatedPoisson(y, x)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        assert not np.isfinite(model.fit(disp=0).llf)
    posterior, poisson = (mgvbp.fit(mgvbp.from_statsmodels(each)) for each in (model, simpler))
    assert posterior.converged
    assert abs(posterior["x1"].mean - poisson["x1"].mean) < poisson["x1"].std


def test_rows_that_count_for_nothing_change_nothing():
    """A Hessian of statsmodels is nan where a weight is 0: the curvature is then measured."""
    y, x = visits(200)
    times = np.random.default_rng(0).integers(0, 3, 200)
    weighted = sm.GLM(y, x, family=sm.families.Poisson(), freq_weights=times)
    kept = times > 0
    without = sm.GLM(y[kept], x[kept], family=sm.families.Poisson(), freq_weights=times[kept])
    found, expected = (mgvbp.fit(mgvbp.from_statsmodels(each)) for each in (weighted, without))
    assert found.converged
    assert (np.abs(found.mean - expected.mean) < 0.14 * expected.std).all()


def test_columns_of_any_scale_need_no_standardisation():
    data = sm.datasets.longley.load_pandas()
    theirs = sm.OLS(data.endog, sm.add_constant(data.exog))
    result = theirs.fit()
    model = mgvbp.from_statsmodels(result)
    # statsmodels divides by n − k in place of n
    np.testing.assert_allclose(model.start.std[:-1], result.bse * np.sqrt(result.df_resid / 16), rtol=1e-4)


# --- priors -------------------------------------------------------------------------------------------


def test_default_priors_are_as_stated():
    result = ar().fit(disp=0)
    model = mgvbp.from_statsmodels(result)
    assert model.priors["ar.L1"] is UNIFORM
    assert model.priors["sigma2"] == DefaultPrior(pytest.approx(np.std(sunspots())), root=True)
    assert model.priors["intercept"] == DefaultPrior(pytest.approx(10.0 * result.params[0], rel=1e-6))
    theta = model.start.sample(3, rng=0)
    intercept, _, _, variance = model.values(theta).T
    exact = stats.norm(0.0, 10.0 * result.params[0]).logpdf(intercept) + model.parameters.log_jacobian(theta)
    exact += stats.halfnorm(scale=np.std(sunspots())).logpdf(np.sqrt(variance)) - np.log(
        2.0 * np.sqrt(variance)
    )
    np.testing.assert_allclose(model.default_prior.log_density(theta), exact)


def test_priors_are_replaced_by_name():
    y, X = visits(300)
    for prior in (
        stats.norm(0.5, 0.01),
        mgvbp.Gaussian([0.5], variance=1e-4),
        lambda x: stats.norm(0.5, 0.01).logpdf(x),
    ):
        model = mgvbp.from_statsmodels(sm.Poisson(y, X), priors={"idp": prior})
        assert "idp ~ Normal" not in repr(model)
        posterior = mgvbp.fit(model)
        assert posterior["idp"].mean == pytest.approx(0.5, abs=0.02)
        assert posterior["idp"].std == pytest.approx(0.01, rel=0.05)


def test_a_prior_of_the_whole_takes_the_place_of_all():
    model = mgvbp.from_statsmodels(sm.Logit(*spector()))
    prior = mgvbp.Gaussian(variance=0.01, dim=4)
    posterior = mgvbp.fit(model, prior)
    assert (posterior.std < 0.1).all()


# --- predictions --------------------------------------------------------------------------------------


def repeated(model, params, number):
    theta = model.parameters.unconstrain(dict(zip(model.parameters.names, params, strict=True)))
    return np.tile(theta, (number, 1))


@pytest.mark.parametrize(("build", "params"), [(ar, AR), (level, LEVEL), (vector, VECTOR)])
def test_forecasts_at_one_theta_are_those_of_statsmodels(build, params):
    theirs = build()
    forecast = theirs.filter(np.asarray(params), cov_type="none").get_forecast(4)
    model = known(theirs, params)
    found = model.forecast(repeated(model, params, 1000), 4, rng=1)
    np.testing.assert_allclose(found.mean, forecast.predicted_mean, rtol=1e-6)
    width = np.asarray(forecast.se_mean)
    assert found.draws.shape == (1000, *found.mean.shape)
    np.testing.assert_array_less(np.abs(found.draws.mean(axis=0) - found.mean), 5.0 * width / np.sqrt(1000))
    np.testing.assert_allclose(found.std, width, rtol=5.0 / np.sqrt(2000))


def test_a_forecast_takes_the_covariates_of_its_steps():
    y, x = sunspots(), np.arange(309.0)
    theirs = sm.tsa.SARIMAX(y, exog=x, order=(1, 0, 0))
    params = [0.1, 0.8, 400.0]
    model = known(theirs, params)
    expected = theirs.filter(np.asarray(params), cov_type="none").forecast(2, exog=[500.0, 600.0])
    found = model.forecast(repeated(model, params, 3), 2, exog=[500.0, 600.0])
    np.testing.assert_allclose(found.mean, expected)


def test_observed_days_again_and_smoothed_states():
    theirs = level()
    model = known(theirs, LEVEL)
    theta = repeated(model, LEVEL, 800)
    result = theirs.smooth(np.asarray(LEVEL), cov_type="none")
    again = model.predict(theta, rng=0)
    np.testing.assert_allclose(again.mean, result.forecasts[0])
    np.testing.assert_allclose(
        again.std[1:], np.sqrt(result.forecasts_error_cov[0, 0, 1:]), rtol=5.0 / np.sqrt(1600)
    )
    states = model.predict(theta, of="states", rng=0)
    width = np.sqrt(result.smoothed_state_cov[0, 0])
    np.testing.assert_array_less(np.abs(states.mean - result.smoothed_state[0]), 5.0 * width / np.sqrt(800))
    np.testing.assert_allclose(states.std, width, rtol=5.0 / np.sqrt(1600))


def test_the_probabilities_of_regimes():
    theirs = switching()
    model = known(theirs, SWITCHING)
    found = model.predict(repeated(model, SWITCHING, 2), of="states")
    exact = theirs.smooth(np.asarray(SWITCHING), return_raw=True).smoothed_marginal_probabilities
    np.testing.assert_allclose(found.mean, exact.T, atol=1e-6)
    with pytest.raises(InvalidInputError, match="does not forecast Markov-switching"):
        model.forecast(repeated(model, SWITCHING, 2), 3)


def test_a_posterior_forecasts_with_doubt_about_the_parameters():
    posterior = mgvbp.fit(mgvbp.from_statsmodels(level()))
    found = posterior.forecast(10, num_draws=1000)
    plain = level().fit(disp=0).get_forecast(10)
    assert list(found.frame.columns) == ["mean", "sd", "2.5%", "97.5%"]
    # the draws have shocks and parameters, the means have parameters alone
    assert (found.means.std(axis=0) < found.std).all()
    assert found.std[-1] > 0.95 * plain.se_mean[-1]
    low, high = found.interval(0.9)
    assert ((low < found.mean) & (found.mean < high)).all()
    np.testing.assert_array_equal(posterior.predict(steps=10, num_draws=1000).draws, found.draws)


@pytest.mark.parametrize(
    "build",
    [
        lambda: sm.Logit(*spector()),
        lambda: sm.NegativeBinomial(*visits(300)),
        lambda: sm.ZeroInflatedPoisson(*visits(300)),
        lambda: sm.GLM(*spector(), family=sm.families.Binomial()),
        lambda: sm.GLM(*visits(300), family=sm.families.Gaussian()),
        lambda: sm.WLS(*spector(), weights=np.arange(1.0, 33.0)),
        lambda: sm.MNLogit(*votes()),
        lambda: OrderedModel(*votes(), distr="probit"),
    ],
)
def test_regressions_predict_by_their_own_means(build):
    theirs = build()
    model = mgvbp.from_statsmodels(theirs)
    theta = model.start.sample(400, rng=0)
    rows = np.asarray(theirs.exog)[:3]
    found = model.predict(theta, rows, rng=1)
    for draw in (0, 7):
        params = model.values(theta)[draw]
        if isinstance(theirs, sm.MNLogit):
            params = params.reshape(2, -1, order="F")
        elif "scale" in model.parameters.names:
            params = params[:-1]
        np.testing.assert_allclose(found.means[draw], np.asarray(theirs.predict(params, rows)))
    spread = np.maximum(found.std, np.sqrt(np.abs(found.mean)))  # no draw may have met a rare class
    np.testing.assert_array_less(np.abs(found.draws.mean(axis=0) - found.mean), 5.0 * spread / np.sqrt(400))
    assert model.predict(theta[:2]).draws.shape[1] == len(theirs.endog)


def binomial_shares():
    """Covariates, numbers of trials from 5 to 44, and successes."""
    rng = np.random.default_rng(0)
    X, trials = sm.add_constant(np.linspace(-1.0, 1.0, 40)), np.arange(5, 45)
    k = rng.binomial(trials, 0.4)
    return X, trials, k


@pytest.mark.parametrize("by", ["counts", "formula", "weights"])
def test_shares_are_drawn_with_the_trials_that_they_have(by):
    X, trials, k = binomial_shares()
    rows = X
    family = sm.families.Binomial()
    if by == "counts":
        theirs = sm.GLM(np.column_stack([k, trials - k]), X, family=family)
    elif by == "formula":
        rows = pd.DataFrame({"k": k, "f": trials - k, "x": X[:, 1]})
        theirs = sm.GLM.from_formula("k + f ~ x", rows, family=family)
    else:
        theirs = sm.GLM(k / trials, X, family=family, var_weights=trials)
    model = mgvbp.from_statsmodels(theirs)
    theta = np.tile(model.start.mean, (400, 1))
    found = model.predict(theta, rng=0)
    share = theirs.predict(model.start.mean)
    np.testing.assert_allclose(found.mean, share)
    np.testing.assert_allclose(found.std, np.sqrt(share * (1.0 - share) / trials), rtol=0.2)
    np.testing.assert_allclose(found.draws * trials, np.round(found.draws * trials), atol=1e-9)
    one = model.predict(theta, rows[:1], n_trials=10, rng=0)
    np.testing.assert_allclose(one.std, np.sqrt(share[:1] * (1.0 - share[:1]) / 10), rtol=0.2)


def test_shares_of_parts_of_a_trial_have_no_draws():
    X, trials, k = binomial_shares()
    model = known(sm.GLM(k / trials, X, family=sm.families.Binomial(), var_weights=trials + 0.5), [-0.4, 0.0])
    with pytest.raises(InvalidInputError, match=r"whole positive numbers; there is one of 5\.5"):
        model.predict(model.start.sample(2, rng=0))


@pytest.mark.parametrize("build", ["weights", "sigma", "variances"])
def test_observed_rows_are_drawn_with_the_covariance_that_they_have(build):
    rng = np.random.default_rng(0)
    X, y = sm.add_constant(np.linspace(-1.0, 1.0, 30)), 5.0 + rng.normal(size=30)
    variances = np.linspace(0.5, 4.0, 30)
    covariance = np.diag(variances)
    if build == "weights":
        theirs = sm.GLM(y, X, family=sm.families.Gaussian(), var_weights=1.0 / variances)
    elif build == "variances":
        theirs = sm.GLS(y, X, sigma=variances)
    else:
        covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(30), np.arange(30))) * np.sqrt(
            np.outer(variances, variances)
        )
        theirs = sm.GLS(y, X, sigma=covariance)
    model = mgvbp.from_statsmodels(theirs)
    theta = np.tile(model.start.mean, (1000, 1))
    found = model.predict(theta, rng=0)
    noise = (found.draws - found.means) / np.sqrt(model.values(theta[:1])[0, -1])
    # products of normal variables have standard deviations of up to √2 times those of the factors
    width = np.sqrt(2.0 * np.outer(variances, variances) / 1000)
    np.testing.assert_array_less(np.abs(noise.T @ noise / 1000 - covariance), 6.0 * width)


def test_draws_of_autoregressive_errors_are_autoregressive():
    """GLSAR with ρ = 0.8: neighbours correlate by 0.8, the variance is scale/(1 − ρ²), also at rows of its own."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(400)
    theirs = sm.GLSAR(1.0 + 2.0 * x, sm.add_constant(x), rho=[0.8])
    model = known(theirs, [1.0, 2.0])
    theta = model.parameters.unconstrain(
        {"const": np.ones(200), "x1": np.full(200, 2.0), "scale": np.ones(200)}
    )
    errors = model.predict(theta, rng=1).draws - (1.0 + 2.0 * x)
    assert (errors[:, 1:] * errors[:, :-1]).mean() / (errors**2).mean() == pytest.approx(0.8, abs=0.02)
    assert errors.var() == pytest.approx(1.0 / (1.0 - 0.8**2), rel=0.08)
    apart = model.predict(theta, np.ones((50, 2)), rng=2).draws
    assert apart.var() == pytest.approx(1.0 / (1.0 - 0.8**2), rel=0.08)


def test_a_formula_turns_a_frame_into_columns():
    data = sm.datasets.spector.load_pandas().data
    model = mgvbp.from_statsmodels(sm.Logit.from_formula("GRADE ~ GPA * PSI", data))
    found = model.predict(model.start.sample(5, rng=0), data.iloc[[3, 9]])
    assert found.draws.shape == (5, 2)
    assert list(found.frame.index) == [3, 9]


# --- bad input, files and hints -----------------------------------------------------------------------


def test_what_cannot_be_fitted_gets_a_sentence():
    y, X = spector()
    with pytest.raises(InvalidTypeError, match="method loglike"):
        mgvbp.from_statsmodels(X)
    with pytest.raises(InvalidInputError, match="concentrate_scale=False"):
        mgvbp.from_statsmodels(sm.tsa.SARIMAX(nile(), order=(1, 0, 0), concentrate_scale=True))
    with pytest.raises(InvalidInputError, match="columns collinear"):
        mgvbp.from_statsmodels(sm.Logit(y, X.assign(nothing=0.0)))  # singular whatever is rounded
    with pytest.raises(InvalidInputError, match="vc_formula"):
        mgvbp.from_statsmodels(
            sm.MixedLM(np.asarray(y), np.asarray(X), np.arange(32) % 4, exog_re=np.asarray(X)[:, :2])
        )
    with pytest.raises(InvalidInputError, match="QuantReg has no likelihood"):
        mgvbp.from_statsmodels(sm.QuantReg(y, X))
    with pytest.raises(InvalidInputError, match="ETSModel does not say"):
        mgvbp.from_statsmodels(ETSModel(nile()))
    with pytest.raises(InvalidInputError, match="ExponentialSmoothing does not say"):
        mgvbp.from_statsmodels(sm.tsa.ExponentialSmoothing(nile()))
    with pytest.raises(InvalidInputError, match="IV2SLS has no likelihood"):
        mgvbp.from_statsmodels(IV2SLS(y, X, X))
    with pytest.raises(InvalidInputError, match="has no vector of parameters"):
        mgvbp.from_statsmodels(sm.Factor(np.asarray(X)[:, 1:], 1))
    with pytest.raises(InvalidInputError, match="apart without error"):
        mgvbp.from_statsmodels(sm.Logit((X["GPA"] > 3.2).astype(float), X))
    with pytest.raises(UnknownNameError, match="'gpa'; there are const, GPA"):
        mgvbp.from_statsmodels(sm.Logit(y, X), priors={"gpa": stats.norm()})
    with pytest.raises(InvalidTypeError, match="must have a logpdf"):
        mgvbp.from_statsmodels(sm.Logit(y, X), priors={"GPA": 3.0})
    with pytest.raises(InvalidTypeError, match="dict of distributions"):
        mgvbp.from_statsmodels(sm.Logit(y, X), priors=[stats.norm()])
    model = mgvbp.from_statsmodels(sm.Logit(y, X))
    with pytest.raises(InvalidInputError, match=r"expected \(n, 4\)"):
        model.predict(model.start.sample(2, rng=0), [[1.0, 2.0]])
    hazard = mgvbp.from_statsmodels(sm.PHReg(np.arange(1.0, 33.0), np.asarray(X)[:, 1:]))
    with pytest.raises(InvalidInputError, match="no distribution of the responses of this PHReg"):
        hazard.predict(hazard.start.sample(2, rng=0))
    with pytest.raises(InvalidInputError, match="models of time series"):
        model.predict(model.start.sample(2, rng=0), steps=3)


def test_nothing_that_is_given_to_predict_goes_unused():
    linear, series, regimes = (
        mgvbp.from_statsmodels(sm.OLS(*spector())),
        known(level(), LEVEL),
        known(switching(), SWITCHING),
    )
    for model, given, message in (
        (linear, {"foo": 3}, "predict.. of OLS takes no foo=: leave it out"),
        (series, {"offset": 3, "foo": 1}, "predict.. of a time series takes no offset=, foo="),
        (series, {"exog": [[1.0]]}, "goes with steps="),
        (regimes, {"of": "states", "foo": 1}, "predict.. of a Markov-switching model takes no foo="),
        (regimes, {"of": "states", "exog": [[1.0]]}, "goes with steps="),
    ):
        with case(message), pytest.raises(InvalidInputError, match=message):
            model.predict(model.start.sample(2, rng=0), **given)


def test_errors_of_statsmodels_become_sentences():
    data = sm.datasets.spector.load_pandas().data
    formula = mgvbp.from_statsmodels(sm.Logit.from_formula("GRADE ~ GPA", data))
    counts = mgvbp.from_statsmodels(sm.GLM(*visits(100, 1), family=sm.families.Poisson()))
    covariates = known(sm.tsa.SARIMAX(nile(), exog=np.arange(100.0), order=(1, 0, 0)), [0.1, 0.8, 400.0])
    for model, given in (
        (formula, {"exog": data[["PSI"]]}),
        (formula, {"exog": 3.0}),
        (counts, {"foo": 3}),
        (counts, {"offset": np.zeros(7)}),
        (counts, {"exog": [["a", "b"]]}),
        (covariates, {"steps": 3}),
        (covariates, {"steps": 3, "exog": [1.0]}),
    ):
        with case(given), pytest.raises(InvalidInputError, match=r"cannot predict this: \w+: \w"):
            model.predict(model.start.sample(2, rng=0), **given)


def test_missing_values_and_penalties_are_named():
    y, X = spector()
    with pytest.raises(InvalidInputError, match="missing='drop'"):
        mgvbp.from_statsmodels(sm.OLS(y.mask(X["GPA"] > 3.9), X))
    for results in (
        sm.OLS(y, X).fit_regularized(alpha=0.1),
        sm.Logit(y, X).fit_regularized(alpha=0.1, disp=0),
        sm.GLM(y, X, family=sm.families.Binomial()).fit_regularized(alpha=0.1),
    ):
        with pytest.raises(InvalidInputError, match="the penalty as priors"):
            mgvbp.from_statsmodels(results)


def test_constraints_are_not_lost_in_silence():
    y, X = visits(100, 2)
    theirs = sm.tsa.SARIMAX(nile(), order=(1, 0, 0))
    results = [
        sm.GLM(y, X, family=sm.families.Poisson()).fit_constrained("lncoins = 0"),
        sm.Poisson(y, X).fit_constrained("lncoins = 0", disp=0),
        theirs.fit_constrained({"ar.L1": 0.5}, disp=0),
    ]
    for result in results:
        with case(type(result).__name__), pytest.raises(InvalidInputError, match="narrow prior"):
            mgvbp.from_statsmodels(result)
    with theirs.fix_params({"ar.L1": 0.5}), pytest.raises(InvalidInputError, match="narrow prior"):
        mgvbp.from_statsmodels(theirs)
    assert known(theirs, [0.5, 1e4]).parameters.names == ("ar.L1", "sigma2")


def test_autoregressions_by_least_squares_have_others_in_their_place():
    for theirs, advice in ((sm.tsa.VAR(growth()), "VARMAX"), (sm.tsa.AutoReg(nile(), 1), "SARIMAX or ARIMA")):
        for given in (theirs, theirs.fit()):
            with pytest.raises(InvalidInputError, match=f"take {advice}"):
                mgvbp.from_statsmodels(given)


def test_a_likelihood_that_fails_without_a_word_has_the_name_of_its_error():
    class Empty(sm.Poisson):
        def loglike(self, params):
            raise NotImplementedError

    with pytest.raises(mgvbp.EvaluationError, match=r"cannot be evaluated: NotImplementedError\n"):
        known(Empty(*visits(50, 1)), [0.0, 0.0])


def test_a_posterior_is_saved_and_pickled_without_its_model(tmp_path):
    posterior = mgvbp.fit(mgvbp.from_statsmodels(sm.Probit(*spector())))
    posterior.save(tmp_path / "posterior.npz")
    for again in (mgvbp.load(tmp_path / "posterior.npz"), pickle.loads(pickle.dumps(posterior))):
        assert again["GPA"].mean == posterior["GPA"].mean
        with pytest.raises(InvalidInputError, match="does not know its model"):
            again.predict()


def test_a_bare_loglike_that_fails_is_told_of_from_statsmodels():
    with pytest.warns(mgvbp.ConvergenceWarning, match="mgvbp.from_statsmodels"):
        mgvbp.fit(ar().loglike, dim=4, vectorized=False, max_evaluations=60)


def test_the_start_is_found_in_any_units_and_off_the_edge():
    """A normal log density whose entries have scales of 1e-6 and 1e6, and the log of an exponential variable."""

    def log_density(x):
        return -0.5 * (x[:, 0] / 1e-6 - 2.0) ** 2 - 0.5 * (x[:, 1] / 1e6) ** 2 - np.exp(x[:, 2])

    mean, covariance = around(log_density, np.array([2e-6, 0.0, -15.0]))
    np.testing.assert_allclose(np.sqrt(np.diag(covariance))[:2], [1e-6, 1e6], rtol=1e-3)
    assert abs(mean[2]) < 1.5
    assert covariance[2, 2] == 1.0
