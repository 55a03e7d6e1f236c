"""Models of arch: densities, constraints, fits and forecasts against arch's own, on its own data."""

import numpy as np
import pytest
from arch import arch_model
from arch.data import sp500
from arch.univariate import EGARCH, GARCH, ARCHInMean, ConstantMean, StudentsT
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

import mgvbp
from common import case
from mgvbp import InvalidInputError, InvalidTypeError, UnknownNameError
from mgvbp.interop.arch.polytope import Polytope
from mgvbp.interop.default_priors import UNIFORM


def returns(days=2500):
    return 100.0 * sp500.load()["Adj Close"].pct_change().dropna().iloc[-days:]


KINDS = [
    {},
    {"vol": "EGARCH", "o": 1, "dist": "skewt"},
    {"o": 1, "dist": "t"},
    {"vol": "FIGARCH", "dist": "ged"},
    {"mean": "AR", "lags": 2, "vol": "HARCH", "p": [1, 5, 22]},
    {"vol": "APARCH", "o": 1},
    {"mean": "HAR", "lags": [1, 5], "p": 2, "o": 1, "q": 2},
    {"mean": "Zero", "vol": "Constant"},
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_likelihood_and_the_constraints_are_those_of_arch(kind):
    result = arch_model(returns(600), **kind).fit(disp="off", show_warning=False)
    model = mgvbp.from_arch(result)
    assert model.parameters.names == tuple(result.params.index)
    row = np.asarray(result.params)
    np.testing.assert_allclose(model._reading.log_likelihood(row[None]), result.loglikelihood)
    theta = model.start.sample(20, rng=0) + np.random.default_rng(1).normal(size=(20, len(row)))
    values = model.values(theta)
    np.testing.assert_allclose(
        model.parameters.unconstrain(model.parameters.constrain(theta)), theta, atol=1e-5
    )
    np.testing.assert_allclose(model.pointwise(theta[:2]).sum(axis=1), model(theta[:2]))
    volatility = result.model.volatility
    first = result.model.num_params
    coefficients = values[:, first : first + volatility.num_params]
    A, b = volatility.constraints()
    assert (coefficients @ A.T >= b - 1e-9).all()
    low, high = np.transpose(volatility.bounds(result.resid.dropna()))
    assert ((coefficients >= low) & (coefficients <= high)).all()


def test_a_mean_that_depends_on_the_variance_is_not_lost():
    """The likelihood of GARCH in mean, y = c + κ σ + e, day by day as in a textbook; and arch's own, with lags."""
    y = np.asarray(returns(300))
    model = mgvbp.from_arch(ARCHInMean(y, volatility=GARCH(1, 0, 1), form="vol"))
    residuals, variance = np.empty(300), np.empty(300)
    row = constant, kappa, omega, alpha, beta = np.array([0.05, 0.3, 0.02, 0.1, 0.85])
    start = np.asarray(model.model.volatility.backcast(y - y.mean()))
    for day in range(300):
        before = (residuals[day - 1] ** 2, variance[day - 1]) if day else (start, start)
        variance[day] = omega + alpha * before[0] + beta * before[1]
        residuals[day] = y[day] - constant - kappa * np.sqrt(variance[day])
    expected = stats.norm.logpdf(residuals, scale=np.sqrt(variance)).sum()
    np.testing.assert_allclose(model._reading.log_likelihood(row[None])[0], expected)
    theta = model.parameters.unconstrain(dict(zip(model.parameters.names, row, strict=True)))
    np.testing.assert_allclose(model.predict(theta[None], of="variance").draws[0], variance)
    means = model.predict(theta[None]).mean
    np.testing.assert_allclose(means, constant + kappa * np.sqrt(variance))

    mean = {"lags": 2, "form": "log", "distribution": StudentsT()}
    result = ARCHInMean(returns(600), volatility=EGARCH(1, 1, 1), **mean).fit(disp="off", show_warning=False)
    likelihood = mgvbp.from_arch(result)._reading.log_likelihood
    np.testing.assert_allclose(likelihood(np.asarray(result.params)[None]), result.loglikelihood)


@pytest.mark.parametrize("kind", [{}, {"vol": "EGARCH", "o": 1, "dist": "skewt"}])
def test_with_many_days_the_posterior_is_near_maximum_likelihood(kind):
    result = arch_model(returns(5000), **kind).fit(disp="off", cov_type="classic")
    model = mgvbp.from_arch(arch_model(returns(5000), **kind))
    posterior = mgvbp.fit(model)
    assert posterior.converged
    for name, estimate in result.params.items():
        with case(name):
            error = result.std_err[name]
            # 5,000 days leave GARCH posteriors a little skewed: their means are not their modes
            assert abs(posterior[name].mean - estimate) < 0.3 * error
            assert posterior[name].std == pytest.approx(error, rel=0.1)
    mu = posterior["mu"]
    assert abs(mu.mean - result.params["mu"]) < 0.1 * result.std_err["mu"]


def test_a_fit_agrees_with_markov_chains():
    """Against emcee's ensemble, on the density of an ARCH(1) with t errors written out in its own parameters."""
    emcee = pytest.importorskip("emcee")
    theirs = arch_model(returns(800), mean="Zero", vol="ARCH", p=1, dist="t")
    result = theirs.fit(disp="off")
    y = np.asarray(returns(800))
    before = np.append(theirs.volatility.backcast(y), y[:-1] ** 2)
    limit = theirs.volatility.bounds(y)[0][1]

    def log_density(x):
        omega, alpha, nu = x.T
        allowed = (omega > 0.0) & (omega < limit) & (alpha > 0.0) & (alpha < 1.0) & (nu > 2.05) & (nu < 500.0)
        omega, alpha, nu = np.where(allowed, x.T, [[1.0], [0.5], [5.0]])
        variance = omega[:, None] + np.outer(alpha, before)
        squares = np.log1p(y**2 / (variance * (nu - 2.0)[:, None]))
        terms = -0.5 * (np.log(variance) + (nu + 1.0)[:, None] * squares).sum(axis=1)
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * (nu - 2.0))
        return np.where(allowed, terms + 800 * constant + np.log(nu) - 0.1 * nu, -np.inf)

    rng = np.random.default_rng(0)
    start = np.asarray(result.params) * (1.0 + 0.02 * rng.normal(size=(24, 3)))
    sampler = emcee.EnsembleSampler(24, 3, log_density, vectorize=True)
    sampler._random.seed(1)
    sampler.run_mcmc(start, 2000)
    chain = sampler.get_chain(discard=300, flat=True)
    posterior = mgvbp.fit(mgvbp.from_arch(theirs), family="mixture")
    draws = np.column_stack(list(posterior.draws(20_000, rng=0).values()))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - chain.mean(axis=0)), 0.1 * chain.std(axis=0))
    np.testing.assert_allclose(draws.std(axis=0), chain.std(axis=0), rtol=0.1)


