"""The approach by values from far away."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mgvbp import Gaussian
from mgvbp.auto.arrival import approach as approach_module
from mgvbp.auto.arrival.approach import Approach, highest
from mgvbp.families import Full


def arrived(f, d, promise=0.01, budget=400):
    approach = Approach.start(d, budget)
    while not (approach.arrived(promise) or approach.lost):
        approach = approach.tell(f(approach.pending))
    return approach


@pytest.mark.parametrize("d", [1, 3, 7])
def test_the_step_is_the_best_of_the_ball(d):
    """Against SciPy's constrained optimiser, from many starts; curvatures of either sign."""
    rng = np.random.default_rng(d)
    for _ in range(6):
        g, H = rng.normal(size=d), rng.normal(size=(d, d)) * 3.0
        H = H + H.T
        step, value = highest(g, H)
        assert np.linalg.norm(step) <= 1.0 + 1e-8
        assert value == pytest.approx(g @ step + 0.5 * step @ H @ step)
        ball = {"type": "ineq", "fun": lambda s: 1.0 - s @ s}

        def minus(s, g=g, H=H):
            return -(g @ s + 0.5 * s @ H @ s)

        starts = rng.normal(size=(12, d)) / np.sqrt(d)
        ends = [minimize(minus, start, constraints=[ball], method="SLSQP").x for start in starts]
        others = [
            -minus(end / max(1.0, np.linalg.norm(end))) for end in ends
        ]  # SciPy's may lie a little outside
        assert value > max(others) - 1e-9


def test_without_a_slope_the_step_follows_the_curvature():
    step, value = highest(np.zeros(2), np.diag([1.0, 3.0]))
    assert np.abs(step) == pytest.approx([0.0, 1.0])
    assert value == pytest.approx(1.5)


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_it_finds_a_correlated_peak_with_few_points(d):
    """Fifty standard deviations away; a full quadratic alone has (d + 1)(d + 2)/2 coefficients."""
    rng = np.random.default_rng(d)
    root, peak = rng.normal(size=(d, d)) + 2.0 * np.eye(d), rng.normal(size=d) * 20.0
    approach = arrived(lambda x: -0.5 * np.square((x - peak) @ root).sum(axis=1), d)
    assert not approach.lost
    assert approach.values.max() > 0.02 * approach.values[0], (
        "what is left is for surfaces, which see all directions"
    )
    assert len(approach.values) < 15 * (d + 2)


def test_it_follows_a_curved_valley():
    """Rosenbrock's, whose maximum is 0 at (1, 1)."""

    def f(x):
        return -np.square(1.0 - x[:, 0]) - 100.0 * np.square(x[:, 1] - x[:, 0] ** 2)

    approach = arrived(f, 2, promise=1e-6, budget=200)
    assert approach.values.max() > -0.1


def test_values_that_are_not_finite_are_avoided():
    def f(x):
        return np.where(x[:, 0] > 0.5, -np.inf, -50.0 * np.square(x - [0.4, 3.0]).sum(axis=1))

    approach = arrived(f, 2)
    assert np.abs(approach.best - [0.4, 3.0]).max() < 0.1


def test_it_begins_only_far_away_and_where_the_axes_are_alike():
    def told(f):
        approach = Approach.start(3, 100)
        return approach.tell(f(approach.pending))

    scales = np.array([1.0, 1.0, 1e5])
    assert told(lambda x: -50.0 * np.square(x - 3.0).sum(axis=1)).far(10.0)
    assert not told(lambda x: -0.5 * np.square(x).sum(axis=1)).far(10.0)
    assert not told(lambda x: -np.square(scales * (x - 3.0)).sum(axis=1)).far(10.0)
    assert not told(lambda x: np.full(len(x), -np.inf)).far(10.0)


def test_its_gaussian_is_that_of_the_curvature():
    """In the frame of the initial Gaussian, here N(1, 4 I), and no wider than it."""
    precision = np.array([[30.0, 8.0], [8.0, 20.0]])
    first = Gaussian(np.ones(2), variance=4.0)

    def f(x):
        theta = 1.0 + 2.0 * x
        return -0.5 * np.einsum("ni,ij,nj->n", theta - 4.0, precision, theta - 4.0)

    q = arrived(f, 2, promise=1e-3).gaussian(first, Full(2))
    assert q.mean == pytest.approx([4.0, 4.0], abs=0.05)
    assert q.precision == pytest.approx(precision, rel=0.1)
    flat = Approach.start(2, 50).tell(np.array([0.0, -1e-9, -1e-9, -1e-9, -1e-9])).gaussian(first, Full(2))
    assert (flat.std <= first.std * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("scale", [1.0 - 1e-12, 1.0 + 1e-13])
def test_round_off_does_not_decide_where_it_goes(monkeypatch, scale):
    """A halved step is two half-axes long, and an unseen direction orthogonal to it: both but for round-off."""

    def values(theta):
        return (
            -0.5 * np.square(theta[:, 0] - 3.0) - np.exp(theta[:, 1]) - np.square(theta[:, 2] * theta[:, 1])
        )

    def path():
        approach, points = Approach.start(3, 60), []
        for _ in range(25):  # later on round-off has grown
            approach = approach.tell(values(approach.pending))
            points.append(approach.pending)
        return np.concatenate(points)

    straight = path()
    exact = approach_module.highest
    monkeypatch.setattr(approach_module, "highest", lambda g, H: (scale * exact(g, H)[0], exact(g, H)[1]))
    np.testing.assert_allclose(path(), straight, atol=1e-4)


def test_it_goes_on_from_a_surface_by_few_steps():
    """From N(0, I), far from a ridge that is a hundred times as long as wide; the surface has shown how it bends."""
    d, rng = 6, np.random.default_rng(0)
    U = np.linalg.qr(rng.normal(size=(d, d)))[0]
    precision, peak = (U * np.geomspace(1.0, 1e-4, d)) @ U.T, U @ np.full(d, 30.0)

    def f(x):
        return -0.5 * np.einsum("ni,ij,nj->n", x - peak, precision, x - peak)

    first, draws = Gaussian(variance=1.0, dim=d), rng.normal(size=(40, d))
    approach = Approach.onward(first, draws, f(draws), -precision, budget=100)
    assert not approach.climbing(1e9)
    while not (approach.arrived(0.01) or approach.lost):
        approach = approach.tell(f(approach.pending))
    assert approach.climbing(1.0)
    assert not approach.lost
    assert len(approach.values) - len(draws) < 20
    assert approach.values.max() > -0.01
    q = approach.gaussian(first, Full(d))
    assert np.linalg.eigvalsh(q.covariance).max() > 5.0, "wider than the Gaussian that it went on from"
