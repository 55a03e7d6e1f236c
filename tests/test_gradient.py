"""Gradients given by the user, or by JAX, and what is said where there are none."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mgvbp
from mgvbp import MGVBP, EvaluationError, Gaussian, InvalidInputError, InvalidTypeError

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
    assert (
        mgvbp.fit(log_likelihood, PRIOR, method="qbvi", grad=gradient, max_iterations=2).estimator
        == "gradient"
    )
    assert mgvbp.fit(log_likelihood, PRIOR, method="qbvi", max_iterations=2).estimator == "regression"


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
    ({"grad": "torch"}, InvalidInputError, "grad"),
    (
        {"grad": gradient, "prior": NoGradient(), "dim": D},
        InvalidInputError,
        "NoGradient, has no grad_log_density",
    ),
    ({"grad": lambda theta: theta[:, :2]}, EvaluationError, r"shape \(7, 2\)"),
    ({"grad": log_likelihood}, EvaluationError, r"expected real numbers \(7, 5\)"),
    ({"grad": lambda theta: theta + 1j}, EvaluationError, "complex128"),
    ({"grad": gradient, "estimator": "fisher"}, InvalidInputError, "per-example gradients"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_bad_input(change, error, message):
    options = {**OPTIONS, **change}
    if options["estimator"] == "fisher":
        options["family"] = "diagonal"
    with pytest.raises(error, match=message):
        mgvbp.fit(log_likelihood, **options)


def test_vogn_is_diagonal():
    with pytest.raises(InvalidInputError, match="family='diagonal'"):
        mgvbp.VOGN().start(PRIOR)


@pytest.mark.parametrize(
    "options", [{"curvature_step": 1.5}, {"clip_gradient": 1.0}, {"precision_scale": 1.0}]
)
def test_settings_that_vogn_does_not_have(options):
    with pytest.raises(InvalidInputError, match="VOGN"):
        mgvbp.VOGN(**options)


def test_gradients_that_are_not_told():
    optimizer = QUICK.start(PRIOR, estimator="gradient")
    theta = optimizer.ask()
    with pytest.raises(EvaluationError, match="derivatives"):
        optimizer.tell(log_likelihood(theta))
    info = optimizer.tell(log_likelihood(theta), gradient(theta))
    assert np.isfinite(info.lower_bound)


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
