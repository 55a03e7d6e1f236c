"""Minibatches: unbiased, the same for all draws, reproducible, and never silently of another scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mgvbp
from mgvbp import MGVBP, Gaussian, InvalidInputError, InvalidTypeError, Minibatches, Problem

N, D, NOISE = 103, 3, 0.5
_rng = np.random.default_rng(4)
X = _rng.standard_normal((N, D))
Y = X @ [1.0, -0.5, 0.3] + np.sqrt(NOISE) * _rng.standard_normal(N)
PRIOR = Gaussian(variance=2.0, dim=D)
THETA = _rng.standard_normal((4, D))


class Linear:
    """A linear regression as a function of draws and data, with its gradient."""

    def __call__(self, theta, X, y):
        return -0.5 * ((y - theta @ X.T) ** 2).sum(axis=1) / NOISE

    def value_and_grad(self, theta, X, y):
        return self(theta, X, y), (y - theta @ X.T) @ X / NOISE


def batches(batch_size=10, function=None, **options):
    return Minibatches(function or Linear(), X, Y, batch_size=batch_size, **options)


# --- what an epoch is ---------------------------------------------------------------------------------


@given(batch_size=st.integers(1, N), seed=st.integers(0, 100), epoch=st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_an_epoch_sees_every_row_once(batch_size, seed, epoch):
    rows = Minibatches(Linear(), np.arange(N), batch_size=batch_size, rng=seed)
    seen = [rows.at(epoch * rows.num_batches + t).data[0] for t in range(1, rows.num_batches + 1)]
    sizes = [len(batch) for batch in seen]
    assert rows.num_batches == np.ceil(N / batch_size)
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), np.arange(N))


def test_the_order_changes_with_the_epoch_and_the_seed_only():
    def order(t, **options):
        return batches(**options).at(t).data[1]

    np.testing.assert_array_equal(order(3), order(3))
    assert not np.array_equal(order(3), order(3 + batches().num_batches))
    assert not np.array_equal(order(3), order(3, rng=1))


@pytest.mark.parametrize("batch_size", [1, 10, 50, N, None])
def test_a_batch_stands_for_all_data_without_bias(batch_size):
    """The rows' weights N/B average to 1 over an epoch with batches of sizes B_t if each counts B_t / N."""
    model = batches(batch_size)
    expected = [Linear()(THETA, X, Y), *Linear().value_and_grad(THETA, X, Y)[1:]]
    total = [0.0, 0.0]
    for t in range(1, model.num_batches + 1):
        batch = model.at(t)
        share = len(batch.data[0]) / N
        total = [a + share * b for a, b in zip(total, batch.value_and_grad(THETA), strict=True)]
        np.testing.assert_array_equal(batch(THETA), batch.value_and_grad(THETA)[0])
    for found, value in zip(total, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12)
    np.testing.assert_allclose(model(THETA), expected[0], rtol=1e-12)
    np.testing.assert_allclose(model.value_and_grad(THETA)[1], expected[1], rtol=1e-12)


# --- the scale cannot be wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        lambda theta, X, y: Linear()(theta, X, y) / len(y),
        lambda theta, X, y: Linear()(theta, X, y) * N / len(y),
        lambda theta, X, y: Linear()(theta, X, y) - 0.5 * (theta**2).sum(axis=1),  # a prior in every batch
    ],
)
def test_a_function_that_does_not_sum_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="does not sum over the rows"):
        mgvbp.fit(batches(function=wrong), PRIOR, method="mgvbp")


def test_a_sum_with_infinities_passes_the_check():
    model = batches(function=lambda theta, X, y: np.full(len(theta), -np.inf))
    assert (model.at(1)(THETA) == -np.inf).all()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Linear(), X, Y[:-1]), {}, InvalidInputError, "differ in length: 103, 102"),
        ((Linear(),), {}, InvalidInputError, "give the data"),
        ((Linear(), X[:0]), {}, InvalidInputError, "number of rows"),
        ((Linear(), X), {"batch_size": N + 1}, InvalidInputError, "only 103 rows"),
        ((Linear(), X), {"batch_size": 0}, InvalidInputError, "batch_size"),
        (("f", X), {}, InvalidTypeError, "function of draws and data"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        Minibatches(*arguments, **options)


def test_without_gradients_there_are_none():
    model = batches(function=lambda theta, X, y: Linear()(theta, X, y))
    assert not hasattr(model, "value_and_grad")
    assert not Problem(model, PRIOR).has_gradient
    assert Problem(batches(), PRIOR).has_gradient
    assert not hasattr(batches(), "value_grad_and_squares")


# --- fits ---------------------------------------------------------------------------------------------

STEADY = MGVBP(step_size=0.05, decay_after=60, momentum=0.0, precision_scale=2.0, patience=5000)


@pytest.mark.parametrize("estimator", ["gradient", "regression"])
def test_a_fit_with_minibatches_is_near_the_posterior(estimator):
    """Within 0.1 posterior standard deviations and 10% of the precision (seen: 0.05 and 2% over five seeds)."""
    options = {"method": STEADY, "estimator": estimator, "max_iterations": 3000, "initial_variance": 0.05}
    posterior = mgvbp.fit(batches(20), PRIOR, **options)
    precision = PRIOR.precision + X.T @ X / NOISE
    mean = np.linalg.solve(precision, X.T @ Y / NOISE)
    assert np.abs((posterior.mean - mean) * np.sqrt(np.diag(precision))).max() < 0.1
    np.testing.assert_allclose(np.diag(posterior.precision), np.diag(precision), rtol=0.1)


def test_the_bound_on_all_data_on_request():
    posterior = mgvbp.fit(batches(20), PRIOR, method=STEADY, max_iterations=50)
    diagnosis = posterior.diagnose(500)
    theta = posterior.sample(500, 0)
    h = Linear()(theta, X, Y) + PRIOR.log_density(theta) - posterior.log_density(theta)
    assert abs(diagnosis.elbo - h.mean()) < 4 * np.hypot(diagnosis.elbo_se, h.std() / np.sqrt(500))


def test_all_data_at_once_is_the_same_as_without_batches():
    def plain(theta):
        return Linear()(theta, X, Y)

    whole = mgvbp.fit(batches(None), PRIOR, method="mgvbp", estimator="h", max_iterations=20)
    same = mgvbp.fit(plain, PRIOR, method="mgvbp", estimator="h", max_iterations=20)
    np.testing.assert_array_equal(whole.mean, same.mean)


def test_auto_wants_the_same_function_at_every_iteration():
    with pytest.raises(InvalidInputError, match="minibatches"):
        mgvbp.fit(batches(20), PRIOR)
    assert mgvbp.fit(batches(None), PRIOR).converged


def test_a_gradient_of_all_data_does_not_go_with_minibatches():
    with pytest.raises(InvalidInputError, match="value_and_grad"):
        mgvbp.fit(batches(20), PRIOR, method="mgvbp", grad=lambda theta: theta)
