"""A sparse Hessian is found before the fit, and the best Gaussian is the same as with a full covariance."""

import warnings

import numpy as np
import pytest

import mgvbp
from mgvbp.errors import ConvergenceWarning
from mgvbp.families import Full
from mgvbp.run import sparsity

jax = pytest.importorskip("jax")
jnp = jax.numpy
D = sparsity.ABOVE + 20


def walk(theta):
    """A random walk that is seen with noise: the Hessian is tridiagonal."""
    return -4.0 * (jnp.diff(theta) ** 2).sum() - 0.5 * ((theta - 1.0) ** 2).sum() - jnp.exp(0.1 * theta).sum()


def dense(theta):
    return walk(theta) - 0.5 * jnp.cos(theta.sum() / 100.0)


def test_a_random_walk_has_the_gaussian_of_a_full_covariance():
    found = mgvbp.fit(walk, dim=D, grad="jax")
    full = mgvbp.fit(walk, dim=D, grad="jax", family="full")
    assert isinstance(found.family, mgvbp.SparsePrecision)
    assert found.family.num_entries == D + 2 * (D - 1)
    assert isinstance(full.family, Full)
    assert found.converged
    assert full.converged
    np.testing.assert_allclose(found.mean, full.mean, atol=0.1 * full.std.min())
    np.testing.assert_allclose(found.std, full.std, rtol=0.03)


@pytest.mark.parametrize(
    "options",
    [
        {"family": "full"},
        {"noise": 0.0},
        {"max_evaluations": 3000},
        {"initial_variance": np.eye(D)},
        {"prior": mgvbp.Gaussian(variance=np.eye(D) + 0.1)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_where_a_full_covariance_stays(options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        posterior = mgvbp.fit(walk, dim=D, grad="jax", max_iterations=2, **options)
    assert isinstance(posterior.family, Full)


@pytest.mark.parametrize(("function", "dim"), [(dense, D), (walk, sparsity.ABOVE)])
def test_a_dense_hessian_and_few_parameters(function, dim):
    with pytest.warns(ConvergenceWarning):
        assert isinstance(mgvbp.fit(function, dim=dim, grad="jax", max_iterations=2).family, Full)


def test_a_prior_of_independent_parameters_is_no_obstacle():
    prior = mgvbp.Gaussian(variance=np.linspace(1.0, 4.0, D))
    posterior = mgvbp.fit(walk, prior, grad="jax")
    assert isinstance(posterior.family, mgvbp.SparsePrecision)


def test_groups_in_numpyro_are_found():
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions
    y = np.random.default_rng(0).standard_normal((D, 4)) + np.random.default_rng(1).standard_normal((D, 1))

    def model():
        mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
        with numpyro.plate("groups", D, dim=-2):
            effect = numpyro.sample("effect", dist.Normal(mean, 1.0))
            numpyro.sample("y", dist.Normal(effect, 1.0).expand([D, 4]), obs=y)

    posterior = mgvbp.fit(mgvbp.from_numpyro(model))
    assert posterior.family.num_entries == (D + 1) + 2 * D  # effects are independent given the mean
    assert posterior.converged
    exact = 1.0 / (D / (1.0 + 1.0 / 4.0) + 1.0 / 25.0)  # the variance of the mean in closed form
    assert posterior["mean"].std == pytest.approx(np.sqrt(exact), rel=0.05)
