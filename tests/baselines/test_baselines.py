"""ADAM against Kingma and Ba's listing and scikit-learn; NUTS and its chains against exact posteriors."""

import importlib
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_expit

import mgvbp
from mgvbp import (
    ConvergenceWarning,
    DivergenceError,
    EvaluationError,
    Gaussian,
    InvalidInputError,
    InvalidTypeError,
)
from mgvbp.baselines import AdamIteration, Chains, adam, nuts
from mgvbp.baselines.nuts import traced_density, warn_if_unreliable
from mgvbp.problem.problem import Problem
from mgvbp.transforms import Positive, Real

RNG = np.random.default_rng(11)
X = RNG.standard_normal((120, 3)) * [1.0, 0.4, 2.0]
Y = (RNG.random(120) < expit(X @ [0.8, -1.5, 0.3])).astype(float)
PRIOR = Gaussian([0.3, 0.0, -0.2], variance=[[2.0, 0.7, 0.0], [0.7, 1.0, 0.1], [0.0, 0.1, 3.0]])


class Logistic:
    """Bernoulli regression with its gradient, in NumPy; (S, d) and rows of data in."""

    def __call__(self, theta, X, y):
        return self.value_and_grad(theta, X, y)[0]

    def value_and_grad(self, theta, X, y):
        z = theta @ X.T
        return (y * log_expit(z) + (1.0 - y) * log_expit(-z)).sum(axis=1), (y - expit(z)) @ X


ALL = mgvbp.Minibatches(Logistic(), X, Y)


def needs(*packages):
    for package in packages:
        pytest.importorskip(package, reason=f"{package} comes with the jax extra")


# --- ADAM ---------------------------------------------------------------------------------------------


