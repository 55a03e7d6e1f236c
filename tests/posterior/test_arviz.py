"""The export to ArviZ, with both of its generations: packages of their own, and what was ``arviz`` before 1.0.

Python 3.11 gets arviz 0.23, arviz-base and arviz-stats 0.8; later ones get arviz 1 with arviz-plots. The tests of
arviz-plots are for these: its 0.8 does not work with matplotlib 3.11, and arviz 0.23 does not import beside it then.
"""

import importlib
import sys
import warnings
from importlib import metadata

import numpy as np
import pytest
from arviz_base import dict_to_dataset, from_dict
from scipy import stats
from xarray import DataTree

from common import group_names, posterior_of, rescaled
from mgvbp import Gaussian, Model, Parameters, fit, load
from mgvbp.models import LinearRegression, MultinomialRegression
from mgvbp.plots.entries import chosen, columns
from mgvbp.posterior.arviz import without_slashes
from mgvbp.transforms import Positive, Real

RNG = np.random.default_rng(2)
X = np.column_stack([np.ones(60), RNG.normal(size=60)])
Y = X @ [0.5, 1.0] + RNG.normal(size=60)
PRIOR = Gaussian(variance=5.0, dim=3)


@pytest.fixture(scope="module")
def line():
    return fit(LinearRegression(X, Y, names=["one", "x"]), PRIOR)


@pytest.fixture(scope="module")
def flat():
    return fit(LinearRegression(X[:, :1], Y), Gaussian(variance=5.0, dim=2))


def installed(name, *, below=None, least=None):
    """A module of ArviZ; the test is skipped where it is missing, of another generation or does not import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # arviz 0.23 announces 1.0 once a day
        try:
            module = importlib.import_module(name)
        except ImportError:
            pytest.skip(f"{name} is not installed")
        except AttributeError as error:
            pytest.skip(f"{name} does not work with this matplotlib: {error}")
    major = int(module.__version__.partition(".")[0])
    if (below is not None and major >= below) or (least is not None and major < least):
        pytest.skip(f"this is {name} {module.__version__}")
    return module


@pytest.fixture
def canvas():
    """Figures that are not shown."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    importlib.import_module("matplotlib.pyplot").close("all")


# --- what is in it ------------------------------------------------------------------------------------


def test_groups_and_their_numbers(line):
    tree = line.to_arviz(50, rng=3)
    theta = line.sample(50, rng=3)
    model = LinearRegression(X, Y)
    assert group_names(tree) == {
        "posterior",
        "sample_stats",
        "unconstrained_posterior",
        "log_likelihood",
        "observed_data",
    }
    np.testing.assert_allclose(
        tree["sample_stats"]["lp"].to_numpy()[0], model(theta) + PRIOR.log_density(theta), rtol=1e-13
    )
    np.testing.assert_allclose(
        tree["sample_stats"]["log_q"].to_numpy()[0],
        stats.multivariate_normal(line.mean, line.covariance).logpdf(theta),
        rtol=1e-9,
    )
    np.testing.assert_allclose(
        tree["log_likelihood"]["y"].to_numpy()[0],
        stats.norm.logpdf(Y, theta[:, :2] @ X.T, np.exp(theta[:, 2:])),
        rtol=1e-9,
    )
    assert np.array_equal(tree["observed_data"]["y"], Y)
    assert tree["observed_data"]["y"].dims == tree["log_likelihood"]["y"].dims[2:]
    np.testing.assert_allclose(tree["posterior"]["sigma"].to_numpy()[0], np.exp(theta[:, 2]), rtol=1e-13)
    assert all(tree[group].sizes["chain"] == 1 for group in group_names(tree) if group != "observed_data")


def test_coordinates_have_names(line):
    tree = line.to_arviz(5)
    assert tree["posterior"]["beta"].coords["beta_dim_0"].to_numpy().tolist() == ["one", "x"]
    theta = tree["unconstrained_posterior"]["theta"]
    assert theta.coords["theta_dim_0"].to_numpy().tolist() == ["beta[0]", "beta[1]", "sigma"]
    np.testing.assert_allclose(np.exp(theta.sel(theta_dim_0="sigma")), tree["posterior"]["sigma"], rtol=1e-13)


def test_coefficients_of_classes():
    model = MultinomialRegression(X, np.arange(60) % 3, names=["one", "x"])
    beta = fit(model, Gaussian(variance=5.0, dim=4)).to_arviz(5)["posterior"]["beta"]
    assert beta.shape == (1, 5, 2, 2)
    assert beta.coords["beta_dim_0"].to_numpy().tolist() == ["one", "x"]


