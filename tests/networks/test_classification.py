"""The benchmark on real data: splits, a point estimate against scikit-learn, a posterior against quadrature."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mgvbp import Gaussian, networks

pytest.importorskip("jax")
linear_model = pytest.importorskip("sklearn.linear_model")
pytest.importorskip("threadpoolctl")
from mgvbp.sklearn import BayesianLogisticRegression  # noqa: E402

path = Path(__file__).resolve().parents[2] / "benchmarks" / "classification.py"
spec = importlib.util.spec_from_file_location("classification", path)
classification = importlib.util.module_from_spec(spec)
spec.loader.exec_module(classification)


@pytest.fixture(scope="module")
def softmax_regression():
    """Wine without a hidden layer: a log posterior density that is concave."""
    network = networks.dense([13, 3])
    return classification.Task(network, *classification.split("wine", 0)), Gaussian(
        variance=1.0, dim=network.dim
    )


@pytest.mark.parametrize("name", classification.WIDTHS)
def test_splits_use_nothing_of_the_rows_to_test(name):
    raw, labels = classification.LOADERS[name](return_X_y=True)
    X, y, X_test, y_test = classification.split(name, 3)
    varying = X.std(axis=0) > 0  # some pixels of the digits never do
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X[:, varying].std(axis=0), 1.0, rtol=1e-12)
    assert not np.allclose(X_test[:, varying].mean(axis=0), 0.0, atol=1e-3)
    assert len(X) + len(X_test) == len(raw)
    assert len(X_test) == np.ceil(0.3 * len(raw))
    # one affine map takes the raw rows to both parts, each of them once
    scale = raw[:, varying].std(axis=0)  # for rounding alone: any would do
    both = np.concatenate([X, X_test])[:, varying]
    order = [np.lexsort(np.round(rows, 6).T) for rows in (raw[:, varying] / scale, _standard(both))]
    np.testing.assert_array_equal(labels[order[0]], np.concatenate([y, y_test])[order[1]])
    np.testing.assert_allclose(np.bincount(y) / len(y), np.bincount(labels) / len(labels), atol=0.01)


def _standard(rows):
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def test_point_estimate_is_that_of_scikit_learn(softmax_regression):
    """The penalty ½‖w‖² of scikit-learn's C = 1 is the prior N(0, I), on the intercepts too."""
    task, prior = softmax_regression
    row = classification.run(classification.FITS["ADAM, MAP"], task, prior, seed=0)
    X, X_test = (np.column_stack([rows, np.ones(len(rows))]) for rows in (task.X, task.X_test))
    theirs = linear_model.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs.fit(X, task.y)
    expected = theirs.predict_log_proba(X_test)[np.arange(len(X_test)), task.y_test].mean()
    assert row.log_density == pytest.approx(expected, abs=1e-5)
    assert row.accuracy == theirs.score(X_test, task.y_test)
    assert np.isnan(row.bound)


def test_posterior_is_the_optimum_by_quadrature():
    """Two outputs with prior variance 1 are one log odds with prior variance 2, which has no noise.

    Over four seeds the log density was within 1.3e-4 and the bound within 0.01 nats; the point estimate's density is
    0.0096 away, the diagonal family's 0.003 to 0.007.
    """
    network = networks.dense([30, 2])
    task = classification.Task(network, *classification.split("cancer", 0))
    prior = Gaussian(variance=1.0, dim=network.dim)
    row = classification.run(classification.FITS["MGVBP, full"], task, prior, seed=0)
    exact = BayesianLogisticRegression(prior_variance=2.0).fit(task.X, task.y)
    densities = exact.predict_log_proba(task.X_test)[np.arange(len(task.y_test)), task.y_test]
    assert row.log_density == pytest.approx(densities.mean(), abs=1e-3)
    assert row.bound == pytest.approx(exact.lower_bound_, abs=0.15)  # four standard errors of 1,000 draws


def test_weights_of_zero_predict_all_classes_alike(softmax_regression):
    task, prior = softmax_regression
    row = classification.run(lambda task, prior, seed: np.zeros(prior.dim), task, prior, seed=0)
    assert row.log_density == pytest.approx(-np.log(3.0))
    assert row.accuracy == np.mean(task.y_test == 0)
    assert row.ece == pytest.approx(abs(np.mean(task.y_test == 0) - 1.0 / 3.0))


def test_blocks_are_hidden_units():
    network = networks.dense([3, 2, 4])
    blocks = classification.by_unit(classification.Task(network, *[np.empty(0)] * 4)).blocks
    labels = [[network.weights.labels[k] for k in block] for block in blocks]
    assert labels[0] == ["W1[0,0]", "W1[1,0]", "W1[2,0]", "b1[0]"]
    assert labels[1] == ["W1[0,1]", "W1[1,1]", "W1[2,1]", "b1[1]"]
    assert labels[2][:2] == ["W2[0,0]", "W2[0,1]"]
    assert sorted(k for block in blocks for k in block) == list(range(network.dim))


def test_table_pairs_by_seed():
    """Differences of 0.1 and 0.3 from the first estimate: mean 0.2, standard error 0.1."""

    def rows(*densities):
        return [
            classification.Row(d, 0.5, 0.25, np.nan, s) for d, s in zip(densities, (9.0, 1.0), strict=True)
        ]

    results = {"ADAM, ML": rows(-2.0, -1.0), "ADAM, MAP": rows(-1.9, -0.7)}
    last = classification.table(results).splitlines()[-1]
    assert last == (
        "| ADAM, MAP | −1.300 ± 0.600 | 0.200 ± 0.100 | 0.000 ± 0.000 | 0.500 ± 0.000 | 0.250 ± 0.000 | – | 5.0 |"
    )


def test_one_seed_has_no_standard_error():
    assert classification.average(np.array([-0.25]), 2) == "−0.25"
