"""The search for networks and minibatches: closed forms, the updates of others, and steps that would diverge."""

import math

import numpy as np
import pytest

import mgvbp
from mgvbp import ConvergenceWarning, Gaussian, Minibatches, Problem
from mgvbp.auto.stream import StreamSearch
from mgvbp.auto.stream.adam import Adam
from mgvbp.auto.stream.state import Stage
from mgvbp.auto.stream.step import LARGEST, stepped
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.estimators import Estimate
from mgvbp.families import Diagonal, Full

N, D = 90, 4
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, D)) @ np.array([[1.0, 0.6, 0, 0], [0, 1.0, 0, 0], [0, 0, 2.0, 0], [0, 0, 0.5, 1.0]])
Y = X @ np.array([1.0, -0.5, 0.3, 0.0]) + RNG.normal(size=N)
PRIOR = Gaussian(variance=4.0, dim=D)


class Linear:
    """A regression with noise of variance 1, and its gradient, which is multiplied by ``factor``."""

    sums_over_rows = True

    def __init__(self, factor=1.0):
        self.factor = factor

    def __call__(self, theta, X, y):
        return self.value_and_grad(theta, X, y)[0]

    def value_and_grad(self, theta, X, y):
        residuals = y - theta @ X.T
        return -0.5 * (residuals**2).sum(axis=1), self.factor * residuals @ X


def batches(size=30, factor=1.0):
    return Minibatches(Linear(factor), X, Y, batch_size=size)


def exact(family):
    """The best Gaussian of the family, and its lower bound."""
    P = X.T @ X + np.eye(D) / 4.0
    mean = np.linalg.solve(P, X.T @ Y)
    q = Gaussian(mean, precision=np.diag(P) if isinstance(family, Diagonal) else P)
    quadratic = -0.5 * ((Y - X @ mean) ** 2).sum() - 0.5 * np.trace(X.T @ X @ q.covariance)
    prior = -0.5 * (mean @ mean + np.trace(q.covariance)) / 4.0 - 0.5 * D * math.log(2 * math.pi * 4.0)
    entropy = (
        0.5 * D * (1.0 + math.log(2 * math.pi)) + np.log(q.std if isinstance(family, Diagonal) else 1.0).sum()
    )
    if not isinstance(family, Diagonal):
        entropy -= 0.5 * np.linalg.slogdet(P)[1]
    return q, quadratic + prior + entropy


# --- closed forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [30, N])
@pytest.mark.parametrize("family", ["diagonal", "full"])
def test_the_best_gaussian_of_a_linear_model(size, family):
    problem = Problem(batches(size), PRIOR)
    structure = Diagonal(D) if family == "diagonal" else Full(D)
    search = run(problem, StreamSearch(problem, structure, rng=1))
    q, bound = exact(structure)
    best = search.best
    assert search.converged
    # it stops when rounds gain less than 0.1 nats, and some of them are the noise of 64 draws
    assert abs(best.lower_bound - bound) < 0.5 + 5.0 * best.lower_bound_se
    assert np.abs((best.q.mean - q.mean) / q.std).max() < 0.5
    np.testing.assert_allclose(best.q.std, q.std, rtol=0.25)


def run(problem, search):
    """The loop, by hand."""
    while search.ending is None:
        t = search.state.iteration + 1
        search.tell(*problem.evaluate_at(t, search.ask(), "gradients"))
    return search


def test_fit_takes_the_search_for_minibatches():
    posterior = mgvbp.fit(batches(), PRIOR)
    assert isinstance(posterior.family, Diagonal)
    assert posterior.method == "auto"
    assert posterior.converged
    assert posterior.gap is None
    assert "how far it is below its maximum is not known" in posterior.stop_reason
    assert {"point", "curve", "step", "check", "verify"} == set(posterior.trace.phase)
    diagnosis = posterior.diagnose(2000)
    assert abs(diagnosis.elbo - posterior.lower_bound) < 5.0 * math.hypot(
        diagnosis.elbo_se, posterior.lower_bound_se
    )


def test_all_data_at_once_keep_the_certificate():
    posterior = mgvbp.fit(batches(None), PRIOR)
    assert isinstance(posterior.family, Full)
    assert posterior.gap < 0.01


# --- the updates ----------------------------------------------------------------------------------------


