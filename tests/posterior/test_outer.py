"""Draws that lie further out than those of q: their density and their moments in closed form."""

import numpy as np
import pytest

from mgvbp import Gaussian
from mgvbp.posterior.diagnostics.outer import WIDER, Outer

COVARIANCE = np.array([[2.0, 0.9, 0.0], [0.9, 1.0, -0.3], [0.0, -0.3, 0.5]])
Q = Gaussian([1.0, -2.0, 0.5], COVARIANCE)
N = 60_000


@pytest.fixture(scope="module")
def draws():
    return Outer(Q).sample(N, np.random.default_rng(0))


def test_one_parameter_is_stretched_and_the_others_follow_their_regression_on_it(draws):
    """Σ + (w² − 1) Σ_i Σ_iᵀ / Σ_ii, averaged over the parameters i; to 5 standard errors of a covariance."""
    stretched = [np.outer(row, row) / row[i] for i, row in enumerate(COVARIANCE)]
    expected = COVARIANCE + (WIDER**2 - 1.0) * np.mean(stretched, axis=0)
    off = draws - Q.mean
    products = off[:, :, None] * off[:, None, :]
    error = products.std(axis=0) / np.sqrt(N)
    assert (np.abs(off.mean(axis=0)) < 5.0 * off.std(axis=0) / np.sqrt(N)).all()
    assert (np.abs(products.mean(axis=0) - expected) < 5.0 * error).all()


def test_the_density_is_that_of_the_draws(draws):
    """The weights q / p of draws from p have mean 1, and by them the draws have the covariance of q; to 5 errors."""
    weights = np.exp(Q.log_density_at(draws) - Outer(Q).log_density(draws))
    off = draws - Q.mean
    for values, expected in (
        (weights, 1.0),
        *((weights * off[:, i] * off[:, j], COVARIANCE[i, j]) for i in range(3) for j in range(i + 1)),
    ):
        assert abs(values.mean() - expected) < 5.0 * values.std() / np.sqrt(N)
