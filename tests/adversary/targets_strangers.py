"""Targets that were written after all checks, with nothing tuned on them before their first measure.

Where the other files take one class at a time, these change its radius, its angle, its dimension or the way in which
values and gradients are spoilt. docs/testing.md states the rates of the first measure apart.
"""

from __future__ import annotations

import numpy as np

from zoo.targets_shapes import rotation

from .base import add
from .common import bump, gaussian, logistic, normal, over, poisson
from .pieces import Piece
from .targets_gradients import add_wrong, times
from .targets_improper import add_flat, add_hard, where
from .targets_modes import blobs, cross, double_well, two
from .targets_noise import mapped, normal_noise, plus, stored
from .targets_slow import banana, valley
from .targets_tails import shell, step, student, wall

two_of, three, four, five = [normal] * 2, [normal] * 3, [normal] * 4, [normal] * 5

# --- drops, kinks, jumps ----------------------------------------------------------------------------------


def wedge(x, y):
    """A normal that falls steeply in a narrow sector."""
    return -0.5 * (x**2 + y**2) - 300.0 * over(np.hypot(x, y), 1.8) ** 2 * (
        np.abs(np.arctan2(y, x) - 0.7) < 0.2
    )


def trench(depth: float, centre: float, width: float) -> Piece:
    return Piece(lambda x: -0.5 * x**2 - depth * np.exp(-0.5 * ((x - centre) / width) ** 2))


def tilted(x):
    """A Cauchy's tail to the right, an exponential's of an exponential to the left."""
    return np.where(x < 0.0, -np.expm1(np.minimum(-2.0 * x, 300.0)), -np.log1p(x**2))


add("drop", "stranger_shell_in_4", shell(1e3, 4.4, 4), gradients=True)
add("drop", "stranger_wall_in_8", wall(3e4, 3.3), *[normal] * 7, mix=301, gradients=True)
add("drop", "stranger_wedge", Piece(wedge, 2), mix=302)
add("drop", "stranger_trench_oblique", trench(80.0, 2.2, 0.07), normal, normal, mix=303, gradients=True)
add("drop", "stranger_trench_beside_a_wall", trench(40.0, -1.8, 0.1), wall(1e3, 2.6), mix=304, shift=2.0)
add("drop", "stranger_step_diagonal_4", step(200.0, 2.8), *three, family="diagonal")
add(
    "ripple",
    "stranger_step_in_5",
    Piece(lambda x: -0.5 * x**2 - 4.0 * (x > 0.2)),
    *four,
    mix=305,
    gradients=True,
)
add("form", "stranger_kinks_in_4", *[Piece(lambda x, a=a: -a * np.abs(x) - 0.1 * x**2) for a in (2.0, 0.5, 8.0, 1.0)],
    mix=306, gradients=True)  # fmt: skip
add("tails", "stranger_asymmetric", tilted, gradients=True)
add("tails", "stranger_asymmetric_in_4", tilted, *three, mix=307, gradients=True)
add("ripple", "stranger_counts", Piece(lambda x, y: -1.5 * np.floor(2.0 * np.hypot(x, 0.5 * y)), 2), mix=308)
add("ripple", "stranger_stairs_in_3", Piece(lambda x: -0.7 * np.floor(x**2)), *two_of, mix=309)

# --- saddles, modes, ridges -------------------------------------------------------------------------------

add("saddle", "stranger_crosses_in_6", *[cross(25.0)] * 3, mix=311, gradients=True)
add(
    "saddle",
    "stranger_wells_in_8",
    double_well(1.5),
    double_well(4.0),
    *[normal] * 6,
    mix=312,
    gradients=True,
)
add("modes", "stranger_twins_in_6", two(0.5, 3.4), *five, mix=313, gradients=True)
add("modes", "stranger_narrow_and_wide", two(0.55, 5.0, 0.15), gradients=True)
add("modes", "stranger_wide_elsewhere", two(0.6, 8.0, 3.0), gradients=True)
add("modes", "stranger_needle_in_3", blobs(3, 1.6, 0.25, 0.7), mix=314, gradients=True)
add("slow", "stranger_ridge_tanh", valley(lambda x: 3.0 * np.tanh(3.0 * x), 0.15), mix=315, gradients=True)
add("slow", "stranger_ridge_product_3",
    Piece(lambda x, y, z: -15.0 * (x * y * z - 1.0) ** 2 - 0.25 * (x**2 + y**2 + z**2), 3,
          starts=((1.0, 1.0, 1.0), (-1.0, -1.0, 1.0))), gradients=True)  # fmt: skip
add("slow", "stranger_banana_in_9", banana(4.0, 0.5), *[normal] * 7, mix=316, gradients=True)
add("slow", "stranger_banana_diagonal_4", banana(1.5), banana(0.7), family="diagonal", gradients=True)

# --- nearly improper, improper, boundaries ----------------------------------------------------------------

