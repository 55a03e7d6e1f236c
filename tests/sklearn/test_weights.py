"""Weights are repetitions, class weights are weights, sparse features are features, and names are those of the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from mgvbp import BlockDiagonal
from mgvbp.core import checks
from mgvbp.errors import InvalidInputError
from mgvbp.sklearn import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    BayesianStudentTRegression,
)

N = 60
_rng = np.random.default_rng(21)
Z = 5.0 + 2.0 * _rng.standard_normal((N, 3))
ETA = (Z - 5.0) @ [0.3, -0.2, 0.1]
REAL = 10.0 + 3.0 * ETA + _rng.standard_t(3, N)
COUNTS = _rng.poisson(np.exp(0.5 + ETA) * _rng.gamma(2.0, 0.5, N)).astype(float)
BITS = np.where(_rng.random(N) < 1.0 / (1.0 + np.exp(-ETA)), "yes", "no")
KINDS = np.array(["a", "b", "c"])[
    np.argmax(np.outer(ETA, [0.0, 2.0, -2.0]) + _rng.gumbel(size=(N, 3)), axis=1)
]
TIMES = _rng.integers(0, 4, N)

CASES = {
    "linear": (BayesianLinearRegression, REAL),
    "student": (BayesianStudentTRegression, REAL),
    "poisson": (BayesianPoissonRegressor, COUNTS),
    "negative binomial": (BayesianNegativeBinomialRegressor, COUNTS),
    "two classes": (BayesianLogisticRegression, BITS),
    "three classes": (BayesianLogisticRegression, KINDS),
}
EVERY = pytest.mark.parametrize("name", CASES)


@EVERY
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_weight_counts_rows(name, fit_intercept):
    """Rows with integer weights, some of them 0, and the same rows repeated: one posterior, to round-off."""
    estimator, y = CASES[name]
    weighted = estimator(fit_intercept=fit_intercept).fit(Z, y, sample_weight=TIMES)
    repeated = estimator(fit_intercept=fit_intercept).fit(np.repeat(Z, TIMES, axis=0), np.repeat(y, TIMES))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-7)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weighted.coef_sd_, repeated.coef_sd_, rtol=1e-4)
    theta = weighted.posterior_.sample(5, rng=0)
    ours, theirs = (fit.posterior_._target(theta) for fit in (weighted, repeated))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@EVERY
def test_the_weighted_posterior_is_diagnosed_with_its_weights(name):
    """Fresh draws of the weighted density give the bound again, within 4 standard errors."""
    estimator, y = CASES[name]
    fitted = estimator().fit(Z, y, sample_weight=0.5 + TIMES)
    diagnosis = fitted.posterior_.diagnose(2000)
    assert abs(diagnosis.elbo - fitted.lower_bound_) < 4 * diagnosis.elbo_se + 1e-3


@pytest.mark.parametrize("y", [BITS, KINDS], ids=["two", "three"])
def test_class_weights_are_weights(y):
    by_class = {"no": 3.0, "yes": 0.5, "a": 1.0, "b": 2.0, "c": 0.25}
    given = {label: by_class[label] for label in set(y)}
    by_name = BayesianLogisticRegression(class_weight=given).fit(Z, y, sample_weight=1 + TIMES)
    by_row = BayesianLogisticRegression().fit(Z, y, sample_weight=(1 + TIMES) * [by_class[c] for c in y])
    np.testing.assert_allclose(by_name.coef_, by_row.coef_, rtol=1e-9, atol=1e-12)
    balanced = BayesianLogisticRegression(class_weight="balanced").fit(Z, y)
    labels, codes, count = np.unique(y, return_inverse=True, return_counts=True)
    same = BayesianLogisticRegression().fit(Z, y, sample_weight=(N / len(labels) / count)[codes])
    np.testing.assert_allclose(balanced.coef_, same.coef_, rtol=1e-9, atol=1e-12)


def test_class_weights_leave_the_weights_of_the_user_alone():
    weights = np.ones(N)
    BayesianLogisticRegression(class_weight="balanced").fit(Z, BITS, sample_weight=weights)
    assert (weights == 1.0).all()


def test_balanced_classes_as_logistic_regression_has_them():
    """Nine of ten rows are of one class: with balanced classes the probabilities are near those of scikit-learn."""
    rng = np.random.default_rng(5)
    y = np.arange(1000) % 10 == 0
    X = y[:, None] + rng.standard_normal((1000, 1))
    ours = BayesianLogisticRegression(class_weight="balanced").fit(X, y).predict_proba(X)
    theirs = LogisticRegression(class_weight="balanced").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(ours, theirs, atol=0.01)


@EVERY
def test_sparse_features(name):
    estimator, y = CASES[name]
    X = np.where(Z > 5.0, Z, 0.0)
    filled = estimator().fit(X, y)
    for sparse in (scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
        fitted = estimator().fit(sparse, y)
        np.testing.assert_array_equal(fitted.coef_, filled.coef_)
        np.testing.assert_array_equal(fitted.predict(sparse), filled.predict(X))


def test_a_sparse_matrix_without_room(monkeypatch):
    monkeypatch.setattr(checks, "memory", lambda: 1e5)
    wide = scipy.sparse.csr_array((N, 10_000))
    with pytest.raises(
        InvalidInputError, match=r"a sparse X of 60 × 10,000, filled up, .*choose fewer columns"
    ):
        BayesianLinearRegression().fit(wide, REAL)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight has shape \(3,\); expected \(60,\)"),
        (-np.ones(N), "must not be negative, and some must not be zero; the smallest is -1"),
        (np.zeros(N), "must not be negative, and some must not be zero; the smallest is 0"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(InvalidInputError, match=message):
        BayesianLinearRegression().fit(Z, REAL, sample_weight=weights)


@pytest.mark.parametrize(("weight", "got"), [(-1.0, "-1"), (np.inf, "inf"), (np.nan, "nan")])
def test_bad_class_weights(weight, got):
    model = BayesianLogisticRegression(class_weight={"no": weight, "yes": 1.0})
    with pytest.raises(
        InvalidInputError, match=f"class_weight of class no must be .* not negative; got {got}"
    ):
        model.fit(Z, BITS)


def test_a_class_without_weight_is_not_there():
    weights = (KINDS != "c").astype(float)
    assert list(BayesianLogisticRegression().fit(Z, KINDS, sample_weight=weights).classes_) == ["a", "b"]


# --- names and units ----------------------------------------------------------------------------------


def test_posteriors_have_the_names_of_the_features():
    X, y = load_iris(return_X_y=True, as_frame=True)
    posterior = BayesianLinearRegression().fit(X.iloc[:, :3], X.iloc[:, 3]).posterior_
    assert posterior.labels == ("intercept", *X.columns[:3], "sigma")
    assert posterior["petal length (cm)"].mean > 0.5
    assert list(posterior.to_frame().index) == list(posterior.labels)
    classes = BayesianLogisticRegression().fit(X, y).posterior_
    assert classes.labels[:4] == (
        "intercept[1]",
        "intercept[2]",
        "sepal length (cm)[1]",
        "sepal length (cm)[2]",
    )
    plain = BayesianPoissonRegressor(fit_intercept=False).fit(Z, COUNTS).posterior_
    assert plain.labels == ("x0", "x1", "x2")


def test_names_that_would_clash():
    frame = pd.DataFrame(Z, columns=["sigma", "intercept", "bad\n\x1b[31m"])
    blocks = BlockDiagonal([["intercept", "sigma (2)"], ["intercept (2)", "bad��[31m", "sigma"]])
    fitted = BayesianLinearRegression(family=blocks).fit(frame, REAL)
    assert fitted.posterior_.labels == ("intercept", "sigma (2)", "intercept (2)", "bad��[31m", "sigma")


@EVERY
def test_standard_deviations_are_in_the_units_of_the_data(name):
    """Those of the slopes of 100,000 draws of θ, brought back to the data's units; within 2%."""
    estimator, y = CASES[name]
    fitted = estimator().fit(Z, y)
    theta = fitted.posterior_.sample(100_000, rng=1)
    if name == "three classes":
        beta = np.concatenate([np.zeros((len(theta), 4, 1)), theta.reshape(-1, 4, 2)], axis=2)
        beta -= beta.mean(axis=2, keepdims=True)
        spread = beta[:, 1:].std(axis=0).T / Z.std(axis=0)
    else:
        spread = theta[:, 1:4].std(axis=0) / Z.std(axis=0)
        if name in ("linear", "student"):
            spread *= fitted._response.scale
    np.testing.assert_allclose(np.squeeze(fitted.coef_sd_), np.squeeze(spread), rtol=0.02)
    thousandth = estimator().fit(1000.0 * Z, y)
    np.testing.assert_allclose(1000.0 * thousandth.coef_sd_, fitted.coef_sd_, rtol=1e-3)
