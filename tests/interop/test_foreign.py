"""Models of NumPyro and PyMC: their densities, names and fits against the same models written here."""

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import mgvbp
from common import installed
from mgvbp import BlockDiagonal, Gaussian, InvalidInputError, InvalidTypeError
from mgvbp.interop import ForeignModel, ForeignParameters
from mgvbp.interop.functions.compiled import filled
from mgvbp.posterior.marginal import DRAWS
from mgvbp.problem.blocks import SIZES, blocks
from mgvbp.transforms import Interval, Positive, Real

EXAMPLES = Path(__file__).parents[2] / "examples"


# --- one model three times ----------------------------------------------------------------------------

RNG = np.random.default_rng(3)
X = RNG.standard_normal((30, 2))
Y = X @ [1.0, -0.5] + 0.7 * RNG.standard_t(5, size=30)
THETA = RNG.standard_normal((40, 4))


def ours():
    """Student regression with bounded location: priors of SciPy, transforms and Jacobians of `mgvbp.Parameters`."""
    parameters = mgvbp.Parameters(beta=Real(2), sigma=Positive(), shift=Interval(-1.0, 2.0))
    prior = parameters.prior(
        beta=stats.norm(0.5, 2.0), sigma=stats.halfnorm(scale=1.5), shift=stats.uniform(-1.0, 3.0)
    )

    def log_density(theta):
        values = parameters.constrain(theta)
        location = values["beta"] @ X.T + values["shift"][:, None]
        terms = stats.t.logpdf(Y, 5.0, location, values["sigma"][:, None])
        return prior.log_density(theta) + terms.sum(axis=1)

    return log_density, parameters


@pytest.fixture(scope="module")
def in_numpyro(numpyro, dist):
    def model(X, y):
        beta = numpyro.sample("beta", dist.Normal(0.5, 2.0).expand([2]).to_event(1))
        sigma = numpyro.sample("sigma", dist.HalfNormal(1.5))
        shift = numpyro.sample("shift", dist.Uniform(-1.0, 2.0))
        numpyro.deterministic("scaled", beta / sigma)
        with numpyro.plate("rows", len(X)):
            numpyro.sample("y", dist.StudentT(5.0, X @ beta + shift, sigma), obs=y)

    return mgvbp.from_numpyro(model, X, y=Y)


@pytest.fixture(scope="module")
def in_pymc(pm):
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.5, 2.0, shape=2)
        sigma = pm.HalfNormal("sigma", 1.5)
        shift = pm.Uniform("shift", -1.0, 2.0)
        pm.Deterministic("scaled", beta / sigma)
        pm.Deterministic("data", pm.math.stack([1.0, 2.0]))
        pm.StudentT("y", nu=5.0, mu=X @ beta + shift, sigma=sigma, observed=Y)
    return mgvbp.from_pymc(model)


@pytest.fixture(params=["in_numpyro", "in_pymc"])
def adapted(request):
    return request.getfixturevalue(request.param)


def test_the_density_is_that_of_scipy(adapted):
    """Priors, likelihood and Jacobians, at points out to ±15 standard deviations; in float64.

    PyMC takes logarithms and gamma functions of Python numbers in float32, so that its density is off by a constant.
    """
    log_density, _ = ours()
    theta = np.concatenate([THETA, 5.0 * THETA])
    values, expected = adapted(theta), log_density(theta)
    assert values[0] == pytest.approx(expected[0], abs=1e-6)
    np.testing.assert_allclose(values - values[0], expected - expected[0], rtol=1e-11, atol=1e-11)


def test_names_and_values_are_those_of_the_model(adapted):
    _, parameters = ours()
    theirs = adapted.parameters
    assert theirs.names == parameters.names
    assert theirs.labels == parameters.labels
    assert theirs.slices == parameters.slices
    assert theirs.dim == parameters.dim == 4
    values, expected = theirs.constrain(THETA), parameters.constrain(THETA)
    expected["scaled"] = expected["beta"] / expected["sigma"][:, None]
    assert list(values) == list(expected)
    for name, value in values.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-12)
    np.testing.assert_array_equal(theirs.constrain(THETA[3])["scaled"], values["scaled"][3])


