"""What comes along with a NumPyro model: plates, data, likelihoods by observation, predictions."""

import numpy as np
import pytest
from scipy import stats

import mgvbp
from common import group_names, installed
from mgvbp.errors import InvalidInputError, MgvbpWarning

RNG = np.random.default_rng(4)
GROUP = np.repeat(np.arange(3), 20)
X = RNG.normal(size=60)
CENTRES = np.array([-5.0, 2.0, 9.0])
Y = CENTRES[GROUP] + 0.5 * X + RNG.normal(size=60)


@pytest.fixture(scope="module")
def model(numpyro, dist):
    def grouped(x, group, y=None):
        with numpyro.plate("groups", 3):
            alpha = numpyro.sample("alpha", dist.Normal(0.0, 10.0))
            numpyro.deterministic("double", 2.0 * alpha)
        slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([1]).to_event(1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
        with numpyro.plate("rows", len(x)):
            numpyro.sample("y", dist.Normal(alpha[group] + slopes[0] * x, sigma), obs=y)

    return grouped


@pytest.fixture(scope="module")
def posterior(model):
    return mgvbp.fit(mgvbp.from_numpyro(model, X, GROUP, y=Y))


@pytest.fixture(scope="module")
def data(posterior):
    return posterior.to_arviz(300, rng=1)


def test_plates_are_axes(data):
    groups = {"posterior", "sample_stats", "log_likelihood", "observed_data", "unconstrained_posterior"}
    assert group_names(data) == groups
    draws = data["posterior"]
    assert draws["alpha"].dims == draws["double"].dims == ("chain", "draw", "groups")
    assert draws["slopes"].dims == ("chain", "draw", "slopes_dim_0")
    np.testing.assert_allclose(draws["double"], 2.0 * draws["alpha"], rtol=1e-12)
    assert data["observed_data"]["y"].dims == ("rows",)
    np.testing.assert_array_equal(data["observed_data"]["y"], Y)


def test_the_log_likelihood_is_that_of_scipy(data):
    draws = data["posterior"]
    mean = draws["alpha"].to_numpy()[..., GROUP] + draws["slopes"].to_numpy() * X
    expected = stats.norm.logpdf(Y, mean, draws["sigma"].to_numpy()[..., None])
    assert data["log_likelihood"]["y"].dims == ("chain", "draw", "rows")
    np.testing.assert_allclose(data["log_likelihood"]["y"], expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # of 300 draws
def test_loo(data):
    """Of 60 observations with a standard deviation of about 1, whose density is about −log √(2πe) each."""
    assert installed("arviz_stats").loo(data).elpd == pytest.approx(
        -60 * np.log(np.sqrt(2 * np.pi * np.e)), abs=20
    )


def test_predictions_are_of_the_posterior(numpyro, model, posterior):
    """NumPyro's own `Predictive` with our draws, at new data: means within five standard errors of 2,000 draws."""
    predictive = numpyro.infer.Predictive(model, posterior.draws(2000, rng=1))
    new = predictive(installed("jax").random.PRNGKey(0), np.array([0.0, 10.0]), np.array([2, 0]))["y"]
    draws = posterior.draws(2000, rng=1)
    expected = draws["alpha"][:, [2, 0]].mean(axis=0) + np.array([0.0, 10.0]) * draws["slopes"].mean()
    sd = np.asarray(new).std(axis=0)
    assert (np.abs(np.asarray(new).mean(axis=0) - expected) < 5.0 * sd / np.sqrt(2000)).all()
    np.testing.assert_allclose(expected, [9.0, 0.0], atol=2.5)


def test_data_that_the_model_computes_and_axes_of_events(numpyro, dist):
    """Nested plates, observed vectors, data that are made of the arguments, and a factor."""
    y = np.exp(RNG.normal(size=(4, 2)))

    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        with numpyro.plate("b", 3, dim=-1), numpyro.plate("a", 2, dim=-2):
            numpyro.sample("z", dist.Normal())
        numpyro.factor("penalty", -(mu**2).sum())
        with numpyro.plate("rows", 4):
            numpyro.sample("y", dist.MultivariateNormal(mu, np.eye(2)), obs=installed("jax").numpy.log(y))

    adapted = mgvbp.from_numpyro(model, y)
    assert adapted.parameters.dims["z"] == ("a", "b")
    assert adapted.parameters.dims["mu"] == ("mu_dim_0",)
    assert list(adapted.pointwise.observed_data) == ["y"]
    np.testing.assert_allclose(adapted.pointwise.observed_data["y"], np.log(y), rtol=1e-12)
    theta = RNG.normal(size=(5, adapted.parameters.dim))
    mu = adapted.parameters.constrain(theta)["mu"]
    expected = stats.norm.logpdf(np.log(y), mu[:, None]).sum(axis=2)
    np.testing.assert_allclose(adapted.pointwise(theta)["y"], expected, rtol=1e-10)
    data = mgvbp.fit(adapted).to_arviz(10)
    assert data["log_likelihood"]["y"].dims == ("chain", "draw", "rows")
    assert data["observed_data"]["y"].dims == ("rows", "y_dim_1")


def test_data_that_were_forgotten(numpyro, dist, model):
    with pytest.warns(MgvbpWarning, match=r"no observed site.*are data missing"):
        adapted = mgvbp.from_numpyro(model, X[:2], GROUP[:2])
    assert adapted.parameters.names == ("alpha", "slopes", "sigma", "y")

    def counts(y=None):
        numpyro.sample("y", dist.Poisson(numpyro.sample("rate", dist.HalfNormal())), obs=y)

    with pytest.raises(InvalidInputError, match=r"'y' is discrete.*give its data"):
        mgvbp.from_numpyro(counts)


def test_missing_data_and_rows_taken_by_traced_numbers_get_a_sentence(numpyro, dist, model):
    holes = np.where(np.arange(60) == 3, np.nan, Y)
    with pytest.warns(MgvbpWarning, match="the data of 'y' have missing values"):
        mgvbp.from_numpyro(model, X, GROUP, holes)

    def subsampled(y):
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        with numpyro.plate("rows", 60, subsample_size=10) as rows:
            numpyro.sample("y", dist.Normal(mu, 1.0), obs=y[rows])

    with pytest.raises(InvalidInputError, match=r"give it jax\.numpy arrays, and all data"):
        mgvbp.from_numpyro(subsampled, Y)