def test_adam_is_that_of_optax():
    optax, jax = pytest.importorskip("optax"), pytest.importorskip("jax")
    gradients = np.random.default_rng(0).normal(size=(20, 5)) * [1e-3, 1.0, 10.0, 1.0, 1e3]
    ours = Adam.at(np.ones(5), 0.05)
    with jax.enable_x64(True):
        method = optax.adam(0.05)
        theta = jax.numpy.ones(5)
        state = method.init(theta)
        for gradient in gradients:
            ours = ours.moved(gradient, np.ones(5))
            change, state = method.update(-gradient, state)
            theta = theta + change
    np.testing.assert_allclose(ours.theta, theta, rtol=1e-5)


def test_rounds_of_adam_are_kept_or_undone():
    first = Adam.at(np.zeros(2), 0.1)._replace(theta=np.ones(2))
    higher = first.judged(-5.0, tol=0.1)
    assert np.array_equal(higher.theta, np.ones(2))
    assert higher.step == 0.1
    lower = higher._replace(theta=np.full(2, 2.0)).judged(-6.0, tol=0.1)
    assert np.array_equal(lower.theta, np.ones(2))
    assert lower.step == 0.025
    assert lower.value == -5.0
    hardly = higher._replace(theta=np.full(2, 2.0)).judged(-4.95, tol=0.1)
    assert np.array_equal(hardly.theta, np.full(2, 2.0))
    assert hardly.step == 0.025


def test_a_step_is_that_of_ivon():
    """Shen et al. 2024, Algorithm 1: h ← h + ρ(ĥ − h) + ½ρ²(ĥ − h)²/(h + δ), m ← m + β ḡ / (h + δ); here P = h + δ."""
    rng = np.random.default_rng(1)
    mean, P, curvature, gradient, old = (
        rng.normal(size=3),
        *rng.uniform(1.0, 2.0, size=(2, 3)),
        *rng.normal(size=(2, 3)),
    )
    q = Gaussian(mean, precision=P)
    estimate = Estimate(gradient / np.sqrt(P), 0.5 * (curvature / P - 1.0), 0.0)
    after, momentum = stepped(q, old, estimate, 0.3, 0.2)
    average = 0.9 * old + 0.1 * gradient
    expected = P + 0.2 * (curvature - P) + 0.5 * 0.2**2 * (curvature - P) ** 2 / P
    np.testing.assert_allclose(momentum, average)
    np.testing.assert_allclose(1.0 / after.std**2, expected)
    np.testing.assert_allclose(after.mean, mean + 0.3 * average / expected)


def test_a_step_changes_the_precision_by_a_bounded_factor():
    q = Gaussian(np.zeros(2), precision=np.ones(2))
    after, _ = stepped(q, None, Estimate(np.zeros(2), np.array([1e9, -1e9]), 0.0), 0.0, 0.1)
    np.testing.assert_allclose(
        1.0 / after.std**2, [1 + LARGEST + LARGEST**2 / 2, 1 - LARGEST + LARGEST**2 / 2]
    )
    with pytest.raises(DivergenceError):
        stepped(q, None, Estimate(np.full(2, np.inf), np.zeros(2), 0.0), 0.1, 0.1)


# --- safeguards -----------------------------------------------------------------------------------------


class Correlated:
    """A Gaussian log density with equal correlations r, whose precision has the eigenvalue 1 + (d − 1)r.

    With the precisions 1 of the best diagonal Gaussian, steps of β with momentum 0.9 diverge if β times that is above
    2 (1 + 0.9)/(1 − 0.9) = 38.
    """

    def __init__(self, dim=200, r=0.95):
        self.P = (1.0 - r) * np.eye(dim) + r

    def value_and_grad(self, theta):
        return -0.5 * ((theta @ self.P) * theta).sum(axis=1), -theta @ self.P

    def __call__(self, theta):
        return self.value_and_grad(theta)[0]


def test_steps_that_diverge_are_undone():
    problem = Problem(Correlated(), dim=200)
    search = run(problem, StreamSearch(problem, Diagonal(200), initial_mean=np.full(200, 0.5)))
    assert search.state.undone > 0
    assert search.state.longest < 0.5
    assert search.best.lower_bound >= search.state.start.lower_bound
    # the best diagonal Gaussian has the precisions 1 and the mean 0
    bound = -0.5 * 200 + 0.5 * 200 * (1.0 + math.log(2 * math.pi))
    assert abs(search.best.lower_bound - bound) < 2.0 + 5.0 * search.best.lower_bound_se


