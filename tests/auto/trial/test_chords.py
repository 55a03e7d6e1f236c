"""Values against gradients: jumps, which gradients do not show, wrong gradients, and smooth targets."""

import numpy as np
import pytest

import mgvbp
from mgvbp.auto.trial.chords import Chords, contradiction
from mgvbp.core.outcome import Outcome

TOL = 0.01


def walked(value, slope, seed=0, dim=3, count=60):
    """The chords between draws of N(0, I) at their end, and the evaluations that they took."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((count, dim))
    chords, evaluations = Chords.among(theta, value(theta), slope(theta), TOL, rng), 0
    while not chords.ended:
        points = chords.ask()
        evaluations += len(points)
        chords = chords.tell(value(points), slope(points))
    return chords, evaluations


def student(theta):
    return -3.0 * np.log1p(theta**2 / 5.0).sum(axis=1)


def student_slope(theta):
    return -6.0 * theta / (5.0 + theta**2)


def test_a_quadratic_takes_no_evaluation():
    chords, evaluations = walked(lambda t: -0.5 * (t**2).sum(axis=1), lambda t: -t)
    assert contradiction(chords) is None
    assert evaluations == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_smooth_function_takes_few_evaluations(seed):
    chords, evaluations = walked(student, student_slope, seed)
    assert contradiction(chords) is None
    assert evaluations < 64  # four for each chord


@pytest.mark.parametrize("seed", range(5))
def test_a_kink_and_a_wall_are_no_jumps(seed):
    def value(theta):
        return -3.0 * np.abs(theta[:, 0]) - 1e4 * np.maximum(theta[:, 1] - 1.0, 0.0) ** 2

    def slope(theta):
        wall = -2e4 * np.maximum(theta[:, 1] - 1.0, 0.0)
        return np.stack([-3.0 * np.sign(theta[:, 0]), wall, np.zeros(len(theta))], axis=1)

    assert contradiction(walked(value, slope, seed)[0]) is None


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("height", [1.0, 30.0])
def test_the_height_of_a_jump_is_found(seed, height):
    chords, _ = walked(lambda t: student(t) - height * (t.sum(axis=1) > 1.0), student_slope, seed)
    refused = contradiction(chords)
    assert refused is not None
    assert refused.outcome is Outcome.JUMP
    assert chords.jump == pytest.approx(height, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("factors", [(1.24, 1.24, 1.24), (1.0, 2.0, 1.0)])
def test_a_wrong_gradient_is_found(seed, factors):
    chords, _ = walked(student, lambda t: student_slope(t) * factors, seed)
    refused = contradiction(chords)
    assert refused is not None
    assert refused.outcome is Outcome.DISAGREE


def test_small_jumps_and_lost_points_are_left_alone():
    chords, _ = walked(lambda t: student(t) - 0.05 * (t[:, 0] > 0.0), student_slope)
    assert contradiction(chords) is None

    def failing(theta):
        return np.where(np.abs(theta[:, 0]) < 0.5, np.nan, student(theta) - 5.0 * (theta[:, 0] > 0.0))

    with np.errstate(invalid="ignore"):
        rng = np.random.default_rng(0)
        theta = rng.standard_normal((200, 3))
        theta = theta[np.abs(theta[:, 0]) > 0.5]
        chords = Chords.among(theta, failing(theta), student_slope(theta), TOL, rng)
        while not chords.ended:
            chords = chords.tell(failing(chords.ask()), student_slope(chords.ask()))
    assert contradiction(chords) is None


def dropped(theta):
    """N(0, I) with a drop of 3 nats behind a plane: its gradient is −θ almost everywhere."""
    return -0.5 * (theta**2).sum(axis=1) - 3.0 * (theta.sum(axis=1) > np.sqrt(theta.shape[1]))


FAMILIES = {
    "full": (20, "full"),
    "many": (110, "full"),
    "sparse": (8, mgvbp.SparsePrecision.banded(8, 1)),
    "low rank": (20, mgvbp.LowRank()),
}


@pytest.mark.filterwarnings("ignore::mgvbp.ConvergenceWarning")
@pytest.mark.parametrize("name", FAMILIES)
def test_jumps_are_not_certified_by_gradients(name):
    dim, family = FAMILIES[name]
    for rng in range(3):
        posterior = mgvbp.fit(dropped, dim=dim, family=family, grad=lambda t: -t, rng=rng)
        assert not posterior.converged
        assert "the values jump by 3 nats" in posterior.stop_reason
        assert posterior.gap == np.inf
        assert not posterior.checks[-1].passed


def test_few_parameters_are_certified_by_their_values():
    """The bound of N(m, s²) along the plane's normal, by quadrature; the other parameters are N(0, 1)."""
    from scipy.optimize import minimize
    from scipy.stats import norm

    def loss(x):
        m, s = x[0], np.exp(x[1])
        return 0.5 * (m * m + s * s - 1.0) - x[1] + 3.0 * norm.sf((1.0 - m) / s)

    best = -minimize(loss, [0.0, 0.0]).fun + 0.5 * 4 * np.log(2.0 * np.pi)
    posterior = mgvbp.fit(dropped, dim=4, grad=lambda t: -t, rng=0)
    u = np.full(4, 0.5)
    m, s = float(u @ posterior.mean), float(np.sqrt(u @ posterior.covariance @ u))
    kl = 0.5 * (posterior.mean @ posterior.mean + np.trace(posterior.covariance) - 4.0)
    kl -= 0.5 * np.linalg.slogdet(posterior.covariance)[1]
    bound = 0.5 * 4 * np.log(2.0 * np.pi) - kl - 3.0 * norm.sf((1.0 - m) / s)
    assert posterior.converged
    assert best - bound < posterior.gap + 3.0 * posterior.gap_se + 0.01


@pytest.mark.filterwarnings("ignore::mgvbp.ConvergenceWarning")
@pytest.mark.parametrize("family", [mgvbp.SparsePrecision.banded(20, 1), mgvbp.LowRank()])
def test_wrong_gradients_are_not_certified_by_structured_searches(family):
    def value(theta):
        return -0.5 * (theta**2).sum(axis=1)

    for rng in range(2):
        posterior = mgvbp.fit(
            value, dim=20, family=family, grad=lambda t: -1.24 * t, rng=rng, max_evaluations=20_000
        )
        assert not posterior.converged


@pytest.mark.parametrize("family", ["full", mgvbp.SparsePrecision.banded(6, 1), mgvbp.LowRank()])
def test_smooth_targets_far_from_gaussian_are_certified_still(family):
    posterior = mgvbp.fit(student, dim=6, family=family, grad=student_slope, rng=0)
    assert posterior.converged
    assert any(check.name == "gradients" and check.passed for check in posterior.checks)
