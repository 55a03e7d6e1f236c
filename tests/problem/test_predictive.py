"""Predictive draws, and the one way to them from a posterior."""

import numpy as np
import pytest

import mgvbp
from common import case, posterior_of
from mgvbp import InvalidInputError, PredictiveDraws, models
from mgvbp.problem.predictive import one_of_classes

RNG = np.random.default_rng(0)
X = np.column_stack([np.ones(60), RNG.normal(size=60)])
NEW = np.array([[1.0, -1.0], [1.0, 0.5], [1.0, 2.0]])


def test_numbers_of_draws():
    draws = np.array([0.0, 1.0, 2.0]) + RNG.normal(size=(500, 3))
    prediction = PredictiveDraws(draws, means=np.tile([0.0, 1.0, 2.0], (500, 1)), index=["a", "b", "c"])
    np.testing.assert_allclose(prediction.mean, [0.0, 1.0, 2.0])
    np.testing.assert_allclose(prediction.std, draws.std(axis=0))
    np.testing.assert_allclose(prediction.interval(0.8), np.quantile(draws, [0.1, 0.9], axis=0))
    np.testing.assert_allclose(prediction.interval(0.8, of="means"), np.tile([0.0, 1.0, 2.0], (2, 1)))
    assert prediction.quantile(0.5).shape == (3,)
    assert prediction.frame.loc["b", "sd"] == prediction.std[1]
    np.testing.assert_allclose(PredictiveDraws(draws).mean, draws.mean(axis=0))


def test_several_series_have_columns_under_their_names():
    prediction = PredictiveDraws(RNG.normal(size=(50, 4, 2)), names=["gdp", "cpi"])
    frame = prediction.frame
    assert frame.shape == (4, 8)
    np.testing.assert_allclose(frame["cpi"]["mean"], prediction.mean[:, 1])
    assert "of gdp, cpi" in repr(prediction)


def test_levels_and_names_are_checked():
    prediction = PredictiveDraws(np.zeros((2, 3)))
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        prediction.interval(1.5)
    with pytest.raises(InvalidInputError, match="of must be one of 'draws'"):
        prediction.quantile(0.5, of="means")


def test_classes_come_as_often_as_they_should():
    probabilities = np.tile([[[0.2, 0.5, 0.3], [0.0, 0.0, 1.0]]], (4000, 1, 1))
    chosen = one_of_classes(probabilities, np.random.default_rng(1))
    assert (chosen.sum(axis=2) == 1.0).all()
    np.testing.assert_allclose(chosen.mean(axis=0), probabilities[0], atol=5.0 * 0.5 / np.sqrt(4000))
    assert (chosen[:, 1, 2] == 1.0).all()


def variance(model, name, theta, means):
    """What the variance of a response is, given the draws."""
    values = model.parameters.constrain(theta)
    if name in ("LogisticRegression", "MultinomialRegression"):
        return means * (1.0 - means)
    if name == "PoissonRegression":
        return means
    if name == "NegativeBinomialRegression":
        return means + values["dispersion"][:, None] * means**2
    nu = values.get("nu")
    return np.broadcast_to(
        (values["sigma"] ** 2 * (1.0 if nu is None else nu / (nu - 2.0)))[:, None], means.shape
    )


CASES = {
    "LinearRegression": (X[:, 1] + RNG.normal(size=60), [0.5, 1.0, 0.1]),
    "StudentRegression": (X[:, 1] + RNG.normal(size=60), [0.5, 1.0, 0.1, 2.5]),
    "LogisticRegression": (RNG.integers(2, size=60), [0.3, 0.8]),
    "MultinomialRegression": (np.arange(60) % 3, [0.3, 0.8, -0.5, 0.1]),
    "PoissonRegression": (RNG.poisson(2.0, size=60), [0.5, 0.4]),
    "NegativeBinomialRegression": (RNG.poisson(2.0, size=60), [0.5, 0.4, -0.7]),
}


@pytest.mark.parametrize("name", CASES)
def test_our_models_draw_responses_with_their_means_and_variances(name):
    y, theta = CASES[name]
    model = getattr(models, name)(X, y)
    draws = np.tile(theta, (20_000, 1))
    prediction = model.predict(draws, NEW, rng=3)
    np.testing.assert_allclose(prediction.means, model.predictive(draws, NEW))
    spread = np.sqrt(variance(model, name, draws, prediction.means)[0])
    with case(name):
        error = np.abs(prediction.draws.mean(axis=0) - prediction.mean)
        np.testing.assert_array_less(error, 5.0 * spread / np.sqrt(20_000))
        np.testing.assert_allclose(prediction.std, spread, rtol=0.1)  # heavy tails have noisy variances
    assert model.predict(draws[:5]).draws.shape[:2] == (5, 60)


def test_exposure_and_labels_of_new_rows():
    pandas = pytest.importorskip("pandas")
    model = models.PoissonRegression(X, CASES["PoissonRegression"][0], exposure=np.full(60, 2.0))
    rows = pandas.DataFrame(NEW, index=["p", "q", "r"])
    theta = np.zeros((4, 2))
    np.testing.assert_allclose(model.predict(theta, rows, exposure=[1.0, 2.0, 3.0]).means[0], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(model.predict(theta).means, 2.0)
    assert list(model.predict(theta, rows).frame.index) == ["p", "q", "r"]


def test_counts_beyond_all_samplers_are_their_means():
    model = models.PoissonRegression(X, CASES["PoissonRegression"][0])
    assert np.isfinite(model.predict([[60.0, 0.0]], NEW).draws).all()


def test_posteriors_predict_with_the_model_they_were_fitted_to():
    model = models.LogisticRegression(X, CASES["LogisticRegression"][0])
    posterior = mgvbp.fit(model, mgvbp.Gaussian(variance=5.0, dim=2))
    prediction = posterior.predict(NEW, num_draws=50, rng=np.random.default_rng(4))
    rng = np.random.default_rng(4)
    theta = posterior.sample(50, rng)
    np.testing.assert_array_equal(prediction.draws, model.predict(theta, NEW, rng=rng).draws)


def test_any_model_with_the_method_will_do():
    class Coin:
        def __call__(self, theta):
            return -0.5 * theta[:, 0] ** 2

        def predict(self, theta, scale, *, rng):
            return PredictiveDraws(scale * theta + rng.normal(size=theta.shape))

    posterior = mgvbp.fit(Coin(), dim=1)
    assert posterior.predict(0.1, num_draws=2000).std == pytest.approx(1.005, abs=0.1)
    with pytest.raises(InvalidInputError, match="a Coin, has no method forecast"):
        posterior.forecast(3)
    with pytest.raises(InvalidInputError, match="does not know its model"):
        posterior_of(mgvbp.Gaussian(variance=1.0, dim=1)).predict()
