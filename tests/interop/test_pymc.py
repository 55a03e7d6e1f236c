"""What comes along with a PyMC model: gradients, constraints, axes, data, predictions; against PyMC itself."""

import sys
import warnings

import cloudpickle
import numpy as np
import pytest
from scipy import stats

import mgvbp
from common import case, group_names, installed
from mgvbp import InvalidInputError, InvalidTypeError, UnknownNameError
from mgvbp.errors import MgvbpWarning
from mgvbp.interop.pymc import graphs as pymc_graphs
from mgvbp.plots.entries import chosen, columns

RNG = np.random.default_rng(8)
GROUP = np.repeat(np.arange(4), 12)
X = RNG.normal(size=48)
CENTRES = np.array([-5.0, 0.0, 5.0, 10.0])
Y = CENTRES[GROUP] + 0.5 * X + RNG.normal(size=48)


@pytest.fixture(scope="module")
def grouped(pm):
    """Group means far from their prior's: whoever draws them from the prior again is found out."""
    with pm.Model(coords={"group": ["a", "b", "c", "d"], "row": np.arange(48)}) as model:
        x = pm.Data("x", X, dims="row")
        index = pm.Data("index", GROUP, dims="row")
        alpha = pm.Normal("alpha", 0.0, 10.0, dims="group")
        slope = pm.Normal("slope", 0.0, 1.0)
        sigma = pm.HalfNormal("sigma", 2.0)
        mean = pm.Deterministic("mean", alpha[index] + slope * x, dims="row")
        pm.Normal("y", mean, sigma, observed=Y, dims="row")
    return model


@pytest.fixture(scope="module")
def posterior(grouped):
    return mgvbp.fit(mgvbp.from_pymc(grouped))


@pytest.fixture(scope="module")
def data(posterior):
    return posterior.to_arviz(400, rng=1)


@pytest.fixture(scope="module")
def nuts(pm, grouped):
    with warnings.catch_warnings(action="ignore"), grouped:
        return pm.sample(
            200, tune=150, chains=1, random_seed=1, progressbar=False, compute_convergence_checks=False
        )


# --- the draws in ArviZ's groups ------------------------------------------------------------------------


def test_groups_axes_and_coordinates(data, nuts):
    """As `pm.sample` makes them, and what only an approximation has."""
    assert group_names(data) == {
        "posterior",
        "sample_stats",
        "log_likelihood",
        "observed_data",
        "constant_data",
        "unconstrained_posterior",
    }
    for group in ("posterior", "observed_data", "constant_data"):
        ours, theirs = data[group], nuts[group]
        assert set(ours.data_vars) == set(theirs.data_vars)
        for name in theirs.data_vars:
            assert ours[name].dims == theirs[name].dims
            for axis in set(theirs[name].dims) - {"chain", "draw"}:
                np.testing.assert_array_equal(ours[axis], theirs[axis])
    np.testing.assert_array_equal(data["observed_data"]["y"], Y)
    np.testing.assert_array_equal(data["constant_data"]["index"], GROUP)
    alpha, mean = data["posterior"]["alpha"].to_numpy(), data["posterior"]["mean"].to_numpy()
    slope = data["posterior"]["slope"].to_numpy()
    np.testing.assert_allclose(mean, alpha[..., GROUP] + slope[..., None] * X, rtol=1e-12)


def test_the_log_likelihood_is_that_of_scipy(data):
    draws = data["posterior"]
    expected = stats.norm.logpdf(Y, draws["mean"], draws["sigma"].to_numpy()[..., None])
    assert data["log_likelihood"]["y"].dims == ("chain", "draw", "row")
    np.testing.assert_allclose(
        data["log_likelihood"]["y"], expected, rtol=1e-6
    )  # PyMC has constants in float32


def test_the_draws_are_those_of_nuts(data, nuts):
    """200 draws of NUTS: means within 0.4 standard deviations, five standard errors; deviations within 0.3."""
    for name in ("alpha", "slope", "sigma"):
        ours, theirs = data["posterior"][name], nuts["posterior"][name]
        sd = theirs.std(("chain", "draw"))
        assert float(np.abs((ours.mean(("chain", "draw")) - theirs.mean(("chain", "draw"))) / sd).max()) < 0.4
        np.testing.assert_allclose(ours.std(("chain", "draw")) / sd, 1.0, atol=0.3)


