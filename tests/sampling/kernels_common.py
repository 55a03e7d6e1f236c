"""Targets with exact draws, and chains of one kernel that start at these."""

import numpy as np

from mgvbp.sampling.points import Point

LEVEL = 1e-4
"""The probability with which each statistical test fails although the kernel is right."""


class Skewed:
    """Logarithms of gamma variables with shapes 1 and 3: skewed, with an exponential tail."""

    dim, shape = 2, np.array([1.0, 3.0])

    def draw(self, n, rng):
        return np.log(rng.gamma(self.shape, size=(n, 2)))

    def at(self, x):
        return Point(x, float((self.shape * x - np.exp(x)).sum()), self.shape - np.exp(x))


class Banana:
    """A normal x and a normal y around x²/2."""

    dim = 2

    def draw(self, n, rng):
        x = rng.standard_normal(n)
        return np.column_stack([x, 0.5 * x**2 + 0.5 * rng.standard_normal(n)])

    def at(self, x):
        u = (x[1] - 0.5 * x[0] ** 2) / 0.25
        return Point(x, float(-0.5 * x[0] ** 2 - 0.5 * 0.25 * u**2), np.array([u * x[0] - x[0], -u]))


class Heavy:
    """A t distribution with three degrees of freedom in each of two independent entries."""

    dim = 2

    def draw(self, n, rng):
        return rng.standard_t(3.0, size=(n, 2))

    def at(self, x):
        return Point(x, float(-2.0 * np.log1p(x**2 / 3.0).sum()), -4.0 * x / (3.0 + x**2))


TARGETS = {"skewed": Skewed(), "banana": Banana(), "heavy": Heavy()}


def answered(asking, target):
    """Run a computation that asks for points of the target; returns what it returns, and how often it asked."""
    position, asked = next(asking), 0
    while True:
        asked += 1
        try:
            position = asking.send(target.at(position))
        except StopIteration as stop:
            return stop.value, asked


def moved(kernel, target, starts, steps, rng):
    """The positions after so many steps from each of the rows of ``starts``."""
    ends = []
    for start in starts:
        point = target.at(start)
        for _ in range(steps):
            point = answered(kernel.move(point, rng), target)[0].point
        ends.append(point.position)
    return np.array(ends)
