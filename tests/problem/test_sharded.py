"""Shards in one process: the sum of all, some at a time without bias, and errors that name the shard."""

import pickle

import numpy as np
import pytest

import mgvbp
from common import FAST
from mgvbp import Gaussian, InvalidInputError, InvalidTypeError, Parameters, Problem
from mgvbp.errors import EvaluationError, MgvbpError
from mgvbp.problem.problem import Streamed
from mgvbp.problem.sharded import ShardedLikelihood

NOISE = 0.5
RNG = np.random.default_rng(3)
X = RNG.normal(size=(103, 3))
Y = X @ [1.0, -0.5, 2.0] + NOISE**0.5 * RNG.normal(size=103)
PRIOR = Gaussian(variance=4.0, dim=3)
THETA = RNG.normal(size=(7, 3))
CUTS = [5, 6, 30, 44, 60, 61, 90]
SHARDS = list(zip(np.split(X, CUTS), np.split(Y, CUTS), strict=True))
"""Eight shards of 1 to 29 rows."""


class Linear:
    """A linear model, with its derivatives."""

    def __call__(self, theta, shard):
        X, y = shard
        return -0.5 * ((y - theta @ X.T) ** 2).sum(axis=1) / NOISE

    def value_and_grad(self, theta, shard):
        X, y = shard
        return self(theta, shard), (y - theta @ X.T) @ X / NOISE

    def value_grad_and_squares(self, theta, shard):
        X, y = shard
        return *self.value_and_grad(theta, shard), ((y - theta @ X.T) / NOISE) ** 2 @ X**2


def linear(theta, shard):
    return Linear()(theta, shard)


def sharded(function=None, shards=SHARDS, **options):
    return ShardedLikelihood(Linear() if function is None else function, shards, **options)


# --- sums ---------------------------------------------------------------------------------------------


