"""The search for low-rank precisions: optima that are known, and the same optimum as that of other searches."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mgvbp
from mgvbp import InvalidInputError, LowRank


def quadratic(A, mu):
    def log_density(theta):
        return -0.5 * np.einsum("si,ij,sj->s", theta - mu, A, theta - mu)

    return log_density, lambda theta: -(theta - mu) @ A


def diagonal_plus(d, rank, seed=0):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((d, rank))
    return np.diag(rng.uniform(0.5, 3.0, d)) + U @ U.T, 3.0 * rng.standard_normal(d)


@pytest.fixture(scope="module")
def logistic():
    X = np.random.default_rng(0).standard_normal((60, 4))
    return mgvbp.models.LogisticRegression(X, X[:, 0] > 0.3 * X[:, 1]), mgvbp.Gaussian(variance=4.0, dim=4)


@pytest.mark.parametrize(("rank", "close"), [(2, 1e-4), (None, 1e-2)])
def test_diagonal_plus_rank_two_is_recovered(rank, close):
    A, mu = diagonal_plus(100, 2)
    log_density, gradient = quadratic(A, mu)
    posterior = mgvbp.fit(log_density, dim=100, grad=gradient, family=LowRank(rank))
    assert posterior.converged
    assert posterior.gap < close
    assert 2 <= posterior.family.rank <= 5
    np.testing.assert_allclose(posterior.mean, mu, atol=close)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.linalg.inv(A).diagonal()), rtol=close)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(A), atol=close)


def test_rank_d_minus_1_is_the_full_family_on_a_gaussian():
    B = np.random.default_rng(3).standard_normal((6, 6))
    A = B @ B.T / 6.0 + 0.3 * np.eye(6)
    log_density, gradient = quadratic(A, np.ones(6))
    posterior = mgvbp.fit(log_density, dim=6, grad=gradient, family=LowRank(5))
    assert posterior.converged
    exact = 3.0 * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(A)[1]
    mean_costs = 0.5 * (posterior.mean - 1.0) @ A @ (posterior.mean - 1.0)
    P = posterior.precision
    gap = mean_costs + 0.5 * (
        np.trace(A @ np.linalg.inv(P)) - 6.0 - np.linalg.slogdet(A @ np.linalg.inv(P))[1]
    )
    assert gap < 0.01
    assert posterior.lower_bound == pytest.approx(exact, abs=0.01 + 4.0 * posterior.lower_bound_se)


def test_rank_d_minus_1_is_the_full_family_on_a_logistic_regression(logistic):
    model, prior = logistic
    full = mgvbp.fit(model, prior, grad=model.gradient)
    low = mgvbp.fit(model, prior, family=LowRank(3))  # takes the model's own gradient
    assert low.converged

    def bound(q):
        theta = q.sample(50_000, 1)
        h = model(theta) + prior.log_density(theta) - q.log_density(theta)
        return h.mean(), h.std() / np.sqrt(50_000)

    (a, a_se), (b, b_se) = bound(full), bound(low)
    assert abs(a - b) < 0.02 + 4.0 * np.hypot(a_se, b_se)
    np.testing.assert_allclose(low.covariance, full.covariance, rtol=0.25, atol=0.05)


def test_a_rank_that_is_too_small_reaches_the_optimum_of_a_dense_optimiser():
    A, _ = diagonal_plus(5, 2, seed=4)
    log_density, gradient = quadratic(A, np.zeros(5))

    def negative(flat):
        P = np.diag(np.exp(flat[:5])) + np.outer(flat[5:], flat[5:])
        return 0.5 * (np.trace(A @ np.linalg.inv(P)) + np.linalg.slogdet(P)[1])

    starts = np.random.default_rng(0).standard_normal((8, 10))
    best = min(minimize(negative, start, method="BFGS").fun for start in starts)
    posterior = mgvbp.fit(log_density, dim=5, grad=gradient, family=LowRank(1), tol=0.05)
    P = posterior.precision
    found = 0.5 * (
        np.trace(A @ np.linalg.inv(P)) + np.linalg.slogdet(P)[1] + posterior.mean @ A @ posterior.mean
    )
    assert posterior.family.rank == 1
    assert -1e-6 < found - best < 0.1


def test_files_and_checkpoints_keep_the_family(tmp_path, logistic):
    model, prior = logistic
    whole = mgvbp.fit(model, prior, grad=model.gradient, family=LowRank(), tol=0.05)
    whole.save(tmp_path / "q.npz")
    again = mgvbp.load(tmp_path / "q.npz")
    assert np.array_equal(again.factor, whole.factor)
    np.testing.assert_allclose(again.std, whole.std, rtol=1e-12)
    assert again.family.name == "low-rank"
    assert again.family.rank == whole.family.rank
    assert again.summary() == whole.summary()

    class Stop(Exception):
        pass

    for last in (4, 9):  # in a look, and later
        path = tmp_path / f"run{last}.npz"

        def stop(iteration, last=last):
            if iteration.iteration == last:
                raise Stop

        with pytest.raises(Stop):
            mgvbp.fit(
                model,
                prior,
                grad=model.gradient,
                family=LowRank(),
                tol=0.05,
                checkpoint=path,
                every=0.0,
                callback=stop,
            )
        resumed = mgvbp.resume(path, model, grad=model.gradient)
        assert np.array_equal(resumed.factor, whole.factor)
        assert np.array_equal(resumed.mean, whole.mean)


def test_it_is_a_prior_and_meets_diagnosis_and_comparison():
    A, mu = np.diag([1.0, 2.0, 1.0, 3.0]) + np.outer([2.0, -1.0, 1.0, 2.0], [2.0, -1.0, 1.0, 2.0]), np.ones(4)
    log_density, gradient = quadratic(A, mu)
    q = mgvbp.fit(log_density, dim=4, grad=gradient, family=LowRank(1))
    assert q.diagnose().verdict == "trust"
    assert abs(q.kl) < 0.01
    after = mgvbp.fit(log_density, q, grad=gradient)
    np.testing.assert_allclose(after.precision, A + q.precision, atol=1e-2)
    comparison = mgvbp.compare_families(
        log_density, dim=4, grad=gradient, families=["diagonal", LowRank(1), "full"]
    )
    assert comparison["low-rank"].difference < 0.02 < comparison["diagonal"].difference


def test_it_refuses_what_it_cannot_do(logistic):
    model, prior = logistic
    with pytest.raises(InvalidInputError, match="method='auto'"):
        mgvbp.fit(model, prior, family=LowRank(2), method="mgvbp", grad=model.gradient)
    with pytest.raises(InvalidInputError, match="less than the number of parameters"):
        mgvbp.fit(model, prior, family=LowRank(4))
    with pytest.raises(InvalidInputError, match="needs gradients of the log-likelihood: give grad="):
        mgvbp.fit(lambda theta: -np.square(theta).sum(axis=1), dim=9, family=LowRank())
    with pytest.raises(InvalidInputError, match="max_evaluations must be at least 64"):
        mgvbp.fit(model, prior, family=LowRank(), max_evaluations=63)


def test_a_region_that_is_not_finite_is_left():
    def log_density(theta):
        return np.where(np.abs(theta).max(axis=1) < 2.0, -50.0 * np.square(theta).sum(axis=1), np.nan)

    posterior = mgvbp.fit(log_density, dim=5, grad=lambda theta: -100.0 * theta, family=LowRank())
    assert posterior.trace.dropped[0] > 0
    np.testing.assert_allclose(posterior.std, 0.1, rtol=1e-3)
