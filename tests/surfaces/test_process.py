"""The Gaussian process against scikit-learn's, and its derivatives against differences."""

import numpy as np
import pytest

from common import installed
from mgvbp.surfaces.process import NUGGET, Process, learned, usual


def wavy(x):
    return np.sin(x[:, 0]) * x[:, 1] + 0.5 * x[:, 2] ** 2


@pytest.fixture(scope="module")
def process():
    x = np.random.default_rng(0).normal(size=(120, 3))
    return learned(x, wavy(x), np.full(120, 1e-4), usual(3), [np.eye(3)], np.random.default_rng(1))


def test_prediction_and_variance_are_those_of_scikit_learn(process):
    installed("sklearn")
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

    a, b = process.scale, process.bend
    # a (1 + b xᵀy)² = a b² (1/b + xᵀy)²
    kernel = ConstantKernel(a * b**2) * DotProduct(b**-0.5) ** 2 * RBF(np.exp(process.numbers[2:]))
    mean = process._fitted[2]
    theirs = GaussianProcessRegressor(kernel, alpha=process.noise + NUGGET * a, optimizer=None)
    theirs.fit(process.points, process.values - mean)
    x = np.random.default_rng(2).normal(size=(40, 3))
    predicted, deviation = theirs.predict(x, return_std=True)
    np.testing.assert_allclose(process.predict(x), mean + predicted, atol=1e-4)
    np.testing.assert_allclose(process.uncertain(x), deviation**2, atol=1e-4)


def test_a_smooth_function_is_predicted(process):
    x = np.random.default_rng(2).normal(size=(200, 3))
    assert np.median(np.abs(process.predict(x) - wavy(x))) < 0.02


def test_axes_that_the_lengths_belong_to_are_found():
    """A quadratic whose coefficients change along one direction, seen in a frame that mixes the parameters."""
    rng = np.random.default_rng(4)
    turned, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    x = rng.normal(size=(400, 4))
    noise = np.full(400, 1e-4)

    def hierarchy(x):
        s = x @ turned
        return -0.5 * np.exp(s[:, 0]) * np.square(s[:, 1:]).sum(axis=1)

    found = learned(x, hierarchy(x), noise, usual(4), [np.eye(4), turned], rng)
    assert found.axes is turned
    assert np.argmin(found.numbers[2:]) == 0
    blind = learned(x, hierarchy(x), noise, usual(4), [np.eye(4)], rng)
    rest = 0.7 * rng.normal(size=(400, 4))
    errors = [np.median(np.abs(process.predict(rest) - hierarchy(rest))) for process in (found, blind)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("axes", [np.eye(3), np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.2, 0.0, 1.0]])])
def test_gradient_is_the_limit_of_differences(process, axes):
    process = Process(process.points, process.values, process.noise, process.numbers, axes)
    x, step = np.random.default_rng(2).normal(size=(20, 3)), 1e-5
    value, gradient = process.with_gradient(x)
    np.testing.assert_allclose(value, process.predict(x), atol=1e-8)
    for j in range(3):
        e = step * np.eye(3)[j]
        difference = (process.predict(x + e) - process.predict(x - e)) / (2.0 * step)
        np.testing.assert_allclose(gradient[:, j], difference, atol=1e-4)


def test_learning_raises_the_likelihood():
    x = np.random.default_rng(0).normal(size=(80, 3))
    noise = np.full(80, 1e-4)
    rest = np.random.default_rng(3).normal(size=(100, 3))

    def error(process):
        return np.abs(process.predict(rest) - wavy(rest)).mean()

    assert error(learned(x, wavy(x), noise, usual(3), [np.eye(3)], np.random.default_rng(1))) < error(
        Process(x, wavy(x), noise, usual(3), np.eye(3))
    )


def test_points_far_out_have_a_process():
    """There the kernel's variance is 10¹⁶ times that of a value."""
    points = 100.0 * np.random.default_rng(5).standard_normal((900, 2))
    process = Process(points, np.ones(900), np.full(900, 1e-4), np.array([-1.0, 5.0, 8.0, 8.0]), np.eye(2))
    assert process.variances(points).max() > 1e12
    np.testing.assert_allclose(process.predict(points), 1.0)


def test_what_the_others_predict_is_what_a_process_without_the_point_does(process):
    """With the mean as it is: that of all points, which is another one without the point."""
    values, variances = process.left_out()
    mean = process._fitted[2]
    for i in (0, 7):
        others = np.delete(np.arange(len(process.points)), i)
        K = process.kernel(process.points, process.points)
        K.flat[:: len(K) + 1] += process.noise + NUGGET * process.scale
        weights = np.linalg.solve(K[np.ix_(others, others)], K[others, i])
        np.testing.assert_allclose(values[i], mean + weights @ (process.values[others] - mean), rtol=1e-6)
        np.testing.assert_allclose(variances[i], K[i, i] - weights @ K[others, i], rtol=1e-4)
