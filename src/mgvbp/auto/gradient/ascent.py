"""Far away: L-BFGS (Nocedal and Wright 2006, Alg. 7.4 and 7.5), one value and gradient at a time.

It runs until the step it proposes promises less than so many nats, not to the mode: that of a funnel or of a centred
hierarchy is degenerate, and no place for a Gaussian. The line search brackets and bisects for the weak Wolfe conditions
(Lewis and Overton 2013, Alg. 2.6), which kinks, overflow and −∞ do not upset.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mgvbp._linalg import Array

MEMORY = 12
"""Steps that the curvature is read from."""
ARMIJO, WOLFE = 1e-4, 0.9
MOST_TRIALS = 30
"""Evaluations of a line search."""
LONGEST = 10.0
"""Most by which a step may be longer than the one before."""
FURTHER = 4.0
"""Factor on a step that does not yet see the slope fall."""


class Point(NamedTuple):
    """Where, (d,), the value there and its gradient, (d,)."""

    x: Array
    value: float
    gradient: Array

    @property
    def is_finite(self) -> bool:
        """Whether value and gradient are."""
        return math.isfinite(self.value) and bool(np.isfinite(self.gradient).all())


@dataclass
class _Line:
    """A line search: where it looks, and what it has found so far."""

    direction: Array
    slope: float
    low: float = 0.0
    high: float = math.inf
    step: float = 1.0
    trials: int = 0
    best: Point | None = None

    @property
    def is_exhausted(self) -> bool:
        return self.trials == MOST_TRIALS or self.high - self.low < 1e-10 * self.high


class Ascent:
    """An ask/tell climb until a step promises less than ``promise`` nats, or ``budget`` evaluations are spent.

    Examples
    --------
    >>> ascent = Ascent(Point(np.zeros(2), -9.0, np.array([0.0, 6.0])), promise=1e-12, budget=50)
    >>> while not ascent.arrived:
    ...     x = ascent.ask()
    ...     ascent.tell(-x[0] ** 2 - (x[1] - 3.0) ** 2, np.array([-2.0 * x[0], 6.0 - 2.0 * x[1]]))
    >>> ascent.here.x
    array([0., 3.])
    """

    def __init__(self, start: Point, promise: float, budget: int) -> None:
        self.here = start
        self._promise, self._budget = promise, budget
        self._pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)
        self._length = 1.0 / LONGEST
        self.arrived = budget < 1
        self._line = self._aim()

    @property
    def curvature(self) -> float:
        """The largest curvature of the last steps; 0 if there were none."""
        return max((float(y @ y) / float(s @ y) for s, y in self._pairs), default=0.0)

    def ask(self) -> Array:
        """The point to evaluate next, (d,)."""
        return np.asarray(self.here.x + self._line.step * self._line.direction)

    def tell(self, value: float, gradient: Array) -> None:
        """Take its value and gradient (d,): go on along the line, or turn."""
        line, point, turn = self._line, Point(self.ask(), value, gradient), False
        self._budget -= 1
        line.trials += 1
        if not point.is_finite or value < self.here.value + ARMIJO * line.step * line.slope:
            line.high = line.step
            line.step = line.low + (0.4 if point.is_finite else 0.1) * (line.high - line.low)
        else:
            turn = bool(gradient @ line.direction <= WOLFE * line.slope)
            line.best, line.low = point, line.step
            line.step = 0.5 * (line.low + line.high) if line.high < math.inf else FURTHER * line.low
        if turn or line.is_exhausted or self._budget == 0:
            self._move(line.best)
            self.arrived = self.arrived or self._budget == 0
            self._line = self._aim()

    def _move(self, best: Point | None) -> None:
        """To the best point of the line; if none is higher, forget the curvature, which misled."""
        if best is None:
            self.arrived = not self._pairs
            self._pairs.clear()
            self._length *= 0.1
            return
        s, y = best.x - self.here.x, self.here.gradient - best.gradient
        self._length = float(np.linalg.norm(s))
        if s @ y > 1e-10 * self._length * np.linalg.norm(y):
            self._pairs.append((s, y))
        self.arrived = best.value - self.here.value < 1e-12 * max(1.0, abs(self.here.value))
        self.here = best

    def _aim(self) -> _Line:
        """The next line, unless it promises too little."""
        direction = two_loops(self.here.gradient, self._pairs)
        slope, norm = float(self.here.gradient @ direction), float(np.linalg.norm(direction))
        useful = 0.0 < slope < math.inf and (not self._pairs or 0.5 * slope >= self._promise)
        self.arrived = self.arrived or not useful
        scale = min(1.0, LONGEST * self._length / norm) if useful else 0.0
        return _Line(scale * direction, scale * slope)


def two_loops(gradient: Array, pairs: deque[tuple[Array, Array]]) -> Array:
    """The inverse Hessian that steps s and the falls y of the gradient along them imply, times ``gradient``."""
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
