"""`Posterior.mcmc`: names and groups for ArviZ, where the target comes from, workers, limits, warnings, bad input."""

import warnings

import numpy as np
import pytest
from scipy import stats

from common import case, group_names, posterior_of
from mgvbp import Gaussian, Model, Parameters, fit, load
from mgvbp.errors import ConvergenceWarning, InvalidInputError, InvalidTypeError, NonFiniteWarning
from mgvbp.models import LinearRegression
from mgvbp.sampling import ess
from mgvbp.transforms import Positive

RNG = np.random.default_rng(2)
X = np.column_stack([np.ones(30), RNG.normal(size=30)])
Y = X @ [0.5, 1.0] + RNG.normal(size=30)
PRIOR = Gaussian(variance=5.0, dim=3)
COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])
PRECISION = np.linalg.inv(COVARIANCE)
LEVEL = 1e-4


def log_density(theta):
    return -0.5 * np.einsum("si,ij,sj->s", theta, PRECISION, theta)


def grad(theta):
    return -theta @ PRECISION


@pytest.fixture(scope="module")
def line():
    return fit(LinearRegression(X, Y, names=["one", "x"]), PRIOR)


@pytest.fixture(scope="module")
def plain():
    return fit(log_density, dim=2)


def agrees(tree, covariance=COVARIANCE):
    """Means of 0 and variances of the target, at a level of 1e-4 for all."""
    theta = tree["posterior"]["theta"].to_numpy()
    limit, size = stats.norm.isf(LEVEL / 8), ess(theta)
    z = theta / np.sqrt(np.diag(covariance))
    assert (np.abs(z.mean(axis=(0, 1))) < limit / np.sqrt(size)).all()
    assert (np.abs((z**2).mean(axis=(0, 1)) - 1.0) < limit * np.sqrt(2.0 / ess(z**2))).all()


# --- what is in it --------------------------------------------------------------------------------------


def test_groups_names_and_attributes(line):
    tree = line.mcmc(draws=100, chains=3, rng=1)
    assert group_names(tree) == {
        "posterior",
        "sample_stats",
        "unconstrained_posterior",
        "log_likelihood",
        "observed_data",
    }
    theta = tree["unconstrained_posterior"]["theta"].to_numpy()
    named = line.named(theta.reshape(-1, 3))
    assert set(tree["posterior"].data_vars) == set(named)
    for name, values in named.items():
        np.testing.assert_array_equal(tree["posterior"][name].to_numpy().reshape(values.shape), values)
    assert tree["posterior"]["beta"].dims[:2] == ("chain", "draw")
    assert list(tree["posterior"]["beta_dim_0"].to_numpy()) == ["one", "x"]
    assert list(tree["unconstrained_posterior"]["theta_dim_0"].to_numpy()) == list(line.labels)
    model = LinearRegression(X, Y)
    lp = model(theta.reshape(-1, 3)) + PRIOR.log_density(theta.reshape(-1, 3))
    np.testing.assert_allclose(tree["sample_stats"]["lp"].to_numpy().ravel(), lp, rtol=1e-10)
    assert tree.attrs.items() <= tree["posterior"].attrs.items()
    assert tree.attrs["sampler"] == ("NUTS" if hasattr(model, "value_and_grad") else "elliptical slices")
    assert tree.attrs["n_evaluations"] >= 300
    assert tree.attrs["rhat"] < 1.05
    assert min(tree.attrs["ess_bulk"], tree.attrs["ess_tail"]) > 20


def test_arviz_takes_it(line):
    arviz_stats = pytest.importorskip("arviz_stats")
    tree = line.mcmc(draws=200, chains=4)
    table = arviz_stats.summary(tree)
    assert [name for name in table.index if name.startswith("beta")] == ["beta[one]", "beta[x]"]
    assert (table["r_hat"].astype(float) < 1.05).all()


