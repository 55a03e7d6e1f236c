"""Climbs of the bound of diagonal Gaussians on fixed points, and what the search makes of their ends."""

import math

import numpy as np
import pytest

from mgvbp import Auto, Gaussian
from mgvbp.auto.arrival.climb import POINTS, Climb, fixed_points


def climbed(function, climb):
    steps = 0
    while not climb.arrived:
        climb = climb.tell(*function(climb.ask()))
        steps += 1
    return climb, steps


def independent(mean, sd):
    def function(theta):
        z = (theta - mean) / sd
        return -0.5 * np.square(z).sum(axis=1) - np.log(sd).sum(), -z / sd

    return function


def test_fixed_points_are_pairs_of_variance_one():
    eps = fixed_points(POINTS, 5, np.random.default_rng(1))
    np.testing.assert_allclose(eps[: POINTS // 2], -eps[POINTS // 2 :])
    np.testing.assert_allclose(np.square(eps).mean(axis=0), 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_independent_normals_are_found_with_their_bound(seed):
    """On points with mean 0 and variance 1 the bound of independent normals is exact: 0 without the constant of f."""
    mean, sd = np.array([3.0, -1.0, 0.2]), np.array([0.1, 1.0, 7.0])
    first = Gaussian(np.ones(3), variance=4.0)
    climb = Climb.start(np.zeros(3), np.zeros(3), np.random.default_rng(seed))
    function = independent(mean, sd)

    def in_frame(x):
        values, slopes = function(first.mean + 2.0 * x)
        return values, 2.0 * slopes

    climb, _ = climbed(in_frame, climb)
    q = climb.gaussian(first)
    exact = -0.5 * (((q.mean - mean) / sd) ** 2 + (q.std / sd) ** 2).sum() + np.log(q.std / sd).sum() + 1.5
    exact += 1.5 * math.log(2.0 * math.pi)
    assert climb.lower_bound(first) == pytest.approx(exact, abs=1e-8)
    assert 1.5 * math.log(2.0 * math.pi) - exact < 1.5  # it ends when little is promised, not at the optimum


def test_the_gradient_of_the_bound_is_that_of_differences():
    climb = Climb.start(np.array([0.3, -0.2]), np.array([-0.5, 0.1]), np.random.default_rng(3))

    def function(x):
        return -np.cosh(x).sum(axis=1) - x[:, 0] ** 2 * x[:, 1] ** 2, np.stack(
            [-np.sinh(x[:, 0]) - 2 * x[:, 0] * x[:, 1] ** 2, -np.sinh(x[:, 1]) - 2 * x[:, 0] ** 2 * x[:, 1]],
            axis=1,
        )

    told = climb.tell(*function(climb.ask()))
    x, eps = told.ascent.here.x, climb.points

    def bound(x):
        return function(x[:2] + np.exp(x[2:]) * eps)[0].mean() + x[2:].sum()

    slopes = [(bound(x + 1e-6 * e) - bound(x - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(told.ascent.here.gradient, slopes, atol=1e-6)
    assert told.value == pytest.approx(bound(x))


def test_a_start_that_is_not_finite_is_narrowed_and_a_flat_direction_ends_the_climb():
    def half(x):
        inside = x[:, 0] > -0.1
        values = np.where(inside, -np.square(x).sum(axis=1), -np.inf)
        return values, np.where(inside[:, None], -2.0 * x, np.nan)

    climb, _ = climbed(half, Climb.start(np.zeros(2), np.zeros(2), np.random.default_rng(0)))
    assert climb.halvings > 0
    assert climb.value > -math.inf
    flat, _ = climbed(
        lambda x: (-0.5 * x[:, 0] ** 2, -x * [1.0, 0.0]),
        Climb.start(np.zeros(2), np.zeros(2), np.random.default_rng(0)),
    )
    assert flat.is_improper
    nowhere, steps = climbed(
        lambda x: (np.full(len(x), np.nan), np.full(x.shape, np.nan)),
        Climb.start(np.zeros(2), np.zeros(2), np.random.default_rng(0)),
    )
    assert nowhere.value == -math.inf
    assert steps < 20


def hierarchy(groups, seed=0):
    """Centred, with a flat μ and a vague log τ: the density grows without bound in the neck, where all groups agree."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(groups) + 0.5 * rng.standard_normal(groups)

    def function(theta):
        mu, log_tau, a = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        with np.errstate(all="ignore"):
            z, r = (a - mu) * np.exp(-log_tau), (y - a) / 0.5
            values = -0.5 * (z**2 + r**2).sum(axis=1) - (groups - 1) * log_tau[:, 0]
            values = values - 0.005 * mu[:, 0] ** 2 - 0.5 * (log_tau[:, 0] / 2.0) ** 2
            slopes = np.concatenate(
                [
                    (z * np.exp(-log_tau)).sum(axis=1, keepdims=True) - 0.01 * mu,
                    (z**2).sum(axis=1, keepdims=True) - (groups - 1) - 0.25 * log_tau,
                    -z * np.exp(-log_tau) + r / 0.5,
                ],
                axis=1,
            )
        return values, slopes

    return function


def test_a_centred_hierarchy_is_not_pooled():
    """From 0 the density leads into the neck. The result is at least as good as the diagonal Gaussian of a climb.

    Its bound is judged on points that neither has seen.
    """
    function, d = hierarchy(15), 17
    optimizer = Auto().start(d, gradients=True)
    while not optimizer.stop_reason:
        optimizer.tell(*function(optimizer.ask()))
    assert optimizer.converged
    climb, _ = climbed(function, Climb.start(np.zeros(d), np.zeros(d), np.random.default_rng(7)))
    diagonal = climb.gaussian(Gaussian(np.zeros(d), variance=1.0))

    def bound(q):
        theta = q.sample(20_000, rng=5)
        return float((function(theta)[0] - q.log_density(theta)).mean())

    assert bound(optimizer.gaussian) > bound(diagonal) - 0.02
    assert optimizer.gaussian.mean[1] > -2.0


def test_a_floor_that_a_late_climb_runs_along_is_improper_and_no_error():
    def function(theta):  # a normal on a floor: the bound of a Gaussian grows with its width
        peak = -0.5 * np.square(theta).sum(axis=1)
        values = np.logaddexp(peak, -30.0)
        return values, -theta * np.exp(peak - values)[:, None]

    search = Auto().start(20, gradients=True)
    while not search.stop_reason:
        search.tell(*function(search.ask()))
    assert "improper" in search.stop_reason
    assert search.gap == math.inf