def test_default_priors_are_as_stated():
    model = mgvbp.from_arch(arch_model(returns(600), o=1, dist="t"))
    assert all(model.priors[name] is UNIFORM for name in ("omega", "alpha[1]", "gamma[1]", "beta[1]"))
    np.testing.assert_allclose(
        model.priors["nu"].logpdf(np.array([7.0])), stats.gamma(2, scale=10.0).logpdf(7.0)
    )
    theta = model.start.sample(3, rng=0)
    values = model.parameters.constrain(theta)
    scale = model.priors["mu"].scale
    exact = stats.norm(0.0, scale).logpdf(values["mu"]) + stats.gamma(2, scale=10.0).logpdf(values["nu"])
    np.testing.assert_allclose(
        model.default_prior.log_density(theta), exact + model.parameters.log_jacobian(theta)
    )
    pulled = mgvbp.from_arch(arch_model(returns(600)), priors={"mu": stats.norm(1.0, 1e-3)})
    assert mgvbp.fit(pulled)["mu"].mean == pytest.approx(1.0, abs=0.01)


def test_forecasts_at_one_theta_are_those_of_arch():
    theirs = arch_model(returns(600), mean="AR", lags=1, dist="t")
    model = mgvbp.from_arch(theirs)
    theta = np.tile(model.start.mean, (4000, 1))
    result = theirs.fix(model.values(theta[:1])[0])
    exact = result.forecast(horizon=5)
    found = model.forecast(theta, 5, rng=0)
    np.testing.assert_allclose(found.mean, exact.mean.iloc[-1], atol=1e-5)
    width = np.sqrt(exact.variance.iloc[-1])
    np.testing.assert_array_less(np.abs(found.draws.mean(axis=0) - found.mean), 5.0 * width / np.sqrt(4000))
    variance = model.forecast(theta, 5, of="variance", rng=0).draws
    np.testing.assert_array_less(
        np.abs(variance.mean(axis=0) - exact.residual_variance.iloc[-1]),
        5.0 * variance.std(axis=0) / np.sqrt(4000) + 1e-5,
    )
    again = model.predict(theta[:50], of="variance")
    np.testing.assert_allclose(np.sqrt(again.mean), result.conditional_volatility.dropna(), rtol=1e-4)
    assert (again.frame.index == result.conditional_volatility.dropna().index).all()
    same = model.forecast(theta, 5, rng=0)
    np.testing.assert_array_equal(found.draws, same.draws)
    shocks = (model.predict(theta[:50], rng=0).draws - model.predict(theta[:50], rng=0).means) / np.sqrt(
        again.mean
    )
    assert shocks.std() == pytest.approx(1.0, rel=0.05)  # 30,000 t shocks of about six degrees of freedom