def test_predictions_are_of_the_posterior(pm, grouped, data, nuts):
    """`pm.sample_posterior_predictive` takes our draws as it takes those of NUTS: nothing is drawn from the prior."""
    with warnings.catch_warnings(action="ignore"), grouped:
        predicted = [
            pm.sample_posterior_predictive(draws, progressbar=False, random_seed=2)["posterior_predictive"][
                "y"
            ]
            for draws in (data, nuts)
        ]
    ours, theirs = (draws.mean(("chain", "draw")).to_numpy() for draws in predicted)
    # 400 and 200 draws with a standard deviation of about 1: the means differ by less than 5 standard errors
    np.testing.assert_allclose(ours, theirs, atol=5.0 * 1.1 * np.sqrt(1 / 400 + 1 / 200))
    by_group = [ours[g == GROUP].mean() for g in range(4)]
    np.testing.assert_allclose(by_group, CENTRES, atol=1.0)


def test_predictions_at_new_data(pm, grouped, data):
    """The draws keep the data of the fit; PyMC sees that x is another and computes the mean again."""
    with warnings.catch_warnings(action="ignore"):
        new = pm.model.fgraph.clone_model(grouped)
        with new:
            pm.set_data({"x": np.full(2, 100.0), "index": np.array([0, 3])}, coords={"row": [0, 1]})
            mean = pm.sample_posterior_predictive(
                data, var_names=["mean"], progressbar=False, predictions=True
            )["predictions"]["mean"]
    draws = data["posterior"]
    for row, group in enumerate([0, 3]):
        expected = draws["alpha"][..., group] + 100.0 * draws["slope"]
        np.testing.assert_allclose(mean[..., row], expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_arviz_takes_it(data, nuts):
    az = installed("arviz")
    table = az.summary(data, var_names=["alpha", "sigma"])
    assert list(table.index) == ["alpha[a]", "alpha[b]", "alpha[c]", "alpha[d]", "sigma"]
    stats_of = installed("arviz_stats")
    # of 48 observations; about one nat of Monte Carlo error at 400 draws
    expected = stats.norm.logpdf(
        Y, nuts["posterior"]["mean"], nuts["posterior"]["sigma"].to_numpy()[..., None]
    )
    harmonic = -np.log(np.mean(np.exp(-expected.reshape(-1, 48)), axis=0)).sum()
    assert stats_of.loo(data).elpd == pytest.approx(harmonic, abs=2.0)


def test_the_data_of_the_fit_stay(pm):
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=pm.Data("data", np.zeros(3)))
    theta = np.array([[0.3], [1.0]])
    before = mgvbp.from_pymc(model)
    model.set_data("data", np.arange(5.0))
    after = mgvbp.from_pymc(model)
    for adapted, values in ((before, np.zeros(3)), (after, np.arange(5.0))):
        expected = stats.norm.logpdf(theta[:, 0]) + stats.norm.logpdf(values, theta).sum(axis=1)
        np.testing.assert_allclose(adapted(theta), expected, atol=1e-6)
        np.testing.assert_array_equal(adapted.pointwise.observed_data["y"], values)
        np.testing.assert_array_equal(adapted.pointwise.constant_data["data"], values)


# --- constraints: PyMC's own density, one draw at a time ---------------------------------------------------


def constrained(pm):
    """A variable for every kind of transform, and a potential."""
    pm.LKJCholeskyCov("chol", eta=2.0, n=3, sd_dist=pm.Exponential.dist(1.0))
    pm.Normal("cuts", [-1.0, 0.0, 1.0], 1.0, shape=3, transform=pm.distributions.transforms.ordered)
    pm.Dirichlet("p", np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]]))
    pm.ZeroSumNormal("effect", sigma=2.0, shape=(2, 4))
    pm.VonMises("angle", 0.5, 2.0)
    width = pm.HalfNormal("width", 1.0)
    inside = pm.Uniform("inside", -width, width, shape=2)
    pm.Potential("tail", -pm.math.sum(inside**4))


