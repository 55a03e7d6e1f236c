"""Saddles of the bound, several modes, and modes that cannot be reached."""

from __future__ import annotations

import numpy as np

from .base import add
from .common import bump, normal
from .pieces import Piece


def cross(ratio: float, log_weight: float = 0.0) -> Piece:
    """Two long normals at right angles: the best Gaussian is one of them, the symmetric one a saddle."""
    return Piece(
        lambda x, y: np.logaddexp(log_weight - 0.5 * (x**2 + ratio * y**2), -0.5 * (y**2 + ratio * x**2)), 2
    )


def double_well(barrier: float) -> Piece:
    """Two wells at -2 and 2, with a barrier between them of so many nats."""
    return Piece(lambda x: -barrier * (x**2 / 4.0 - 1.0) ** 2, starts=(2.0,))


def arms(x, y, z):
    """Three long normals at right angles in three dimensions."""
    total = x**2 + y**2 + z**2
    return np.logaddexp.reduce([-0.5 * (30.0 * total - 29.0 * a**2) for a in (x, y, z)])


pair = Piece(lambda x: np.logaddexp(bump(x, -2.5, 1.0), bump(x, 2.5, 1.0)), starts=(2.5,))
ring = Piece(lambda x, y: -2.0 * (np.hypot(x, y) - 3.0) ** 2, 2, starts=(2.0,))
hyperbolic = Piece(lambda x, y: -5.0 * x**2 * y**2 - 0.02 * (x**2 + y**2), 2)

add("saddle", "saddle_cross", cross(100.0), gradients=True)
add("saddle", "saddle_cross_rotated", cross(100.0), mix=1, shift=(1.0, -2.0), gradients=True)
add("saddle", "saddle_cross_in_3", cross(100.0), normal, mix=2, gradients=True)
add("saddle", "saddle_two_crosses_in_5", cross(100.0), cross(30.0), normal, mix=3, gradients=True)
add("saddle", "saddle_cross_unequal", cross(30.0, 0.3), gradients=True)
add("saddle", "saddle_cross_mild", cross(8.0), gradients=True)
add("saddle", "saddle_three_arms", Piece(arms, 3, starts=((1.0, 0.0, 0.0),)), gradients=True)
add("saddle", "saddle_pair", pair, gradients=True)
add("saddle", "saddle_pair_in_3", pair, normal, normal, mix=4, gradients=True)
add("saddle", "saddle_double_well", double_well(2.0), gradients=True)
add("saddle", "saddle_double_well_in_2", double_well(3.0), normal, mix=5, gradients=True)
add("saddle", "saddle_ring", ring, gradients=True)
add("saddle", "saddle_hyperbolic", hyperbolic, gradients=True)
oblique = Piece(lambda x, y: cross(30.0).f(x + y, x - y), 2)
add("saddle", "saddle_diagonal", oblique, family="diagonal", gradients=True)
add("saddle", "saddle_hyperbolic_in_4", hyperbolic, normal, normal, mix=6, gradients=True)


def two(weight: float, centre: float, sd: float = 1.0, first: float = 0.0) -> Piece:
    """A normal at ``first`` and one of this weight elsewhere."""
    return Piece(
        lambda x: np.logaddexp(bump(x, first, 1.0, np.log1p(-weight)), bump(x, centre, sd, np.log(weight))),
        starts=(first, centre),
    )


def blobs(d: int, centre: float, sd: float, weight: float) -> Piece:
    """A normal at zero and a round one elsewhere."""

    def f(*x):
        near, far = (sum((a - c) ** 2 for a in x) for c in (0.0, centre))
        return np.logaddexp(
            np.log1p(-weight) - 0.5 * near, np.log(weight) - d * np.log(sd) - 0.5 * far / sd**2
        )

    return Piece(f, d, starts=(0.0, centre))


def three(x):
    """Three modes, the least of them in the middle."""
    return np.logaddexp.reduce([bump(x, c, 0.6, w) for c, w in ((-4.0, -0.5), (0.0, -1.5), (4.0, -0.9))])


