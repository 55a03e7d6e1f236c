"""Values with noise, outliers or few digits, or that depend on other rows; the truth is the exact function's."""

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


def drift(function, rng):
    """Values that fall by a thousandth with each evaluation."""
    count = np.zeros(1)

    def later(theta):
        count[0] += len(theta)
        return function(theta) - 1e-3 * count[0]

    return later


def normal_noise(sd: float):
    return plus(lambda rng, v, theta: sd * rng.standard_normal(len(v)))


def mapped(change):
    """``change(values)`` in place of the values."""
    return lambda function, rng: lambda theta: change(function(theta))


two, three, five = [normal] * 2, [normal] * 3, [normal] * 5
for sd in (0.1, 1.0, 5.0):
    add("noise", f"noise_{sd:g}_in_2", *two, corrupt=normal_noise(sd), shift=1.0)
    add("noise", f"noise_{sd:g}_in_5", *five, corrupt=normal_noise(sd), initial_mean=0.0)
add("noise", "noise_1_in_1", normal, corrupt=normal_noise(1.0), mix=(0.2,), shift=3.0)
add("noise", "noise_0.3_in_10", *[normal] * 10, corrupt=normal_noise(0.3), mix=91)
add("noise", "noise_0.02_in_3", *three, corrupt=normal_noise(0.02), mix=92)
add("noise", "noise_1_logistic", logistic(40, 3, 93), corrupt=normal_noise(1.0))
add("noise", "noise_0.5_banana", banana(1.0), corrupt=normal_noise(0.5))
add("noise", "noise_1_cauchy", student(2, 1.0), corrupt=normal_noise(1.0))
add("noise", "noise_1_diagonal", *five, family="diagonal", corrupt=normal_noise(1.0))

OTHER_NOISE = {
    "student_2": lambda rng, v, theta: 0.5 * rng.standard_t(2.0, len(v)),
    "cauchy": lambda rng, v, theta: 0.1 * rng.standard_cauchy(len(v)),
    "outliers_down": lambda rng, v, theta: -50.0 * (rng.random(len(v)) < 0.01),
    "outliers_up": lambda rng, v, theta: 50.0 * (rng.random(len(v)) < 0.01),
    "outliers_rare": lambda rng, v, theta: -1e3 * (rng.random(len(v)) < 0.003),
    "outliers_10%": lambda rng, v, theta: -5.0 * (rng.random(len(v)) < 0.1),
    "missing_5%": lambda rng, v, theta: np.where(rng.random(len(v)) < 0.05, np.nan, 0.0),
    "grows": lambda rng, v, theta: 0.2 * (theta**2).sum(axis=1) * rng.standard_normal(len(v)),
    "multiplicative": lambda rng, v, theta: 0.05 * v * rng.standard_normal(len(v)),
    "skewed": lambda rng, v, theta: 1.0 - rng.exponential(size=len(v)),
    "one_side": lambda rng, v, theta: 2.0 * (theta[:, 0] > 0) * rng.standard_normal(len(v)),
    "by_call": lambda rng, v, theta: 2.0 * rng.standard_normal(),
    "same_again": lambda rng, v, theta: np.sin(1e6 * theta.sum(axis=1)),
    "same_again_0.1": lambda rng, v, theta: 0.1 * np.sin(1e6 * theta.sum(axis=1)),
}
for name, noise in OTHER_NOISE.items():
    add("noise", f"noise_{name}", *three, corrupt=plus(noise), shift=0.5)
add("noise", "noise_drift", *three, corrupt=drift, shift=0.5)
add("noise", "noise_1_with_gradients", *three, corrupt=normal_noise(1.0), shift=0.5, gradients=True)


def rounded(unit: float) -> Piece:
    """A round normal, rounded to multiples of a unit that is large enough to change the optimum."""
    return Piece(lambda x, y: unit * np.round(-0.5 * (x**2 + y**2) / unit), 2)


def stored(dtype, offset: float):
    """Values around ``offset``, in fewer digits."""
    return mapped(lambda v: (v + offset).astype(dtype))


add("digits", "digits_0.1", *three, corrupt=mapped(lambda v: np.round(v, 1)), mix=94)
add("digits", "digits_1", rounded(1.0), shift=1.0)
add("digits", "digits_1_in_5", *five, corrupt=mapped(np.round))
add("digits", "digits_3", rounded(3.0))
add("digits", "digits_float32_1e6", *three, corrupt=stored(np.float32, -1e6), shift=1.0)
add("digits", "digits_float32_1e8", rounded(8.0), corrupt=stored(np.float32, -1e8))
add("digits", "digits_float16", *two, corrupt=stored(np.float16, -100.0), shift=0.5)
add("digits", "digits_offset_1e12", *three, corrupt=stored(np.float64, -1e12))
add("digits", "digits_float32_logistic", logistic(40, 4, 95), corrupt=stored(np.float32, 0.0))

BATCHES = {
    "mean": lambda v: v - 0.8 * v.mean(),
    "max": lambda v: v - v.max(),
    "neighbour": lambda v: v + 0.5 * np.roll(v, 1),
    "average_of_two": lambda v: 0.5 * (v + np.roll(v, 1)),
    "sum": lambda v: np.full_like(v, v.sum()),
    "standardised": lambda v: (v - v.mean()) / (v.std() + 1e-9),
    "order": lambda v: v - 0.05 * np.arange(len(v)),
    "sorted": np.sort,
}
for name, change in BATCHES.items():
    add("batch", f"batch_{name}", *two, corrupt=mapped(change), shift=1.0)
add("batch", "batch_mean_in_5", *five, corrupt=mapped(BATCHES["mean"]))
