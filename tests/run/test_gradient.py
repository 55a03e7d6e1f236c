"""Gradients given by the user, or by JAX, and what is said where there are none."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import mgvbp
from mgvbp import MGVBP, EvaluationError, Gaussian, InvalidInputError, InvalidTypeError
from mgvbp.auto import MOST_PARAMETERS
from mgvbp.estimators.base import Control, Sample
from mgvbp.estimators.gradient import Gradient
from mgvbp.problem.blocks import SIZES
from mgvbp.problem.gradient_check import check_gradient
from mgvbp.problem.problem import Problem

D = 5
_rng = np.random.default_rng(3)
R = _rng.standard_normal((D, D))
A, M = R @ R.T + np.eye(D), _rng.standard_normal(D)
PRIOR = Gaussian(mean=0.5, variance=3.0, dim=D)
QUICK = MGVBP(step_size=0.4, decay_after=None, momentum=0.0, precision_scale=2.0)


def log_likelihood(theta):
    return -0.5 * np.einsum("si,ij,sj->s", theta - M, A, theta - M)


def gradient(theta):
    return (M - theta) @ A


def assert_exact(posterior):
    precision = A + PRIOR.precision
    mean = np.linalg.solve(precision, A @ M + PRIOR.precision @ PRIOR.mean)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-8)
    np.testing.assert_allclose(posterior.precision, precision, atol=1e-7)
    assert posterior.estimator == "gradient"


OPTIONS = {
    "prior": PRIOR,
    "method": QUICK,
    "estimator": "gradient",
    "num_draws": D + 2,
    "max_iterations": 100,
}


def test_a_gradient_of_all_draws_and_of_one():
    assert_exact(mgvbp.fit(log_likelihood, grad=gradient, **OPTIONS))

    def one(theta):
        return log_likelihood(theta[None])[0]

    assert_exact(mgvbp.fit(one, grad=lambda theta: A @ (M - theta), vectorized=False, **OPTIONS))


def test_named_methods_use_a_gradient_that_is_there():
    for grad, estimator in ((gradient, "gradient"), (None, "regression")):
        posterior = mgvbp.fit(log_likelihood, PRIOR, method="qbvi", grad=grad, max_iterations=2)
        assert posterior.estimator == estimator


def test_draws_without_a_finite_gradient_are_left_out():
    def islands(theta):
        slopes = gradient(theta)
        slopes[::4, 1] = np.nan
        return slopes

    with pytest.warns(mgvbp.NonFiniteWarning):
        assert_exact(mgvbp.fit(log_likelihood, grad=islands, **{**OPTIONS, "num_draws": 4 * D}))


class Laplace:
    """A prior with a gradient of its own."""

    def log_density(self, theta):
        return -np.sqrt(1.0 + theta**2).sum(axis=1)

    def grad_log_density(self, theta):
        return -theta / np.sqrt(1.0 + theta**2)


def test_a_prior_with_a_gradient():
    prior = Laplace()
    apart = mgvbp.fit(log_likelihood, grad=gradient, **{**OPTIONS, "prior": prior, "initial_mean": M})
    joint = mgvbp.fit(
        lambda theta: log_likelihood(theta) + prior.log_density(theta),
        grad=lambda theta: gradient(theta) + prior.grad_log_density(theta),
        **{**OPTIONS, "prior": None, "initial_mean": M},
    )
    np.testing.assert_allclose(apart.mean, joint.mean, rtol=1e-9)
    np.testing.assert_allclose(apart.precision, joint.precision, rtol=1e-9)


def test_auto_takes_the_gradient_of_any_prior_that_has_one():
    posterior = mgvbp.fit(log_likelihood, Laplace(), dim=D, grad=gradient)
    by_values = mgvbp.fit(log_likelihood, Laplace(), dim=D)
    assert (posterior.estimator, by_values.estimator) == ("gradient", "regression")
    # 0.01 nats are 0.14 standard deviations
    assert np.abs((posterior.mean - by_values.mean) / by_values.std).max() < 0.14
    with pytest.warns(
        mgvbp.ConvergenceWarning, match="gradient is not used: the prior, a NoGradient, has no"
    ):
        without = mgvbp.fit(log_likelihood, NoGradient(), dim=D, grad=gradient)
    assert without.estimator == "regression"
    with pytest.raises(InvalidInputError, match="NoGradient, has no grad_log_density"):
        mgvbp.fit(log_likelihood, NoGradient(), dim=D, grad=gradient, estimator="gradient")


def test_the_control_constant_takes_variance_away():
    """v = c − 2ε from 8 draws in 20 dimensions: the error of E[(v − c)εᵀ] is that of E[εεᵀ], without c that of cεᵀ."""
    q, c = Gaussian(np.zeros(20), variance=np.eye(20)), np.full(20, 3.0)
    found = {"none": [], "known": []}
    for seed in range(100):
        eps, zeros = np.random.default_rng(seed).standard_normal((8, 20)), np.zeros(8)
        sample = Sample(eps, zeros, zeros, zeros, c - 2.0 * eps - eps)
        for name, control in (("none", None), ("known", Control(c))):
            found[name].append(Gradient().estimate(q, None, sample, control).G)
    none, known = (np.var(G, axis=0).sum() for G in found.values())
    assert known < 0.5 * none


def test_the_gradient_of_a_gaussian():
    theta, prior = _rng.standard_normal((4, D)), Gaussian(mean=M, precision=A)
    step = 1e-6 * np.eye(D)
    differences = [(prior.log_density(theta + e) - prior.log_density(theta - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(prior.grad_log_density(theta), np.transpose(differences), rtol=1e-6, atol=1e-7)


# --- bad input ----------------------------------------------------------------------------------------


class NoGradient:
    def log_density(self, theta):
        return np.zeros(len(theta))


BAD = [
    ({}, InvalidInputError, "grad='jax'"),
    ({"grad": 3}, InvalidTypeError, "grad must be a function"),
    ({"grad": "tensorflow"}, InvalidInputError, "grad"),
    ({"grad": gradient, "prior": NoGradient(), "dim": D}, InvalidInputError, "NoGradient, has no grad_log_density"),
    ({"grad": lambda theta: theta[:, :2]}, EvaluationError, r"shape \(7, 2\)"),
    ({"grad": log_likelihood}, EvaluationError, r"expected real numbers \(7, 5\)"),
    ({"grad": lambda theta: theta + 1j}, EvaluationError, "complex128"),
    ({"grad": gradient, "estimator": "fisher", "family": "diagonal"}, InvalidInputError, "per-example gradients"),
]  # fmt: skip


def test_bad_input():
    for change, error, message in BAD:
        with pytest.raises(error, match=message):
            mgvbp.fit(log_likelihood, **{**OPTIONS, **change})
    with pytest.raises(InvalidInputError, match="family='diagonal'"):
        mgvbp.VOGN().start(PRIOR)
    for option in ({"curvature_step": 1.5}, {"clip_gradient": 1.0}, {"precision_scale": 1.0}):
        with pytest.raises(InvalidInputError, match="VOGN"):
            mgvbp.VOGN(**option)


def test_gradients_that_are_not_told():
    optimizer = QUICK.start(PRIOR, estimator="gradient")
    theta = optimizer.ask()
    with pytest.raises(EvaluationError, match="derivatives"):
        optimizer.tell(log_likelihood(theta))
    info = optimizer.tell(log_likelihood(theta), gradient(theta))
    assert np.isfinite(info.lower_bound)


# --- gradients of another function --------------------------------------------------------------------

WRONG = {
    "sign": lambda theta: -gradient(theta),
    "half": lambda theta: 0.5 * gradient(theta),
    "double": lambda theta: 2.0 * gradient(theta),
    "zero": np.zeros_like,
}


@pytest.mark.parametrize("rowwise", [False, True])
@pytest.mark.parametrize("method", ["auto", "mgvbp"])
def test_a_wrong_gradient_is_refused(rowwise, method):
    for function, wrong in ((log_likelihood, wrong) for wrong in WRONG.values()):
        if rowwise:
            function, wrong = (lambda theta, f=f: f(theta[None])[0] for f in (function, wrong))
        with pytest.raises(InvalidInputError, match=r"grad is not the gradient .* says .*, differences say"):
            mgvbp.fit(function, PRIOR, grad=wrong, vectorized=not rowwise, method=method)


def test_a_right_gradient_costs_four_evaluations_that_change_nothing():
    rows = []

    def counting(theta):
        rows.append(len(theta))
        return log_likelihood(theta)

    class Own:
        __call__ = staticmethod(log_likelihood)
        value_and_grad = staticmethod(lambda theta: (log_likelihood(theta), gradient(theta)))

    posterior, other = mgvbp.fit(counting, PRIOR, grad=gradient), mgvbp.fit(Own(), PRIOR)
    assert sum(rows) == posterior.n_evaluations + 4
    np.testing.assert_array_equal(posterior.mean, other.mean)
    assert posterior.n_evaluations == other.n_evaluations


_noise = np.random.default_rng(0)
DOUBTFUL = {
    "noise": (lambda theta: _noise.standard_normal(len(theta)), gradient),
    "rounded": (lambda theta: np.round(log_likelihood(theta)), gradient),
    "single": (lambda theta: (log_likelihood(theta) + 1e6).astype(np.float32), gradient),
    "nowhere": (lambda theta: np.full(len(theta), np.nan), gradient),
    "kinks": (lambda theta: -np.abs(theta).sum(axis=1), lambda theta: -np.sign(theta)),
}


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_there_is_no_verdict_where_differences_mean_nothing(kind):
    """1,000 seeds each. In noise, differences of one step and two agree in 1 of 40; 1 of 400 draws is at a kink."""
    function, grad = DOUBTFUL[kind]
    problem = Problem(function, PRIOR, grad=grad)
    for seed in range(1000):
        check_gradient(problem, PRIOR, np.random.default_rng(seed))


# --- what value_and_grad returns ----------------------------------------------------------------------

FORMS = {
    "one": (lambda f, g: (f,), "returned 1 arrays; expected 2"),
    "three": (lambda f, g: (f, g, g), "returned 3 arrays; expected 2"),
    "nothing": (lambda f, g: None, "returned a NoneType; expected 2"),
    "values alone": (lambda f, g: f, "returned a ndarray; expected 2"),
    "ragged": (lambda f, g: (f, [[1.0], *g[1:]]), "rows of unequal lengths"),
}


def test_value_and_grad_of_another_form():
    for returned, message in FORMS.values():

        class Own:
            __call__ = staticmethod(log_likelihood)
            value_and_grad = staticmethod(lambda theta, r=returned: r(log_likelihood(theta), gradient(theta)))

        with pytest.raises(EvaluationError, match=message):
            mgvbp.fit(Own(), **OPTIONS)


# --- JAX ----------------------------------------------------------------------------------------------


def test_jax_functions_in_float64_and_the_switch_stays():
    jax = pytest.importorskip("jax")

    def one(theta):
        return -0.5 * (theta - M) @ A @ (theta - M)

    def rows(theta):
        return jax.vmap(one)(theta)

    before = jax.config.jax_enable_x64
    model = mgvbp.from_jax(one)
    theta = _rng.standard_normal((19, D))
    values, gradients = model.value_and_grad(theta)
    np.testing.assert_allclose(values, log_likelihood(theta), rtol=1e-13)
    np.testing.assert_allclose(gradients, gradient(theta), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model(theta[:1]), values[:1], rtol=1e-13)
    assert jax.config.jax_enable_x64 == before
    assert_exact(mgvbp.fit(model, **OPTIONS))
    assert_exact(mgvbp.fit(rows, grad="jax", **OPTIONS))
    assert_exact(mgvbp.fit(one, grad="jax", vectorized=False, **OPTIONS))
    assert_exact(mgvbp.fit(one, grad="jax", **OPTIONS))


@pytest.mark.parametrize("vectorized", [True, False])
def test_a_compiled_function_by_values_meets_few_sizes(vectorized):
    jax = pytest.importorskip("jax")
    sizes = []

    def function(theta):
        sizes.append(theta.shape)
        return -0.5 * jax.numpy.einsum("...i,ij,...j->...", theta - M, A, theta - M)

    posterior = mgvbp.fit(jax.jit(function), dim=D, vectorized=vectorized)
    assert posterior.estimator == "regression"
    assert np.abs((posterior.mean - M) / posterior.std).max() < 0.01  # JAX computes in 32 bits
    rows = {shape[0] for shape in sizes} if vectorized else set()
    assert rows <= {1, *SIZES}
    assert len(sizes) == len(set(sizes)), "it is compiled once for each"


def test_a_compiled_function_keeps_its_attributes_and_its_errors():
    jax = pytest.importorskip("jax")
    named = jax.jit(lambda theta: -0.5 * (theta**2).sum(axis=1))
    named.parameters = mgvbp.Parameters({"a": mgvbp.transforms.Real(2)})
    assert mgvbp.fit(named).parameters.names == ("a",)
    with pytest.raises(EvaluationError, match=r"returned shape \(\)"):
        mgvbp.fit(jax.jit(lambda theta: theta.sum()), dim=2, vectorized=True)
    host = jax.jit(  # which cannot be mapped over rows
        lambda theta: jax.pure_callback(
            lambda t: -0.5 * np.square(t).sum(axis=1),
            jax.ShapeDtypeStruct(theta.shape[:1], theta.dtype),
            theta,
        )
    )
    assert mgvbp.fit(host, dim=2).converged


def test_data_that_jax_has_seen_in_32_bits():
    """JAX remembers arrays by identity: neither do we see them rounded, nor does the user's function see ours."""
    jax = pytest.importorskip("jax")
    matrix, centre = A.copy(), M.copy()

    def one(theta):
        return -0.5 * (theta - centre) @ jax.numpy.asarray(matrix) @ (theta - centre)

    own, theta = jax.jit(one), _rng.standard_normal((3, D))
    before = own(theta[0].astype(np.float32))
    model = mgvbp.from_jax(one)
    values, gradients = model.value_and_grad(theta)
    np.testing.assert_allclose(values, log_likelihood(theta), rtol=1e-13)
    np.testing.assert_allclose(gradients, gradient(theta), rtol=1e-12, atol=1e-12)
    assert own(theta[0].astype(np.float32)) == before
    assert jax.jit(jax.vmap(one))(theta.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(model(theta), values, rtol=1e-13)


def test_functions_that_jax_cannot_use():
    jnp = pytest.importorskip("jax.numpy")
    expected = r"expected one of a draw, \(d,\) -> real scalar, or of all draws, \(S, d\) -> \(S,\)"
    cases = [
        (lambda theta: -(theta**2).sum(axis=1), False, expected),
        (lambda theta: -(theta**2).sum(), True, expected),
        (lambda theta: -(theta**2).sum(axis=0), True, expected),
        (lambda theta: -theta, False, expected),
        (lambda theta: -(theta @ theta).astype(int), False, expected),
        (lambda theta: -np.cosh(theta).sum(), False, "write it with jax.numpy"),
        (lambda theta: -theta @ theta if theta[0] > 0 else 0.0, False, r"use jax\.numpy\.where"),
        (lambda theta: -float(theta @ theta), False, r"use jax\.numpy\.where"),
        (lambda theta: theta[theta > 0].sum() + jnp.sum(theta), False, r"use jax\.numpy\.where"),
        (
            lambda theta: -jnp.square(theta).sum(axis=1) + jnp.square(theta).min(),
            True,
            "its own row of the draws",
        ),
        (lambda theta: -jnp.square(theta - theta.mean(axis=0)).sum(axis=1), True, "its own row of the draws"),
    ]
    for function, vectorized, message in cases:
        with pytest.raises(EvaluationError, match=message) as raised:
            mgvbp.fit(function, dim=2, grad="jax", vectorized=vectorized)
        assert raised.value.__cause__ is not None


def test_without_jax_one_sentence_says_how_to_get_it():
    code = """
import sys
sys.modules["jax"] = None
import mgvbp
try:
    mgvbp.fit(lambda theta: theta.sum(axis=1), dim=2, grad="jax")
except mgvbp.MissingDependencyError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "this needs the package jax: pip install 'mgvbp[jax]'"


@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")  # few iterations
@pytest.mark.parametrize("options", [{}, {"method": "mgvbp", "max_iterations": 5}])
def test_a_ready_model_has_the_gradient_that_an_estimator_asks_for(options):
    X = np.random.default_rng(0).standard_normal((40, D))
    model = mgvbp.models.LogisticRegression(X, (X[:, 0] > 0.3).astype(float))
    assert mgvbp.fit(model, estimator="gradient", **options).estimator == "gradient"


@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning")  # few evaluations
def test_mixtures_of_many_parameters_go_by_the_gradient_of_a_ready_model():
    X = np.random.default_rng(0).standard_normal((60, MOST_PARAMETERS + 1))
    model = mgvbp.models.LogisticRegression(X, (X[:, 0] > 0.3).astype(float))
    assert mgvbp.fit(model, family="mixture", max_evaluations=500).estimator == "gradient"


def test_a_ready_model_keeps_the_gradient_that_it_is_given():
    """With more than 20 parameters it would be fitted by its own."""
    X = np.random.default_rng(0).standard_normal((80, 22))
    model, calls = mgvbp.models.LogisticRegression(X, X[:, 0] > 0.0), []

    def given(theta):
        calls.append(len(theta))
        return model.gradient(theta)

    assert mgvbp.fit(model, grad=given).converged
    assert sum(calls) > 20
    with pytest.raises(mgvbp.errors.InvalidInputError, match="gradient"):
        mgvbp.fit(model, grad=lambda theta: -model.gradient(theta))


def test_noise_in_the_values_is_no_jump():
    """Of five fits four at least see it as noise, or not at all."""
    right = 0
    for seed in range(5):
        rng = np.random.default_rng(seed + 100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mgvbp.errors.MgvbpWarning)
            posterior = mgvbp.fit(
                lambda theta, rng=rng: (
                    -0.5 * np.square(theta).sum(axis=1) + 0.1 * rng.standard_normal(len(theta))
                ),
                dim=5,
                grad=lambda theta: -theta,
                rng=seed,
            )
        right += posterior.converged
    assert right >= 4
