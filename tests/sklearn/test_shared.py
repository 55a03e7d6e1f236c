"""Student-t and negative-binomial regression: against `mgvbp.fit`, simulations, more nodes, and outliers."""

from __future__ import annotations

import numpy as np
import pytest

import mgvbp
from mgvbp import models
from mgvbp.sklearn import (
    BayesianLinearRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianStudentTRegression,
    shared,
)
from mgvbp.sklearn.student import weighted_median

N = 120
_rng = np.random.default_rng(41)
Z = _rng.standard_normal((N, 2))
REAL = 1.0 + Z @ [1.0, -0.5] + 0.7 * _rng.standard_t(3, N)
MEANS = np.exp(1.0 + Z @ [0.5, -0.3])
COUNTS = _rng.poisson(MEANS * _rng.gamma(2.0, 0.5, N)).astype(float)
CASES = {
    "student": (BayesianStudentTRegression, REAL, models.StudentTRegression),
    "negative binomial": (BayesianNegativeBinomialRegressor, COUNTS, models.NegativeBinomialRegression),
}
EVERY = pytest.mark.parametrize("name", CASES)


@EVERY
def test_agrees_with_a_fit_from_log_likelihoods(name):
    """`mgvbp.fit` sees log-likelihoods only; the same model and prior on the estimator's scale."""
    estimator, y, model = CASES[name]
    exact = estimator(tol=1e-6).fit(Z, y)
    q = exact.posterior_
    found = mgvbp.fit(q._target, dim=q.dim, initial_mean=q.mean + 0.3, tol=0.005)
    assert abs(found.lower_bound - exact.lower_bound_) < 0.02
    assert (np.abs(found.mean - q.mean) < 0.15 * q.std).all()
    np.testing.assert_allclose(found.std, q.std, rtol=0.1)
    # and the target is the model's likelihood with the stated prior
    theta = q.sample(4, rng=0)
    if name == "student":
        centre = np.median(y)
        own = model(exact._design(Z), (y - centre) / (1.4826 * np.median(np.abs(y - centre))))
        prior = mgvbp.Gaussian([0, 0, 0, 0, np.log(10.0)], [6.25, 6.25, 6.25, 1.0, 1.0])
    else:
        own = model(exact._design(Z), y, exposure=y.mean())
        prior = mgvbp.Gaussian(0.0, [6.25, 6.25, 6.25, 4.0])
    np.testing.assert_allclose(q._target(theta), own(theta) + prior.log_density(theta), rtol=1e-7)


@EVERY
def test_predicted_moments_are_those_of_simulations(name):
    """400,000 simulated responses: means within 5 standard errors, standard deviations within 3%."""
    estimator, y, _ = CASES[name]
    fitted = estimator().fit(Z, y)
    new, rng = np.array([[0.5, -1.0], [-2.0, 0.3]]), np.random.default_rng(2)
    theta = fitted.posterior_.sample(400_000, rng)
    eta = theta[:, :3] @ fitted._design(new).T
    if name == "student":
        nu = 2.0 + np.exp(theta[:, 4:])
        # the variance given θ instead of draws, whose own variance has none
        variance = np.var(eta, axis=0) + np.mean(np.exp(2.0 * theta[:, 3:4]) * nu / (nu - 2.0), axis=0)
        average = fitted._response.location + fitted._response.scale * eta.mean(axis=0)
        spread = fitted._response.scale * np.sqrt(variance)
    else:
        rates = np.exp(fitted._offset + eta)
        phi = np.exp(theta[:, 3:])
        counts = rng.poisson(rates * rng.gamma(1.0 / phi, phi, rates.shape))
        average, spread = counts.mean(axis=0), counts.std(axis=0)
    mean, std = fitted.predict(new, return_std=True)
    np.testing.assert_allclose(mean, average, atol=5 * std.max() / np.sqrt(400_000))
    np.testing.assert_allclose(std, spread, rtol=0.03)
    np.testing.assert_array_equal(mean, fitted.predict(new))


@EVERY
def test_twice_the_nodes_change_nothing(name, monkeypatch):
    """On eight rows, where the posterior is widest."""
    estimator, y, _ = CASES[name]
    few = estimator(tol=1e-5).fit(Z[:8], y[:8])
    monkeypatch.setattr(shared, "SHARED_NODES", 2 * shared.SHARED_NODES)
    monkeypatch.setattr(shared, "ROW_NODES", 2 * shared.ROW_NODES)
    many = estimator(tol=1e-5).fit(Z[:8], y[:8])
    assert abs(few.lower_bound_ - many.lower_bound_) < shared.ERROR
    np.testing.assert_allclose(
        few.posterior_.mean, many.posterior_.mean, atol=1e-2 * many.posterior_.std.min()
    )


def test_outliers_do_not_lead_the_student_astray():
    y = REAL.copy()
    y[Z[:, 0].argsort()[-6:]] -= 300.0
    clean, robust = (BayesianStudentTRegression().fit(Z, response) for response in (REAL, y))
    assert (np.abs(robust.coef_ - clean.coef_) < 2.0 * clean.coef_sd_).all()
    least_squares = BayesianLinearRegression().fit(Z, y)
    assert abs(least_squares.coef_[0] - clean.coef_[0]) > 10.0
    assert robust.posterior_["nu"].mean < clean.posterior_["nu"].mean


def test_an_exact_fit_has_a_posterior():
    X = np.arange(10.0)[:, None]
    regressor = BayesianStudentTRegression().fit(X, 2.0 * X[:, 0] + 1.0)
    assert regressor.coef_ == pytest.approx([2.0], rel=1e-3)
    assert regressor.predict([[4.0]], return_std=True)[1] < 0.01


def test_dispersion_is_found():
    """1,000 counts with φ = ½, within 3 standard deviations; Poisson regression claims too small errors for them."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((1000, 2))
    y = rng.poisson(np.exp(1.5 + X @ [0.4, 0.0]) * rng.gamma(2.0, 0.5, 1000))
    ours, poisson = BayesianNegativeBinomialRegressor().fit(X, y), BayesianPoissonRegressor().fit(X, y)
    phi = ours.posterior_["dispersion"]
    assert abs(phi.mean - 0.5) < 3.0 * phi.std
    assert (np.abs(ours.coef_ - [0.4, 0.0]) < 3.5 * ours.coef_sd_).all()
    assert (ours.coef_sd_ > 1.5 * poisson.coef_sd_).all()
    assert ours.lower_bound_ > poisson.lower_bound_ + 100.0
    assert 0.0 < ours.score(X, y) < 1.0


def test_counts_that_are_none():
    fitted = BayesianNegativeBinomialRegressor().fit(Z, np.zeros(N))
    assert (fitted.predict(Z) < 1.0).all()
    with pytest.raises(mgvbp.errors.InvalidInputError, match="y must not be negative; got -1"):
        BayesianNegativeBinomialRegressor().fit(Z, -np.ones(N))


def test_the_weighted_median_is_that_of_repeated_values():
    rng = np.random.default_rng(3)
    for n in range(1, 30):
        values, times = rng.integers(0, 6, n).astype(float), rng.integers(1, 4, n)
        assert weighted_median(values, times.astype(float)) == np.median(np.repeat(values, times))