def beale(x, y):
    """Two terms of Beale's function, with a wide prior."""
    return -((1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2) / 2.0 - 0.02 * (x**2 + y**2)


def rastrigin(x, y):
    return -0.1 * (x**2 + y**2) + 2.0 * (np.cos(3.0 * x) + np.cos(3.0 * y + 1.0))


t = np.linspace(0.0, 6.0, 25)
oscillation = np.sin(1.7 * t) + 0.3 * np.random.default_rng(11).standard_normal(25)
decay = 2.0 * np.exp(-0.3 * t) + np.exp(-2.5 * t) + 0.1 * np.random.default_rng(12).standard_normal(25)
sample = np.concatenate([-2.0 + 0.3 * t[:8], 1.0 + 0.3 * t[:15]])
growth = 5.0 / (1.0 + 20.0 * np.exp(-1.2 * t)) + 0.3 * np.random.default_rng(13).standard_normal(25)


def frequency(w, a):
    """The frequency and amplitude of a sine: the likelihood has a mode for each beat."""
    misfit = a * np.sin(w[..., None] * t).T - oscillation[:, None]
    return -0.5 * (misfit**2).sum(axis=0) / 0.09 - 0.5 * ((w / 3.0) ** 2 + (a / 2.0) ** 2)


def phase(w, shift):
    """The frequency and phase of a cosine with a known amplitude."""
    misfit = np.cos(w[..., None] * t + shift[..., None]).T - oscillation[:, None]
    return -0.5 * (misfit**2).sum(axis=0) / 0.09 - 0.5 * ((w / 3.0) ** 2 + (shift / 3.0) ** 2)


def two_means(a, b):
    """The means of a mixture of two normals with weights 0.4 and 0.6."""
    left, right = (bump(sample[:, None], mean, 0.7, w) for mean, w in ((a, np.log(0.4)), (b, np.log(0.6))))
    return np.logaddexp(left, right).sum(axis=0) - 0.5 * (a**2 + b**2) / 25.0


def two_rates(a, b, k, m):
    """A sum of two exponentials, whose labels can be exchanged."""
    curve = np.exp(a) * np.exp(-np.exp(k) * t[:, None]) + np.exp(b) * np.exp(-np.exp(m) * t[:, None])
    return -0.5 * ((curve - decay[:, None]) ** 2).sum(axis=0) / 0.01 - 0.5 * (a**2 + b**2 + k**2 + m**2) / 4.0


def logistic_growth(r, capacity, start):
    """The logistic equation's rate, capacity and initial value, all by their logarithms."""
    top = np.exp(capacity)
    curve = top / (1.0 + np.expm1(capacity - start) * np.exp(-np.exp(r) * t[:, None]))
    return -0.5 * ((curve - growth[:, None]) ** 2).sum(axis=0) / 0.09 - 0.5 * (
        r**2 + (capacity - 1.0) ** 2 + start**2
    )


add("modes", "modes_70_30", two(0.3, 6.0), gradients=True)
add("modes", "modes_90_10", two(0.1, 5.0))
add("modes", "modes_20_80", two(0.8, 5.0), gradients=True)
add("modes", "modes_straddled", two(0.65, 3.0, 1.0, -3.0), gradients=True)
add("modes", "modes_narrow_heavier", two(0.7, 4.0, 0.4))
add("modes", "modes_in_2", blobs(2, 3.0, 0.7, 0.6), gradients=True)
add("modes", "modes_in_5_oblique", two(0.75, 4.5), normal, normal, normal, normal, mix=7, gradients=True)
add("modes", "modes_from_the_lesser", two(0.8, 6.0), initial_mean=0.0, initial_variance=0.25, gradients=True)
add("modes", "modes_close", two(0.4, 2.5, 0.6), gradients=True)
add("modes", "modes_three", Piece(three, starts=(-4.0, 4.0)), gradients=True)
beats = ((1.7, 1.0), (-1.7, -1.0), (0.5, 0.5), (3.0, 0.3))
add("modes", "modes_frequency", Piece(frequency, 2, starts=beats), gradients=True)
labels = ((0.7, 0.0, -1.2, 0.9), (0.0, 0.7, 0.9, -1.2))
add("modes", "modes_two_rates", Piece(two_rates, 4, starts=labels), gradients=True)
add("modes", "modes_growth", Piece(logistic_growth, 3, starts=((0.2, 1.6, -1.4),)), gradients=True)
add("modes", "modes_phase", Piece(phase, 2, starts=((1.7, -1.6), (-1.7, 1.6), (1.7, 4.7))), gradients=True)
add("modes", "modes_two_means", Piece(two_means, 2, starts=((-1.7, 1.7), (1.7, -1.7))), gradients=True)
add("modes", "modes_beale", Piece(beale, 2, starts=((3.0, 0.5),)), gradients=True)
add(
    "modes",
    "modes_rastrigin",
    Piece(rastrigin, 2, starts=((0.0, -0.3), (2.1, -0.3), (0.0, 1.7))),
    gradients=True,
)
add("modes", "unreachable_far", two(0.9, 60.0), unreachable=True, gradients=True)
add("modes", "unreachable_needle", two(0.9, 0.5, 1e-4), unreachable=True, gradients=True)
add("modes", "unreachable_in_3", blobs(3, 15.0, 0.3, 0.95), unreachable=True, gradients=True)
add("modes", "unreachable_in_5", two(0.9, 40.0, 0.1), normal, normal, normal, normal, mix=8, unreachable=True)
