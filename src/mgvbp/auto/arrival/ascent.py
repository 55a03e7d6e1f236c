"""Climb from far away: L-BFGS (Nocedal and Wright 2006, Alg. 7.4 and 7.5), one value and gradient at a time.

The ascent ends when its last step gained, and its next step promises, few nats. A promise alone is not enough: after a
step down a cliff, the curvature of the cliff makes all promises small. The ascent does not go to the mode, since the
mode of a funnel or of a centred hierarchy is degenerate and no place for a Gaussian. The line search brackets and
bisects for the weak Wolfe conditions (Lewis and Overton 2013, Alg. 2.6); kinks, overflow and −∞ do not upset it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.records import replace

MEMORY = 12
"""How many of the last steps the curvature is read from."""
ARMIJO, WOLFE = 1e-4, 0.9
"""The constants c₁ and c₂ of the Wolfe conditions for quasi-Newton methods (Nocedal and Wright 2006, section 3.1)."""
MOST_TRIALS = 30
"""Most evaluations of a line search."""
LONGEST = 10.0
"""Largest ratio of the length of a step to that of the step before."""
FURTHER = 4.0
"""Factor on the step of a line search while the slope has not fallen enough."""


Pairs = tuple[tuple[Array, Array], ...]


class Point(NamedTuple):
    """A point (d,) with the value and the gradient (d,) of the function."""

    x: Array
    value: float
    gradient: Array

    @property
    def is_finite(self) -> bool:
        """Whether the value and the gradient are finite."""
        return math.isfinite(self.value) and bool(np.isfinite(self.gradient).all())


@dataclass(frozen=True, eq=False)
class Line:
    """A line search: its direction, the bracket of the step, and the best point so far."""

    direction: Array
    slope: float
    low: float = 0.0
    high: float = math.inf
    step: float = 1.0
    trials: int = 0
    best: Point | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether the trials are used up, or the bracket is too small to hold a better step."""
        return self.trials == MOST_TRIALS or self.high - self.low < 1e-10 * self.high

    def tell(self, here: Point, point: Point) -> Line:
        """Take the ``point`` at ``step`` and choose the next step; the line begins at ``here``."""
        if not point.is_finite or point.value < here.value + ARMIJO * self.step * self.slope:
            nearer = self.low + (0.4 if point.is_finite else 0.1) * (self.step - self.low)
            return replace(self, high=self.step, step=nearer, trials=self.trials + 1)
        further = 0.5 * (self.step + self.high) if self.high < math.inf else FURTHER * self.step
        return replace(self, best=point, low=self.step, step=further, trials=self.trials + 1)


@dataclass(frozen=True, eq=False)
class Ascent:
    """A climb until steps gain and promise less than ``promise`` nats, or ``budget`` evaluations are spent.

    Examples
    --------
    >>> ascent = Ascent.start(Point(np.zeros(2), -9.0, np.array([0.0, 6.0])), promise=1e-12, budget=50)
    >>> while not ascent.arrived:
    ...     x = ascent.ask()
    ...     ascent = ascent.tell(-x[0] ** 2 - (x[1] - 3.0) ** 2, np.array([-2.0 * x[0], 6.0 - 2.0 * x[1]]))
    >>> ascent.here.x
    array([0., 3.])
    """

    here: Point
    promise: float
    budget: int
    """Evaluations that are left."""
    line: Line
    pairs: Pairs = ()
    """The last steps s (d,), each with the fall y (d,) of the gradient along it."""
    length: float = 1.0 / LONGEST
    """Length of the last step."""
    gained: float = math.inf
    """Nats that the last step gained."""
    arrived: bool = False

    @classmethod
    def start(cls, here: Point, promise: float, budget: int) -> Ascent:
        """Begin at a point."""
        return cls(here, promise, budget, Line(here.gradient, 0.0), arrived=budget < 1)._aimed()

    @property
    def curvature(self) -> float:
        """The largest curvature along the last steps; 0 if there were no steps."""
        return max((float(y @ y) / float(s @ y) for s, y in self.pairs), default=0.0)

    def ask(self) -> Array:
        """The point to evaluate next, (d,)."""
        return np.asarray(self.here.x + self.line.step * self.line.direction)

    def tell(self, value: float, gradient: Array) -> Ascent:
        """Take the value and gradient (d,) at the point of `ask`; stay on the line or begin another."""
        point = Point(self.ask(), value, gradient)
        line, budget = self.line.tell(self.here, point), self.budget - 1
        # the second Wolfe condition: the slope has fallen enough
        turn = line.best is point and bool(gradient @ line.direction <= WOLFE * line.slope)
        onwards = replace(self, line=line, budget=budget)
        if not (turn or line.is_exhausted or budget == 0):
            return onwards
        moved = onwards._moved(line.best)
        return replace(moved, arrived=moved.arrived or budget == 0)._aimed()

    def _moved(self, best: Point | None) -> Ascent:
        """Move to the best point of the line; if no point is higher, forget the curvature, which misled."""
        if best is None:
            return replace(self, arrived=not self.pairs, pairs=(), length=0.1 * self.length)
        s, y = best.x - self.here.x, self.here.gradient - best.gradient
        length, pairs = float(np.linalg.norm(s)), self.pairs
        if s @ y > 1e-10 * length * np.linalg.norm(y):
            pairs = (*pairs, (s, y))[-MEMORY:]
        gained = best.value - self.here.value
        arrived = gained < 1e-12 * max(1.0, abs(self.here.value))
        return replace(self, here=best, pairs=pairs, length=length, gained=gained, arrived=arrived)

    def _aimed(self) -> Ascent:
        """Choose the next line, or arrive if it promises too little."""
        direction = two_loops(self.here.gradient, self.pairs)
        slope, norm = float(self.here.gradient @ direction), float(np.linalg.norm(direction))
        worthwhile = not self.pairs or max(0.5 * slope, self.gained) >= self.promise
        useful = 0.0 < slope < math.inf and worthwhile
        scale = min(1.0, LONGEST * self.length / norm) if useful else 0.0
        return replace(self, arrived=self.arrived or not useful, line=Line(scale * direction, scale * slope))


def two_loops(gradient: Array, pairs: Pairs) -> Array:
    """``gradient`` times the inverse Hessian that ``pairs`` imply: steps s and the falls y of the gradient."""
    direction, factors = gradient, []
    for s, y in reversed(pairs):
        factors.append(float(s @ direction) / float(s @ y))
        direction = direction - factors[-1] * y
    if pairs:
        s, y = pairs[-1]
        direction = direction * (float(s @ y) / float(y @ y))
    for s, y in pairs:
        direction = direction + (factors.pop() - float(y @ direction) / float(s @ y)) * s
    return direction
