"""The search for structured precisions: optima that are known, and the same optimum as that of other searches."""

import numpy as np
import pytest
from scipy.optimize import minimize

import mgvbp
from mgvbp import InvalidInputError, SparsePrecision


class Walk:
    """A random walk of T states with unknown scale, Poisson counts: states, then the log of the scale."""

    def __init__(self, T):
        self.T, self.y = T, np.random.default_rng(0).poisson(np.exp(np.sin(np.arange(T) / 3.0)))

    def value_and_grad(self, theta):
        x, s = theta[:, :-1], theta[:, -1:]
        steps, scale = np.diff(x, prepend=0.0), np.exp(-2.0 * s)
        square = np.square(steps).sum(axis=1)
        value = (
            (self.y * x - np.exp(x)).sum(axis=1)
            - 0.5 * scale[:, 0] * square
            - (self.T * s + 0.5 * s**2)[:, 0]
        )
        slopes = -scale * steps
        by_x = self.y - np.exp(x) + slopes - np.append(slopes[:, 1:], 0.0 * s, axis=1)
        by_s = scale * square[:, None] - self.T - s
        return value, np.hstack([by_x, by_s])

    def __call__(self, theta):
        return self.value_and_grad(theta)[0]


def quadratic(A, mu):
    def log_density(theta):
        return -0.5 * np.einsum("si,ij,sj->s", theta - mu, A, theta - mu)

    return log_density, lambda theta: -(theta - mu) @ A


def test_a_gaussian_markov_chain_is_found_exactly():
    rng, d = np.random.default_rng(0), 200
    A = np.diag(rng.uniform(-1.0, 1.0, d - 1), 1)
    A = A + A.T + np.diag(rng.uniform(2.5, 4.0, d))
    mu = 3.0 * rng.standard_normal(d)
    log_density, gradient = quadratic(A, mu)
    posterior = mgvbp.fit(log_density, dim=d, grad=gradient, family=SparsePrecision.banded(d, 1))
    assert posterior.converged
    assert posterior.gap < 1e-9
    assert posterior.n_evaluations < 1000
    np.testing.assert_allclose(posterior.precision, A, atol=1e-6)
    np.testing.assert_allclose(posterior.mean, mu, atol=1e-6)
    np.testing.assert_allclose(posterior.std, np.sqrt(np.linalg.inv(A).diagonal()), atol=1e-6)


def test_a_pattern_that_is_too_small_reaches_the_optimum_of_a_dense_optimiser():
    rng, d = np.random.default_rng(1), 6
    A = 0.3 * rng.uniform(-1.0, 1.0, (d, d))
    A = A + A.T + 2.0 * np.eye(d)
    log_density, gradient = quadratic(A, np.zeros(d))
    family = SparsePrecision.banded(d, 1)

    def negative(L):
        return 0.5 * np.trace(A @ family.covariance(L)) + np.log(np.abs(family.diagonal(L))).sum()

    best = minimize(negative, family.factor(precision=np.eye(d)), method="BFGS")
    posterior = mgvbp.fit(log_density, dim=d, grad=gradient, family=family, tol=0.02)
    mean_costs = 0.5 * posterior.mean @ A @ posterior.mean
    assert posterior.converged
    assert -1e-6 < negative(posterior.factor) + mean_costs - best.fun < 0.04


def test_a_hierarchy_reaches_the_bound_of_the_full_family():
    """The Hessian is on the pattern, so that the best Gaussian is in the family; the scale makes a long ridge."""
    model = Walk(12)
    sparse = mgvbp.fit(model, dim=13, family=SparsePrecision.arrow(13, 1, order=1), tol=0.02)
    full = mgvbp.fit(model, dim=13)
    assert sparse.converged
    assert full.converged
    error = np.hypot(sparse.lower_bound_se, full.lower_bound_se)
    assert abs(sparse.lower_bound - full.lower_bound) < 0.05 + 4.0 * error
    np.testing.assert_allclose(sparse.std, full.std, rtol=0.1)


def test_a_dense_pattern_is_the_full_family():
    X = np.random.default_rng(0).standard_normal((60, 4))
    model, prior = (
        mgvbp.models.LogisticRegression(X, X[:, 0] > 0.3 * X[:, 1]),
        mgvbp.Gaussian(variance=4.0, dim=4),
    )
    full = mgvbp.fit(model, prior, grad=model.gradient)
    dense = mgvbp.fit(model, prior, family=SparsePrecision(np.ones((4, 4))))  # takes the model's own gradient
    assert dense.converged
    assert dense.estimator == "gradient"
    error = np.hypot(full.lower_bound_se, dense.lower_bound_se)
    assert abs(full.lower_bound - dense.lower_bound) < 0.03 + 4.0 * error
    np.testing.assert_allclose(dense.covariance, full.covariance, rtol=0.15, atol=0.03)


def test_many_independent_parameters():
    d = 1500
    posterior = mgvbp.fit(
        lambda theta: -np.cosh(theta).sum(axis=1),
        dim=d,
        grad=lambda theta: -np.sinh(theta),
        family="diagonal",
        tol=4.0,
    )
    assert posterior.converged
    assert isinstance(posterior.family, mgvbp.Diagonal)
    # E cosh(s ε) − log s is smallest where s² exp(s²/2) = 1
    s = 0.8387
    assert s**2 * np.exp(0.5 * s**2) == pytest.approx(1.0, abs=1e-3)
    assert posterior.std.mean() == pytest.approx(s, abs=0.02)