def test_all_shards_are_all_data():
    for name in ("value_and_grad", "value_grad_and_squares"):
        for a, b in zip(getattr(sharded(), name)(THETA), getattr(Linear(), name)(THETA, (X, Y)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(sharded()(THETA), linear(THETA, (X, Y)), rtol=1e-12)


@pytest.mark.parametrize("batch_shards", [1, 2, 3, 8])
def test_batches_of_an_epoch_are_all_data(batch_shards):
    """The shards' weights K/k average to 1 over an epoch with batches of k_t shards if each counts k_t / K."""
    model = sharded(batch_shards=batch_shards, rng=4)
    assert model.num_batches == -(-8 // batch_shards)
    value, gradient = 0.0, 0.0
    for t in range(1, model.num_batches + 1):
        batch = model.at(t)
        share = len(batch.data[0]) / 8
        assert batch_shards - 1 <= len(batch.data[0]) <= batch_shards
        a, b = batch.value_and_grad(THETA)
        np.testing.assert_array_equal(a, batch(THETA))
        value, gradient = value + share * a, gradient + share * b
    np.testing.assert_allclose(value, model(THETA), rtol=1e-12)
    np.testing.assert_allclose(gradient, model.value_and_grad(THETA)[1], rtol=1e-12)


def test_a_batch_has_no_bias_although_shards_differ_in_size():
    """All 28 pairs of 8 shards weigh the same: the first batch over 2,000 seeds, within 4 standard errors."""
    total = sharded()(THETA[:1])[0]
    found = np.array([sharded(batch_shards=2, rng=seed).at(1)(THETA[:1])[0] for seed in range(2000)])
    assert abs(found.mean() - total) < 4.0 * found.std() / np.sqrt(2000)
    assert found.std() > 0.1 * abs(total)


def test_the_order_is_a_function_of_the_seed_and_the_epoch():
    first, second = (sharded(batch_shards=2, rng=9) for _ in range(2))
    for t in (3, 1, 17, 3):
        np.testing.assert_array_equal(first.at(t)(THETA), second.at(t)(THETA))
    epochs = [[tuple(first.at(t).data[0]) for t in range(start, start + 4)] for start in (1, 5)]
    assert epochs[0] != epochs[1]


def test_what_the_function_returns_is_still_its_own():
    kept = np.ones(7)
    kept.setflags(write=False)
    np.testing.assert_array_equal(sharded(lambda theta, shard: kept)(THETA), 8.0 * kept)


def test_shards_may_be_paths(tmp_path):
    for k, (X_k, y_k) in enumerate(SHARDS):
        np.savez(tmp_path / f"{k}.npz", X=X_k, y=y_k)

    def from_file(theta, path):
        with np.load(path) as file:
            return linear(theta, (file["X"], file["y"]))

    found = sharded(from_file, sorted(tmp_path.glob("*.npz")))(THETA)
    np.testing.assert_array_equal(found, sharded()(THETA))


# --- as a log-likelihood ------------------------------------------------------------------------------


def test_derivatives_only_where_the_function_has_them():
    plain, model = sharded(linear), sharded()
    assert isinstance(model, Streamed)
    assert not hasattr(plain, "value_and_grad")
    assert not hasattr(plain, "value_grad_and_squares")
    assert not hasattr(plain, "pointwise")
    assert not Problem(plain, PRIOR).has_gradient
    assert Problem(model, PRIOR).has_gradient
    assert model.workers_lost == 0


def test_names_of_parameters_pass_through():
    class Named(Linear):
        parameters = Parameters(beta=mgvbp.transforms.Real(3))

    assert sharded(Named()).parameters.labels == ("beta[0]", "beta[1]", "beta[2]")
    assert Problem(sharded(Named())).dim == 3
    assert not hasattr(sharded(), "parameters")


@pytest.mark.parametrize("options", [{}, {"method": FAST, "estimator": "gradient"}])
def test_a_fit_is_the_closed_form(options):
    posterior = mgvbp.fit(sharded(), PRIOR, **options)
    precision = PRIOR.precision + X.T @ X / NOISE
    np.testing.assert_allclose(posterior.precision, precision, rtol=1e-3)
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(precision, X.T @ Y / NOISE), rtol=1e-4)


def test_a_fit_with_some_shards_at_a_time():
    """Within 0.15 posterior standard deviations and 10% of the precision."""
    shards = list(zip(np.array_split(X, 8), np.array_split(Y, 8), strict=True))
    steady = mgvbp.MGVBP(step_size=0.05, decay_after=60, momentum=0.0, precision_scale=2.0, patience=5000)
    posterior = mgvbp.fit(
        sharded(shards=shards, batch_shards=2),
        PRIOR,
        method=steady,
        max_iterations=1000,
        initial_variance=0.05,
    )
    precision = PRIOR.precision + X.T @ X / NOISE
    mean = np.linalg.solve(precision, X.T @ Y / NOISE)
    assert np.abs((posterior.mean - mean) * np.sqrt(np.diag(precision))).max() < 0.15
    np.testing.assert_allclose(np.diag(posterior.precision), np.diag(precision), rtol=0.1)


def test_auto_takes_some_shards_at_a_time():
    posterior = mgvbp.fit(sharded(batch_shards=2), PRIOR)
    precision = PRIOR.precision + X.T @ X / NOISE
    mean = np.linalg.solve(precision, X.T @ Y / NOISE)
    assert np.abs((posterior.mean - mean) * np.sqrt(np.diag(precision))).max() < 0.3


# --- errors -------------------------------------------------------------------------------------------


def test_what_is_not_one_sum_a_draw_is_refused():
    for function, message in [
        (lambda theta, shard: (shard[1] - theta @ shard[0].T) ** 2, r"shape \(7, 5\); expected \(7,\)"),
        (lambda theta, shard: 1.0, r"shard 0 returned shape \(\)"),
        (lambda theta, shard: np.zeros(6 + (len(shard[1]) > 1)), r"shard 1 returned shape \(6,\)"),
        (lambda theta, shard: None, "shard 0 returned None"),
    ]:  # fmt: skip
        with pytest.raises(EvaluationError, match=message) as caught:
            sharded(function)(THETA)
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)
        np.testing.assert_array_equal(again.theta, THETA)

    class Wrong(Linear):
        def value_and_grad(self, theta, shard):
            return self(theta, shard), np.zeros(3)

    with pytest.raises(EvaluationError, match=r"value_and_grad of shard 0 returned .* shape \(3,\)"):
        sharded(Wrong()).value_and_grad(THETA)


def test_an_exception_passes_through():
    def broken(theta, shard):
        raise ZeroDivisionError("oh")

    with pytest.raises(ZeroDivisionError, match="oh"):
        mgvbp.fit(sharded(broken), PRIOR)


def test_bad_input():
    for arguments, options, error, message in [
        (("f", SHARDS), {}, InvalidTypeError, "function of draws and a shard"),
        ((linear, X), {}, InvalidTypeError, r"shards must be a list.*got ndarray: numpy\.array_split"),
        ((linear, {}), {}, InvalidTypeError, "got dict"),
        ((linear, "a.csv"), {}, InvalidTypeError, "got str"),
        ((linear, []), {}, InvalidInputError, "number of shards must be at least 1"),
        ((linear, SHARDS), {"batch_shards": 9}, InvalidInputError, "only 8 shards"),
        ((linear, SHARDS), {"batch_shards": 0}, InvalidInputError, "batch_shards must be at least 1"),
        ((linear, SHARDS), {"batch_shards": 2.0}, InvalidTypeError, "batch_shards"),
        ((linear, SHARDS), {"rng": "a"}, InvalidTypeError, "rng"),
        ((linear, SHARDS), {"client": "tcp://localhost:8786"}, MgvbpError, "distributed"),
    ]:
        with pytest.raises(error, match=message):
            ShardedLikelihood(*arguments, **options)
    with pytest.raises(InvalidInputError, match="leave vectorized=True"):
        mgvbp.fit(sharded(linear), PRIOR, vectorized=False)
