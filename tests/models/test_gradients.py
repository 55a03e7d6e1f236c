"""Gradients of the ready models against differences, and the fits that they make possible."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import mgvbp
from mgvbp import models


def data(rows=60, columns=3):
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(rows), rng.normal(size=(rows, columns - 1))])
    return X, X @ np.linspace(-0.5, 0.8, columns), rng


def cases():
    X, mean, rng = data()
    counts = rng.poisson(np.exp(mean))
    classes = np.concatenate([[0, 1, 2], rng.integers(3, size=len(X) - 3)])
    return {
        "logistic": models.LogisticRegression(X, rng.random(len(X)) < 0.5),
        "linear": models.LinearRegression(X, mean + rng.normal(size=len(X))),
        "student": models.StudentRegression(X, mean + rng.standard_t(3, size=len(X))),
        "poisson": models.PoissonRegression(X, counts, exposure=rng.uniform(0.5, 2.0, len(X))),
        "negative binomial": models.NegativeBinomialRegression(X, counts, exposure=2.0),
        "multinomial": models.MultinomialRegression(X, classes),
    }


@pytest.mark.parametrize("name", cases())
def test_it_is_the_limit_of_differences(name):
    model = cases()[name]
    theta = 0.5 * np.random.default_rng(1).normal(size=(4, model.dim))
    differences = [approx_fprime(row, lambda t: model(t[None])[0], 1e-6) for row in theta]
    np.testing.assert_allclose(model.gradient(theta), differences, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", ["student", "negative binomial"])
def test_at_the_limit_of_a_simpler_model_it_has_no_slope(name):
    model = cases()[name]
    theta = np.zeros((3, model.dim))
    theta[:, -1] = {"student": 1.0, "negative binomial": -1.0}[name] * np.array([12.0, 20.0, 900.0])
    slopes = model.gradient(theta)[:, -1]
    assert np.all(np.abs(slopes) < 0.1)
    assert np.all(np.isfinite(slopes))


def test_more_rows_than_a_block_hold():
    X, mean, rng = data(rows=40_000)
    model = models.LogisticRegression(X, rng.random(len(X)) < 1.0 / (1.0 + np.exp(-mean)))
    theta = rng.normal(size=(7, 3))
    expected = (model.y - 1.0 / (1.0 + np.exp(-theta @ X.T))) @ X
    np.testing.assert_allclose(model.gradient(theta), expected, rtol=1e-9, atol=1e-9)


def test_too_many_parameters_for_values_are_fitted_by_the_gradient():
    """Without it ``auto`` would have to give up at 60 parameters."""
    X, mean, rng = data(rows=400, columns=60)
    model = models.LogisticRegression(X, rng.random(len(X)) < 1.0 / (1.0 + np.exp(-0.3 * mean)))
    posterior = mgvbp.fit(model, mgvbp.Gaussian(variance=1.0, dim=60))
    assert posterior.method == "auto"
    assert posterior.converged
    given = mgvbp.fit(model, mgvbp.Gaussian(variance=1.0, dim=60), grad=model.gradient)
    np.testing.assert_array_equal(posterior.mean, given.mean)
