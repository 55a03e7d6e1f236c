"""Models without a prior: the default is that of the estimators of mgvbp.sklearn, in the units of the data."""

from __future__ import annotations

import numpy as np
import pytest

import mgvbp
from mgvbp import models
from mgvbp.models.default_prior import standardisation
from mgvbp.sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)

N = 80
_rng = np.random.default_rng(0)
Z = np.array([50.0, -3e3]) + np.array([7.0, 2e3]) * _rng.standard_normal((N, 2))
X = np.column_stack([np.ones(N), Z])
ETA = (Z - [50.0, -3e3]) / [7.0, 2e3] @ [0.8, -0.5]
BITS = (_rng.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(float)
KINDS = np.argmax(np.outer(ETA, [0.0, 1.0, -1.0]) + _rng.gumbel(size=(N, 3)), axis=1)
COUNTS = _rng.poisson(3.0 * np.exp(0.5 * ETA) * _rng.gamma(2.0, 0.5, N)).astype(float)
REAL = 1e4 + 1e3 * (ETA + _rng.standard_normal(N))

CASES = {
    "logistic": (models.LogisticRegression, BayesianLogisticRegression, BITS),
    "poisson": (models.PoissonRegression, BayesianPoissonRegressor, COUNTS),
    "negative binomial": (models.NegativeBinomialRegression, BayesianNegativeBinomialRegressor, COUNTS),
    "linear": (models.LinearRegression, BayesianLinearRegression, REAL),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("intercept", [True, False])
def test_it_is_the_prior_of_the_estimator(name, intercept):
    """The same posterior, in the data's units: that of the prior and of the likelihood must then be the same."""
    model, estimator, y = CASES[name]
    posterior = mgvbp.fit(model(X if intercept else Z, y))
    exact = estimator(fit_intercept=intercept, tol=1e-6).fit(Z, y)
    first = int(intercept)
    np.testing.assert_allclose(posterior.std[first : first + 2], exact.coef_sd_.ravel(), rtol=0.05)
    assert (
        np.abs(posterior.mean[first : first + 2] - exact.coef_.ravel()) < 0.1 * exact.coef_sd_.ravel()
    ).all()
    if intercept:
        assert abs(posterior.mean[0] - np.ravel(exact.intercept_)[0]) < 0.1 * posterior.std[0]


def test_the_bound_of_a_fit_says_that_the_prior_is_proper():
    """Log evidence by the same prior given by hand, and by default: equal."""
    model = models.LogisticRegression(X, BITS)
    by_default, by_hand = mgvbp.fit(model), mgvbp.fit(model, model.default_prior)
    assert abs(by_default.lower_bound - by_hand.lower_bound) < 0.02
    assert (np.abs(by_default.mean - by_hand.mean) < 0.15 * by_hand.std).all()
    assert by_default.n_evaluations <= by_hand.n_evaluations  # it also knows where to start, and how wide


def test_several_classes_are_treated_alike():
    """Under the prior the difference of any two classes has variance 6.25 for a standardised column."""
    model = models.MultinomialRegression(X, KINDS)
    T, intercept = standardisation(X)
    assert intercept == 0
    covariance = np.kron(T, np.eye(2)) @ model.default_prior.covariance @ np.kron(T, np.eye(2)).T
    for j in range(3):
        block = covariance[2 * j : 2 * j + 2, 2 * j : 2 * j + 2]
        contrasts = [block[0, 0], block[1, 1], block[0, 0] + block[1, 1] - 2.0 * block[0, 1]]
        np.testing.assert_allclose(contrasts, 6.25, rtol=1e-6)


def test_separated_classes_have_a_posterior():
    """Without a prior the likelihood has no maximum here."""
    posterior = mgvbp.fit(models.LogisticRegression(X, (ETA > 0.0).astype(float)))
    assert posterior.converged


def test_units_do_not_matter():
    units = np.array([1.0, 1e-6, 1e8])
    plain, scaled = (mgvbp.fit(models.LogisticRegression(A, BITS)) for A in (X, X * units))
    assert abs(plain.lower_bound - scaled.lower_bound) < 0.02
    np.testing.assert_allclose(plain.std, scaled.std * units, rtol=0.05)


def test_the_default_prior_of_student_errors():
    model = models.StudentTRegression(X, REAL)
    assert models.StudentTRegression is models.StudentRegression
    prior = model.default_prior
    assert prior.dim == model.dim == 5
    np.testing.assert_allclose(prior.mean[-2:], [np.log(REAL.std()), np.log(10.0)])
    assert mgvbp.fit(model).converged


def test_every_model_knows_its_dimension():
    for kind, _, y in CASES.values():
        model = kind(X, y)
        prior = mgvbp.Gaussian(variance=5.0, dim=model.dim)
        assert prior.dim == model.parameters.dim


def test_columns_of_any_kind():
    """Two constant columns, a column of zeros: a proper prior; a model without a default is fitted as it is."""
    odd = np.column_stack([np.ones(N), np.full(N, 2.0), np.zeros(N), Z[:, 0]])
    prior = models.LogisticRegression(odd, BITS).default_prior
    assert np.isfinite(prior.covariance).all()
    data = models.Reconstruction.simulate(200, dim=2, rng=0)
    assert models.Reconstruction(data.X, data.y).default_prior is None
