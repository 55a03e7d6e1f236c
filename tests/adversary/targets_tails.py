"""Drops and rises that few draws meet, and heavy tails."""

from __future__ import annotations

import numpy as np

from .base import add
from .common import bump, normal, over
from .pieces import Piece


def wall(height: float, edge: float, sides: int = 1) -> Piece:
    """A normal with a quadratic wall beyond an edge, on one side or both."""
    return Piece(lambda x: -0.5 * x**2 - height * over(np.abs(x) if sides == 2 else x, edge) ** 2)


def step(height: float, edge: float, sides: int = 1) -> Piece:
    """A normal that falls by ``height`` beyond an edge."""
    return Piece(lambda x: -0.5 * x**2 - height * ((np.abs(x) if sides == 2 else x) > edge))


def shell(height: float, radius: float, d: int) -> Piece:
    """A round normal with a wall at a radius."""
    return Piece(
        lambda *x: -0.5 * sum(a**2 for a in x) - height * over(np.sqrt(sum(a**2 for a in x)), radius) ** 2, d
    )


def corner(x, y):
    """A normal with a wall where both coordinates are large."""
    return -0.5 * (x**2 + y**2) - 1e4 * over(x, 1.5) ** 2 * over(y, 1.5) ** 2


add("drop", "drop_1e3_at_2.5", wall(1e3, 2.5), gradients=True)
add("drop", "drop_1e4_at_3", wall(1e4, 3.0), gradients=True)
add("drop", "drop_1e6_at_4", wall(1e6, 4.0), gradients=True)
add("drop", "drop_1e7_at_4.5", wall(1e7, 4.5))
add("drop", "drop_1e8_at_5", wall(1e8, 5.0))
add("drop", "drop_shifted", wall(1e4, 3.0), shift=5.0, mix=(0.5,))
add("drop", "drop_left_narrow", wall(1e4, 3.2), shift=-1.0, mix=(-10.0,), gradients=True)
add("drop", "drop_two_sided", wall(1e4, 3.0, 2), gradients=True)
add("drop", "drop_two_sided_1e6", wall(1e6, 4.0, 2))
add("drop", "drop_one_of_3", wall(1e4, 3.0), normal, normal)
add("drop", "drop_one_of_5", normal, normal, wall(1e5, 3.5), normal, normal, gradients=True)
add("drop", "drop_one_of_12", *[normal] * 11, wall(1e4, 3.0))
add("drop", "drop_all_of_5", *[wall(1e3, 2.5, 2)] * 5, gradients=True)
add("drop", "drop_two_of_4", wall(1e4, 3.0), normal, wall(1e3, 2.7), normal, mix=20, gradients=True)
add("drop", "drop_diagonal", wall(1e4, 3.0), normal, normal, family="diagonal")
add("drop", "drop_oblique_2", wall(1e4, 3.0), normal, mix=21, gradients=True)
add("drop", "drop_oblique_3", wall(1e5, 3.5), normal, normal, mix=22)
add("drop", "drop_oblique_6", wall(1e4, 3.0), *[normal] * 5, mix=23, gradients=True)
add("drop", "drop_step_50_at_2.5", step(50.0, 2.5))
add("drop", "drop_step_1000_at_3", step(1e3, 3.0), gradients=True)
add("drop", "drop_step_1e4_at_4", step(1e4, 4.0))
add("drop", "drop_step_two_sided", step(300.0, 3.0, 2))
add("drop", "drop_step_oblique_4", step(1e3, 3.0), normal, normal, normal, mix=24)
add("drop", "drop_linear", lambda x: -0.5 * x**2 - 1e3 * over(x, 3.0), gradients=True)
add("drop", "drop_exponential", lambda x: -0.5 * x**2 - np.exp(5.0 * (x - 2.5)), gradients=True)
add("drop", "drop_shell_2", shell(1e4, 3.5, 2), gradients=True)
add("drop", "drop_shell_3", shell(1e3, 4.0, 3))
add(
    "drop", "drop_trench", lambda x: -0.5 * x**2 - 2e3 * np.exp(-0.5 * ((x - 3.2) / 0.1) ** 2), gradients=True
)
add("drop", "drop_pit_in_the_bulk", lambda x: -0.5 * x**2 - 30.0 * np.exp(-0.5 * ((x - 1.3) / 0.02) ** 2))
add("drop", "drop_skewed_bulk", lambda x: 2.0 * x - np.exp(x) - 1e4 * over(-x, 2.5) ** 2, gradients=True)
add("drop", "drop_student_bulk", lambda x: -3.0 * np.log1p(x**2 / 5.0) - 1e3 * over(x, 4.0) ** 2)
add("drop", "drop_corner_2", Piece(corner, 2), mix=25)


def plateau(edge: float, slope: float) -> Piece:
    """A normal whose tails become straight lines beyond an edge."""
    return Piece(
        lambda x: np.where(np.abs(x) < edge, -0.5 * x**2, -0.5 * edge**2 - slope * (np.abs(x) - edge)),
        starts=(100.0,),
    )