def test_constraints(tmp_path):
    """A scale on its own scale, 1/σ² ~ Gamma: the draws have the quantiles of the conjugate posterior."""
    y = np.random.default_rng(0).normal(0.0, 2.0, size=10)

    def log_likelihood(sigma, y=y):
        return -len(y) * np.log(sigma) - 0.5 * (y @ y) / sigma**2 - np.log(sigma)  # p(σ) ∝ 1/σ

    posterior = fit(Model(log_likelihood, Parameters(sigma=Positive())), dim=None)
    sigma = posterior.mcmc(draws=1000, chains=4)["posterior"]["sigma"].to_numpy()
    assert sigma.shape == (4, 1000)
    assert (sigma > 0).all()
    exact = stats.invgamma(len(y) / 2, scale=(y @ y) / 2)
    assert stats.kstest(sigma[:, ::10].ravel() ** 2, exact.cdf).pvalue > LEVEL


def test_seeds(plain):
    first, again, other = (plain.mcmc(20, 2, rng)["posterior"]["theta"].to_numpy() for rng in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert plain.mcmc(20, 2, np.random.default_rng(0))["posterior"]["theta"].shape == (2, 20, 2)


# --- where the target comes from ----------------------------------------------------------------------


def test_with_and_without_gradients(plain):
    values, gradients = plain.mcmc(), fit(log_density, dim=2, grad=grad).mcmc()
    assert values.attrs["sampler"] == "elliptical slices"
    assert "diverging" not in values["sample_stats"]
    assert gradients.attrs["sampler"] == "NUTS"
    assert gradients.attrs["divergences"] == 0
    assert gradients.attrs["step_size"] > 0.1
    assert not gradients["sample_stats"]["diverging"].to_numpy().any()
    for tree in (values, gradients):
        assert tree.attrs["rhat"] <= 1.01
        agrees(tree)


def test_a_prior_counts():
    """With and without a gradient, a Gaussian prior and one that has only a density."""

    class Prior:
        def log_density(self, theta):
            return -0.5 * (theta**2).sum(axis=1)

    expected = np.linalg.inv(PRECISION + np.eye(2))
    for prior in (Gaussian(variance=1.0, dim=2), Prior()):
        with case(type(prior).__name__), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gradient is not used
            tree = fit(log_density, prior, dim=2, grad=grad).mcmc(300)
            assert tree.attrs["sampler"] == ("NUTS" if isinstance(prior, Gaussian) else "elliptical slices")
            agrees(tree, expected)


def test_a_loaded_posterior_is_given_its_target(plain, tmp_path):
    plain.save(tmp_path / "posterior.npz")
    loaded = load(tmp_path / "posterior.npz")
    with pytest.raises(InvalidInputError, match=r"does not know its model: .*give log_density="):
        loaded.mcmc()
    agrees(loaded.mcmc(500, log_density=log_density))
    tree = loaded.mcmc(500, log_density=log_density, grad=grad)
    assert tree.attrs["sampler"] == "NUTS"
    agrees(tree)
    with pytest.raises(InvalidInputError, match="n_jobs= and timeout= go with the model of a fit"):
        loaded.mcmc(10, log_density=log_density, n_jobs=2)


# --- workers, limits, interrupts ------------------------------------------------------------------------


def test_workers_and_timeouts_change_nothing(plain):
    alone = plain.mcmc(20, 2)["posterior"]["theta"].to_numpy()
    for options in ({"n_jobs": 2}, {"timeout": 60.0}):
        with case(options):
            shared = plain.mcmc(20, 2, **options)["posterior"]["theta"].to_numpy()
            np.testing.assert_allclose(shared, alone, rtol=1e-6)


def test_a_limit_on_evaluations(plain):
    with pytest.warns(
        ConvergenceWarning, match="reached max_evaluations = 3000: there are .* of 1,000 draws"
    ):
        tree = plain.mcmc(max_evaluations=3000)
    assert tree.attrs["n_evaluations"] <= 3000
    assert 0 < tree["posterior"].sizes["draw"] < 1000
    with pytest.raises(InvalidInputError, match="max_evaluations = 10 is too few"):
        plain.mcmc(max_evaluations=10)


def test_control_c_keeps_the_draws():
    calls = 0

    def interrupted(theta):
        nonlocal calls
        calls += 1
        if calls == 300:
            raise KeyboardInterrupt  # as control-C does, at a place that does not depend on the machine
        return log_density(theta)

    posterior = posterior_of(Gaussian(np.zeros(2), COVARIANCE), interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted: there are"):
        tree = posterior.mcmc(2000)
    assert 0 < tree["posterior"].sizes["draw"] < 2000


def test_a_function_that_fails_far_out():
    """Draws that raise are rejected; a function that raises at once is broken."""

    def fragile(theta):
        if (np.abs(theta) > 3.0).any():
            raise ValueError("too far out")
        return log_density(theta)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = fit(fragile, dim=2, initial_variance=0.01, n_jobs=1, timeout=60.0)
    narrow = posterior_of(Gaussian(np.zeros(2), 0.01), posterior._target)
    for options in ({}, {"timeout": 60.0}):
        with case(options), pytest.warns(NonFiniteWarning, match="evaluations were not numbers"):
            theta = narrow.mcmc(100, **options)["posterior"]["theta"].to_numpy()
        assert np.abs(theta).max() <= 3.0
        assert np.abs(theta).max() > 1.0
    wide = posterior_of(Gaussian(np.full(2, 50.0), 0.01), posterior._target)
    with pytest.raises(ValueError, match="too far out"):
        wide.mcmc(10)


def test_chains_that_disagree_are_said_to():
    """Two modes far apart, which the fit does not know of."""

    def two(theta):
        return np.logaddexp(-0.5 * theta[:, 0] ** 2, -0.5 * (theta[:, 0] - 60.0) ** 2)

    posterior = posterior_of(Gaussian(np.full(1, 30.0), np.full(1, 1000.0)), two, parameters=None)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tree = posterior.mcmc(25, chains=20)  # every chain is one walker
    mixed = tree.attrs["rhat"] <= np.sqrt(1.0 + 4.0 / 25)
    assert mixed != any("the chains disagree" in str(warning.message) for warning in seen)


def test_a_bar_is_shown(plain, capsys):
    plain.mcmc(10, 2, progress=True)
    assert "20/20" in capsys.readouterr().err


# --- bad input --------------------------------------------------------------------------------------------


def test_bad_arguments(plain):
    bad = [
        ({"draws": 0}, InvalidInputError, "draws must be at least 1"),
        ({"draws": 1.5}, InvalidTypeError, "draws must be an integer"),
        ({"draws": 10**15}, InvalidInputError, "this machine has"),
        ({"chains": -1}, InvalidInputError, "chains must be at least 1"),
        ({"rng": "a"}, InvalidTypeError, "rng must be"),
        ({"max_evaluations": 0}, InvalidInputError, "max_evaluations must be at least 1"),
        ({"n_jobs": 0}, InvalidInputError, "n_jobs must be"),
        ({"n_jobs": "2"}, InvalidTypeError, "n_jobs must be"),
        ({"timeout": -1.0}, InvalidInputError, "timeout must be positive"),
        ({"progress": 1}, InvalidTypeError, "progress must be True or False"),
        ({"log_density": 1}, InvalidTypeError, "log_density must be a function"),
        ({"grad": "jax"}, InvalidTypeError, "grad must be a function"),
    ]
    for options, error, message in bad:
        with case(options), pytest.raises(error, match=message):
            plain.mcmc(**options)


def test_a_noisy_log_density_is_an_error(plain):
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match="the log density is noisy"):
        plain.mcmc(log_density=lambda theta: log_density(theta) + rng.normal(size=len(theta)))
