"""``prior_variance="evidence"``: no other number has a larger lower bound."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge

from mgvbp.sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianStudentTRegression,
)
from mgvbp.sklearn.evidence import SMALLEST

N = 80
_rng = np.random.default_rng(31)
X = _rng.standard_normal((N, 6))
ETA = X @ [0.8, -0.5, 0.3, 0.0, 0.0, 0.2]
CASES = {
    "linear": (BayesianLinearRegression, ETA + 0.5 * _rng.standard_normal(N)),
    "student": (BayesianStudentTRegression, ETA + 0.5 * _rng.standard_t(4, N)),
    "poisson": (BayesianPoissonRegressor, _rng.poisson(np.exp(ETA))),
    "negative binomial": (
        BayesianNegativeBinomialRegressor,
        _rng.poisson(np.exp(ETA) * _rng.gamma(2, 0.5, N)),
    ),
    "logistic": (BayesianLogisticRegression, _rng.random(N) < 1.0 / (1.0 + np.exp(-2.0 * ETA))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_choice_is_the_best_of_a_fine_grid(name):
    """At 21 variances, 5% apart: the bound is largest at the chosen one, or next to it."""
    estimator, y = CASES[name]
    chosen = estimator(prior_variance="evidence").fit(X, y)
    grid = chosen.prior_variance_ * 1.05 ** np.arange(-10, 11)
    bounds = [estimator(prior_variance=v, tol=1e-6).fit(X, y).lower_bound_ for v in grid]
    assert abs(int(np.argmax(bounds)) - 10) <= 1
    # within the tolerance of one fit, and the two ends are below: it is a maximum, not a plain
    assert chosen.lower_bound_ > max(bounds) - 2e-3
    assert max(bounds[0], bounds[-1]) < bounds[10] - 0.01


def test_no_number_of_all_decades_is_better():
    estimator, y = CASES["logistic"]
    chosen = estimator(prior_variance="evidence").fit(X, y)
    for variance in np.geomspace(1e-4, 1e4, 9):
        assert estimator(prior_variance=variance).fit(X, y).lower_bound_ < chosen.lower_bound_ + 2e-3


def test_noise_has_no_effects():
    """Features that say nothing: the variance of their effects goes to the end of its range, or near it."""
    noise = np.random.default_rng(0).standard_normal(400)
    features = np.random.default_rng(1).standard_normal((400, 5))
    fitted = BayesianLinearRegression(prior_variance="evidence").fit(features, noise)
    assert SMALLEST <= fitted.prior_variance_ < 0.01
    assert np.abs(fitted.coef_).max() < 0.1


def test_diabetes_as_bayesian_ridge_shrinks_it():
    """scikit-learn's BayesianRidge maximises the evidence, too: coefficients agree within 0.3 standard deviations."""
    Z, y = load_diabetes(return_X_y=True)
    ours = BayesianLinearRegression(prior_variance="evidence").fit(Z, y)
    theirs = BayesianRidge(alpha_1=1e-10, alpha_2=1e-10, lambda_1=1e-10, lambda_2=1e-10).fit(Z, y)
    assert (np.abs(ours.coef_ - theirs.coef_) < 0.3 * ours.coef_sd_).all()