def test_a_posterior_forecasts():
    posterior = mgvbp.fit(mgvbp.from_arch(arch_model(returns(600), vol="ARCH", p=1)))
    forecast = posterior.forecast(3, num_draws=250)
    assert forecast.draws.shape == (250, 3)
    assert list(forecast.frame.index) == [1, 2, 3]
    assert posterior.to_arviz(num_draws=5)["log_likelihood"]["y"].shape == (1, 5, 600)


def test_what_is_not_a_model_gets_a_sentence():
    with pytest.raises(InvalidTypeError, match="expected a model of arch"):
        mgvbp.from_arch(returns(50))
    with pytest.raises(InvalidInputError, match="has no data"):
        mgvbp.from_arch(ConstantMean(None))
    with pytest.raises(UnknownNameError, match="'alpha'; there are mu, omega"):
        mgvbp.from_arch(arch_model(returns(200)), priors={"alpha": stats.norm()})
    model = mgvbp.from_arch(arch_model(returns(200)))
    with pytest.raises(InvalidInputError, match="observations"):
        model.predict(model.start.sample(2, rng=0), of="returns")
    with pytest.raises(InvalidInputError, match="without steps=, takes no n=: leave it out"):
        model.predict(model.start.sample(2, rng=0), n=0)
    for extra in ({"n": 0}, {"horizon": 3}, {"start": "no day"}):
        with case(extra), pytest.raises(InvalidInputError, match="ConstantMean cannot predict this: "):
            model.forecast(model.start.sample(2, rng=0), 3, **extra)


# --- polytopes ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 2**31))
def test_every_theta_is_a_point_inside_and_every_point_inside_a_theta(dim, extra, seed):
    """Random inequalities that hold at a random point; some entries have bounds, and some have none."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=dim)
    A = np.concatenate([rng.normal(size=(extra, dim)), np.eye(dim)[rng.random(dim) < 0.5]])
    b = A @ centre - rng.uniform(0.1, 2.0, len(A))
    region = Polytope(A, b)
    theta = 2.0 * rng.normal(size=(50, dim))
    points = region.point(theta)
    assert (points @ A.T >= b - 1e-7 * (1.0 + np.abs(b))).all()
    inside = centre + 0.05 * rng.normal(size=(50, dim)) * 0.1
    inside = inside[(inside @ A.T > b + 1e-6).all(axis=1)]
    np.testing.assert_allclose(region.point(region.theta(inside)), inside, atol=1e-6)


def test_the_jacobian_of_a_polytope_is_that_of_differences():
    A = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -0.5, -1.0]])
    region = Polytope(A, np.array([0.0, 0.0, 0.0, -1.0]))
    theta = np.random.default_rng(0).normal(size=(4, 3))
    step = 1e-6 * np.eye(3)
    for row, value in zip(theta, region.log_jacobian(theta), strict=True):
        slopes = (region.point(row + step) - region.point(row - step)) / 2e-6
        assert np.linalg.slogdet(slopes)[1] == pytest.approx(value, abs=1e-6)


def test_an_estimate_at_the_edge_is_moved_inside():
    region = Polytope(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), np.array([0.0, 0.0, -1.0]))
    edge = region.inside(np.array([0.0, 1.0]))
    assert np.isfinite(region.theta(edge[None])).all()
    np.testing.assert_allclose(edge, [0.0, 1.0], atol=3e-3)
    np.testing.assert_array_equal(region.inside(np.array([0.1, 0.8])), [0.1, 0.8])
