"""Predictions of networks: averages by hand, scores against scikit-learn, calibration of known probabilities."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from mgvbp import Gaussian, InvalidInputError, InvalidTypeError, baselines, networks
from mgvbp.networks import NormalPrediction, Prediction, base

RNG = np.random.default_rng(11)
OUTPUTS = 2.0 * RNG.standard_normal((6, 40, 4))
Y = RNG.integers(4, size=40)


def certain(probabilities):
    """The prediction of a single draw."""
    return Prediction.from_outputs([np.log(np.asarray(probabilities))[None]])


def test_averages_by_hand():
    prediction = Prediction.from_outputs([OUTPUTS[:, :15], OUTPUTS[:, 15:]])
    each = softmax(OUTPUTS, axis=2)
    mean = each.mean(axis=0)
    np.testing.assert_allclose(prediction.probabilities, mean, rtol=1e-13)
    np.testing.assert_array_equal(prediction.labels, mean.argmax(axis=1))
    np.testing.assert_allclose(prediction.entropy, stats.entropy(mean, axis=1), rtol=1e-12)
    # H(mean) − mean H = mean KL(each ‖ mean)
    divergence = stats.entropy(each, mean[None], axis=2).mean(axis=0)
    np.testing.assert_allclose(prediction.mutual_information, divergence, rtol=1e-10)
    density = stats.multinomial.logpmf(np.eye(4)[Y].astype(int), 1, mean).mean()
    assert prediction.score(Y).log_predictive_density == pytest.approx(density, rel=1e-12)


def test_posteriors_predict_as_networks_do():
    X = RNG.standard_normal((30, 3))
    likelihood = networks.dense([3, 2]).on(X, np.arange(30) % 2)
    theta = RNG.standard_normal((5, likelihood.log_likelihood.dim))
    through = likelihood.predict(theta, X[:4], rng=None).probabilities
    np.testing.assert_array_equal(through, likelihood.log_likelihood.predict(theta, X[:4]).probabilities)


def test_one_draw_has_no_mutual_information():
    assert certain(softmax(OUTPUTS[0], axis=1)).mutual_information == pytest.approx(0.0, abs=1e-14)


def test_tiny_probabilities_have_finite_logarithms():
    prediction = Prediction.from_outputs([np.array([[[0.0, 2000.0]], [[0.0, 3000.0]]])])
    assert prediction.score([0]).log_predictive_density == pytest.approx(-2000.0 - np.log(2.0))
    assert prediction.entropy.tolist() == [0.0]


@pytest.mark.parametrize("present", [range(4), [0, 2], [3]])
def test_scores_are_those_of_scikit_learn(present):
    """Also where classes do not occur: of five outputs one is never predicted."""
    metrics = pytest.importorskip("sklearn.metrics")
    outputs = np.concatenate([OUTPUTS, np.full((6, 40, 1), -50.0)], axis=2)
    prediction = Prediction.from_outputs([outputs])
    y = np.resize(present, 40)
    scores = prediction.score(y)
    expected = metrics.precision_recall_fscore_support(y, prediction.labels, average="macro", zero_division=0)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(expected[:3], rel=1e-12)
    assert scores.accuracy == metrics.accuracy_score(y, prediction.labels)
    loss = metrics.log_loss(y, prediction.probabilities, labels=range(5))
    assert scores.log_predictive_density == pytest.approx(-loss, rel=1e-10)


def test_calibration_by_hand():
    """Three rows in (0.6, 0.7], of which two are right, and one at 0.95, which is wrong."""
    prediction = certain([[0.65, 0.35], [0.35, 0.65], [0.68, 0.32], [0.05, 0.95]])
    table = prediction.reliability([0, 1, 1, 0])
    assert table.count.tolist() == [0, 0, 0, 0, 0, 0, 3, 0, 0, 1]
    assert table.confidence[[6, 9]] == pytest.approx([0.66, 0.95])
    assert table.accuracy[[6, 9]] == pytest.approx([2 / 3, 0.0])
    assert np.isnan(table.accuracy[0])
    assert table.ece == pytest.approx(0.75 * (2 / 3 - 0.66) + 0.25 * 0.95)
    assert prediction.score([0, 1, 1, 0]).ece == table.ece
    assert prediction.reliability([0, 1, 1, 0], bins=1).ece == pytest.approx(abs(0.5 - 0.7325))


def test_edges_belong_to_the_bin_below():
    table = certain([[0.5, 0.5], [0.25, 0.75], [0.0 + 1e-300, 1.0]]).reliability([0, 0, 1], bins=4)
    assert table.count.tolist() == [0, 1, 1, 1]


def test_calibrated_probabilities_are_found_calibrated():
    """Labels drawn from the probabilities: each bin's hits are binomial; 10 bins at a joint level of 1e-4."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), size=20_000)
    y = (rng.random(20_000)[:, None] > probabilities.cumsum(axis=1)).sum(axis=1)
    table = certain(probabilities).reliability(y)
    some = table.count > 0
    z = (table.accuracy - table.confidence)[some] / np.sqrt(0.25 / table.count[some])
    assert np.abs(z).max() < stats.norm.isf(1e-4 / 20)
    assert table.ece < 0.02
    overconfident = certain(softmax(3.0 * np.log(probabilities), axis=1))
    assert overconfident.reliability(y).ece > 0.15