def test_unconstrain_is_the_inverse(adapted):
    parameters = adapted.parameters
    values = parameters.constrain(THETA)
    np.testing.assert_allclose(parameters.unconstrain(values), THETA, atol=1e-12)
    one = parameters.unconstrain({"beta": [1.0, 2.0], "sigma": 1.0, "shift": 0.5})
    np.testing.assert_allclose(one, [1.0, 2.0, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("wrong", [{"sigma": -1.0}, {"sigma": 0.0}, {"shift": 2.5}])
def test_values_outside_the_support(adapted, wrong):
    (name,) = wrong
    with pytest.raises(InvalidInputError, match=f"{name}: .*outside"):
        adapted.parameters.unconstrain({"beta": [1.0, 2.0], "sigma": 1.0, "shift": 0.5} | wrong)


@pytest.mark.parametrize("number", [1, 15, 16, 17, 75, 1025])
def test_draws_do_not_know_of_each_other(adapted, number):
    theta = np.resize(THETA, (number, 4))
    np.testing.assert_allclose(adapted(theta), np.resize(adapted(THETA), number), rtol=1e-12)
    value = adapted.parameters.constrain(theta)["scaled"]
    np.testing.assert_allclose(value, np.resize(adapted.parameters.constrain(THETA)["scaled"], (number, 2)))


@pytest.mark.filterwarnings("ignore:.* encountered:RuntimeWarning")
def test_values_that_are_not_finite_pass_through(adapted):
    theta = THETA[:3].copy()
    theta[1] = np.nan
    np.testing.assert_array_equal(np.isfinite(adapted(theta)), [True, False, True])


def test_fit_has_the_names(adapted, tmp_path):
    """The fit of the same density written here, and what a posterior says by name."""
    posterior = mgvbp.fit(adapted)
    log_density, parameters = ours()
    reference = mgvbp.fit(log_density, dim=4)
    by_values = mgvbp.fit(lambda theta: adapted(theta), dim=4)
    assert (posterior.estimator, by_values.estimator) == ("gradient", "regression")
    # with gradients other draws are made, and after last digits that differ: 0.01 nats are 0.14 standard deviations
    for found in (posterior, by_values):
        assert np.abs((found.mean - reference.mean) / reference.std).max() < 0.14
        np.testing.assert_allclose(found.std, reference.std, rtol=0.1)
    assert "shift" in posterior.summary()
    draws = posterior.draws(50, rng=1)
    expected = parameters.constrain(posterior.sample(50, rng=1))
    np.testing.assert_allclose(draws["shift"], expected["shift"], rtol=1e-10)
    # 10,000 draws behind the mean: five standard errors of a log-normal with log-sd below 0.3
    log_mean, log_sd = posterior.mean[2], posterior.std[2]
    assert posterior["sigma"].mean == pytest.approx(np.exp(log_mean + log_sd**2 / 2), rel=0.05 * 0.3)
    assert posterior["scaled"].shape == (2,)
    posterior.save(tmp_path / "fit.npz")
    assert mgvbp.load(tmp_path / "fit.npz").labels == adapted.parameters.labels


def test_blocks_by_name(adapted):
    posterior = mgvbp.fit(adapted, family=BlockDiagonal([["beta", "sigma"], ["shift"]]))
    assert np.abs(posterior.covariance[3, :3]).max() == 0.0
    assert np.abs(posterior.covariance[0, 1:3]).min() > 0.0


def test_bad_theta(adapted):
    with pytest.raises(InvalidInputError, match=r"theta has shape \(2, 3\); expected \(S, 4\)"):
        adapted(np.zeros((2, 3)))
    with pytest.raises(InvalidInputError, match=r"theta has shape \(2, 3\); expected \(S, 4\)"):
        adapted.parameters.constrain(np.zeros((2, 3)))


# --- a posterior in closed form -----------------------------------------------------------------------


def assert_conjugate(posterior):
    """y ~ N(Xβ, ½), β ~ N(0, 4): mean, covariance and log evidence."""
    precision = np.eye(2) / 4.0 + X.T @ X / 0.5
    np.testing.assert_allclose(posterior.precision, precision, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(precision, X.T @ Y / 0.5), atol=1e-9)
    evidence = stats.multivariate_normal(np.zeros(30), 4.0 * X @ X.T + 0.5 * np.eye(30)).logpdf(Y)
    assert posterior.lower_bound == pytest.approx(evidence, abs=1e-8)


def test_conjugate_regression_in_numpyro(numpyro, dist):
    def model():
        beta = numpyro.sample("beta", dist.Normal(0.0, 2.0).expand([2]))
        numpyro.sample("y", dist.Normal(X @ beta, np.sqrt(0.5)), obs=Y)

    assert_conjugate(mgvbp.fit(mgvbp.from_numpyro(model)))


def test_conjugate_regression_in_pymc(pm):
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 2.0, shape=2)
        pm.Normal("y", X @ beta, np.sqrt(0.5), observed=Y)
    assert_conjugate(mgvbp.fit(mgvbp.from_pymc(model)))


# --- constraints of several entries, and on each other -------------------------------------------------


def numerical_log_jacobian(parameters, theta, free):
    """log |det ∂ free(values)/∂θ| by central differences, where ``free`` picks as many entries as θ has."""
    step = 1e-5 * np.eye(parameters.dim)
    columns = free(parameters.constrain(theta + step)) - free(parameters.constrain(theta - step))
    return np.linalg.slogdet(columns / 2e-5)[1]


def test_simplex_correlation_and_nested_supports_in_numpyro(numpyro, dist):
    """Densities of the values in closed form, plus a Jacobian that is not NumPyro's."""

    def model():
        width = numpyro.sample("width", dist.HalfNormal(1.0))
        numpyro.sample("inside", dist.Uniform(0.0, width))
        numpyro.sample("L", dist.LKJCholesky(3, 2.0))
        numpyro.sample("p", dist.Dirichlet(np.array([1.0, 2.0, 3.0])))
        numpyro.sample("flat", dist.ImproperUniform(dist.constraints.positive, (), (2,)))
        numpyro.factor("none", 0.0)

    def free(values):
        rows, columns = np.tril_indices(3, -1)
        parts = [values["width"][:, None], values["inside"][:, None], values["L"][:, rows, columns]]
        return np.concatenate([*parts, values["p"][:, :2], values["flat"]], axis=1)

    adapted = mgvbp.from_numpyro(model)
    parameters = adapted.parameters
    assert parameters.labels[2:7] == ("L[0]", "L[1]", "L[2]", "p[0]", "p[1]")
    theta = np.random.default_rng(0).standard_normal((3, parameters.dim))
    values = parameters.constrain(theta)
    np.testing.assert_allclose(parameters.unconstrain(values), theta, atol=1e-10)
    # Π L_kk^(n − k + 2η − 2) (Lewandowski, Kurowicka and Joe 2009): (1 − x²)^1.5 on the interval of row 2, whose
    # integral is 3π/8, and 1 − x² − y² on the disk of row 3, π/2
    joint = np.log(values["L"][:, [1, 2], [1, 2]]) @ [3.0, 2.0] - np.log(3.0 * np.pi**2 / 16.0)
    joint += stats.halfnorm.logpdf(values["width"]) - np.log(values["width"])
    joint += stats.dirichlet([1.0, 2.0, 3.0]).logpdf(values["p"].T)
    jacobian = [numerical_log_jacobian(parameters, row, free) for row in theta]
    np.testing.assert_allclose(adapted(theta), joint + jacobian, atol=1e-6)
    with pytest.raises(InvalidInputError, match=r"inside: .*outside"):
        parameters.unconstrain(values | {"inside": values["width"] * 1.5})
    with pytest.raises(InvalidInputError, match=r"p: .*outside"):
        parameters.unconstrain(values | {"p": values["p"] * 2.0})


def test_simplex_and_nested_supports_in_pymc(pm):
    with pm.Model() as model:
        width = pm.HalfNormal("width", 1.0)
        pm.Uniform("inside", 0.0, width)
        pm.Dirichlet("p", np.array([1.0, 2.0, 3.0]))
        pm.Potential("none", pm.math.constant(0.0))

    def free(values):
        return np.concatenate(
            [values["width"][:, None], values["inside"][:, None], values["p"][:, :2]], axis=1
        )

    adapted = mgvbp.from_pymc(model)
    parameters = adapted.parameters
    assert parameters.labels == ("width", "inside", "p[0]", "p[1]")
    values = parameters.constrain(THETA)
    np.testing.assert_allclose(parameters.unconstrain(values), THETA, atol=1e-10)
    joint = stats.halfnorm.logpdf(values["width"]) - np.log(values["width"])
    joint += stats.dirichlet([1.0, 2.0, 3.0]).logpdf(values["p"].T)
    jacobian = [numerical_log_jacobian(parameters, row, free) for row in THETA]
    np.testing.assert_allclose(adapted(THETA), joint + jacobian, atol=1e-6)
    with pytest.raises(InvalidInputError, match=r"p: .*outside"):
        parameters.unconstrain(values | {"p": values["p"] * 2.0})


# --- NumPyro ------------------------------------------------------------------------------------------


def test_compilations_are_few(numpyro, dist):
    """JAX runs the model's Python code once for each compilation: four sizes for batches of any size."""
    runs = []

    def model():
        runs.append(1)
        numpyro.sample("y", dist.Normal(numpyro.sample("x", dist.Normal())), obs=0.0)

    adapted = mgvbp.from_numpyro(model)
    before = len(runs)
    for number in np.random.default_rng(0).integers(1, 4000, size=60):
        assert adapted(np.zeros((number, 1))).shape == (number,)
    assert len(runs) - before <= 4


def test_the_switch_of_jax_is_left_alone(in_numpyro):
    jax = installed("jax")
    assert not jax.config.jax_enable_x64
    assert in_numpyro(THETA).dtype == np.float64
    assert not jax.config.jax_enable_x64
    assert jax.numpy.zeros(1).dtype == np.float32


def test_agrees_with_nuts(numpyro, dist):
    """Logistic regression, 200 rows, 3 coefficients, against 1,000 draws of NumPyro's own sampler.

    The sampler's means have a standard error of about 0.03 posterior sd; the posterior is close to Gaussian.
    The sampler has compiled the model in float32, with the same integer data, before it is compiled again here.
    """
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 3))
    y = (rng.random(200) < 1 / (1 + np.exp(-X @ [0.5, -1.0, 0.3]))).astype(int)

    def model(X, y):
        beta = numpyro.sample("beta", dist.Normal(0.0, 2.0).expand([3]))
        numpyro.sample("y", dist.Bernoulli(logits=X @ beta), obs=y)

    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=200, num_samples=1000, progress_bar=False)
    mcmc.run(installed("jax").random.PRNGKey(0), X, y)
    draws = np.asarray(mcmc.get_samples()["beta"], np.float64)
    posterior = mgvbp.fit(mgvbp.from_numpyro(model, X, y))
    assert np.abs((posterior.mean - draws.mean(axis=0)) / posterior.std).max() < 0.15
    np.testing.assert_allclose(posterior.std, draws.std(axis=0), rtol=0.1)


