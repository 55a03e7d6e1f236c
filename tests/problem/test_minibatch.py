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
@settings(max_examples=60)
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


# --- data --------------------------------------------------------------------------------------------


def test_rows_of_pandas_go_by_position():
    """After ``frame.sample(frac=1)`` the labels are shuffled: rows by label would meet those of another array."""
    pd = pytest.importorskip("pandas")
    order = np.random.default_rng(0).permutation(N)
    shuffled = pd.Series(Y).iloc[order]
    for ours in (
        Minibatches(Linear(), X[order], shuffled, batch_size=10),
        Minibatches(Linear(), pd.DataFrame(X).iloc[order], shuffled, batch_size=10),
        Minibatches(Linear(), X[order].tolist(), list(Y[order]), batch_size=10),
    ):
        expected = Minibatches(Linear(), X[order], Y[order], batch_size=10)
        np.testing.assert_array_equal(ours.at(3)(THETA), expected.at(3)(THETA))
        np.testing.assert_array_equal(ours(THETA), expected(THETA))


def test_lazy_data_stay_lazy(tmp_path):
    """Only rows of batches are read: a memory map stays one, and rows without a length of their own will do."""

    class Rows:
        shape, read = X.shape, 0

        def __getitem__(self, index):
            self.read += len(X[index])
            return X[index]

    np.save(tmp_path / "y.npy", Y)
    y, rows = np.load(tmp_path / "y.npy", mmap_mode="r"), Rows()
    model = Minibatches(Linear(), rows, y, batch_size=10)
    assert model.data[0] is rows
    assert model.data[1] is y
    np.testing.assert_array_equal(model.at(2)(THETA), batches().at(2)(THETA))
    assert rows.read <= 10 + 8  # a batch, and what the check of the sum looks at


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


@pytest.mark.parametrize("part", [0, 1])
def test_every_method_must_sum(part):
    class Wrong(Linear):
        def value_and_grad(self, theta, X, y):
            found = list(super().value_and_grad(theta, X, y))
            found[part] = found[part] / len(y)
            return tuple(found)

    model = batches(function=Wrong())
    model(THETA)  # the values alone are sums
    for function in (model.value_and_grad, model.at(1).value_and_grad):
        with pytest.raises(InvalidInputError, match="value_and_grad does not sum over the rows"):
            function(THETA)


@pytest.mark.parametrize(("rest", "every"), [(0.0, 10), (np.nan, 2)])
@pytest.mark.parametrize("seed", range(5))
def test_the_check_waits_for_rows_that_show_something(rest, every, seed):
    """Most probes give 0, or no number, whatever the function does with its rows."""
    y = np.where(np.arange(N) % every == every - 1, 1.0, rest)
    model = Minibatches(lambda theta, y: (y * theta).mean(axis=1), y, rng=seed)

    def many_calls():
        for _ in range(200):
            model(np.ones((2, 1)))

    with pytest.raises(InvalidInputError, match="does not sum over the rows"):
        many_calls()


class Sums:
    """Values −n and given gradients of n rows."""

    def __init__(self, gradient):
        self.gradient = gradient

    def __call__(self, theta, x):
        return np.full(len(theta), -float(len(x)))

    def value_and_grad(self, theta, x):
        return self(theta, x), self.gradient(theta, len(x))


def test_the_check_waits_for_each_part():
    """At zero the gradient shows nothing, though the value does."""
    model = Minibatches(Sums(lambda theta, n: -theta), Y)
    assert not model.value_and_grad(np.zeros((1, 1)))[1].any()
    with pytest.raises(InvalidInputError, match="value_and_grad does not sum"):
        model.value_and_grad(np.ones((1, 1)))