def test_a_parameter_that_is_called_theta():
    """Its entries are not those of the unconstrained θ."""
    model = Model(lambda theta, s: -0.5 * (theta**2).sum(axis=1) - s, Parameters(theta=Real(2), s=Positive()))
    tree = fit(model, PRIOR).to_arviz(5)
    assert tree["posterior"]["theta"].coords["theta_dim_0"].to_numpy().tolist() == [0, 1]
    assert tree["unconstrained_posterior"]["theta"].coords["theta_dim_0"].to_numpy().tolist() == [
        "theta[0]",
        "theta[1]",
        "s",
    ]


def test_without_names_there_is_theta_alone():
    tree = fit(lambda theta: -0.5 * (theta**2).sum(axis=1), dim=2).to_arviz(5)
    assert group_names(tree) == {"posterior", "sample_stats"}
    assert tree["posterior"]["theta"].coords["theta_dim_0"].to_numpy().tolist() == [0, 1]


def test_without_the_model_its_values_are_left_out(line, tmp_path):
    line.save(tmp_path / "p")
    tree = load(tmp_path / "p").to_arviz(5, rng=1)
    assert group_names(tree) == {"posterior", "sample_stats", "unconstrained_posterior"}
    assert set(tree["sample_stats"].data_vars) == {"log_q"}
    assert np.array_equal(tree["posterior"]["beta"], line.to_arviz(5, rng=1)["posterior"]["beta"])


class Unlike:
    """A model whose ``y`` is not what ``pointwise`` is about."""

    parameters = Parameters(mu=Real())
    y = np.zeros((3, 2))

    def __call__(self, theta):
        return self.pointwise(theta).sum(axis=1)

    def pointwise(self, theta):
        return -0.5 * (theta - [1.0, 2.0, 3.0]) ** 2


def test_observations_of_another_shape_are_left_out():
    tree = fit(Unlike()).to_arviz(5)
    assert tree["log_likelihood"]["y"].shape == (1, 5, 3)
    assert "observed_data" not in group_names(tree)


def test_a_function_that_modifies_its_argument(line):
    def greedy(theta):
        values = -0.5 * (theta**2).sum(axis=1)
        theta[:] = 0.0
        return values

    tree = posterior_of(line, greedy).to_arviz(5, rng=1)
    theta = tree["posterior"]["theta"].to_numpy()[0]
    assert np.array_equal(theta, line.sample(5, rng=1))
    np.testing.assert_allclose(tree["sample_stats"]["lp"].to_numpy()[0], -0.5 * (theta**2).sum(axis=1))


# --- arviz-stats --------------------------------------------------------------------------------------


def test_the_summary_has_our_moments(line):
    """Means of 20,000 draws within 5 standard errors, 3.5% of a standard deviation."""
    from arviz_stats import summary

    table = summary(line.to_arviz(20_000), round_to="none")
    assert list(table.index) == ["beta[one]", "beta[x]", "sigma"]
    means, stds = np.r_[line["beta"].mean, line["sigma"].mean], np.r_[line["beta"].std, line["sigma"].std]
    np.testing.assert_allclose((table["mean"] - means) / stds, 0.0, atol=0.035)
    np.testing.assert_allclose(table["sd"] / stds, 1.0, atol=0.035)
    assert (table["ess_bulk"] > 18_000).all()  # the draws are independent


@pytest.mark.filterwarnings("ignore:.*inplace.*")  # between ArviZ and pandas
def test_models_are_compared(line, flat):
    from arviz_stats import compare, loo

    trees = {"line": line.to_arviz(), "flat": flat.to_arviz()}
    table = compare(trees)
    assert list(table.index) == ["line", "flat"]
    assert loo(trees["line"]).elpd > loo(trees["flat"]).elpd + 5.0


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # of the uncorrected LOO
def test_lp_and_log_q_correct_a_poor_approximation(line):
    """LOO from draws of a posterior that is too wide, with ArviZ's correction for approximations: it comes within
    0.3 nats of LOO from the right draws, and is off by more than 1 without."""
    from arviz_stats import loo, loo_approximate_posterior

    model = LinearRegression(X, Y)
    wide = rescaled(
        line, 2.5, lambda theta: model(theta) + PRIOR.log_density(theta), pointwise=model.pointwise
    ).to_arviz(4000)
    at_draws = wide["sample_stats"]
    right = loo(line.to_arviz(4000)).elpd
    corrected = loo_approximate_posterior(wide, at_draws["lp"], at_draws["log_q"]).elpd
    assert abs(corrected - right) < 0.3
    assert abs(loo(wide).elpd - right) > 1.0