def test_a_wrong_gradient_does_no_worse_than_its_start():
    problem = Problem(batches(30, factor=-1.0), PRIOR)
    search = run(problem, StreamSearch(problem, Diagonal(D)))
    assert search.best.lower_bound >= search.state.start.lower_bound
    with pytest.warns(ConvergenceWarning) as caught:
        posterior = mgvbp.fit(batches(30, factor=-1.0), PRIOR)
    assert not posterior.converged
    assert "not converged" in str(caught[0].message)


def test_a_density_that_ends_abruptly_is_climbed_to_its_wall():
    """Values beyond the wall are not finite: ADAM and the steps go back, and the result is finite."""

    class Walled(Linear):
        def value_and_grad(self, theta, X, y):
            values, gradients = super().value_and_grad(theta, X, y)
            return np.where(theta[:, 0] > 3.0, np.nan, values), gradients

    problem = Problem(Minibatches(Walled(), X, Y, batch_size=30), PRIOR)
    search = run(problem, StreamSearch(problem, Diagonal(D)))
    assert np.isfinite(search.best.lower_bound)
    with pytest.raises(DivergenceError, match="another initial_mean"):
        mgvbp.fit(problem.log_likelihood, PRIOR, initial_mean=np.full(D, 4.0))


@pytest.mark.parametrize("method", [mgvbp.MGVBP(step_size=0.3, precision_scale=2.0, max_iterations=120)])
def test_a_named_method_that_falls_below_its_start_returns_it(method):
    start = {"initial_mean": np.full(200, 0.01), "initial_variance": 1.0}
    with pytest.warns(ConvergenceWarning, match=r"diverged.*fell.*the start is returned.*smaller step_size"):
        posterior = mgvbp.fit(Correlated(), dim=200, method=method, family="diagonal", num_draws=20, **start)
    assert not posterior.converged
    assert np.array_equal(posterior.mean, start["initial_mean"])
    assert "fell from" in posterior.stop_reason
    assert posterior.lower_bound == pytest.approx(posterior.trace.lower_bound[0])


# --- limits, checkpoints, refusals ----------------------------------------------------------------------


def test_a_run_goes_on_from_its_checkpoint_bit_for_bit(tmp_path):
    options = {"rng": 2, "max_iterations": 400}
    with pytest.warns(ConvergenceWarning, match="max_iterations"):
        whole = mgvbp.fit(batches(), PRIOR, **options)
    phase = whole.trace.phase.tolist()
    for k in sorted({phase.index(name) + 1 for name in phase}):
        path = tmp_path / f"{k}.npz"
        with pytest.warns(ConvergenceWarning, match="callback"):
            mgvbp.fit(
                batches(), PRIOR, checkpoint=path, callback=lambda it, k=k: it.iteration == k, **options
            )
        with pytest.warns(ConvergenceWarning, match="max_iterations"):
            again = mgvbp.resume(path, batches())
        assert np.array_equal(again.mean, whole.mean)
        assert np.array_equal(again.factor, whole.factor)
        assert again.trace.lower_bound.tolist() == whole.trace.lower_bound.tolist()


def test_limits():
    with pytest.warns(ConvergenceWarning, match="max_iterations = 150"):
        posterior = mgvbp.fit(batches(), PRIOR, max_iterations=150)
    assert len(posterior.trace) <= 150
    with pytest.warns(ConvergenceWarning, match="there is no lower bound yet"):
        assert mgvbp.fit(batches(), PRIOR, max_iterations=3).lower_bound == -np.inf
    for most in (1, 400, 905, 1500):  # within ADAM, the curvature, a check and the steps
        with pytest.warns(ConvergenceWarning, match=f"max_evaluations = {most}"):
            assert mgvbp.fit(batches(), PRIOR, max_evaluations=most).n_evaluations <= most


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starts": 2}, "starts= is not for networks"),
        ({"noise": 0.1}, "noise= is not for networks"),
        ({"num_draws": 10}, "chooses its own draws"),
        ({"family": "mixture"}, "not for networks and minibatches"),
    ],
)
def test_what_goes_with_other_methods_is_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        mgvbp.fit(batches(), PRIOR, **options)


def test_the_stages_have_short_names():
    assert max(len(stage) for stage in Stage) <= 8  # the trace keeps as many letters