def test_numpyro_models_that_have_no_density(numpyro, dist):
    def discrete():
        numpyro.sample("z", dist.Bernoulli(0.5))

    def subsampled():
        with numpyro.plate("rows", 10, subsample_size=3):
            numpyro.sample("x", dist.Normal())

    def learnt():
        numpyro.sample("x", dist.Normal(numpyro.param("scale", 1.0)))

    def observed():
        numpyro.sample("x", dist.Normal(), obs=1.0)

    cases = [(discrete, "'z' is discrete"), (subsampled, "'rows' takes 3 of 10"), (learnt, "'scale'")]
    for model, message in [*cases, (observed, "no latent site")]:
        with pytest.raises(InvalidInputError, match=message):
            mgvbp.from_numpyro(model)
    with pytest.raises(InvalidTypeError, match="must be a function"):
        mgvbp.from_numpyro("model")


# --- PyMC ---------------------------------------------------------------------------------------------


def test_agrees_with_pymc_itself(in_pymc, pm):
    """One draw at a time, by PyMC's own function."""
    with pm.Model() as model:
        pm.MvNormal("x", np.zeros(2), np.array([[1.0, 0.4], [0.4, 2.0]]))
        pm.Potential("none", pm.math.constant(0.0))
        pm.Gamma("rate", 2.0, 3.0, shape=(2, 2))
    adapted, own = mgvbp.from_pymc(model), model.compile_logp()
    theta = np.random.default_rng(0).standard_normal((5, 6))
    expected = [own({"x": row[:2], "rate_log__": row[2:].reshape(2, 2)}) for row in theta]
    np.testing.assert_allclose(adapted(theta), expected, rtol=1e-12)
    assert adapted.parameters.labels[2:] == ("rate[0,0]", "rate[0,1]", "rate[1,0]", "rate[1,1]")


