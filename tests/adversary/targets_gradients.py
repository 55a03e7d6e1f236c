"""Gradients that are not those of the function. The truth is that of the values; refusing is the right answer."""

from __future__ import annotations

import numpy as np

from zoo.targets_shapes import rotation

from .base import add
from .common import logistic, normal, poisson
from .pieces import Piece
from .targets_forms import scale_model
from .targets_slow import banana

five = [normal] * 5
scales = np.array([1.0, 0.5, 3.0, 1.0, 2.0])


def times(*factors):
    """Each coordinate's gradient times a number."""
    return lambda target, theta, g: g * np.array(factors)


def cut(target, theta, g):
    """Gradients clipped to a norm of one, as for training a network."""
    return g / np.maximum(1.0, np.linalg.norm(g, axis=1, keepdims=True))


def frozen(target, theta, g):
    """Right at the bulk; beyond two of the first coordinate its slope stays what it is there."""
    x = np.clip(theta[:, 0], -2.0, 2.0)
    return np.concatenate([np.where(np.abs(theta[:, :1]) > 2.0, -x[:, None], g[:, :1]), g[:, 1:]], axis=1)


def one_side(target, theta, g):
    """Right where the first coordinate is below one, else it misses that coordinate."""
    return g * np.where((theta[:, :1] > 1.0) & (np.arange(g.shape[1]) == 0), 0.0, 1.0)


def uncorrelated(target, theta, g):
    """The terms between different coordinates of a normal are missing."""
    return -(theta - target.shift) * np.diag(target.mix @ target.mix.T)


def noisy(sd):
    """Gradients with noise that depends on θ alone."""
    return lambda target, theta, g: g + sd * np.sin(1e5 * theta[:, ::-1] + 1.0) * np.sqrt(2.0)


def add_wrong(name, *pieces, wrong, **options):
    add("gradient", name, *pieces, gradients=True, wrong=wrong, **options)


add_wrong("gradient_1.24", *five, wrong=times(1.24))
add_wrong("gradient_0.8", *five, wrong=times(0.8))
add_wrong("gradient_1.5_in_2", normal, normal, wrong=times(1.5))
add_wrong("gradient_1.2_in_10", *[normal] * 10, wrong=times(1.2))
add_wrong("gradient_1.12_in_12", *[normal] * 12, wrong=times(1.12))
add_wrong("gradient_half_in_1", normal, wrong=times(0.5), shift=2.0)
add_wrong("gradient_one_times_3", *five, wrong=times(1, 1, 3, 1, 1))
add_wrong("gradient_one_times_3_rotated", *five, wrong=times(1, 1, 3, 1, 1), mix=51, shift=1.0)
add_wrong("gradient_one_times_1.6_in_8", *[normal] * 8, wrong=times(*[1] * 7, 1.6))
add_wrong("gradient_one_halved", *five, wrong=times(1, 0.5, 1, 1, 1), mix=scales, shift=1.0)
add_wrong("gradient_one_zero", *five, wrong=times(1, 1, 1, 0, 1), shift=0.5)
add_wrong("gradient_sign_of_one", *five, wrong=times(1, 1, 1, 1, -1))
add_wrong(
    "gradient_swapped", *five, wrong=lambda t, x, g: g[:, [1, 0, 2, 3, 4]], mix=scales, shift=(1, -1, 2, 0, 1)
)
add_wrong("gradient_reversed_rows", *five, wrong=lambda t, x, g: g[::-1])
add_wrong("gradient_offset", *five, wrong=lambda t, x, g: g + 0.5)
add_wrong("gradient_offset_of_one", *five, wrong=lambda t, x, g: g + np.array([0, 0, 0.4, 0, 0]))
add_wrong("gradient_clipped", *five, wrong=cut, shift=3.0)
add_wrong("gradient_frozen_in_the_tail", normal, normal, wrong=frozen)
add_wrong(
    "gradient_without_correlation",
    normal,
    normal,
    normal,
    wrong=uncorrelated,
    mix=rotation(3, 52) * [1, 0.3, 3],
)
add_wrong("gradient_one_side", *five, wrong=one_side)
add_wrong("gradient_rough", *five, wrong=noisy(0.3))
add_wrong("gradient_logistic_1.24", logistic(40, 4, 61), wrong=times(1.24))
add_wrong("gradient_logistic_one", logistic(40, 4, 61), wrong=times(1, 1, 1, 1.8))
add_wrong("gradient_logistic_without_prior", logistic(15, 4, 63, 1.0), wrong=lambda t, x, g: g + x)
add_wrong("gradient_poisson_swapped", poisson(30, 3, 65), wrong=lambda t, x, g: g[:, [0, 2, 1]])
add_wrong(
    "gradient_poisson_missing_term", poisson(30, 3, 65), wrong=lambda t, x, g: g - np.array([0.0, 4.0, 0.0])
)
add_wrong("gradient_banana_one", banana(1.0), wrong=times(1.3, 1.0))
add_wrong("gradient_without_jacobian", Piece(scale_model, 2), wrong=lambda t, x, g: g * np.exp([0, -1] * x))
add_wrong("gradient_float32", *five, wrong=lambda t, x, g: g.astype(np.float32))  # this one is right
