"""A problem's way to the user's function: what is said of an error that it raises."""

import numpy as np
import pytest

import mgvbp
from mgvbp import Gaussian, Problem
from mgvbp.transforms import Real


@pytest.mark.parametrize("vectorized", [True, False])
def test_advice_on_one_draw_at_a_time_is_for_functions_of_all(vectorized):
    def broken(theta):
        raise ArithmeticError("no value today")

    problem = Problem(broken, Gaussian(variance=1.0, dim=2), vectorized=vectorized)
    with pytest.raises(ArithmeticError, match="no value today") as caught:
        problem.evaluate(np.zeros((3, 2)))
    (note,) = caught.value.__notes__
    assert ("say vectorized=False" in note) == vectorized
    assert caught.value.theta.shape == ((3, 2) if vectorized else (2,))


def density_of_one(theta):
    """A function of one draw as people write it for other packages."""
    a, b = theta
    return -0.5 * (a**2 + (b - a) ** 2)


def density_of_all(theta):
    return -0.5 * (theta[:, 0] ** 2 + (theta[:, 1] - theta[:, 0]) ** 2)


@pytest.mark.parametrize("draws", [1, 2, 3])  # with two, rows and columns could be taken for each other
@pytest.mark.parametrize("function", [density_of_one, density_of_all])
def test_how_many_draws_a_function_takes_is_found_out(function, draws):
    theta = np.random.default_rng(0).standard_normal((draws, 2))
    problem = Problem(function, dim=2)
    for points in (theta, theta[:1], np.tile(theta, (3, 1))):
        np.testing.assert_allclose(problem.evaluate(points), density_of_all(points), rtol=1e-14)
    assert problem.vectorized == (function is density_of_all)


def test_finding_out_asks_for_no_draw_that_was_not_given():
    """Two draws of two parameters: a third one would be beyond ``max_evaluations=2``."""
    rows = []

    def counted(theta):
        rows.extend(theta.tolist())
        return density_of_all(theta)

    theta = np.arange(4.0).reshape(2, 2)
    np.testing.assert_array_equal(Problem(counted, dim=2).evaluate(theta), density_of_all(theta))
    assert rows == theta.tolist()


@pytest.mark.parametrize("jobs", [None, 2])
def test_a_fit_of_a_function_of_one_draw(jobs):
    told, found = (
        mgvbp.fit(density_of_one, dim=2, n_jobs=jobs, **how) for how in ({"vectorized": False}, {})
    )
    np.testing.assert_array_equal(found.mean, told.mean)
    assert found.n_evaluations == told.n_evaluations


def test_its_gradient_takes_one_draw_too():
    def gradient(theta):
        a, b = theta
        return np.array([b - 2.0 * a, a - b])

    posterior = mgvbp.fit(density_of_one, dim=2, grad=gradient)
    np.testing.assert_allclose(posterior.covariance, [[1.0, 1.0], [1.0, 2.0]], rtol=1e-6)


def test_a_function_that_fails_either_way_says_how():
    problem = Problem(lambda theta: theta[0] + missing, dim=2)  # noqa: F821
    with pytest.raises(NameError) as caught:
        problem.evaluate(np.zeros((3, 2)))
    assert "called with one draw instead, it raised NameError" in caught.value.__notes__[-1]
    residuals = Problem(lambda theta: np.ones(5) - theta[0], dim=2)
    with pytest.raises(ValueError, match="broadcast") as caught:
        residuals.evaluate(np.zeros((3, 2)))
    assert "one draw instead, it returned float64 values of shape (5,)" in caught.value.__notes__[-1]


@pytest.mark.parametrize("package", ["jax", "torch"])
def test_functions_of_jax_and_torch_of_one_draw_or_of_all(package):
    pytest.importorskip(package)
    parameters = mgvbp.Parameters(a=Real(), b=Real())
    models = (
        mgvbp.Model(lambda a, b: -0.5 * (a**2 + (b - a) ** 2), parameters),
        mgvbp.Model(lambda a, b: density_of_one((a, b)).sum(), parameters),
    )
    for function in (density_of_one, density_of_all, *models):
        posterior = mgvbp.fit(function, dim=2, grad=package)
        np.testing.assert_allclose(posterior.covariance, [[1.0, 1.0], [1.0, 2.0]], rtol=1e-6)