def shoulder(log_weight: float, centre: float, sd: float) -> Piece:
    return Piece(lambda x: np.logaddexp(-0.5 * x**2, bump(x, centre, sd, log_weight)), starts=(centre,))


def two_scales(d: int, weight: float, ratio: float) -> Piece:
    """A round mixture of a normal and a wide one."""

    def f(*x):
        r2 = sum(a**2 for a in x)
        return np.logaddexp(
            np.log1p(-weight) - 0.5 * r2, np.log(weight) - d * np.log(ratio) - 0.5 * r2 / ratio**2
        )

    return Piece(f, d)


add("rise", "rise_line", plateau(3.0, 0.3), gradients=True)
add("rise", "rise_line_slow", plateau(3.0, 0.02))
add("rise", "rise_line_wins", Piece(plateau(3.0, 0.001).f, starts=(1000.0, -1000.0, 50.0)))
add("rise", "rise_at_2", plateau(2.0, 0.5), gradients=True)
add("rise", "rise_oblique_4", plateau(2.5, 0.2), normal, normal, normal, mix=26)
add("rise", "rise_shoulder", shoulder(-2.0, 3.5, 1.0), gradients=True)
add("rise", "rise_shoulder_wide", shoulder(-3.0, 5.0, 3.0), gradients=True)
add("rise", "rise_shoulder_oblique_3", shoulder(-1.5, 3.5, 1.0), normal, normal, mix=27)
add("rise", "rise_bump", shoulder(-2.0, 4.0, 0.2))
add("rise", "rise_spike_in_the_bulk", shoulder(-3.0, 0.7, 0.02), gradients=True)
add("rise", "rise_two_scales", two_scales(1, 0.1, 5.0), gradients=True)
add("rise", "rise_two_scales_2", two_scales(2, 0.2, 10.0), gradients=True)
add("rise", "rise_two_scales_5", two_scales(5, 0.1, 3.0), gradients=True)
add("rise", "rise_two_scales_wide_wins", two_scales(1, 0.7, 30.0), gradients=True)
add(
    "rise",
    "rise_one_sided",
    Piece(lambda x: np.where(x < 2.5, -0.5 * x**2, -3.125 - 0.1 * (x - 2.5)), starts=(10.0,)),
)


def student(d: int, nu: float) -> Piece:
    """A multivariate t."""
    return Piece(lambda *x: -0.5 * (nu + d) * np.log1p(sum(a**2 for a in x) / nu), d)


cauchy = student(1, 1.0)
laplace = Piece(lambda x: -np.abs(x))
l1_X = np.random.default_rng(31).standard_normal((12, 3))
l1_y = l1_X @ np.array([1.0, -1.0, 0.5]) + np.random.default_rng(32).laplace(size=12)


def l1(*x):
    """Regression by least absolute deviations."""
    return -np.abs(l1_X @ np.stack(x) - l1_y[:, None]).sum(axis=0)


add("tails", "cauchy_1", cauchy, gradients=True)
add("tails", "cauchy_far", cauchy, shift=100.0, gradients=True)
add("tails", "cauchy_2", student(2, 1.0), gradients=True)
add("tails", "cauchy_3", student(3, 1.0))
add("tails", "cauchy_5", student(5, 1.0), gradients=True)
add("tails", "cauchy_product_3", cauchy, cauchy, cauchy, mix=28, gradients=True)
add("tails", "cauchy_diagonal_2", student(2, 1.0), family="diagonal", gradients=True)
add("tails", "cauchy_diagonal_5", *[cauchy] * 5, family="diagonal", mix=(1.0, 0.1, 10.0, 0.3, 3.0))
add("tails", "student_1.5_diagonal_3", *[student(1, 1.5)] * 3, family="diagonal")
add("tails", "student_2_in_3", student(3, 2.0), mix=29)
add("tails", "student_4_in_6", student(6, 4.0), gradients=True)
add("tails", "tails_root", lambda x: -3.0 * np.sqrt(np.abs(x)))
add("tails", "tails_log_square", lambda x: -(np.log1p(np.abs(x)) ** 2) * 1.5)
add("tails", "tails_horseshoe", lambda x: np.log(np.log1p(2.0 / (x**2 + 1e-12))) - 0.5 * (x / 5.0) ** 2)
add("tails", "tails_one_heavy", lambda x: np.where(x < 0, -0.5 * x**2, -1.5 * np.log1p(x**2)), gradients=True)
add("tails", "laplace_1", laplace, gradients=True)
add("tails", "laplace_5", *[laplace] * 5, mix=30, gradients=True)
add("tails", "laplace_regression", Piece(l1, 3), gradients=True)
add("tails", "laplace_asymmetric", lambda x: np.where(x < 0, 9.0 * x, -x), gradients=True)
add("tails", "laplace_very_asymmetric", lambda x: np.where(x < 0, 50.0 * x, -x), gradients=True)
add("tails", "laplace_asymmetric_in_3", lambda x: np.where(x < 0, 20.0 * x, -x), laplace, normal, mix=31)
add("tails", "tails_power_1.2", lambda x: -(np.abs(x) ** 1.2), gradients=True)
