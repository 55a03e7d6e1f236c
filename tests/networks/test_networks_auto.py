"""Networks by ``fit`` with nothing chosen: no worse than their start, predictions, files, progress; also of PyTorch."""

import numpy as np
import pytest

import mgvbp
from mgvbp import Gaussian, networks
from mgvbp.families import Diagonal, Full

pytest.importorskip("jax")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)  # no line separates them
pytestmark = pytest.mark.filterwarnings(
    "ignore:not converged, reached max_iterations:mgvbp.ConvergenceWarning"
)
RESPONSES = np.sin(2.0 * X[:, 0]) + 0.2 * RNG.normal(size=150)


@pytest.fixture(scope="module")
def fitted():
    network = networks.dense([4, 10, 2])
    return network, mgvbp.fit(network.on(X[:100], LABELS[:100], batch_size=50), rng=1, max_iterations=600)


def test_nothing_to_choose(fitted):
    network, posterior = fitted
    assert isinstance(posterior.family, Diagonal)
    assert posterior.gap is None
    bounds = posterior.trace.smoothed[np.isfinite(posterior.trace.smoothed)]
    assert posterior.lower_bound > bounds[0] + 5.0  # the first is that of the Gaussian at the mode
    scores = network.predict(posterior, X[100:]).score(LABELS[100:])
    assert scores.accuracy > 0.75
    assert scores.log_predictive_density > np.log(0.5)


def test_the_default_prior_is_standard_normal(fitted):
    network, posterior = fitted
    data = network.on(X[:100], LABELS[:100])
    prior = data.default_prior
    assert np.array_equal(prior.mean, np.zeros(network.dim))
    assert np.array_equal(prior.std, np.ones(network.dim))
    diagnosis = posterior.diagnose(400)
    assert abs(diagnosis.elbo - posterior.lower_bound) < 5.0 * np.hypot(
        diagnosis.elbo_se, posterior.lower_bound_se
    )


def test_files_and_calibration(fitted, tmp_path):
    network, posterior = fitted
    posterior.save(tmp_path / "network.npz")
    again = mgvbp.load(tmp_path / "network.npz")
    assert np.array_equal(again.mean, posterior.mean)
    assert again.stop_reason == posterior.stop_reason
    prediction = network.predict(again, X[100:])
    assert np.array_equal(prediction.probabilities, network.predict(posterior, X[100:]).probabilities)
    assert "calibration" in prediction.plot_reliability(LABELS[100:]).get_title("left")


def test_small_networks_and_full_covariances_keep_the_certificate():
    small = networks.dense([4, 2])
    assert mgvbp.fit(small.on(X, LABELS)).gap < 0.05
    network = networks.dense([4, 10, 2])
    problem = mgvbp.Problem(network.on(X, LABELS))
    assert mgvbp.auto.streams(problem, None)
    assert not mgvbp.auto.streams(problem, Full(network.dim))


def test_what_a_progress_bar_says():
    network = networks.dense([4, 10, 2])
    constant = network.weights.unconstrain(
        {name: np.zeros(t.shape) for name, t in network.weights.transforms.items()}
    )
    assert network.on(X, LABELS).remark(constant) == f"accuracy {np.mean(LABELS == 0):.1%}"
    regression = networks.dense([4, 10, 1], likelihood=networks.normal(1.0))
    assert regression.on(X, RESPONSES).remark(np.zeros(regression.dim)) == (
        f"RMSE {np.sqrt(np.mean(RESPONSES.astype(np.float32) ** 2)):.3g}"
    )


def test_progress_shows_the_accuracy(capsys):
    network = networks.dense([4, 10, 2])
    mgvbp.fit(network.on(X, LABELS, batch_size=75), max_iterations=60, progress=True)
    assert "accuracy" in capsys.readouterr().err


def test_a_module_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 10), torch.nn.Tanh(), torch.nn.Linear(10, 2))
    network = networks.from_torch(module, X[:2])
    data = network.on(X[:100], LABELS[:100], batch_size=50)
    assert np.array_equal(data.start.mean, network.initial)
    posterior = mgvbp.fit(data, Gaussian(variance=1.0, dim=network.dim), max_iterations=300)
    assert isinstance(posterior.family, Diagonal)
    scores = network.predict(posterior, X[100:]).score(LABELS[100:])
    assert scores.accuracy > 0.75