# --- which type is returned -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, "1.2.0", "2.0"])
def test_without_arviz_and_from_1_on_it_is_a_tree(line, monkeypatch, version):
    def of(package):
        assert package == "arviz"
        if version is None:
            raise metadata.PackageNotFoundError
        return version

    monkeypatch.setattr("mgvbp.posterior.arviz.metadata.version", of)
    assert isinstance(line.to_arviz(5), DataTree)


def test_an_arviz_that_does_not_import_is_none(line, monkeypatch):
    monkeypatch.setattr("mgvbp.posterior.arviz.metadata.version", lambda package: "0.23.4")
    monkeypatch.setitem(sys.modules, "arviz", None)
    assert isinstance(line.to_arviz(5), DataTree)


# --- plots and the other generation --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # what ArviZ and matplotlib say to each other is not ours
@pytest.mark.parametrize("name", ["plot_dist", "plot_forest", "plot_pair", "plot_trace_dist"])
def test_plots_of_arviz_plots(line, canvas, name):
    plot = getattr(installed("arviz_plots"), name)
    try:
        plots = plot(line.to_arviz(200), backend="matplotlib")
    except (TypeError, ValueError) as error:
        # version 0.8 cannot draw some of them with today's xarray, whoever made the tree
        plain = {"vector": RNG.normal(size=(1, 200, 2)), "number": RNG.normal(size=(1, 200))}
        with pytest.raises(type(error)):
            plot(from_dict({"posterior": plain}, coords={"vector_dim_0": ["a", "b"]}), backend="matplotlib")
        pytest.skip(f"arviz_plots and xarray: {error}")
    assert plots.viz["figure"].item().axes


@pytest.mark.filterwarnings("ignore")
def test_arviz_1(line, flat):
    az = installed("arviz", least=1)
    tree = line.to_arviz()
    assert list(az.summary(tree).index) == ["beta[one]", "beta[x]", "sigma"]
    assert az.loo(tree).elpd < 0.0
    assert list(az.compare({"line": tree, "flat": flat.to_arviz()}).index) == ["line", "flat"]


@pytest.mark.filterwarnings("ignore")
def test_arviz_before_1(line, flat, canvas):
    az = installed("arviz", below=1)
    data, other = line.to_arviz(200, rng=1), flat.to_arviz(200, rng=1)
    assert isinstance(data, az.InferenceData)
    table = az.summary(data, round_to="none")
    assert list(table.index) == ["beta[one]", "beta[x]", "sigma"]
    np.testing.assert_allclose(table["mean"][:2], line.sample(200, rng=1).mean(axis=0)[:2], rtol=1e-12)
    assert az.loo(data).elpd_loo > az.loo(other).elpd_loo + 5.0
    assert list(az.compare({"line": data, "flat": other}).index) == ["line", "flat"]
    for plot in (az.plot_posterior, az.plot_forest):
        assert np.size(plot(data)) > 0


@pytest.mark.filterwarnings("ignore")
def test_khat_is_that_of_arviz_before_1(line):
    az = installed("arviz", below=1)
    log_weights = line.diagnose(2000).log_weights
    assert line.diagnose(2000).khat == pytest.approx(float(az.psislw(log_weights)[1]), abs=0.02)


def test_names_with_a_slash_are_no_paths():
    """Trees keep ``/`` for groups; thresholds of statsmodels, columns of data and scopes of NumPyro have it too."""
    posterior = fit(lambda theta: -0.5 * (theta**2).sum(axis=1), labels=["km/h", "0/1"])
    draws = posterior.to_arviz(num_draws=10)["posterior"]
    np.testing.assert_array_equal(draws["0|1"][0], posterior.draws(10, rng=0)["0/1"])
    assert {"km|h", "0|1"} <= set(draws.data_vars)
    chains = posterior.mcmc(draws=20, chains=2)
    found = columns(chains, posterior, chosen(posterior, ["0/1"], 1))
    np.testing.assert_array_equal(found[0], np.ravel(chains["posterior"]["0|1"]))


def test_named_axes_with_a_slash_are_no_paths():
    coords = {"speed/km": np.arange(2)}
    dataset = dict_to_dataset({"a": np.zeros((1, 3, 2))}, coords=coords, dims={"a": ["speed/km"]})
    assert without_slashes(dataset)["a"].dims == ("chain", "draw", "speed|km")