def correlations(pm):
    pm.LKJCorr("corr", eta=2.0, n=3)


@pytest.mark.parametrize("build", [constrained, correlations])
def test_constraints(pm, build, monkeypatch):
    """The density is PyMC's own, one draw at a time; values and θ go back and forth; gradients are those of PyTensor.

    PyTensor cannot translate the check of correlations to JAX, so that their density is its own. PyMC computes some
    coefficients in float32, and how they are rounded depends on what PyTensor's rewriting joins.
    """
    with pm.Model() as model:
        build(pm)
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=0.5)
    adapted = mgvbp.from_pymc(model)
    parameters = adapted.parameters
    theta = np.random.default_rng(1).normal(size=(5, parameters.dim))
    own, slices = model.compile_logp(), parameters.slices
    expected = [
        own(
            {
                model.rvs_to_values[model[name]].name: row[slices[name]].reshape(shape)
                for name, shape in parameters.unconstrained_shapes.items()
            }
        )
        for row in theta
    ]
    np.testing.assert_allclose(adapted(theta), expected, rtol=1e-7)
    values = parameters.constrain(theta)
    np.testing.assert_allclose(parameters.unconstrain(values), theta, atol=1e-7)
    if build is constrained:
        assert values["chol"].shape == (5, 6)  # PyMC packs the triangle
        np.testing.assert_allclose(np.diagonal(values["chol_corr"], axis1=1, axis2=2), 1.0)
        assert (np.diff(values["cuts"]) > 0.0).all()
        np.testing.assert_allclose(values["p"].sum(axis=2), 1.0)
        np.testing.assert_allclose(values["effect"].sum(axis=2), 0.0, atol=1e-12)
        assert (np.abs(values["inside"]) < values["width"][:, None]).all()
        assert adapted.log_density.backend == "jax"
    found, gradients = adapted.value_and_grad(theta)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    monkeypatch.setattr(pymc_graphs, "find_spec", lambda name: None)
    plain = mgvbp.from_pymc(model)
    assert plain.log_density.backend == "pytensor"
    found, others = plain.value_and_grad(theta)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    np.testing.assert_allclose(others, gradients, rtol=1e-6, atol=1e-6)
    step = 1e-6 * np.eye(parameters.dim)
    numerical = (adapted(theta[0] + step) - adapted(theta[0] - step)) / 2e-6  # float32 would show here
    np.testing.assert_allclose(gradients[0], numerical, rtol=1e-5, atol=1e-6)


def test_the_switch_of_jax_is_left_alone(pm, posterior):
    """PyTensor turns on 64 bits for the whole process when its JAX backend is imported."""
    jax = installed("jax")
    assert "pytensor.link.jax.dispatch" in sys.modules
    assert posterior.estimator == "gradient"
    assert not jax.config.jax_enable_x64