def test_files_and_checkpoints_keep_the_family(tmp_path):
    model, family = Walk(12), SparsePrecision.arrow(13, 1, order=1)
    whole = mgvbp.fit(model, dim=13, family=family, tol=0.1)
    whole.save(tmp_path / "q.npz")
    again = mgvbp.load(tmp_path / "q.npz")
    assert np.array_equal(again.factor, whole.factor)
    assert np.array_equal(again.std, whole.std)
    assert again.family.name == "sparse"
    assert again.summary() == whole.summary()

    class Stop(Exception):
        pass

    def stop(iteration):
        if iteration.iteration == 5:
            raise Stop

    with pytest.raises(Stop):
        mgvbp.fit(
            model, dim=13, family=family, tol=0.1, checkpoint=tmp_path / "run.npz", every=0.0, callback=stop
        )
    resumed = mgvbp.resume(tmp_path / "run.npz", model)
    assert np.array_equal(resumed.factor, whole.factor)
    assert np.array_equal(resumed.mean, whole.mean)


def test_it_is_a_prior_and_meets_diagnosis_and_export(tmp_path):
    log_density, gradient = quadratic(np.diag([1.0, 4.0, 9.0]), np.ones(3))
    q = mgvbp.fit(log_density, dim=3, grad=gradient, family=SparsePrecision.banded(3, 1))
    assert q.diagnose().verdict == "trust"
    assert abs(q.kl) < 1e-6
    assert set(q.to_arviz()["posterior"]) == {"theta"}
    after = mgvbp.fit(log_density, q, grad=gradient)
    np.testing.assert_allclose(after.precision, np.diag([2.0, 8.0, 18.0]), atol=1e-3)


@pytest.mark.parametrize("method", ["mgvbp", "mgvb", "qbvi", "geodesic"])
def test_named_methods_go_to_the_same_optimum(method):
    A = np.diag([2.0, 3.0, 4.0]) + 0.8 * (np.eye(3, k=1) + np.eye(3, k=-1))
    log_density, gradient = quadratic(A, np.ones(3))
    options = (
        {"step_size": 0.2, "momentum": 0.0, "precision_scale": 2.0}
        if method != "qbvi"
        else {"step_size": 0.2}
    )
    chosen = {"mgvbp": mgvbp.MGVBP, "mgvb": mgvbp.MGVB, "qbvi": mgvbp.QBVI, "geodesic": mgvbp.Geodesic}[
        method
    ](**options)
    family = SparsePrecision.banded(3, 1)
    posterior = mgvbp.fit(
        log_density, dim=3, grad=gradient, family=family, method=chosen, num_draws=20, max_iterations=300
    )
    np.testing.assert_allclose(posterior.precision, A, atol=0.02)
    np.testing.assert_allclose(posterior.mean, 1.0, atol=0.02)


def test_compare_families_has_a_rung_for_it():
    model = Walk(6)
    families = ["diagonal", SparsePrecision.arrow(7, 1, order=1), "full"]
    comparison = mgvbp.compare_families(model, dim=7, families=families, tol=0.05)
    assert comparison["sparse"].difference < comparison["diagonal"].difference
    assert comparison["sparse"].difference < 0.05 + 4.0 * comparison["sparse"].difference_se


@pytest.mark.parametrize("method", ["auto", "mgvbp"])
def test_without_gradients_it_says_what_to_do(method):
    with pytest.raises(InvalidInputError, match="needs gradients of the log-likelihood: give grad="):
        mgvbp.fit(
            lambda theta: -np.square(theta).sum(axis=1),
            dim=9,
            family=SparsePrecision.banded(9, 1),
            method=method,
        )


def test_it_refuses_what_it_cannot_do():
    log_density, gradient = quadratic(np.eye(3), np.zeros(3))
    options = {"dim": 3, "grad": gradient, "family": SparsePrecision.banded(3, 1)}
    with pytest.raises(InvalidInputError, match="max_evaluations must be at least 64"):
        mgvbp.fit(log_density, max_evaluations=63, **options)
    with pytest.raises(InvalidInputError, match="cannot be clipped"):
        mgvbp.fit(log_density, method=mgvbp.MGVBP(clip_gradient=1.0), **options)
    with pytest.raises(InvalidInputError, match="estimator='gradient'"):
        mgvbp.fit(log_density, method="mgvbp", estimator="h", **options)
    with pytest.raises(InvalidInputError, match="must be one of 3 parameters"):
        mgvbp.fit(log_density, **options | {"family": SparsePrecision.banded(4, 1)})


def test_a_region_that_is_not_finite_is_left():
    def log_density(theta):
        return np.where(np.abs(theta).max(axis=1) < 2.0, -50.0 * np.square(theta).sum(axis=1), np.nan)

    family = SparsePrecision.banded(5, 1)
    posterior = mgvbp.fit(log_density, dim=5, grad=lambda theta: -100.0 * theta, family=family)
    assert posterior.trace.dropped[0] > 0
    np.testing.assert_allclose(posterior.std, 0.1, rtol=1e-6)