def test_a_bad_draw_is_bad_alone(pm):
    """A scale that is negative for some draws: PyMC's own check of it must not reach the others."""
    with pm.Model() as model:
        scale = pm.Normal("scale", 1.0, 1.0)
        pm.Normal("y", 0.0, scale, observed=Y)
    theta = np.array([[1.0], [-1.0], [2.0]])
    expected = stats.norm.logpdf(theta[:, 0], 1.0) + stats.norm.logpdf(Y, 0.0, np.abs(theta)).sum(axis=1)
    expected[1] = -np.inf
    np.testing.assert_allclose(mgvbp.from_pymc(model)(theta), expected, rtol=1e-12)


# --- without either package ---------------------------------------------------------------------------


def by_hand():
    """A location and a pair of scales, with a derived value."""
    return ForeignParameters(
        {"m": (), "s": (2,)},
        {"m": (), "s": (2,)},
        lambda theta: {"ratio": theta[:, 0], "s": np.exp(theta[:, 1:]), "m": theta[:, 0]},
        lambda values: np.column_stack([values["m"], np.log(np.abs(values["s"]))]),
    )


def test_layout():
    parameters = by_hand()
    assert (parameters.names, parameters.dim) == (("m", "s"), 3)
    assert parameters.labels == ("m", "s[0]", "s[1]")
    assert parameters.slices == {"m": slice(0, 1), "s": slice(1, 3)}
    assert list(parameters.constrain(np.zeros((2, 3)))) == ["m", "s", "ratio"]
    other = ForeignParameters({"p": (3,)}, {"p": (2,)}, parameters.to_values, parameters.to_theta)
    assert other.labels == ("p[0]", "p[1]")


