"""Slice sampling along single parameters: slow, but it goes into narrow parts that nothing else knows of yet.

In the neck of a funnel all entries but one have a small scale, which that one sets. A step in all directions at once
must then be small in all of them. Along one parameter a step is as long as its conditional distribution is wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.sampling.points import Asking, Move, Point

WIDTH = 3.0
"""The first bracket in standard deviations of the parameter: most of its range. Other values were not measured; a
bracket that is too wide shrinks, which takes an evaluation or two."""
NARROWEST = 1e-12
"""A bracket narrower than this part of the first one ends at the point itself."""


@dataclass(frozen=True, eq=False)
class AxisSlice:
    """The kernel along one entry of θ, drawn at random; ``q`` has the frame, ``std`` (d,) the standard deviations.

    The bracket lies at random around the point and shrinks towards it until a point above the level is found
    (Neal 2003, without stepping out).
    """

    q: Gaussian
    std: Array

    def move(self, point: Point, rng: np.random.Generator) -> Asking[Move]:
        """Step along one parameter."""
        axis, entry = np.zeros((1, self.q.dim)), int(rng.integers(self.q.dim))
        axis[0, entry] = WIDTH * self.std[entry]
        direction = self.q.family.to_frame(self.q.factor, axis)[0]
        level = point.value - rng.exponential()
        low = -rng.random()
        high, tried = low + 1.0, 0
        while high - low > NARROWEST:
            step = rng.uniform(low, high)
            new = yield point.position + step * direction
            tried += 1
            if new.value > level:
                return Move(new, 1.0 / tried)
            low, high = (step, high) if step < 0.0 else (low, step)
        return Move(point, 0.0)
