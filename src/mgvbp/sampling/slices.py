r"""Elliptical slice sampling: no gradient, no step size, nothing to tune.

Where the target is a Gaussian N(0, I) times a factor :math:`e^{h}`, a point x and a draw v of the Gaussian span an
ellipse :math:`x \cos a + v \sin a`, along which the Gaussian is constant in distribution. A level below
:math:`e^{h(x)}` is drawn, and angles are tried in a bracket that shrinks towards x, until one lies above the level
(Murray, Adams and MacKay 2010). Here the Gaussian is that of a frame of the target, and h is what the frame leaves
unexplained: it is near constant where the fit is good, so that the first angle is usually taken.

A Gaussian has lighter tails than many targets, and chains would stay long in the tails. So the place of the Gaussian is
taken by a multivariate t with few degrees of freedom ν, which is a Gaussian of random variance: given x,
:math:`s \sim \mathrm{InvGamma}(\tfrac{\nu + d}{2}, \tfrac{\nu + \|x\|^2}{2})`, and then a step with N(0, s I)
(Nishihara, Murray and Adams 2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mgvbp.sampling.frame import Frame
from mgvbp.sampling.points import Asking, Move, Point

DEGREES = 5.0
"""Degrees of freedom of the t distribution.

Among 5, 20 and a Gaussian, 5 took fewest evaluations an effective draw on five of the six targets of
`benchmarks/mcmc.py`, and about half as many as a Gaussian on curved and on heavy-tailed ones.
"""
NARROWEST = 1e-12
"""A bracket of angles narrower than this ends at the point itself: the target is flat at the level but for rounding."""


@dataclass(frozen=True, eq=False)
class EllipticalSlice:
    """The kernel in a frame of the target."""

    frame: Frame

    def move(self, point: Point, rng: np.random.Generator) -> Asking[Move]:
        """Step along one ellipse."""
        x = self.frame.inward(point.position)
        dim, square = len(x), float(x @ x)
        variance = 0.5 * (DEGREES + square) / rng.gamma(0.5 * (DEGREES + dim))
        v = math.sqrt(variance) * rng.standard_normal(dim)
        level = point.value - log_t(square, dim) - rng.exponential()
        angle = rng.uniform(0.0, 2.0 * math.pi)
        low, high, tried = angle - 2.0 * math.pi, angle, 0
        while high - low > NARROWEST:
            y = math.cos(angle) * x + math.sin(angle) * v
            new = yield self.frame.outward(y)
            tried += 1
            if new.value - log_t(float(y @ y), dim) > level:
                return Move(new, 1.0 / tried)
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)
        return Move(point, 0.0)


def log_t(square: float, dim: int) -> float:
    """The log density of the t distribution where ``‖x‖² = square``, up to a constant."""
    return -0.5 * (DEGREES + dim) * math.log1p(square / DEGREES)