def test_rounding_errors_pass_the_check():
    """Beside a gradient of 10⁶ a row, 0.1 is what single precision may leave of a sum that is zero."""
    model = Minibatches(Sums(lambda theta, n: np.array([[1e6 * n, 0.1 * (n == 4)]])), Y)
    assert model.value_and_grad(np.zeros((1, 2)))[1].shape == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((Linear(), X, Y[:-1]), {}, InvalidInputError, "differ in length: 103, 102"),
        ((Linear(),), {}, InvalidInputError, "give the data"),
        ((Linear(), X[:0]), {}, InvalidInputError, "number of rows"),
        ((Linear(), X), {"batch_size": N + 1}, InvalidInputError, "only 103 rows"),
        ((Linear(), X), {"batch_size": 0}, InvalidInputError, "batch_size"),
        (("f", X), {}, InvalidTypeError, "function of draws and data"),
        ((Linear(), X, None), {}, InvalidTypeError, "with a shape .*; got None"),
        ((Linear(), np.array(5.0)), {}, InvalidTypeError, "with a shape"),
        ((Linear(), (row for row in X)), {}, InvalidTypeError, "with a shape .*; got <generator"),
        ((Linear(), {"X": X}), {}, InvalidTypeError, "with a shape"),
        ((Linear(), [[1.0], [1.0, 2.0]]), {}, InvalidTypeError, "unequal lengths"),
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
    """Within 0.1 posterior standard deviations and 10% of the precision (seen: 0.02 and 0.1% over four seeds)."""
    options = {"method": STEADY, "estimator": estimator, "max_iterations": 1000, "initial_variance": 0.05}
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


def test_auto_takes_minibatches_with_gradients():
    def values(theta, X, y):
        return Linear()(theta, X, y)

    with pytest.raises(InvalidInputError, match="needs gradients with minibatches"):
        mgvbp.fit(batches(20, values), PRIOR)
    whole = mgvbp.fit(batches(None), PRIOR, family="diagonal")
    some = mgvbp.fit(batches(20), PRIOR)
    assert whole.converged
    assert some.converged
    assert some.gap is None
    assert np.abs((some.mean - whole.mean) / whole.std).max() < 0.3
    np.testing.assert_allclose(some.std, whole.std, rtol=0.1)


def test_a_gradient_of_all_data_does_not_go_with_minibatches():
    with pytest.raises(InvalidInputError, match="value_and_grad"):
        mgvbp.fit(batches(20), PRIOR, method="mgvbp", grad=lambda theta: theta)


# --- JAX ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_function_of_jax_in_batches(vectorized):
    """Values and gradients are those of NumPy, to the last digits of float64; one compilation a size of batch."""
    pytest.importorskip("jax")
    traces = []

    def one(theta, X, y):
        traces.append(len(y))
        return -0.5 * ((y - X @ theta) ** 2).sum() / NOISE

    function = mgvbp.from_jax(Linear() if vectorized else one, vectorized=vectorized)
    ours, expected = batches(20, function), batches(20)
    for t in range(1, 2 * ours.num_batches):
        for found, value in zip(
            ours.at(t).value_and_grad(THETA), expected.at(t).value_and_grad(THETA), strict=True
        ):
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(ours(THETA[:1]), expected(THETA[:1]), rtol=1e-12)
    assert len(traces) <= 10
    posterior = mgvbp.fit(ours, PRIOR, method="mgvbp", max_iterations=3)
    assert posterior.estimator == "gradient"


def test_a_function_of_jax_that_averages_is_refused():
    pytest.importorskip("jax")
    model = batches(20, mgvbp.from_jax(lambda theta, X, y: -((y - X @ theta) ** 2).mean()))
    with pytest.raises(InvalidInputError, match="value_and_grad does not sum") as refused:
        mgvbp.fit(model, PRIOR, method="mgvbp")
    assert (
        len(refused.value.__notes__) == 1
    )  # that of its section: it was not the user's function that raised


def test_where_the_gradient_of_minibatches_comes_from():
    pytest.importorskip("jax")
    with pytest.raises(InvalidInputError, match=r"write Minibatches\(from_jax\(f\), X, y, \.\.\.\)"):
        mgvbp.fit(batches(20), PRIOR, method="mgvbp", grad="jax")
