"""Values with noise, outliers, few digits, or that depend on the other rows. The truth is that of the exact function."""

from __future__ import annotations

import numpy as np

from .base import add
from .common import logistic, normal
from .pieces import Piece
from .targets_slow import banana
from .targets_tails import student


def plus(noise):
    """Noise ``noise(rng, values, theta)`` added to the values."""

    def corrupt(function, rng):
        def noisy(theta):
            values = function(theta)
            return values + noise(rng, values, theta)

        return noisy

    return corrupt


def normal_noise(sd: float):
    return plus(lambda rng, v, theta: sd * rng.standard_normal(len(v)))


def outliers(share: float, size: float):
    return plus(lambda rng, v, theta: size * (rng.random(len(v)) < share))


def mapped(change):
    """``change(values)`` in place of the values."""
    return lambda function, rng: lambda theta: change(function(theta))


def rough(amplitude: float):
    """Noise that the same θ has again."""
    return plus(lambda rng, v, theta: amplitude * np.sin(1e6 * theta.sum(axis=1)))


two, five = [normal] * 2, [normal] * 5
for sd in (0.1, 1.0, 5.0):
    add("noise", f"noise_{sd:g}_in_2", *two, corrupt=normal_noise(sd), shift=1.0)
    add("noise", f"noise_{sd:g}_in_5", *five, corrupt=normal_noise(sd), initial_mean=0.0)
add("noise", "noise_1_in_1", normal, corrupt=normal_noise(1.0), mix=(0.2,), shift=3.0)
add("noise", "noise_0.3_in_10", *[normal] * 10, corrupt=normal_noise(0.3), mix=91)
add("noise", "noise_0.02_in_3", *[normal] * 3, corrupt=normal_noise(0.02), mix=92)
add("noise", "noise_1_logistic", logistic(40, 3, 93), corrupt=normal_noise(1.0))
add("noise", "noise_0.5_banana", banana(1.0), corrupt=normal_noise(0.5))
add("noise", "noise_1_cauchy", student(2, 1.0), corrupt=normal_noise(1.0))
add("noise", "noise_1_diagonal", *five, family="diagonal", corrupt=normal_noise(1.0))
add(
    "noise",
    "noise_student_2",
    *two,
    corrupt=plus(lambda rng, v, theta: 0.5 * rng.standard_t(2.0, len(v))),
    shift=0.5,
)
add("noise", "noise_cauchy", *two, corrupt=plus(lambda rng, v, theta: 0.1 * rng.standard_cauchy(len(v))))
add("noise", "noise_outliers_down", *[normal] * 3, corrupt=outliers(0.01, -50.0))
add("noise", "noise_outliers_up", *[normal] * 3, corrupt=outliers(0.01, 50.0))
add("noise", "noise_outliers_rare", *two, corrupt=outliers(0.003, -1000.0))
add("noise", "noise_outliers_10%", *two, corrupt=outliers(0.1, -5.0))
add("noise", "noise_missing_5%", *[normal] * 3, corrupt=plus(
    lambda rng, v, theta: np.where(rng.random(len(v)) < 0.05, np.nan, 0.0)))  # fmt: skip
add("noise", "noise_grows", *[normal] * 3, corrupt=plus(
    lambda rng, v, theta: 0.2 * (theta**2).sum(axis=1) * rng.standard_normal(len(v))))  # fmt: skip
add("noise", "noise_multiplicative", *[normal] * 3, shift=1.0, corrupt=plus(
    lambda rng, v, theta: 0.05 * v * rng.standard_normal(len(v))))  # fmt: skip
add(
    "noise",
    "noise_skewed",
    *[normal] * 3,
    corrupt=plus(lambda rng, v, theta: 1.0 - rng.exponential(size=len(v))),
)
add("noise", "noise_one_side", *[normal] * 2, corrupt=plus(
    lambda rng, v, theta: 2.0 * (theta[:, 0] > 0) * rng.standard_normal(len(v))))  # fmt: skip
add("noise", "noise_rough", *two, corrupt=rough(1.0))
add("noise", "noise_rough_0.1", *five, corrupt=rough(0.1))
add("noise", "noise_by_call", *[normal] * 3, corrupt=plus(lambda rng, v, theta: 2.0 * rng.standard_normal()))


def rounded(unit: float) -> Piece:
    """A round normal, rounded to multiples of a unit that is large enough to change the optimum."""
    return Piece(lambda x, y: unit * np.round(-0.5 * (x**2 + y**2) / unit), 2)


add("digits", "digits_0.1", *[normal] * 3, corrupt=mapped(lambda v: np.round(v, 1)), mix=94)
add("digits", "digits_1", rounded(1.0), shift=1.0)
add("digits", "digits_1_in_5", *five, corrupt=mapped(np.round))
add("digits", "digits_3", rounded(3.0))
add(
    "digits",
    "digits_float32_1e6",
    *[normal] * 3,
    corrupt=mapped(lambda v: (v - 1e6).astype(np.float32)),
    shift=1.0,
)
add("digits", "digits_float32_1e8", rounded(8.0), corrupt=mapped(lambda v: (v - 1e8).astype(np.float32)))
add("digits", "digits_float16", *two, corrupt=mapped(lambda v: (v - 100.0).astype(np.float16)), shift=0.5)
add("digits", "digits_offset_1e12", *[normal] * 3, corrupt=mapped(lambda v: v - 1e12))
add("digits", "digits_float32_logistic", logistic(40, 4, 95), corrupt=mapped(lambda v: v.astype(np.float32)))

add("batch", "batch_mean", *two, corrupt=mapped(lambda v: v - 0.8 * v.mean()), shift=1.0)
add("batch", "batch_mean_in_5", *five, corrupt=mapped(lambda v: v - 0.8 * v.mean()))
add("batch", "batch_max", *two, corrupt=mapped(lambda v: v - v.max()), shift=1.0)
add("batch", "batch_neighbour", *two, corrupt=mapped(lambda v: v + 0.5 * np.roll(v, 1)))
add("batch", "batch_sum", *two, corrupt=mapped(lambda v: np.full_like(v, v.sum())))
add("batch", "batch_average_of_two", *two, corrupt=mapped(lambda v: 0.5 * (v + np.roll(v, 1))))
add("batch", "batch_standardised", *[normal] * 3, corrupt=mapped(lambda v: (v - v.mean()) / (v.std() + 1e-9)))
add("batch", "batch_order", *two, corrupt=mapped(lambda v: v - 0.05 * np.arange(len(v))))
add("batch", "batch_sorted", *two, corrupt=mapped(np.sort))
