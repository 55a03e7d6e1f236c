"""The non-differentiable reconstruction model: its formula, its simulator, its kinks and fits across them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import mgvbp
from mgvbp import Gaussian
from mgvbp.errors import InvalidTypeError
from mgvbp.models import Reconstruction
from mgvbp.models.reconstruction import regression_function

D, N = 20, 2000
PRIOR = Gaussian(variance=1.0, dim=D)


def printed(beta, X, power):
    """``‖sign(x − 0.5) − β‖ − ‖sign(β) − β‖``, the norms to a power, as in the paper."""
    far = np.linalg.norm(np.sign(X[:, None] - 0.5) - beta, axis=2).T
    near = np.linalg.norm(np.sign(beta) - beta, axis=1)[:, None]
    return far**power - near**power


@given(arrays(float, (4, 5), elements=st.sampled_from([-2.0, -1.0, -0.5, 0.0, 1e-9, 0.3, 1.0, 7.0])))
@settings(max_examples=60)
def test_the_formula_also_at_zero(beta):
    """A coefficient of exactly zero has sign zero."""
    X = np.random.default_rng(0).integers(2, size=(9, 5)).astype(float)
    np.testing.assert_allclose(regression_function(beta, X, True), printed(beta, X, 2), atol=1e-12)
    np.testing.assert_allclose(regression_function(beta, X, False), printed(beta, X, 1), atol=1e-7)


@pytest.mark.parametrize("squared", [True, False])
def test_there_is_no_derivative_where_a_sign_changes(squared):
    """The slopes on both sides of β_0 = 0 differ in almost every row."""
    X = np.random.default_rng(0).integers(2, size=(50, 3)).astype(float)
    points = np.array([[-2e-6, 0.4, 0.6], [-1e-6, 0.4, 0.6], [1e-6, 0.4, 0.6], [2e-6, 0.4, 0.6]])
    values = regression_function(points, X, squared)
    left, right = (values[1] - values[0]) / 1e-6, (values[3] - values[2]) / 1e-6
    assert (np.abs(right - left) > 0.1).all()


@pytest.mark.parametrize("squared", [True, False])
def test_simulator(squared):
    """Coefficients in (0, 1), fair bits, and noise of the given size: each within 5 standard errors."""
    X, y, beta = Reconstruction.simulate(40_000, 4, sigma=0.5, squared=squared, rng=3)
    assert ((beta > 0.0) & (beta < 1.0)).all()
    assert set(np.unique(X)) == {0.0, 1.0}
    assert np.abs(X.mean(axis=0) - 0.5).max() < 5 * 0.5 / 200
    noise = (y - printed(beta[None], X, 2 if squared else 1)[0]) / 0.5
    assert abs(noise.mean()) < 5 / 200
    assert abs(noise.var() - 1.0) < 5 * np.sqrt(2.0) / 200
    assert np.abs(np.corrcoef(X.T, noise)[-1, :-1]).max() < 5 / 200


def test_simulator_repeats():
    first, second = (Reconstruction.simulate(10, 3, rng=5) for _ in range(2))
    np.testing.assert_array_equal(first.y, second.y)
    assert not np.array_equal(first.y, Reconstruction.simulate(10, 3, rng=6).y)


def test_squared_is_yes_or_no():
    X, y, _ = Reconstruction.simulate(10, 3)
    for call in (lambda: Reconstruction(X, y, squared="no"), lambda: Reconstruction.simulate(10, squared=2)):
        with pytest.raises(InvalidTypeError, match="squared must be True or False; got"):
            call()
    assert not Reconstruction(X, y, squared=np.False_).squared


def test_the_papers_initial_bound_is_that_of_norms():
    """It prints −11591 for n = 2000. Squared norms start below −100,000 and norms above −20,000."""
    start = Gaussian(variance=0.01, dim=D)
    theta = start.sample(200, rng=0)
    bounds = {True: [], False: []}
    for squared, seed in ((squared, seed) for squared in bounds for seed in range(10)):
        X, y, _ = Reconstruction.simulate(N, D, squared=squared, rng=seed)
        values = Reconstruction(X, y, squared=squared)(theta)
        bounds[squared].append((values + PRIOR.log_density(theta) - start.log_density(theta)).mean())
    assert max(bounds[True]) < -100_000
    assert -20_000 < min(bounds[False]) < max(bounds[False]) < -4_000


def positive_posterior(model):
    """Where all β are positive, f = 2(1 − s)ᵀβ is linear: the conjugate posterior and its log evidence."""
    A = 4.0 * (1.0 - model.X)
    P = A.T @ A + np.eye(D)
    m = np.linalg.solve(P, A.T @ model.y)
    quadratic = model.y @ model.y - m @ P @ m
    return m, P, -0.5 * (N * np.log(2.0 * np.pi) + np.linalg.slogdet(P)[1] + quadratic)


def test_auto_finds_the_conjugate_posterior_from_the_wrong_side_of_the_kinks():
    """At the paper's size, in a fifth of its 75,000 queries at most, from a mean with signs of both kinds."""
    for seed in range(100):
        X, y, _ = Reconstruction.simulate(N, D, rng=seed)
        model = Reconstruction(X, y)
        m, P, log_evidence = positive_posterior(model)
        if (m * np.sqrt(np.diag(P)) > 5.0).all():
            break  # no kink within reach of the posterior, as in two fifths of all data
    else:
        raise AssertionError("a kink is within reach in all of 100 data sets")
    start = 0.1 * np.random.default_rng(0).standard_normal(D)
    assert (start < 0.0).sum() > 5
    posterior = mgvbp.fit(model, PRIOR, initial_mean=start, initial_variance=0.01, max_evaluations=15_000)
    assert posterior.converged
    deviation = posterior.mean - m
    A = P @ posterior.covariance
    gap = 0.5 * (np.trace(A) - D - np.linalg.slogdet(A)[1] + deviation @ P @ deviation)
    assert gap < 0.01
    assert posterior.lower_bound == pytest.approx(log_evidence, abs=0.02)


def test_no_worse_than_mgvbp_with_the_papers_settings():
    """Small: a tenth of the rows, 5 coefficients, and a fifth of MGVBP's queries; on common draws."""
    X, y, _ = Reconstruction.simulate(200, 5, squared=False, rng=4)
    model, prior = Reconstruction(X, y, squared=False), Gaussian(variance=1.0, dim=5)
    options = {"initial_mean": np.full(5, 0.1), "initial_variance": 0.01}
    settings = {"step_size": 0.1, "decay_after": 5000, "momentum": 0.4, "clip_natural_gradient": 150.0}
    method = mgvbp.MGVBP(**settings, clip_initial=1000.0, window=30, patience=500, max_iterations=1000)
    theirs = mgvbp.fit(model, prior, method=method, estimator="h", num_draws=15, **options)
    ours = mgvbp.fit(model, prior, max_evaluations=theirs.n_evaluations // 5, **options)

    def values(q):
        theta = q.sample(20_000, rng=99)
        return model(theta) + prior.log_density(theta) - q.log_density(theta)

    difference = values(ours) - values(theirs)
    assert difference.mean() > -0.01  # no worse than the tolerance, with a fifth of the queries
