"""The Gaussians from which leaps might lead away from a saddle of the bound, in the frame of the one that is tried."""

from types import SimpleNamespace

import numpy as np
import pytest

from common import random_spd
from mgvbp import Gaussian
from mgvbp.auto import constants
from mgvbp.auto.steps import polish
from mgvbp.auto.steps.polish import higher, risen

D = 3
Q = Gaussian([1.0, -2.0, 0.5], variance=random_spd(np.random.default_rng(0), D))
BEST = np.array([0.5, -1.0, 1.0])
AXES = np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])


@pytest.fixture(scope="module")
def tried():
    """Means (d,) and covariances (d, d), in the frame of `Q`, of all that is looked at where nothing can be seen."""
    asked = []

    def never(q):
        raise AssertionError("nothing seemed to be higher")

    surface = SimpleNamespace(q=Q, num_draws=1, lower_bound=0.0)
    assert higher(surface, never, asked.append, 0.01, np.random.default_rng(1), BEST, AXES) is None
    assert asked.pop(0) is Q
    L = Q.family.dense_factor(Q.factor)
    return [(L.T @ (q.mean - Q.mean), L.T @ q.covariance @ L) for q in asked]


def test_at_the_highest_draw_and_narrower(tried):
    for (mean, covariance), narrow in zip(tried, (constants.NARROWED, constants.NARROWED**2), strict=False):
        np.testing.assert_allclose(mean, Q.family.to_frame(Q.factor, BEST - Q.mean), atol=1e-12)
        np.testing.assert_allclose(covariance, narrow**2 * np.eye(D), atol=1e-12)


def test_in_two_opposite_directions(tried):
    (mean, covariance), (opposite, inverse) = tried[2:4]
    assert np.linalg.norm(mean) == pytest.approx(constants.SHIFT)
    np.testing.assert_allclose(opposite, -mean, atol=1e-12)
    np.testing.assert_allclose(covariance @ inverse, np.eye(D), atol=1e-12)
    assert np.abs(np.log(np.linalg.eigvalsh(covariance))).max() == pytest.approx(constants.CHANGE)


def test_twice_as_wide_along_each_axis(tried):
    for axis, (mean, covariance) in zip(AXES, tried[4:6], strict=True):
        np.testing.assert_allclose(mean, 0.0, atol=1e-12)
        np.testing.assert_allclose(covariance, np.eye(D) + 3.0 * np.outer(axis, axis), atol=1e-9)


def test_on_either_half_of_each_axis(tried):
    halves = tried[6:-1]
    assert len(halves) == 2 * len(AXES)
    ends = {tuple(np.round(mean, 9) + 0.0) for mean, _ in halves}
    assert ends == {tuple(sign * axis + 0.0) for axis in AXES for sign in (1.0, -1.0)}
    for mean, covariance in halves:
        expected = np.eye(D) - (1.0 - constants.HALF**2) * np.outer(mean, mean)
        np.testing.assert_allclose(covariance, expected, atol=1e-9)


def test_around_it_and_wider(tried):
    mean, covariance = tried[-1]
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    np.testing.assert_allclose(covariance, constants.WIDE**2 * np.eye(D), atol=1e-12)


def test_what_seems_higher_must_be_higher_by_a_second_look():
    surface = SimpleNamespace(q=Q, num_draws=100, lower_bound=0.0, size=100.0)

    def seen(bound):
        return lambda q: SimpleNamespace(
            q=q, lower_bound=0.0 if q is Q else bound, lower_bound_se=0.1, size=100.0, clipped=False, gap=1.0
        )

    rng = np.random.default_rng
    found = higher(surface, seen(0.5), seen(0.4), 0.01, rng(1), BEST, AXES)
    assert found is not None
    assert found.lower_bound == 0.5
    with pytest.raises(
        AttributeError
    ):  # refuted by the second look, it goes on with the glance, which is a stub
        higher(surface, seen(0.05), seen(0.4), 0.01, rng(1), BEST, AXES)


@pytest.mark.parametrize(
    ("promises", "looks"), [((0.5, 0.25, 0.1, 0.05, 0.02), 4), ((0.01, 0.02, 0.03, 0.04, 0.05), 7)]
)
def test_leaps_that_promise_less_and_less_end_early(monkeypatch, promises, looks):
    """They lead back to a maximum; those that leave a saddle promise more and more."""
    calls = []

    def glance(q):
        if q is Q:
            return SimpleNamespace(lower_bound=0.0)
        calls.append(q)
        gap = promises[min(q, len(promises) - 1)]
        return SimpleNamespace(
            q=q, lower_bound=-0.2 + 0.01 * q, lower_bound_se=0.0, size=100.0, clipped=False, gap=gap
        )

    monkeypatch.setattr(polish, "_moved", lambda *moved: [0])
    monkeypatch.setattr(polish, "propose", lambda current, *radius, **how: SimpleNamespace(q=current.q + 1))
    surface = SimpleNamespace(q=Q, num_draws=100, lower_bound=0.0, size=100.0)
    assert higher(surface, None, glance, 0.01, np.random.default_rng(1), BEST, AXES) is None
    assert calls == list(range(looks))


def seen(q, target, values=0.0, se=0.0):
    """The exact surface of a Gaussian target at q, but for an error of the bound."""
    L = q.family.dense_factor(q.factor)
    inverse = np.linalg.inv(L)
    P = target.precision
    G = 0.5 * (inverse @ P @ inverse.T - np.eye(D))
    g = inverse @ P @ (target.mean - q.mean)
    shift = q.mean - target.mean
    divergence = 0.5 * (np.trace(P @ q.covariance) - D + shift @ P @ shift)
    divergence -= 0.5 * (np.linalg.slogdet(P)[1] - np.linalg.slogdet(q.precision)[1])
    return SimpleNamespace(q=q, lower_bound=values - divergence, lower_bound_se=se, g=g, G=G, slopes=True)


def test_a_gain_is_taken_from_the_slopes_within_the_error_of_the_values():
    rng = np.random.default_rng(2)
    target = Gaussian(rng.standard_normal(D), variance=random_spd(rng, D))
    L = target.family.dense_factor(target.factor)
    near, far = (
        Gaussian(
            target.mean + size * np.linalg.solve(L.T, np.ones(D)), variance=(1.0 + size) * target.covariance
        )
        for size in (0.02, 0.1)
    )
    exact = risen(seen(far, target), seen(near, target))
    assert exact > 0.01
    assert risen(seen(far, target, se=1.0), seen(near, target, 0.3)) == pytest.approx(exact, rel=0.03)
    # what the values rule out is not believed
    assert risen(seen(far, target, se=0.01), seen(near, target, 0.3)) == pytest.approx(exact + 0.3 - 0.02)
    by_values = seen(far, target)
    by_values.slopes = False
    assert risen(by_values, seen(near, target, 0.3)) == pytest.approx(exact + 0.3)
