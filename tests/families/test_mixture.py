"""The mixture of Gaussians against SciPy, differences and its own draws."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from mgvbp import Gaussian, GaussianMixture
from mgvbp.errors import InvalidInputError


@pytest.fixture
def mixture():
    rng = np.random.default_rng(0)
    factors = np.tril(0.4 * rng.normal(size=(3, 4, 4))) + 1.5 * np.eye(4)
    return GaussianMixture([0.2, 0.5, 0.3], 2.0 * rng.normal(size=(3, 4)), factors)


def test_density_is_that_of_scipy(mixture):
    theta = mixture.sample(50, 1)
    terms = [
        np.log(w) + multivariate_normal(mean, np.linalg.inv(L @ L.T)).logpdf(theta)
        for w, mean, L in zip(mixture.weights, mixture.means, mixture.factors, strict=True)
    ]
    np.testing.assert_allclose(mixture.log_density(theta), logsumexp(terms, axis=0), rtol=1e-10)


def test_gradient_is_the_limit_of_differences(mixture):
    theta, step = mixture.sample(20, 1), 1e-5
    for j in range(4):
        e = step * np.eye(4)[j]
        difference = (mixture.log_density(theta + e) - mixture.log_density(theta - e)) / (2.0 * step)
        np.testing.assert_allclose(mixture.grad_log_density(theta)[:, j], difference, atol=1e-6)


def test_moments_are_those_of_draws(mixture):
    theta = mixture.sample(200_000, 1)
    error = mixture.std / np.sqrt(len(theta))
    assert (np.abs(theta.mean(axis=0) - mixture.mean) < 5.0 * error).all()  # level 2e-6
    np.testing.assert_allclose(np.cov(theta.T), mixture.covariance, atol=0.05 * mixture.covariance.max())
    np.testing.assert_allclose(mixture.moments.covariance, mixture.covariance, rtol=1e-9)


def test_quantiles_invert_the_distribution_function(mixture):
    levels = np.array([0.001, 0.3, 0.9])
    found = mixture.quantiles(levels)
    sds = np.sqrt(mixture.covariances.diagonal(axis1=1, axis2=2))
    for p, row in zip(levels, found, strict=True):
        np.testing.assert_allclose(mixture.weights @ norm(mixture.means, sds).cdf(row), p, atol=1e-9)


def test_marginal_is_the_integral(mixture):
    grid = np.linspace(-12.0, 12.0, 4001)
    pair = mixture.marginal([3, 1])
    points = np.column_stack([np.full(len(grid), 0.3), grid])
    integral = np.trapezoid(np.exp(pair.log_density(points)), grid)
    np.testing.assert_allclose(integral, np.exp(mixture.marginal([3]).log_density([[0.3]]))[0], rtol=1e-8)


def test_one_gaussian_is_itself():
    for q in (
        Gaussian([1.0, 2.0], variance=[[2.0, 0.5], [0.5, 1.0]]),
        Gaussian([1.0, 2.0], variance=[4.0, 9.0]),
    ):
        theta = q.sample(10, 0)
        np.testing.assert_allclose(GaussianMixture.of(q).log_density(theta), q.log_density(theta), rtol=1e-12)


@pytest.mark.parametrize(
    "parts",
    [
        ([1.0], [[0.0, 0.0]], np.ones((1, 1, 1))),
        ([-1.0], [[0.0]], np.ones((1, 1, 1))),
        ([1.0], [[0.0]], -np.ones((1, 1, 1))),
        ([1.0], [[0.0, 0.0]], np.ones((1, 2, 2))),
        ([], np.empty((0, 2)), np.empty((0, 2, 2))),
    ],
)
def test_parts_that_make_no_mixture_are_refused(parts):
    with pytest.raises(InvalidInputError, match=r"expected|must be positive"):
        GaussianMixture(*parts)


def test_points_of_another_dimension_are_refused(mixture):
    with pytest.raises(InvalidInputError, match=r"expected \(S, 4\)"):
        mixture.log_density(np.zeros((3, 2)))