def test_workers_get_it(grouped, posterior):
    """What `fit(n_jobs=2)` sends: the model, without its compiled functions."""
    adapted = mgvbp.from_pymc(grouped)
    theta = posterior.sample(3, rng=0)
    values = adapted(theta), adapted.parameters.constrain(theta)["mean"], adapted.pointwise(theta)["y"]
    sent = cloudpickle.loads(cloudpickle.dumps(adapted))
    again = sent(theta), sent.parameters.constrain(theta)["mean"], sent.pointwise(theta)["y"]
    for one, other in zip(values, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_a_variable_that_is_listed_twice_counts_once(pm):
    """PyMC's `sample_posterior_predictive` appends the observed variables to the model's list, each time again."""
    with pm.Model() as model:
        observed = pm.Normal("y", pm.Normal("mu"), 1.0, observed=2.0)
    theta = np.array([[0.5]])
    before = mgvbp.from_pymc(model)(theta)
    model.observed_RVs.append(observed)
    adapted = mgvbp.from_pymc(model)
    np.testing.assert_allclose(adapted(theta), before, rtol=1e-12)
    assert list(adapted.pointwise(theta)) == ["y"]


def test_a_part_without_a_gradient(pm):
    """The density of an operation that only has values, one draw at a time: it is fitted by values."""
    op = installed("pytensor.graph.op").Op
    tensor, apply = installed("pytensor.tensor"), installed("pytensor.graph.basic").Apply

    class Simulator(op):
        def make_node(self, x):
            return apply(self, [x], [tensor.dscalar()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.asarray(-0.5 * (inputs[0] - 3.0) ** 2 / 0.25)

    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 100.0)
        pm.Potential("simulated", Simulator()(x))
    adapted = mgvbp.from_pymc(model)
    assert not hasattr(adapted, "value_and_grad")
    posterior = mgvbp.fit(adapted)
    assert posterior.estimator == "regression"
    precision = 4.0 + 1e-4
    np.testing.assert_allclose(
        [posterior.mean[0], posterior.precision[0, 0]], [12.0 / precision, precision], rtol=1e-6
    )


def test_steps_in_time(pm):
    """An autoregression, whose density PyTensor computes by a loop: an observed variable that is a vector."""
    y = np.array([0.3, -0.2, 0.5, 0.1])
    with pm.Model() as model:
        rho = pm.Normal("rho", 0.0, 0.5)
        pm.AR("y", rho=[rho], sigma=1.0, init_dist=pm.Normal.dist(), constant=False, observed=y)
    adapted, theta = mgvbp.from_pymc(model), np.array([[0.1], [0.9]])
    terms = stats.norm.logpdf(y[0]) + stats.norm.logpdf(y[1:], theta * y[:-1]).sum(axis=1)
    np.testing.assert_allclose(adapted(theta), stats.norm.logpdf(theta[:, 0], 0.0, 0.5) + terms, rtol=1e-6)
    np.testing.assert_allclose(adapted.pointwise(theta)["y"], terms, rtol=1e-6)


# --- what cannot be fitted --------------------------------------------------------------------------------


def test_models_that_have_no_density(pm):
    transforms = pm.distributions.transforms

    class Doubled(transforms.Transform):
        name = "doubled"

        def forward(self, value, *inputs):
            return value / 2

        def backward(self, value, *inputs):
            return value * 2

    with pm.Model() as discrete:
        pm.Bernoulli("z", 0.5)
    with pm.Model() as observed:
        pm.Normal("x", observed=1.0)
    with pm.Model() as minibatch:
        rows = pm.Minibatch(np.arange(100.0), batch_size=10)
        pm.Normal("y", pm.Normal("mu"), observed=rows, total_size=100)
    with pm.Model() as simulated:
        pm.Simulator(
            "y", lambda rng, mu, size=None: rng.normal(mu, size=size), pm.Normal("mu"), observed=[1.0]
        )
    with warnings.catch_warnings(action="ignore"), pm.Model() as missing:
        pm.Poisson("count", pm.math.exp(pm.Normal("rate")), observed=np.ma.masked_invalid([1.0, np.nan, 3.0]))
    with pm.Model() as unknown:
        pm.Normal("y", pm.Normal("x", transform=Doubled()), observed=1.0)
    cases = [
        (discrete, "'z' is discrete"),
        (observed, "no free variable"),
        (minibatch, r"not a pm\.Minibatch"),
        (simulated, r"not a pm\.Simulator"),
        (missing, "'count' is discrete and has missing values"),
        (unknown, "a transform backward and log_jac_det"),
    ]
    for model, message in cases:
        with case(message), pytest.raises(InvalidInputError, match=message):
            mgvbp.from_pymc(model)
    with pytest.raises(InvalidTypeError, match=r"must be a pymc\.Model"):
        mgvbp.from_pymc("model")


def test_missing_numbers_are_parameters(pm):
    with warnings.catch_warnings(action="ignore"), pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=np.ma.masked_invalid([1.0, np.nan, 3.0]))
    adapted = mgvbp.from_pymc(model)
    assert adapted.parameters.names == ("mu", "y_unobserved")
    assert list(adapted.pointwise(np.zeros((2, 2)))) == ["y_observed"]
    posterior = mgvbp.fit(adapted)
    np.testing.assert_allclose(posterior.mean, 4.0 / 3.0, rtol=1e-6)
    with pytest.raises(InvalidInputError, match=r"predicts by pm\.sample_posterior_predictive"):
        posterior.predict()
    data = posterior.to_arviz(20)
    np.testing.assert_array_equal(data["observed_data"]["y_observed"], [1.0, 3.0])
    np.testing.assert_array_equal(data["posterior"]["y"][0, :, 1], data["posterior"]["y_unobserved"][0, :, 0])


def test_a_model_without_data_is_its_prior(pm):
    with pm.Model() as model:
        pm.Normal("x", 1.0, 2.0)
    with pytest.warns(MgvbpWarning, match="no observed variable.*is observed= missing"):
        adapted = mgvbp.from_pymc(model)
    posterior = mgvbp.fit(adapted)
    assert posterior.log_density([[1.0]]) == pytest.approx(-np.log(2.0 * np.sqrt(2.0 * np.pi)), abs=1e-6)
    assert group_names(posterior.to_arviz(10)) == {"posterior", "sample_stats", "unconstrained_posterior"}


def test_tables_have_the_names_of_coordinates_and_take_them(pm):
    """Words, but not whole numbers, which could be mistaken for positions."""
    coords = {"county": ["Aitkin", "Becker"], "year": [1, 0], "half": [0.5, 1.5]}
    with pm.Model(coords=coords) as model:
        alpha = pm.Normal("alpha", 1.0, 1.0, dims=("county", "half"))
        beta = pm.Normal("beta", 0.0, 1.0, dims="year")
        pm.Normal("y", alpha.sum() + beta.sum(), 1.0, observed=3.0)
    posterior = mgvbp.fit(model)
    labels = [
        "alpha[Aitkin,0.5]",
        "alpha[Aitkin,1.5]",
        "alpha[Becker,0.5]",
        "alpha[Becker,1.5]",
        "beta[0]",
        "beta[1]",
    ]
    assert list(posterior.to_frame().index) == labels
    for label in labels:
        assert label in posterior
        assert posterior[label].mean == pytest.approx(posterior.to_frame().loc[label, "mean"])
    assert posterior["alpha[Becker,0.5]"].mean == posterior["alpha[1,0]"].mean
    assert "alpha[Clay,0.5]" not in posterior
    draws = {"alpha[Becker,0.5]": np.zeros(9), "alpha[0,1]": np.ones(9)}
    # pictures take both
    for own in (["alpha[Becker,0.5]", "alpha[Aitkin,1.5]"], ["alpha[1,0]", "alpha[0,1]"]):
        entries = chosen(posterior, own, 2)
        assert [entry.label for entry in entries] == ["alpha[Becker,0.5]", "alpha[Aitkin,1.5]"]
        np.testing.assert_array_equal(np.mean(columns(draws, posterior, entries), axis=1), [0.0, 1.0])
    with pytest.raises(UnknownNameError, match=r"there are alpha, beta, alpha\[Aitkin,0.5\]"):
        chosen(posterior, ["alpha[Clay,0.5]"], 1)


def test_long_vectors_are_no_cause_for_alarm(pm, caplog):
    """PyTensor shows the traceback of each rewrite that fails, as some do on slices that end beyond 127."""
    with pm.Model() as model:
        start = pm.Normal.dist(0.0, 1.0)
        scale = pm.HalfNormal("scale")
        level = pm.GaussianRandomWalk("level", sigma=scale, init_dist=start, shape=200)
        pm.Normal("y", level, 1.0, observed=np.zeros(200))
    theta = 0.1 * np.random.default_rng(0).normal(size=201)
    found = mgvbp.from_pymc(model)(theta[None])[0]
    sigma, path = np.exp(theta[0]), theta[1:]
    expected = stats.halfnorm.logpdf(sigma) + theta[0] + stats.norm.logpdf(path[0])
    expected += stats.norm.logpdf(np.diff(path), scale=sigma).sum() + stats.norm.logpdf(path).sum()
    assert found == pytest.approx(expected)
    assert not caplog.records