def counted_fit():
    """The posterior of `by_hand` under a Gaussian, and a list to which each call of ``to_values`` adds its rows."""
    parameters, rows = by_hand(), []

    def to_values(theta):
        rows.append(len(theta))
        return parameters.to_values(theta)

    gaussian = mgvbp.Gaussian([1.0, 0.5, -0.5], variance=[1.0, 0.2, 0.1])
    model = ForeignModel(gaussian.log_density_at, replace(parameters, to_values=to_values))
    posterior = mgvbp.fit(model)
    rows.clear()
    return posterior, rows


def test_draws_are_constrained_once_for_all_tables():
    """Another package's map of 10,000 draws may take longer than the fit: no table and no marginal repeats it."""
    posterior, rows = counted_fit()
    posterior.summary()._repr_html_()
    frame = posterior.to_frame()
    for name in ("m", "s", "ratio", "s[1]"):
        assert name in posterior
        assert np.all(posterior[name].std > 0.0)
    assert rows.count(DRAWS) == 1
    assert sum(rows) == DRAWS + 1  # and the shapes once, at one point
    anew = by_hand().constrain(posterior.sample(DRAWS, 0))["s"]
    np.testing.assert_array_equal(posterior["s"].mean, anew.mean(axis=0))
    np.testing.assert_array_equal(frame.loc["s[1]", "97.5%"], np.quantile(anew[:, 1], 0.975))


