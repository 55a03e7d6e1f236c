"""`auto` with gradients and more than a hundred parameters: exact on quadratics, honest on logistic regressions."""

import math
import pickle

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

import mgvbp
from mgvbp import Auto
from mgvbp.auto.searches.many import ManyParameters


def run(function, dim, **options):
    optimizer = Auto(options.pop("tol", None)).start(dim, gradients=True, **options)
    while not optimizer.stop_reason:
        optimizer.tell(*function(optimizer.ask()))
    return optimizer


def logistic(d, seed=0):
    rng = np.random.default_rng(seed)
    X = 2.0 / math.sqrt(d) * rng.standard_normal((5 * d, d))
    y = (rng.random(5 * d) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(d)))) * 1.0

    def function(theta):
        eta = theta @ X.T
        values = (y * eta - np.logaddexp(0.0, eta)).sum(axis=1) - 0.5 * np.square(theta).sum(axis=1)
        return values, (y - 1.0 / (1.0 + np.exp(-eta))) @ X - theta

    nodes, weights = hermegauss(30)
    weights /= weights.sum()

    def predictors(m, C):
        return X @ m + np.sqrt(np.einsum("nd,nd->n", X @ C, X)) * nodes[:, None]

    def bound(m, C):
        fit = y @ (X @ m) - (weights @ np.logaddexp(0.0, predictors(m, C))).sum()
        return fit - 0.5 * (m @ m + C.trace()) + 0.5 * np.linalg.slogdet(2.0 * np.pi * np.e * C)[1]

    def gap(q):
        m, C = q.mean, q.covariance
        for _ in range(8):  # the conditions of the optimum, by quadrature
            p = 1.0 / (1.0 + np.exp(-predictors(m, C)))
            C = np.linalg.inv((X.T * (weights @ (p * (1.0 - p)))) @ X + np.eye(d))
            m = m + C @ ((y - weights @ p) @ X - m)
        return bound(m, C) - bound(q.mean, q.covariance), bound(q.mean, q.covariance)

    return function, gap


def test_a_gaussian_is_exact():
    d = 130
    rng = np.random.default_rng(3)
    A = rng.standard_normal((d, 2 * d))
    P, mean = A @ A.T / d * 10.0, 5.0 * rng.standard_normal(d)

    def function(theta):
        slopes = (mean - theta) @ P
        return -0.5 * np.einsum("sd,sd->s", mean - theta, slopes), slopes

    optimizer = run(function, d)
    assert isinstance(optimizer.rules, ManyParameters)
    assert optimizer.converged
    np.testing.assert_allclose(optimizer.gaussian.mean, mean, atol=1e-6)
    np.testing.assert_allclose(optimizer.gaussian.precision, P, atol=1e-6 * np.abs(P).max())
    assert optimizer.gap < 1e-6
    assert optimizer.n_evaluations < 16 * d


@pytest.mark.parametrize("seed", [0, 1])
def test_a_logistic_regression_is_within_its_certificate(seed):
    function, gap = logistic(120, seed)
    optimizer = run(function, 120, rng=seed)
    assert optimizer.converged
    found, bound = gap(optimizer.gaussian)
    assert -1e-9 < found < optimizer.gap + 3.0 * optimizer.gap_se + 0.01
    assert abs(optimizer.lower_bound - bound) < 4.0 * optimizer.lower_bound_se + 0.01
    assert optimizer.n_evaluations < 40 * 120


def test_pickled_at_every_step_it_is_the_same_run():
    function, _ = logistic(110)
    optimizer, twin = (Auto().start(110, gradients=True, rng=5, max_evaluations=1500) for _ in range(2))
    while not optimizer.stop_reason:
        optimizer.tell(*function(optimizer.ask()))
        twin = pickle.loads(pickle.dumps(twin))
        twin.tell(*function(twin.ask()))
    np.testing.assert_array_equal(optimizer.gaussian.mean, twin.gaussian.mean)
    assert (twin.stop_reason, twin.n_evaluations) == (optimizer.stop_reason, optimizer.n_evaluations)


@pytest.mark.parametrize("limit", [50, 333, 1000])
def test_the_limit_is_kept(limit):
    function, _ = logistic(110)
    optimizer = run(function, 110, max_evaluations=limit)
    assert optimizer.n_evaluations <= limit
    assert not optimizer.converged


def test_a_checkpoint_goes_on_bit_for_bit(tmp_path):
    function, _ = logistic(104)
    density, grad = (lambda theta: function(theta)[0]), (lambda theta: function(theta)[1])
    whole = mgvbp.fit(density, dim=104, grad=grad)
    path, seen = tmp_path / "run.npz", []

    def stop(iteration):
        seen.append(iteration.n_evaluations)
        return iteration.n_evaluations > 700

    with pytest.warns(mgvbp.ConvergenceWarning, match="callback"):
        mgvbp.fit(density, dim=104, grad=grad, checkpoint=path, every=0.0, callback=stop)
    again = mgvbp.resume(path, density, grad=grad)
    np.testing.assert_array_equal(whole.mean, again.mean)
    assert whole.n_evaluations == again.n_evaluations


def test_where_draws_fail_or_the_target_is_no_gaussian_it_keeps_its_draws():
    """Heavy tails in 101 dimensions, and values that are missing beyond a sphere: no claim by sums alone."""
    d = 101

    def walled(theta):
        values, slopes = -0.5 * np.square(theta).sum(axis=1), -theta
        far = np.square(theta).sum(axis=1) > d
        return np.where(far, np.nan, values), slopes

    optimizer = run(walled, d, max_evaluations=2000)
    assert optimizer.state.active.by_draws
    assert not optimizer.converged


def test_the_tolerance_grows_with_the_dimension():
    assert [Auto().tolerance(d) for d in (2, 50, 100, 1000)] == pytest.approx([0.01, 0.01, 0.02, 0.2])
    assert Auto(0.05).tolerance(1000) == 0.05
