"""Densities without a best Gaussian: hard boundaries, and densities that cannot be normalised. Any claim is false."""

from __future__ import annotations

import numpy as np

from .base import add
from .common import design, normal, over
from .pieces import Piece


def where(inside, f):
    """f where it is allowed, else -inf."""
    return np.where(inside, f, -np.inf)


def cut(edge: float) -> Piece:
    """A normal that ends at an edge."""
    return Piece(lambda x: where(x < edge, -0.5 * x**2))


def add_hard(name, *pieces, **options):
    add("boundary", name, *pieces, proper=False, **options)


def simplex(x, y):
    """A Dirichlet, by the first two of three shares."""
    return np.log(x) + np.log(y) + np.log(1.0 - x - y)


def stationary(a, b):
    """An autoregression of order two, of which only stationary ones are allowed."""
    return where((np.abs(b) < 1.0) & (np.abs(a) < 1.0 - b), -8.0 * (a - 0.9) ** 2 - 8.0 * b**2)


def mean_and_variance(m, v):
    """A normal sample's mean and variance, which is not given by its logarithm."""
    return -5.0 * np.log(v) - 0.5 * (10.0 + 10.0 * m**2) / v


add_hard("boundary_half_normal", lambda x: where(x > 0, -0.5 * x**2))
add_hard("boundary_half_normal_gradient", lambda x: where(x > 0, -0.5 * x**2), shift=-1.0, gradients=True)
add_hard("boundary_box", lambda x: where(np.abs(x) < 1.0, 0.0 * x))
add_hard("boundary_box_3", *[Piece(lambda x: where(np.abs(x) < 2.0, -0.5 * x**2))] * 3)
for edge in (2.0, 3.0, 4.0, 5.0):
    add_hard(f"boundary_cut_at_{edge:.0f}", cut(edge), gradients=edge == 3.0)
add_hard("boundary_two_cuts", lambda x: where(np.abs(x) < 3.5, -0.5 * x**2))
add_hard("boundary_oblique_2", cut(1.0), normal, mix=71)
add_hard("boundary_oblique_3", cut(2.5), normal, normal, mix=72)
add_hard("boundary_one_of_5", normal, normal, normal, cut(3.0), normal)
add_hard("boundary_exponential", lambda x: where(x > 0, -x))
add_hard("boundary_gamma", lambda x: np.log(x) - x, gradients=True, initial_mean=1.5, initial_variance=0.1)
add_hard("boundary_gamma_shape_20", lambda x: 19.0 * np.log(x) - x, initial_mean=19.0)
add_hard(
    "boundary_beta", lambda x: np.log(x) + 2.0 * np.log(1.0 - x), initial_mean=0.4, initial_variance=0.01
)
add_hard("boundary_lognormal", lambda x: -np.log(x) - 0.5 * (np.log(x) / 0.3) ** 2, initial_mean=1.0)
add_hard("boundary_simplex", Piece(simplex, 2), initial_mean=0.33, initial_variance=0.01)
add_hard("boundary_disk", Piece(lambda x, y: where(x**2 + y**2 < 4.0, -0.5 * x), 2))
add_hard("boundary_stationary", Piece(stationary, 2), initial_mean=(0.5, 0.0), initial_variance=0.05)
add_hard("boundary_variance", Piece(mean_and_variance, 2), initial_mean=(0.0, 1.0), initial_variance=0.05)
add_hard("boundary_diagonal", cut(2.0), normal, family="diagonal")
add("boundary", "boundary_penalty_100", Piece(lambda x: -0.5 * x**2 - 100.0 * (x < 0), starts=(1.5,)))
add("boundary", "boundary_penalty_1e4", Piece(lambda x: -0.5 * x**2 - 1e4 * (x < 0), starts=(1.5,)))
add("boundary", "boundary_steep", Piece(lambda x: -x - np.exp(-40.0 * x), starts=(1.0,)), gradients=True)


def add_flat(name, *pieces, **options):
    add("improper", name, *pieces, proper=False, **options)


separable = np.abs(design(10, 3, 81))


def perfect_separation(*x):
    """A logistic regression without a prior, which explains all labels."""
    return -np.logaddexp(0.0, -separable @ np.stack(x)).sum(axis=0)


add_flat("improper_floor", lambda x: np.maximum(-0.5 * x**2, -10.0), gradients=True)
add_flat("improper_floor_4", lambda x: np.maximum(-0.5 * x**2, -4.0))
add_flat("improper_floor_16", lambda x: np.maximum(-0.5 * x**2, -16.0), unreachable=True)
add_flat("improper_floor_soft", lambda x: np.logaddexp(-0.5 * x**2, -8.0), gradients=True)
add_flat("improper_floor_2", Piece(lambda x, y: np.maximum(-0.5 * (x**2 + y**2), -10.0), 2), gradients=True)
add_flat("improper_floor_one_side", lambda x: np.where(x > 3.0, -4.5, -0.5 * x**2))
add_flat("improper_floor_oblique_4", lambda x: np.maximum(-0.5 * x**2, -5.0), normal, normal, normal, mix=73)
add_flat("improper_floor_diagonal", lambda x: np.maximum(-0.5 * x**2, -6.0), normal, family="diagonal")
add_flat("improper_flat_direction", lambda x: 0.0 * x, normal, normal, mix=74, gradients=True)
add_flat("improper_rising", lambda x: np.where(x < 3.0, -0.5 * x**2, -4.5 + 0.1 * (x - 3.0)), gradients=True)
add_flat("improper_log_sigmoid", lambda x: -np.logaddexp(0.0, -x), gradients=True)
add_flat("improper_exponential", lambda x: -np.exp(-x), normal, gradients=True)
add_flat("improper_half_flat", lambda x: np.minimum(x, 0.0))
add_flat("improper_plane", normal, lambda x: 0.0 * x, lambda x: 0.0 * x, mix=76, gradients=True)
add_flat("improper_linear", lambda x: x, gradients=True)
add_flat("improper_separable", Piece(perfect_separation, 3), gradients=True)
add_flat("improper_power", lambda x: -0.25 * np.log1p(x**2), gradients=True)
add_flat("improper_periodic", lambda x: 3.0 * np.cos(x), gradients=True)
add_flat("improper_periodic_10", lambda x: 10.0 * np.cos(x))
add_flat("improper_convex", lambda x: 0.5 * x**2, gradients=True)
add_flat("improper_saddle", Piece(lambda x, y: -0.5 * x**2 + 0.05 * y**2, 2), mix=75)
add_flat("improper_later_convex", lambda x: -0.5 * x**2 + 0.02 * over(np.abs(x), 3.0) ** 4)
add_flat("improper_constant", Piece(lambda x, y: 0.0 * x, 2))
