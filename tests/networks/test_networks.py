"""Networks: log-likelihoods, gradients and squares against SciPy, loops in NumPy, and each other."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats
from scipy.special import expit, log_softmax, softmax

import mgvbp
from common import installed
from mgvbp import Gaussian, InvalidInputError, InvalidTypeError, Problem, networks
from mgvbp.errors import ScaleWarning
from mgvbp.networks import base
from mgvbp.networks.kernels import blocks, filled_up


@pytest.fixture(scope="module")
def jax():
    return installed("jax")


@pytest.fixture(scope="module")
def torch():
    return installed("torch")


RNG = np.random.default_rng(7)
N, S = 53, 5
X = RNG.standard_normal((N, 4))
Y = RNG.integers(3, size=N)


def differences(function, theta, step=1e-5):
    """Central differences of (S, d) -> (S,), (S, d)."""
    gradient = np.empty_like(theta)
    for j, unit in enumerate(np.eye(theta.shape[1])):
        gradient[:, j] = (function(theta + step * unit) - function(theta - step * unit)) / (2.0 * step)
    return gradient


# --- against others ------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "gelu", "silu"])
def test_dense_layers_by_hand(jax, activation):
    functions = {
        "tanh": np.tanh,
        "relu": lambda h: np.maximum(h, 0.0),
        "sigmoid": expit,
        "gelu": lambda h: 0.5 * h * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (h + 0.044715 * h**3))),
        "silu": lambda h: h * expit(h),
    }
    network = networks.dense([4, 5, 2, 3], activation, precision="double")
    assert network.weights.names == ("W1", "b1", "W2", "b2", "W3", "b3")
    theta = RNG.standard_normal((S, network.dim))
    for row, values in zip(theta, network.pointwise(theta, X, Y), strict=True):
        w = network.weights.constrain(row)
        hidden = functions[activation](X @ w["W1"] + w["b1"])
        hidden = functions[activation](hidden @ w["W2"] + w["b2"])
        expected = log_softmax(hidden @ w["W3"] + w["b3"], axis=1)[np.arange(N), Y]
        np.testing.assert_allclose(values, expected, rtol=1e-11)


def tabl_by_loops(weights, window):
    """The layer entry by entry, for one window (features, steps)."""
    classes, features = weights["W1"].shape
    steps = len(weights["w2"])
    scores = np.empty(classes)
    for c in range(classes):
        projected = [sum(weights["W1"][c, f] * window[f, t] for f in range(features)) for t in range(steps)]
        energy = [
            sum(projected[t] * (1.0 / steps if t == u else weights["W"][t, u]) for t in range(steps))
            for u in range(steps)
        ]
        attention = np.exp(energy) / np.exp(energy).sum()
        mix = weights["lambda"]
        mixed = [mix * projected[t] + (1.0 - mix) * projected[t] * attention[t] for t in range(steps)]
        scores[c] = sum(mixed[t] * weights["w2"][t] for t in range(steps)) + weights["b"][c]
    return scores


def test_tabl_entry_by_entry(jax):
    network = networks.tabl(features=6, steps=4, classes=3, precision="double")
    assert network.dim == 3 * 6 + 4 * 4 + 4 + 3 + 1
    windows, labels = RNG.standard_normal((7, 6, 4)), RNG.integers(3, size=7)
    theta = RNG.standard_normal((S, network.dim))
    for row, values in zip(theta, network.pointwise(theta, windows, labels), strict=True):
        weights = network.weights.constrain(row)  # λ on its own scale
        scores = np.array([tabl_by_loops(weights, window) for window in windows])
        np.testing.assert_allclose(values, log_softmax(scores, axis=1)[np.arange(7), labels], rtol=1e-11)
    gradients = network.value_and_grad(theta, windows, labels)[1]
    expected = differences(lambda t: network(t, windows, labels), theta)
    np.testing.assert_allclose(gradients, expected, rtol=1e-6, atol=1e-7)
    diagonal = network.weights.slices["W"].start + np.arange(4) * 5
    assert not gradients[:, diagonal].any()


@pytest.mark.parametrize("sigma", [None, 0.7])
def test_normal_likelihood_is_that_of_scipy(jax, sigma):
    network = networks.dense([4, 3, 1], likelihood=networks.normal(sigma), precision="double")
    assert network.dim == 19 + (sigma is None)
    theta, y = RNG.standard_normal((S, network.dim)), RNG.standard_normal(N)
    for row, values in zip(theta, network.pointwise(theta, X, y), strict=True):
        w = network.weights.constrain(row)
        mean = (np.tanh(X @ w["W1"] + w["b1"]) @ w["W2"] + w["b2"])[:, 0]
        np.testing.assert_allclose(values, stats.norm.logpdf(y, mean, w.get("sigma", sigma)), rtol=1e-11)
    gradients = network.value_and_grad(theta, X, y)[1]
    expected = differences(lambda t: network(t, X, y), theta)
    np.testing.assert_allclose(gradients, expected, rtol=1e-6, atol=1e-6)


def test_fit_of_a_conjugate_regression(jax):
    """A network without hidden layers and with known noise is linear: the posterior is known in closed form."""
    network = networks.dense([4, 1], likelihood=networks.normal(0.5), precision="double")
    y = X @ [1.0, -1.0, 0.5, 0.0] + 0.5 * RNG.standard_normal(N)
    posterior = mgvbp.fit(network.on(X, y), Gaussian(variance=4.0, dim=5))
    design = np.column_stack([X, np.ones(N)])
    precision = design.T @ design / 0.25 + np.eye(5) / 4.0
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(precision, design.T @ y / 0.25), atol=1e-6)
    np.testing.assert_allclose(posterior.precision, precision, rtol=1e-6, atol=1e-4)
    assert posterior.labels[0] == "W1[0,0]"
    assert posterior["b1"].shape == (1,)


# --- sums over blocks ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["dense", "torch"])
def case(request):
    """A network in double precision with data and draws."""
    if request.param == "dense":
        installed("jax")
        network = networks.dense([4, 3, 3], precision="double")
    else:
        torch = installed("torch")
        module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3))
        network = networks.from_torch(module, X, precision="double")
    return network, np.random.default_rng(7).standard_normal((S, network.dim))


def test_squares_are_those_of_single_rows(case):
    network, theta = case
    values, gradients, squares = network.value_grad_and_squares(theta, X, Y)
    single = np.array([network.value_and_grad(theta, X[i : i + 1], Y[i : i + 1])[1] for i in range(N)])
    np.testing.assert_allclose(values, network(theta, X, Y), rtol=1e-12)
    np.testing.assert_allclose(gradients, single.sum(axis=0), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(squares, (single**2).sum(axis=0), rtol=1e-9, atol=1e-11)


def test_blocks_change_nothing(case, monkeypatch):
    """Blocks of 10 rows and 2 draws, or 3 rows for squares: 53 rows and 5 draws fill none of them."""
    network, theta = case

    def found():
        return [
            network(theta, X, Y),
            *network.value_and_grad(theta, X, Y),
            *network.value_grad_and_squares(theta, X, Y),
            network.pointwise(theta, X, Y),
            np.array(dataclasses.astuple(network.predict(theta, X).score(Y))),
        ]

    whole = found()
    monkeypatch.setattr(base, "PAIRS", 21)
    monkeypatch.setattr(base, "DRAWS", 2)
    monkeypatch.setattr(base, "DERIVATIVES", 6 * network.dim)
    for ours, expected in zip(found(), whole, strict=True):
        assert ours.dtype == np.float64
        np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-12)


@given(number=st.integers(1, 3000), most=st.integers(1, 2000))
def test_blocks_cover_all_rows(number, most):
    parts, sizes = zip(*blocks(number, most), strict=True)
    edges = [parts[0].start, *(part.stop for part in parts)]
    assert (edges[0], edges[-1], edges[:-1]) == (0, number, [part.start for part in parts])
    assert len(set(sizes)) == 1
    assert len(parts) <= -(-number // most)
    assert sizes[0] < 1.25 * most + 1
    assert sizes[0] * len(parts) < 1.25 * (number + len(parts))


def test_blocks_have_few_sizes():
    assert len({size for number in range(1, 100_000, 7) for _, size in blocks(number, 1024)}) <= 40
    assert filled_up(np.array([[1, 2], [3, 4]]), 4).tolist() == [[1, 2], [3, 4], [3, 4], [3, 4]]


def test_compilations_are_few(jax):
    """JAX runs the function once for each compilation (and once more for its shapes)."""
    runs = []

    def forward(weights, X):
        runs.append(len(X))
        return X @ weights["W"]

    network = networks.Network(forward, {"W": (4, 3)})
    rng = np.random.default_rng(0)
    for number in rng.integers(900, 1024, size=30):
        network(np.zeros((4, 12)), np.zeros((number, 4)), np.zeros(number, int))
    assert sorted(runs) == [2, 1024]


def test_filling_up_brings_no_infinities(jax):
    """Nine rows in a block of ten; the logarithm of a row of zeros would turn all gradients into NaN."""

    def forward(weights, X):
        return jax.numpy.log(X) * weights["slopes"]

    network, rows = networks.Network(forward, {"slopes": (2,)}), np.full((9, 1), 2.0)
    theta = np.array([[0.3, 0.1], [np.nan, 0.0]])
    values, gradients, squares = network.value_grad_and_squares(theta, rows, [0] * 9)
    np.testing.assert_allclose(network.value_and_grad(theta, rows, [0] * 9)[1], gradients, rtol=1e-5)
    p = softmax([0.3 * np.log(2.0), 0.1 * np.log(2.0)])
    expected = np.log(2.0) * (np.array([1.0, 0.0]) - p)
    assert values[0] == pytest.approx(9.0 * np.log(p[0]), rel=1e-5)
    np.testing.assert_allclose(gradients[0], 9.0 * expected, rtol=1e-5)
    np.testing.assert_allclose(squares[0], 9.0 * expected**2, rtol=1e-5)
    np.testing.assert_array_equal(np.isfinite(values), [True, False])


# --- precision -----------------------------------------------------------------------------------------


def test_single_precision_with_double_sums(jax):
    """Errors of rows are independent: of 40,000 they add up to 200 times the one of a row, and not 40,000 times."""
    rng = np.random.default_rng(0)
    rows, labels = rng.standard_normal((40_000, 6, 4)), rng.integers(3, size=40_000)
    single, double = (networks.tabl(6, 4, precision=precision) for precision in ("single", "double"))
    theta = 0.5 * rng.standard_normal((3, single.dim))
    off = np.abs(single.pointwise(theta, rows, labels) - double.pointwise(theta, rows, labels)).max()
    assert 1e-9 < off < 3e-5
    values, gradients = single.value_and_grad(theta, rows, labels)
    expected, expected_gradients = double.value_and_grad(theta, rows, labels)
    np.testing.assert_allclose(values, expected, rtol=2e-8)
    np.testing.assert_allclose(gradients, expected_gradients, atol=1e-5 * np.abs(expected_gradients).max())


def test_sums_are_in_double_precision(jax):
    """All rows have the log density −log 3, in 32 bits: the sum is a multiple of it, to the last digits of 64."""
    network, rows, labels = networks.dense([4, 3]), np.zeros((10_007, 4)), np.zeros(10_007, int)
    value, theta = np.float64(-np.log(np.float32(3.0))), np.zeros((1, network.dim))
    for found in (network(theta, rows, labels), *network.value_grad_and_squares(theta, rows, labels)[:1]):
        np.testing.assert_allclose(found, 10_007 * value, rtol=1e-13)


def test_the_switch_of_jax_is_left_alone(jax):
    assert not jax.config.jax_enable_x64
    network = networks.dense([4, 3])
    network.value_grad_and_squares(np.zeros((1, 15)), X, Y)
    assert not jax.config.jax_enable_x64
    assert jax.numpy.zeros(1).dtype == np.float32


# --- on data -------------------------------------------------------------------------------------------


def test_on_data(jax):
    network = networks.dense([4, 3, 3])
    theta = RNG.standard_normal((S, network.dim))
    target = network.on(X, Y, batch_size=20, rng=1)
    assert isinstance(target, mgvbp.Minibatches)
    assert target.parameters is network.weights
    assert target.data[0].dtype == np.float32
    values, gradients = target.value_and_grad(theta)
    np.testing.assert_allclose(values, network(theta, X, Y), rtol=1e-6)
    np.testing.assert_allclose(values, target.pointwise(theta).sum(axis=1), rtol=1e-6)
    # an epoch has each row once
    batches = [target.at(t) for t in range(1, target.num_batches + 1)]
    epoch = sum(batch.value_and_grad(theta)[1] / batch.scale for batch in batches)
    np.testing.assert_allclose(epoch, gradients, rtol=1e-4, atol=1e-4)


def test_traced_is_the_same_function(jax):
    network = networks.dense([4, 3, 3], precision="double")
    theta = RNG.standard_normal(network.dim)
    target = network.on(X, Y)
    values, gradients = target.value_and_grad(theta[None])
    with jax.enable_x64(True):
        value, gradient = jax.jit(jax.value_and_grad(target.traced))(theta)
    assert value.dtype == np.float64
    assert float(value) == pytest.approx(values[0], rel=1e-12)
    np.testing.assert_allclose(gradient, gradients[0], rtol=1e-10)
    single = networks.dense([4, 3, 3]).traced(X, Y)
    with jax.enable_x64(True):
        assert float(jax.jit(single)(theta)) == pytest.approx(values[0], rel=1e-6)
    assert float(jax.jit(single)(theta)) == pytest.approx(values[0], rel=1e-5)  # θ becomes one of 32 bits


class Lazy:
    """Rows that exist when asked for."""

    shape, dtype = X.shape, X.dtype

    def __len__(self):
        return N

    def __getitem__(self, index):
        return X[index]


def test_rows_may_be_lazy(jax):
    network = networks.dense([4, 3])
    theta, rows = RNG.standard_normal((S, 15)), Lazy()
    np.testing.assert_array_equal(network(theta, rows, Y), network(theta, X, Y))
    assert network.on(rows, Y).data[0] is rows
    np.testing.assert_array_equal(
        network.on(rows, Y, batch_size=10).at(2)(theta), network.on(X, Y, batch_size=10).at(2)(theta)
    )


def test_a_saved_posterior_knows_the_names(jax, tmp_path):
    network = networks.tabl(2, 2)
    posterior = mgvbp.fit(
        network.on(X.reshape(N, 2, 2), Y),
        Gaussian(variance=1.0, dim=network.dim),
        method=mgvbp.MGVBP(),
        num_draws=20,
        max_iterations=3,
    )
    posterior.save(tmp_path / "fit.npz")
    again = mgvbp.load(tmp_path / "fit.npz")
    assert again.labels == network.weights.labels
    assert again["W"].shape == (2, 2)
    assert 0.0 < again["lambda"].mean < 1.0


# --- PyTorch -------------------------------------------------------------------------------------------


def test_torch_and_jax_agree(jax, torch):
    """Two layers; PyTorch's matrices are transposed."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
    theirs = networks.from_torch(module, X[:2], precision="double")
    ours = networks.dense([4, 5, 3], precision="double")
    assert theirs.weights.names == ("0.weight", "0.bias", "2.weight", "2.bias")
    theta = RNG.standard_normal((S, ours.dim))

    def moved(rows):
        w = ours.weights.constrain(rows)
        columns = [w["W1"].swapaxes(1, 2), w["b1"], w["W2"].swapaxes(1, 2), w["b2"]]
        return np.concatenate([column.reshape(len(rows), -1) for column in columns], axis=1)

    for name in ("value_and_grad", "value_grad_and_squares"):
        expected = getattr(ours, name)(theta, X, Y)
        found = getattr(theirs, name)(moved(theta), X, Y)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-11)
        for derivative, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(derivative, moved(other), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(
        theirs.predict(moved(theta), X).probabilities, ours.predict(theta, X).probabilities, rtol=1e-10
    )


def test_torch_starts_from_the_module(torch):
    """Its own weights give its own outputs; it is copied, in evaluation mode, and what is frozen stays."""
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Dropout(0.5), torch.nn.Linear(5, 3)
    )
    module[0].bias.requires_grad_(False)
    network = networks.from_torch(module, X)
    assert "0.bias" not in network.weights.names
    found = network.predict(network.initial, X).probabilities
    assert module.training
    with torch.no_grad():
        outputs = module.eval()(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(found, softmax(outputs, axis=1), rtol=1e-5)
    with torch.no_grad():
        module[3].weight.zero_()
    np.testing.assert_array_equal(network.predict(network.initial, X).probabilities, found)


def test_torch_with_normal_noise_and_read_only_data(torch):
    network = networks.from_torch(torch.nn.Linear(4, 1), X, networks.normal(), precision="double")
    y, rows = X[:, 1].copy(), X.copy()
    rows.setflags(write=False)
    values, gradients = network.value_and_grad(network.initial[None], rows, y)
    w = network.weights.constrain(network.initial)
    mean = rows @ w["weight"][0] + w["bias"]
    assert values[0] == pytest.approx(stats.norm.logpdf(y, mean, 1.0).sum(), rel=1e-6)
    expected = differences(lambda t: network(t, rows, y), network.initial[None])
    np.testing.assert_allclose(gradients, expected, rtol=1e-6, atol=1e-6)
    assert not hasattr(network.on(rows, y), "traced")
    assert network.on(rows, y).pointwise(network.initial[None]).shape == (1, N)


def test_tensors_are_arrays(torch):
    rows = torch.tensor(X, dtype=torch.float32)
    network = networks.from_torch(torch.nn.Linear(4, 3), rows)
    theta = network.initial[None]
    target = network.on(rows, torch.tensor(Y), batch_size=10)
    np.testing.assert_array_equal(target.at(2)(theta), network.on(X, Y, batch_size=10).at(2)(theta))
    np.testing.assert_array_equal(
        network.predict(torch.tensor(theta), rows).probabilities, network.predict(theta, X).probabilities
    )
    with pytest.raises(InvalidTypeError, match=r"X must be an array of numbers.*detach"):
        network.on(rows.requires_grad_(), Y)


def test_bad_modules(torch):
    with pytest.raises(InvalidTypeError, match=r"torch\.nn\.Module; got 'module'"):
        networks.from_torch("module", X)
    with pytest.raises(InvalidInputError, match=r"cannot take rows of shape \(4,\)"):
        networks.from_torch(torch.nn.Linear(5, 3), X)
    with pytest.raises(InvalidInputError, match="at least one parameter"):
        networks.from_torch(torch.nn.Tanh(), X)


# --- what cannot be used -------------------------------------------------------------------------------


def test_bad_data(jax):
    network, theta = networks.dense([4, 3]), np.zeros((2, 15))
    cases = [
        (theta[:, 1:], X, Y, InvalidInputError, r"theta has shape \(2, 14\); expected \(S, 15\)"),
        (theta[0], X, Y, InvalidInputError, r"theta has shape \(15,\); expected \(S, 15\)"),
        (theta[:0], X, Y, InvalidInputError, r"theta has shape \(0, 15\)"),
        (theta, X[:, 0], Y, InvalidInputError, r"X has shape \(53,\)"),
        (theta, X[:0], Y[:0], InvalidInputError, r"X has shape \(0, 4\)"),
        (theta, X[:, :3], Y, InvalidInputError, r"cannot take rows of shape \(3,\)"),
        (theta, X[:, None], Y, InvalidInputError, r"cannot take rows of shape \(1, 4\): expected \(4,\)"),
        (theta, X.astype(str), Y, InvalidTypeError, "X must hold numbers"),
        (theta, X, Y[1:], InvalidInputError, r"y has shape \(52,\); expected \(53,\)"),
        (theta, X, Y + 1, InvalidInputError, "labels 0, ..., 2, one for each output; got 1 to 3"),
        (theta, X, Y - 1, InvalidInputError, "got -1 to 1"),
        (theta, X, Y + 0.5, InvalidTypeError, "as integers; got float64"),
    ]
    for draws, rows, y, kind, message in cases:
        for function in (network, network.value_and_grad, network.value_grad_and_squares, network.pointwise):
            with pytest.raises(kind, match=message):
                function(draws, rows, y)
    with pytest.raises(InvalidInputError, match="X has non-finite entries"):
        network.on(np.where(X > 2.0, np.nan, X), Y)
    with pytest.raises(InvalidInputError, match="X has non-finite entries"):
        network.predict(theta, np.where(X > 2.0, np.nan, X))
    with pytest.raises(InvalidInputError, match="posterior has non-finite entries"):
        network.predict(np.full(15, np.nan), X)
    for posterior in (None, "fit", object(), [[1.0], [1.0, 2.0]]):
        with pytest.raises(InvalidTypeError, match="posterior must be a fit, the results of"):
            network.predict(posterior, X)
    with pytest.raises(InvalidInputError, match="num_draws must be at least 1"):
        network.predict(Gaussian(variance=1.0, dim=15), X, num_draws=0)
    with pytest.raises(InvalidInputError, match=r"theta has shape \(10, 3\)"):
        network.predict(Gaussian(variance=1.0, dim=3), X, num_draws=10)


def test_data_that_are_no_plain_arrays(jax):
    network, theta = networks.dense([4, 3]), np.zeros((2, 15))
    cases = [
        (sparse.csr_array(X), Y, r"X is sparse; expected a dense array: X\.toarray\(\)"),
        ([[1.0, 2.0], [3.0]], [0, 1], "X must be an array of numbers; got .*inhomogeneous"),
        (np.ma.masked_greater(X, 2.0), Y, "X is a masked array"),
        (X, np.ma.masked_greater(Y, 1), "y is a masked array"),
        (X, [[0], [1, 2]], "y must be an array of numbers; got .*inhomogeneous"),
    ]
    for rows, y, message in cases:
        for call in (lambda: network.on(rows, y), lambda: network(theta, rows, y)):  # noqa: B023
            with pytest.raises(InvalidTypeError, match=message):
                call()


def test_rounded_responses_are_warned_of(jax):
    """Near 10⁶ single precision has steps of 0.06; a large mean, a constant or double precision do not matter."""
    y = 0.1 * RNG.standard_normal(N)
    single, double = (
        networks.dense([4, 1], likelihood=networks.normal(0.1), precision=precision)
        for precision in ("single", "double")
    )
    with pytest.warns(mgvbp.MgvbpWarning, match=r"steps of 0\.062.*subtract the mean of y") as warned:
        single.on(X, 1e6 + y)
    assert warned[0].filename == __file__
    for network, responses in ((single, y), (single, 10.0 + y), (single, np.ones(N)), (double, 1e6 + y)):
        network.on(X, responses)  # warnings are errors here


def test_bad_networks(jax):
    def forward(weights, X):
        return X @ weights["W"]

    network, normal = networks.Network, networks.normal
    cases = [
        (lambda: network("forward", {"W": (4, 3)}), InvalidTypeError, "forward must be a JAX function"),
        (lambda: network(forward, [(4, 3)]), InvalidTypeError, "dict of shapes"),
        (lambda: network(forward, {"W": 4}), InvalidTypeError, "the shape of W must be a tuple"),
        (lambda: network(forward, {"W": (0,)}), InvalidInputError, "at least 1"),
        (lambda: network(forward, {}), InvalidInputError, "at least one parameter"),
        (lambda: network(forward, {"W": (4,)}, "softmax"), InvalidTypeError, r"networks\.softmax"),
        (lambda: network(forward, {"W": (4, 3)}, precision="half"), InvalidInputError, "'single'"),
        (lambda: network(forward, {"sigma": (4, 1)}, normal()), InvalidInputError, "sigma is a parameter of"),
        (lambda: normal(0.0), InvalidInputError, "sigma must be positive"),
        (lambda: networks.dense([4]), InvalidInputError, "inputs and outputs"),
        (lambda: networks.dense("43"), InvalidTypeError, "widths must be a list"),
        (lambda: networks.dense([4, 2.0]), InvalidTypeError, "a width must be an integer"),
        (lambda: networks.dense([4, 3], "sine"), InvalidInputError, "activation must be one of"),
        (lambda: networks.tabl(steps=0), InvalidInputError, "steps must be at least 1"),
    ]
    for make, kind, message in cases:
        with pytest.raises(kind, match=message):
            make()
    flat = networks.Network(lambda w, X: X @ w["w"], {"w": (4,)})
    with pytest.raises(InvalidInputError, match=r"outputs of shape \(2,\) of two rows.*expected \(2, K\)"):
        flat(np.zeros((1, 4)), X, Y)
    with pytest.raises(InvalidInputError, match=r"rows of shape \(10, 40\): expected \(40, 10\)"):
        networks.tabl()(np.zeros((1, 234)), np.zeros((2, 10, 40)), [0, 1])
    with pytest.raises(InvalidInputError, match=r"softmax needs an output for each class.*networks\.normal"):
        networks.dense([4, 1])(np.zeros((1, 5)), X, Y)
    with pytest.raises(InvalidInputError, match="network of one output; got 3"):
        networks.dense([4, 3], likelihood=networks.normal())(np.zeros((1, 16)), X, X[:, 0])


def test_responses_that_the_default_prior_does_not_reach_get_advice():
    """N(0, I) on the weights holds a network near 0: far-off responses would be noise to it, without a word."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(50, 2)), 150.0 + rng.normal(size=50)
    network = networks.dense([2, 3, 1], likelihood=networks.normal(), precision="double")
    with pytest.warns(ScaleWarning, match=r"root mean square of y is 150.*subtract the mean"):
        Problem(network.on(rows, y))
    Problem(network.on(rows, y), Gaussian(variance=1e4, dim=network.dim))
    Problem(network.on(rows, y - 150.0))
    Problem(networks.dense([2, 3, 60]).on(rows, np.arange(50)))  # labels are no numbers
