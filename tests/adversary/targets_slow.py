"""Curved valleys, in which a search without noise creeps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from zoo.targets_shapes import rotation

from .base import add
from .common import normal
from .pieces import Piece


def banana(b: float, sd: float = 1.0) -> Piece:
    return Piece(lambda x, y: -0.5 * x**2 - 0.5 * ((y - b * (x**2 - 1.0)) / sd) ** 2, 2)


def valley(curve, sd: float) -> Piece:
    """A normal x, and y within ``sd`` of a curve over it."""
    return Piece(lambda x, y: -0.5 * x**2 - 0.5 * ((y - curve(x)) / sd) ** 2, 2)


def rosenbrock(temperature: float) -> Piece:
    return Piece(
        lambda x, y: -((1.0 - x) ** 2 + 100.0 * (y - x**2) ** 2) / temperature, 2, starts=((1.0, 1.0),)
    )


def chained(*x):
    """Rosenbrock's function of neighbours."""
    return -sum((1.0 - a) ** 2 + 20.0 * (b - a**2) ** 2 for a, b in pairwise(x)) / 5.0


def twisted(x, y, z):
    return -0.5 * (x**2 + y**2) - 0.5 * ((z - 2.0 * x * y) / 0.3) ** 2


def crescent(x, y):
    return -20.0 * (np.hypot(x, y) - 2.0) ** 2 - 0.5 * (x - 2.0) ** 2


def product(x, y):
    """Only the product of the two is known."""
    return -50.0 * (x * y - 1.0) ** 2 - 0.5 * (x**2 + y**2) / 4.0


add("slow", "rosenbrock_20", rosenbrock(20.0), gradients=True)
add("slow", "rosenbrock_2", rosenbrock(2.0), gradients=True)
add("slow", "rosenbrock_200", rosenbrock(200.0))
add("slow", "rosenbrock_rotated", rosenbrock(20.0), mix=41, shift=(2.0, -1.0), gradients=True)
add("slow", "rosenbrock_far", rosenbrock(20.0), shift=(-8.0, 8.0))
add("slow", "rosenbrock_chained_3", Piece(chained, 3, starts=(0.5, 1.0)), gradients=True)
add("slow", "rosenbrock_chained_5", Piece(chained, 5, starts=(0.5, 1.0)))
add("slow", "banana_1", banana(1.0), gradients=True)
add("slow", "banana_2", banana(2.0))
add("slow", "banana_5", banana(5.0), gradients=True)
add("slow", "banana_10", banana(10.0), gradients=True)
add("slow", "banana_5_rotated", banana(5.0), mix=42, gradients=True)
add("slow", "banana_narrow", banana(1.0, 0.1), gradients=True)
add("slow", "banana_3_in_4", banana(3.0), banana(1.0), mix=43, gradients=True)
add("slow", "banana_in_6", banana(5.0), banana(2.0), normal, normal, mix=44, gradients=True)
add("slow", "banana_scaled", banana(3.0), mix=(1e3, 1e-2), gradients=True)
add("slow", "banana_diagonal", banana(2.0), family="diagonal", gradients=True)
add("slow", "valley_sine", valley(lambda x: 2.0 * np.sin(2.0 * x), 0.2), gradients=True)
add("slow", "valley_cubic", valley(lambda x: x**3, 0.3), gradients=True)
add("slow", "valley_exponential", valley(np.exp, 0.1), gradients=True)
add("slow", "valley_absolute", valley(lambda x: 3.0 * np.abs(x), 0.3))
add("slow", "valley_sine_in_4", valley(lambda x: np.sin(3.0 * x), 0.2), normal, normal, mix=45)
add("slow", "valley_twisted_3", Piece(twisted, 3), gradients=True)
add("slow", "valley_crescent", Piece(crescent, 2, starts=((2.0, 0.0),)), gradients=True)
add("slow", "valley_sum", normal, normal, mix=rotation(2, 46) * [100.0, 0.01], gradients=True)
add("slow", "valley_quartic", Piece(lambda x, y: -((x + y) ** 4) - 500.0 * (x - y) ** 2, 2), gradients=True)
add(
    "slow", "valley_product", Piece(product, 2, starts=((1.0, 1.0), (-1.0, -1.0), (0.2, 4.0))), gradients=True
)
