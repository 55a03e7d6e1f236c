r"""ADAM up to a mode, with a step that is found on the way (Kingma and Ba 2015, Algorithm 1).

.. math::
    m &\leftarrow 0.9\, m + 0.1\, g, \qquad v \leftarrow 0.999\, v + 0.001\, g^2, \\
    \theta &\leftarrow \theta + \alpha\, s\, \frac{m / (1 - 0.9^t)}{\sqrt{v / (1 - 0.999^t)}} ,

with s the standard deviations of the prior. After every round of whole epochs the log density of the last epoch is
compared with the best so far. If it is no higher, ADAM goes back to the best point, with a quarter of the step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array

FIRST = 0.1
"""The first α. A step that is too large costs one round, one that is too small costs many."""
SHORTER = 0.25
"""Factor on α after a round that did not climb."""
LAST = 1e-3
"""ADAM ends once α is below this: a parameter then moves by less than 5% of its prior's standard deviation a round."""


class Adam(NamedTuple):
    """An iterate θ of ADAM (d,), its moments, its step, and the best point so far with its log density."""

    theta: Array
    first: Array
    second: Array
    steps: int
    step: float
    best: Array
    value: float = -math.inf

    @classmethod
    def at(cls, theta: Array, step: float = FIRST) -> Adam:
        """Begin at θ."""
        zero = np.zeros_like(theta)
        return cls(theta, zero, zero, 0, step, theta)

    def moved(self, gradient: Array, scale: Array) -> Adam:
        """One step along the gradient (d,); ``scale`` has the unit of each parameter."""
        t = self.steps + 1
        first = 0.9 * self.first + 0.1 * gradient
        second = 0.999 * self.second + 0.001 * gradient**2
        root = np.sqrt(second / (1.0 - 0.999**t)) + np.finfo(float).tiny
        theta = self.theta + self.step * scale * (first / (1.0 - 0.9**t)) / root
        return self._replace(theta=theta, first=first, second=second, steps=t)

    def back(self) -> Adam:
        """At the best point, with a shorter step."""
        return Adam.at(self.best, SHORTER * self.step)._replace(value=self.value)

    def judged(self, value: float, tol: float) -> Adam:
        """After a round whose last epoch had the mean log density ``value``.

        A point that is higher is kept. If it is so by no more than ``tol``, the step becomes shorter, too.
        """
        if not value > self.value:
            return self.back()
        kept = self._replace(best=self.theta, value=value)
        return kept if value > self.value + tol else kept.back()

    @property
    def ended(self) -> bool:
        """Whether the steps have become so short that ADAM is at a mode."""
        return self.step < LAST