def kingma_and_ba(gradient_at, theta, alpha, steps, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Algorithm 1 of the paper, line by line, for the minimum of what ``gradient_at(t, theta)`` belongs to."""
    m, v = np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, steps + 1):
        g = gradient_at(t, theta)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        m_hat = m / (1 - beta1**t)
        v_hat = v / (1 - beta2**t)
        theta = theta - alpha * m_hat / (np.sqrt(v_hat) + epsilon)
    return theta


@pytest.mark.parametrize("batch_size", [None, 32])
@pytest.mark.parametrize("prior", [None, PRIOR], ids=["likelihood", "posterior"])
def test_adam_is_the_published_algorithm(batch_size, prior):
    """To rounding error in float64: with whole data and with batches, of which step t sees number t."""
    needs("jax", "optax")
    data = mgvbp.Minibatches(Logistic(), X, Y, batch_size=batch_size, rng=5)
    trace = []

    def gradient_at(t, theta):
        value, gradient = (part[0] for part in data.at(t).value_and_grad(theta[None]))
        if prior is not None:
            value = value + prior.log_density(theta[None])[0]
            gradient = gradient - prior.precision @ (theta - prior.mean)
        trace.append(value)
        return -gradient

    start = np.array([1.0, -2.0, 0.5])
    expected = kingma_and_ba(gradient_at, start, 0.05, 60)
    found = adam(data, prior, initial=start, step_size=0.05, max_iterations=60)
    assert_allclose(found.theta, expected, rtol=1e-12)
    assert_allclose(found.log_posterior, trace, rtol=1e-12)
    assert found.n_evaluations == 60
    assert not found.theta.flags.writeable


@pytest.mark.parametrize("variance", [0.1, 2.0, np.inf])
def test_adam_finds_the_mode(variance):
    """scikit-learn's optimum; its C is the prior's variance, and none is maximum likelihood."""
    needs("jax", "optax")
    linear = pytest.importorskip("sklearn.linear_model")
    reference = linear.LogisticRegression(C=variance, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, Y)
    prior = None if np.isinf(variance) else Gaussian(variance=variance, dim=3)
    found = adam(ALL, prior, dim=3, step_size=0.02, max_iterations=1000)
    assert_allclose(found.theta, reference.coef_[0], atol=1e-6)


def test_adam_starts_near_the_prior_mean_and_its_first_step_is_a_sign():
    """With zero moments the first step is α·sign(g), whatever the scale; it shows where the start was."""
    needs("jax", "optax")
    prior = Gaussian([5.0, -5.0, 0.0], variance=1.0)
    seen = []
    for seed in (0, 0, 1):
        found = adam(ALL, prior, step_size=0.25, max_iterations=1, rng=seed, callback=seen.append)
        assert_allclose(np.abs(found.theta - seen[-1].theta), 0.25, rtol=1e-6)
    starts = np.array([iteration.theta for iteration in seen])
    assert_array_equal(starts[0], starts[1])
    assert (starts[0] != starts[2]).all()
    assert (np.abs(starts - prior.mean) > 0.0).all()
    assert (np.abs(starts - prior.mean) < 0.5).all()


def test_a_callback_sees_every_iteration_and_stops_the_run():
    needs("jax", "optax")
    seen = []

    def callback(iteration):
        seen.append(iteration)
        return iteration.iteration == 7

    found = adam(ALL, PRIOR, callback=callback)
    assert isinstance(seen[0], AdamIteration)
    assert [s.iteration for s in seen] == list(range(1, 8))
    assert_array_equal(found.log_posterior, [s.log_posterior for s in seen])
    assert_array_equal(found.theta, seen[-1].theta)
    assert found.n_evaluations == 7


def test_the_function_runs_under_the_user_s_own_setting_of_jax():
    needs("jax", "optax")
    jax = importlib.import_module("jax")
    before = jax.config.jax_enable_x64

    class Watching(Logistic):
        def value_and_grad(self, theta, X, y):
            assert jax.config.jax_enable_x64 == before
            return super().value_and_grad(theta, X, y)

    found = adam(mgvbp.Minibatches(Watching(), X, Y), dim=3, max_iterations=3)
    assert found.theta.dtype == np.float64
    assert jax.config.jax_enable_x64 == before


def test_a_bar_goes_to_the_terminal(capsys):
    needs("jax", "optax")
    adam(ALL, PRIOR, max_iterations=5, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "100%" in captured.err


class Cliff:
    """Finite at the start only."""

    def __call__(self, theta):
        return self.value_and_grad(theta)[0]

    def value_and_grad(self, theta):
        return np.where(theta[:, 0] < 0.05, theta[:, 0], np.nan), np.ones_like(theta)


def test_adam_does_not_go_on_from_nowhere():
    needs("jax", "optax")
    with pytest.raises(DivergenceError, match="not finite at iteration 2") as caught:
        adam(Cliff(), initial=[0.0], step_size=0.1)
    assert_allclose(caught.value.theta, [0.1])


class Laplace:
    """A prior without a gradient."""

    def log_density(self, theta):
        return -np.abs(theta).sum(axis=1)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((lambda theta: -(theta**2).sum(axis=1),), {"dim": 2}, InvalidInputError, "no value_and_grad"),
        ((ALL, Laplace()), {"dim": 3}, InvalidInputError, "grad_log_density"),
        ((ALL,), {}, InvalidInputError, "dim=, initial= or a Gaussian prior"),
        ((ALL, PRIOR), {"initial": [0.0, 1.0]}, InvalidInputError, r"shape \(2,\); expected \(3,\)"),
        ((ALL, PRIOR), {"callback": 3}, InvalidTypeError, "callback must be a function"),
        ((ALL, PRIOR), {"step_size": 0.0}, InvalidInputError, "step_size must be positive"),
        ((ALL, PRIOR), {"max_iterations": 0}, InvalidInputError, "max_iterations must be at least 1"),
        ((3.0, PRIOR), {}, InvalidTypeError, "log_likelihood must be a function"),
    ],
)
def test_adam_says_what_is_wrong(arguments, options, error, words):
    needs("jax", "optax")
    with pytest.raises(error, match=words):
        adam(*arguments, **options)


# --- chains -------------------------------------------------------------------------------------------


def autoregressive(rng, phi, shape):
    """Stationary AR(1) along axis 1 with variance 1."""
    x = rng.standard_normal(shape)
    for t in range(1, shape[1]):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1.0 - phi**2) * x[:, t]
    return x


def test_chains_know_their_moments_and_their_precision():
    """The effective size of an AR(1) is N(1 − φ)/(1 + φ); estimated here to 10%."""
    phi, shape = 0.6, (4, 5000)
    columns = [
        autoregressive(np.random.default_rng(1), 0.0, shape),
        autoregressive(np.random.default_rng(2), phi, shape),
    ]
    chains = Chains(np.stack(columns, axis=-1) * [1.0, 3.0] + [0.0, 5.0])
    assert chains.flat.shape == (20_000, 2)
    assert_allclose(chains.mean, chains.draws.mean(axis=(0, 1)))
    assert_allclose(chains.covariance, np.cov(chains.flat.T))
    assert_allclose(chains.std, np.sqrt(np.diag(chains.covariance)))
    assert_allclose(chains.ess, [20_000, 20_000 * (1 - phi) / (1 + phi)], rtol=0.1)
    assert_allclose(chains.mcse, chains.std / np.sqrt(chains.ess))
    assert chains.diagnostics == {"R-hat": chains.rhat.max(), "ESS": chains.ess.min()}
    assert Chains(chains.draws[:, :, :1]).covariance.shape == (1, 1)


def test_chains_that_disagree_in_one_entry_do_so_there():
    draws = np.random.default_rng(3).standard_normal((4, 500, 3))
    draws[0, :, 1] += 2.0
    assert (Chains(draws).rhat > 1.01).tolist() == [False, True, False]
    with pytest.warns(ConvergenceWarning, match=r"the chains disagree, R-hat is 1\.\d+ .*num_warmup"):
        warn_if_unreliable(Chains(draws))
    warn_if_unreliable(Chains(draws[:1]))  # one chain has nobody to disagree with
    warn_if_unreliable(Chains(draws[1:]))


def test_divergent_transitions_are_reported():
    chains = Chains(np.random.default_rng(3).standard_normal((4, 500, 1)), divergences=12)
    with pytest.warns(ConvergenceWarning, match="12 of 2000 transitions diverged"):
        warn_if_unreliable(chains)


def test_chains_that_stand_still_are_reported():
    with pytest.warns(ConvergenceWarning, match="or stand still"):
        warn_if_unreliable(Chains(np.ones((4, 100, 1))))


def test_chains_go_to_arviz_by_name():
    draws = np.random.default_rng(4).standard_normal((2, 50, 3))
    parameters = mgvbp.Parameters(beta=Real(2), sigma=Positive())
    tree = Chains(draws, parameters=parameters).to_arviz()
    assert_array_equal(tree["unconstrained_posterior"]["theta"], draws)
    assert_array_equal(tree["posterior"]["beta"], draws[:, :, :2])
    assert_allclose(
        tree["posterior"]["sigma"].to_numpy().reshape(-1), parameters.constrain(draws.reshape(-1, 3))["sigma"]
    )
    assert_array_equal(Chains(draws).to_arviz()["posterior"]["theta"], draws)


# --- NUTS ---------------------------------------------------------------------------------------------

# Two independent posteriors in one, so that one compilation will do: θ[:2] of a Gaussian likelihood
# exp(bᵀθ − ½ θᵀAθ), conjugate, and θ[2:] of a logistic regression, whose moments are sums over a grid.
A, B = np.array([[4.0, 3.0], [3.0, 5.0]]), np.array([1.0, -2.0])
FEW_X, FEW_Y = X[:25, :2], Y[:25]
V0 = np.array([[1.0, 0.3, 0.0, 0.0], [0.3, 2.0, 0.0, 0.0], [0.0, 0.0, 1.5, -0.8], [0.0, 0.0, -0.8, 2.0]])
MU0 = np.array([0.5, 0.0, 0.2, -0.4])


class Both:
    """What a network on data looks like to NUTS."""

    def __call__(self, theta):
        raise AssertionError("NUTS asks for .traced")

    def traced(self, theta):
        jnp = importlib.import_module("jax").numpy
        z = jnp.asarray(FEW_X) @ theta[2:]
        return B @ theta[:2] - 0.5 * theta[:2] @ A @ theta[:2] + (FEW_Y * z - jnp.logaddexp(0.0, z)).sum()


@cache
def exact_moments():
    """Mean (4,) and covariance (4, 4): conjugate, and by the trapezoidal rule, which is exact to rounding here."""
    mean, covariance = np.zeros(4), np.zeros((4, 4))
    P0 = np.linalg.inv(V0[:2, :2])
    covariance[:2, :2] = np.linalg.inv(P0 + A)
    mean[:2] = covariance[:2, :2] @ (P0 @ MU0[:2] + B)
    prior = Gaussian(MU0[2:], variance=V0[2:, 2:])
    axes = [np.linspace(m - 9.0 * s, m + 9.0 * s, 300) for m, s in zip(prior.mean, prior.std, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = Logistic()(grid, FEW_X, FEW_Y) + prior.log_density(grid)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean[2:] = weights @ grid
    centred = grid - mean[2:]
    covariance[2:, 2:] = (weights[:, None] * centred).T @ centred
    return mean, covariance


@pytest.fixture(scope="module")
def chains():
    needs("jax", "blackjax")
    jax = importlib.import_module("jax")
    before = jax.config.jax_enable_x64
    found = nuts(Both(), Gaussian(MU0, variance=V0), num_warmup=300, num_draws=1000, rng=8)
    assert jax.config.jax_enable_x64 == before
    return found


def test_nuts_draws_from_the_posterior(chains):
    """Means, variances and covariances within 4.5 of their standard errors: level 14 · 7e-6 = 1e-4."""
    mean, covariance = exact_moments()
    assert (np.abs(chains.mean - mean) < 4.5 * chains.mcse).all()
    centred = chains.draws - mean
    i, j = np.triu_indices(4)
    products = Chains(centred[:, :, i] * centred[:, :, j])
    assert (np.abs(products.mean - covariance[i, j]) < 4.5 * products.mcse).all()
    # these are sharp: the errors are a few per cent of the standard deviations, and of their products
    scale = np.sqrt(np.diag(covariance))
    assert (chains.mcse < 0.03 * scale).all()
    assert (products.mcse < 0.05 * (scale[i] * scale[j])).all()


def test_nuts_says_how_well_it_went(chains):
    assert chains.draws.shape == (4, 1000, 4)
    assert chains.draws.dtype == np.float64
    assert chains.divergences == 0
    assert chains.rhat.max() < 1.01
    assert (chains.ess > 1000).all()
    assert len(np.unique(chains.flat[:, 0])) > 3000  # the chains are four, and they move


def test_seeds_chains_and_divergences():
    """Half a normal density: trajectories that meet the wall at 0, which is steep without end, diverge."""
    needs("jax", "blackjax")
    jnp = importlib.import_module("jax").numpy

    def wall(theta):
        return jnp.where(theta[0] > 0.0, -0.5 * theta @ theta, -jnp.inf)

    def run(seed):
        starts = [[0.5, 0.0], [2.0, 0.0]]
        with pytest.warns(ConvergenceWarning):  # one for the divergences, one for chains that are too short
            return nuts(wall, initial=starts, chains=2, num_warmup=20, num_draws=50, rng=seed)

    first, again = run(3), run(3)
    assert 0 < first.divergences <= 100
    assert first.draws.shape == (2, 50, 2)
    assert (first.draws[:, :, 0] > 0.0).all()
    assert_array_equal(first.draws, again.draws)
    assert len(np.unique(first.flat[:, 1])) > 50  # of 100, some of which are rejections


def no_density(theta):
    return theta.sum() * np.inf


def test_chains_start_apart_at_draws_of_their_seed():
    """The start is checked before anything is compiled, and an infinite density gives it away."""
    needs("jax", "blackjax")

    def start(**options):
        with pytest.raises(DivergenceError, match="not finite at the start") as caught:
            nuts(no_density, **options)
        return caught.value.theta

    far = Gaussian([100.0, -100.0], variance=1e-8)
    assert_array_equal(start(dim=2, rng=1), start(dim=2, rng=1))
    assert (start(dim=2, rng=1) != start(dim=2, rng=2)).all()
    assert (np.abs(start(prior=far) - far.mean) < 5.0).all()
    assert_array_equal(start(initial=[3.0, 4.0]), [3.0, 4.0])
    assert_array_equal(start(initial=[[3.0, 4.0], [5.0, 6.0]], chains=2), [3.0, 4.0])


@pytest.mark.parametrize(
    "prior",
    [None, PRIOR, Gaussian([1.0, 2.0, 3.0], variance=[0.1, 1.0, 10.0])],
    ids=["none", "full", "diagonal"],
)
def test_the_traced_density_is_the_posterior_up_to_a_constant(prior):
    """Against NumPy, and in float64: of a function in single precision too, within its own precision."""
    needs("jax")
    jax = importlib.import_module("jax")
    jnp = jax.numpy

    def function(theta):
        return (jnp.asarray(Y) * (jnp.asarray(X) @ theta)).sum() - jnp.logaddexp(
            0.0, jnp.asarray(X) @ theta
        ).sum()

    theta = np.random.default_rng(0).standard_normal((6, 3))
    expected = ALL(theta) + (0.0 if prior is None else prior.log_density(theta))
    with jax.enable_x64(True):
        for density, error in ((function, 1e-10), (lambda t: function(t).astype("float32"), 1e-3)):
            traced = traced_density(Problem(density, prior, 3))
            values = jnp.stack([traced(row) for row in theta])
            assert values.dtype == np.float64
            assert_allclose(np.asarray(values) - expected, (values[0] - expected[0]).item(), atol=error)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        ((no_density, Laplace()), {"dim": 3}, InvalidInputError, "NUTS takes a Gaussian prior or none"),
        ((ALL, PRIOR), {}, EvaluationError, "write it with jax.numpy in place of numpy"),
        ((lambda theta: theta**2,), {"dim": 2}, EvaluationError, "expected one of a draw.*real scalar"),
        ((lambda theta: -(theta**2).sum(axis=1),), {"dim": 2}, EvaluationError, "ValueError: axis 1"),
        ((no_density,), {}, InvalidInputError, "dim=, initial= or a Gaussian prior"),
        ((no_density,), {"initial": np.zeros((3, 2))}, InvalidInputError, r"expected \(4, 2\) or \(2,\)"),
        ((no_density,), {"dim": 2, "chains": 0}, InvalidInputError, "chains must be at least 1"),
        ((no_density,), {"dim": 2, "num_draws": 0.5}, InvalidTypeError, "num_draws must be an integer"),
        ((no_density,), {"dim": 2, "rng": "a"}, InvalidTypeError, "rng must be"),
    ],
)
def test_nuts_says_what_is_wrong(arguments, options, error, words):
    needs("jax", "blackjax")
    with pytest.raises(error, match=words):
        nuts(*arguments, **options)