def test_predictions_of_a_posterior():
    pytest.importorskip("jax")
    network = networks.dense([2, 3, 3], precision="double")
    X = RNG.standard_normal((9, 2))
    posterior = Gaussian(mean=RNG.standard_normal(network.dim), variance=0.5)
    theta = posterior.sample(30, 4)
    found = network.predict(posterior, X, num_draws=30, rng=4).probabilities
    np.testing.assert_array_equal(found, network.predict(theta, X).probabilities)
    weights = [network.weights.constrain(row) for row in theta]
    each = [softmax(np.tanh(X @ w["W1"] + w["b1"]) @ w["W2"] + w["b2"], axis=1) for w in weights]
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-10)
    np.testing.assert_allclose(network.predict(theta[0], X).probabilities, each[0], rtol=1e-10)


def test_predictions_of_what_the_baselines_find():
    pytest.importorskip("jax")
    network = networks.dense([2, 3], precision="double")
    draws, X = RNG.standard_normal((2, 5, network.dim)), RNG.standard_normal((7, 2))
    expected = network.predict(draws.reshape(10, -1), X).probabilities
    np.testing.assert_array_equal(network.predict(baselines.Chains(draws), X).probabilities, expected)
    point = baselines.PointEstimate(draws[0, 0], np.zeros(1), 1)
    single = network.predict(draws[0, 0], X).probabilities
    np.testing.assert_array_equal(network.predict(point, X).probabilities, single)
    np.testing.assert_array_equal(network.predict(draws[0, 0].tolist(), X).probabilities, single)
    pd = pytest.importorskip("pandas")  # frames can be sampled, and are an array of draws here
    frame = pd.DataFrame(draws.reshape(10, -1))
    np.testing.assert_array_equal(network.predict(frame, X).probabilities, expected)


def test_predictions_with_normal_noise(monkeypatch):
    pytest.importorskip("jax")
    network = networks.dense([2, 1], likelihood=networks.normal(), precision="double")
    X, y, theta = RNG.standard_normal((9, 2)), RNG.standard_normal(9), RNG.standard_normal((20, 4))
    monkeypatch.setattr(base, "PAIRS", 40)  # in blocks of two rows
    prediction = network.predict(theta, X)
    means, sigma = theta[:, :2] @ X.T + theta[:, 2:3], np.exp(theta[:, 3])
    np.testing.assert_allclose(prediction.mean, means.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(prediction.std**2, means.var(axis=0) + np.mean(sigma**2), rtol=1e-10)
    density = np.log(stats.norm.pdf(y, means, sigma[:, None]).mean(axis=0)).mean()
    scores = prediction.score(y)
    assert scores.log_predictive_density == pytest.approx(density, rel=1e-10)
    assert scores.rmse == pytest.approx(np.sqrt(np.mean((y - prediction.mean) ** 2)))
    known = networks.dense([2, 1], likelihood=networks.normal(0.3)).predict(theta[:, :3], X)
    np.testing.assert_array_equal(known.sigma, np.full(20, 0.3))


def test_bad_responses():
    prediction = certain([[0.2, 0.8]])
    for y, kind, message in [
        ([2], InvalidInputError, "labels 0, ..., 1"),
        ([0, 1], InvalidInputError, r"y has shape \(2,\); expected \(1,\)"),
        ([0.0], InvalidTypeError, "as integers"),
        (["up"], InvalidTypeError, "return_inverse"),
        (np.ma.masked_equal([0], 0), InvalidTypeError, "masked"),
        ([[0], [0, 1]], InvalidTypeError, "y must be an array of numbers"),
    ]:
        for function in (prediction.score, prediction.reliability, prediction.plot_reliability):
            with pytest.raises(kind, match=message):
                function(y)
    with pytest.raises(InvalidInputError, match="bins must be at least 1"):
        prediction.reliability([0], bins=0)
    with pytest.raises(InvalidInputError, match=r"y has shape \(3,\); expected \(1,\)"):
        NormalPrediction(np.zeros((2, 1)), np.ones(2)).score([1.0, 2.0, 3.0])


def test_nothing_is_said_of_lost_rows():
    """NaN would else count as the first class."""
    lost = Prediction(np.array([[np.nan, np.nan], [-np.inf, 0.0]]), np.zeros(2))
    for function in (lost.score, lost.reliability, lost.plot_reliability):
        with pytest.raises(InvalidInputError, match="the probabilities of 1 rows are NaN"):
            function([0, 1])
    with pytest.raises(InvalidInputError, match="the means of 1 rows are NaN"):
        NormalPrediction(np.array([[np.nan, 1.0]]), np.ones(1)).score([0.0, 1.0])


def test_the_plot_shows_the_table():
    pytest.importorskip("matplotlib")
    prediction = Prediction.from_outputs([OUTPUTS])
    ax = prediction.plot_reliability(Y, bins=5)
    table, some = prediction.reliability(Y, bins=5), prediction.reliability(Y, bins=5).count > 0
    points = next(line for line in ax.lines if line.get_label() == "accuracy")
    np.testing.assert_array_equal(points.get_xydata().T, [table.confidence[some], table.accuracy[some]])
    (intervals,) = [c.get_segments() for c in ax.collections if hasattr(c, "get_segments")]
    hits = np.rint(table.accuracy * table.count)[some]
    for k, n, segment in zip(hits, table.count[some], intervals, strict=True):
        expected = stats.binomtest(int(k), int(n)).proportion_ci(method="wilson")
        np.testing.assert_allclose(segment[:, 1], expected)
    assert f"{table.ece:.3f}" in ax.get_title(loc="left")
    assert prediction.plot_reliability(Y, ax) is ax