def test_the_draws_of_tables_are_read_only_and_not_pickled():
    posterior, _ = counted_fit()
    before = len(pickle.dumps(posterior))
    posterior.summary()
    with pytest.raises(ValueError, match="read-only"):
        posterior["s"]._draws[0] = 0.0
    assert len(pickle.dumps(posterior)) < before + 1000  # labels may be there; 10,000 draws are not


def test_a_marginal_of_parameters_that_can_be_pickled():
    theirs = replace(by_hand(), to_values=pickled_values, to_theta=len)
    posterior = mgvbp.fit(ForeignModel(mgvbp.Gaussian(variance=np.ones(3)).log_density_at, theirs))
    again = pickle.loads(pickle.dumps(posterior["s"]))
    np.testing.assert_array_equal(again.mean, posterior["s"].mean)


def pickled_values(theta):
    return {"m": theta[:, 0], "s": np.exp(theta[:, 1:])}


def test_values_that_cannot_be_used():
    parameters = by_hand()
    np.testing.assert_allclose(parameters.unconstrain({"m": 1.0, "s": [1.0, np.e]}), [1.0, 0.0, 1.0])
    with pytest.raises(InvalidInputError, match="s is missing"):
        parameters.unconstrain({"m": 1.0})
    with pytest.raises(
        InvalidInputError, match=r"expected values of shapes m \(\), s \(2,\).*got m \(\), s \(3,\)"
    ):
        parameters.unconstrain({"m": 1.0, "s": [1.0, 1.0, 1.0]})
    with pytest.raises(InvalidInputError, match="same leading axis"):
        parameters.unconstrain({"m": np.zeros(3), "s": np.ones((2, 2))})
    with pytest.raises(InvalidInputError, match="s: a value is outside"):  # the inverse takes -1 for 1
        parameters.unconstrain({"m": 1.0, "s": [1.0, -1.0]})


def test_fit_by_hand():
    gaussian = Gaussian(mean=[1.0, 0.0, -1.0], variance=[1.0, 0.5, 0.2])
    posterior = mgvbp.fit(ForeignModel(gaussian.log_density_at, by_hand()))
    np.testing.assert_allclose(posterior.mean, gaussian.mean, atol=1e-9)
    assert posterior.labels == ("m", "s[0]", "s[1]")


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 80, 1023, 1024, 5000])
def test_blocks(number):
    """They lie one behind the other, have the sizes that are compiled, and exceed the rows by 15 at most."""
    starts, sizes = zip(*blocks(number), strict=True)
    np.testing.assert_array_equal(starts, np.cumsum([0, *sizes[:-1]]))
    assert set(sizes) <= {*SIZES, 1}
    assert number <= sum(sizes) < max(number, 1) + SIZES[-1]
    np.testing.assert_array_equal(filled(np.ones((2, 3)), 4), [[1.0] * 3] * 2 + [[0.0] * 3] * 2)


@pytest.mark.parametrize("package", ["jax", "torch", "numba"])
def test_examples(package):
    installed(package)
    script = EXAMPLES / f"{package}_function.py"
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert "\nconverged" in run.stdout