add("tails", "stranger_student_0.3", student(1, 0.3))
add("scales", "stranger_hardly_known", *four, mix=rotation(4, 321) * [1.0, 1e-4, 1.0, 0.1], gradients=True)
add_flat(
    "stranger_floor_in_3", lambda x: np.maximum(-0.5 * x**2, -7.0), normal, normal, mix=322, gradients=True
)
add_flat("stranger_floor_in_6", lambda x: np.maximum(-0.5 * x**2, -5.0), *five, mix=323)
add_flat("stranger_borderline", lambda x: -0.5 * np.log1p(x**2), gradients=True)
add_flat("stranger_waves", lambda x: 5.0 * np.cos(x), normal, mix=324, gradients=True)
add_hard("stranger_cut_in_5", Piece(lambda x: where(x < 1.7, -0.5 * x**2)), *four, mix=325, gradients=True)
add_hard(
    "stranger_cone", Piece(lambda x, y: where(y > -1.5 + 0.3 * np.abs(x), -0.5 * (x**2 + y**2)), 2), mix=326
)
add_hard(
    "stranger_ball_in_4", Piece(lambda *x: where(sum(a**2 for a in x) < 16.0, -0.5 * sum(a**2 for a in x)), 4)
)

# --- spoilt values ----------------------------------------------------------------------------------------


def warming(function, rng):
    """The first sixty values are three nats too low."""
    count = np.zeros(1, dtype=int)

    def later(theta):
        count[0] += len(theta)
        return function(theta) - 3.0 * (np.arange(count[0] - len(theta), count[0]) < 60)

    return later


def swaying(function, rng):
    """Values that sway by a nat with the number of calls."""
    count = np.zeros(1)

    def later(theta):
        count[0] += len(theta)
        return function(theta) + np.sin(count[0] / 40.0)

    return later


def mostly_quiet(rng, v, theta):
    return np.where(rng.random(len(v)) < 0.02, 20.0, 0.05) * rng.standard_normal(len(v))


add("noise", "stranger_noise_0.3_student", *four, corrupt=plus(lambda rng, v, t: 0.3 * rng.standard_t(3.0, len(v))),
    mix=331)  # fmt: skip
add(
    "noise",
    "stranger_noise_3_laplace",
    *two_of,
    corrupt=plus(lambda rng, v, t: rng.laplace(0.0, 2.0, len(v))),
)
add("noise", "stranger_noise_5_in_1", normal, corrupt=normal_noise(5.0), shift=2.0, mix=(3.0,))
add("noise", "stranger_noise_mostly_quiet", *three, corrupt=plus(mostly_quiet), shift=1.0)
add("noise", "stranger_noise_0.5_poisson", poisson(25, 3, 332), corrupt=normal_noise(0.5))
add("noise", "stranger_noise_2_student_bulk", student(2, 3.0), corrupt=normal_noise(2.0))
add("noise", "stranger_warming", *three, corrupt=warming, shift=0.5)
add("noise", "stranger_swaying", *two_of, corrupt=swaying, shift=0.5)
add("digits", "stranger_quarters_in_4", *four, corrupt=mapped(lambda v: np.floor(4.0 * v) / 4.0), mix=333)
add("digits", "stranger_float32_1e7", *three, corrupt=stored(np.float32, -1e7))
add("digits", "stranger_offset_1e15", *two_of, corrupt=stored(np.float64, -1e15), shift=1.0)
add("digits", "stranger_offset_1e8", banana(1.0), normal, corrupt=stored(np.float64, 1e8), gradients=True)

# --- wrong gradients --------------------------------------------------------------------------------------


def stale(target, theta, g):
    """The gradients of points that were rounded to halves."""
    return -(np.round(2.0 * theta) / 2.0 - target.shift)


correlated = gaussian(np.linalg.inv(0.2 * np.eye(4) + 0.8))
add_wrong("stranger_gradient_1.1", *three, wrong=times(1.1), mix=341)
add_wrong("stranger_gradient_0.93_in_8", *[normal] * 8, wrong=times(0.93))
add_wrong("stranger_gradient_swapped_6", *[normal] * 6, wrong=lambda t, x, g: g[:, [0, 1, 5, 3, 4, 2]],
          mix=(1.0, 2.0, 0.5, 1.0, 1.0, 3.0), shift=0.7)  # fmt: skip
add_wrong("stranger_gradient_sign_logistic", logistic(40, 4, 342), wrong=times(1, 1, -1, 1))
add_wrong("stranger_gradient_likelihood_only", logistic(12, 3, 343, 1.0), wrong=lambda t, x, g: g + x)
add_wrong("stranger_gradient_stale", *three, wrong=stale, shift=0.3)
add_wrong("stranger_gradient_one_row_late", *three, wrong=lambda t, x, g: np.roll(g, 1, axis=0), shift=1.0)
add_wrong("stranger_gradient_correlation", correlated, wrong=lambda t, x, g: 0.9 * g - 0.1 * x)
add_wrong("stranger_gradient_of_one_mode", Piece(
    lambda x: np.logaddexp(bump(x, 0.0, 1.0), bump(x, 2.0, 0.7, -0.5)), starts=(1.0,)),
    wrong=lambda t, x, g: -(x - t.shift))  # fmt: skip
add_wrong(
    "stranger_gradient_float32", *four, wrong=lambda t, x, g: g.astype(np.float32), mix=344
)  # it is right
