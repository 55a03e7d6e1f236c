"""Slow directions of the bound: on a made-up bound whose rates are known, and on a ridge."""

import numpy as np
import pytest

from mgvbp.auto import constants
from mgvbp.auto.steps.slow import hidden
from mgvbp.families import Full
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.surface import Surface

RATES = np.array([1.0, 0.9, 0.1])


def surfaces(optimum):
    """Surfaces whose leaps take the share ``RATES`` of the way to the mean ``optimum``, for q with covariance I."""

    def look(q):
        g = q.family.to_frame(q.factor, RATES * (optimum - q.mean))
        return Surface(q, 0.0, 0.0, g, np.zeros((3, 3)), 100, 100.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)

    return look


def test_what_is_hidden_is_that_of_the_slow_direction():
    q = Gaussian.from_factor(np.zeros(3), np.eye(3), Full(3))
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((8, 3))
    noise -= noise.mean(axis=0)
    shares = [(surfaces(0.01 * row), 0.125) for row in noise]
    start = np.array([0.1, 0.1, 0.1])
    found = hidden(q, surfaces(start), shares, surfaces(np.array([1.0, 1.0, 0.5])), (100.0, 50.0), 0.01)
    variance = float(np.var(RATES[2] * 0.01 * noise[:, 2], ddof=1)) / 8.0
    assert found.noise == pytest.approx(0.5 * (1.0 / 0.1 - 1.0) * variance, rel=1e-3)
    # ½ λ x² nats, x = 0.5, times what is not known of λ, less the noise of the fresh draws and of all
    cost = 0.5 * constants.SLOWER / 0.1 * variance * 100.0
    chance = cost / 50.0 + cost / 100.0
    shown = 0.5 * constants.SLOWER * 0.1 * 0.5**2 - chance
    assert found.shown == pytest.approx(shown, rel=1e-3)
    most = constants.FRESH_SHARE * 100.0
    assert found.needed == pytest.approx(min(cost / (constants.FRESH_NOISE * 0.01), most), rel=1e-3)
    # what noise alone may show says nothing
    x = np.sqrt(chance / (0.5 * constants.SLOWER * 0.1))
    for share, counts in ((0.9, False), (1.1, True)):
        fresh = surfaces(np.array([0.0, 0.0, x * np.sqrt(share * constants.BY_CHANCE)]))
        found = hidden(q, surfaces(start), shares, fresh, (100.0, 50.0), 0.01)
        assert (found.shown > 0.0) == counts


def test_nothing_is_hidden_where_leaps_arrive():
    q = Gaussian.from_factor(np.zeros(2), np.eye(2), Full(2))

    def look(at):
        g = at.family.to_frame(at.factor, 0.3 - at.mean)
        return Surface(at, 0.0, 0.0, g, np.zeros((2, 2)), 100, 100.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)

    assert hidden(q, look, [(look, 0.5), (look, 0.5)], look, (100.0, 50.0), 0.01) == (0.0, 0.0, 0.0)
    assert hidden(q, lambda at: None, [(look, 0.5), (look, 0.5)], look, (100.0, 50.0), 0.01) == (
        0.0,
        0.0,
        0.0,
    )
