r"""Climb the lower bound itself, of diagonal Gaussians on a few fixed points: a start that is not a guess.

The density of a centred hierarchy is highest in the neck of its funnel, and that of a differential equation has a mode
for each length of a cycle. The bound of a wide Gaussian sees neither. For fixed points :math:`\varepsilon_k`, in pairs
±ε and with variance 1 on every axis, it is a deterministic function of the mean m and the logarithms w of the standard
deviations, in the frame of the initial Gaussian:

.. math::
    \frac1K \sum_k f(m + e^{w} \varepsilon_k) + \sum_i w_i ,

with the gradient :math:`\bar f'` by m and :math:`\overline{f' \varepsilon}\, e^{w} + 1` by w. `Ascent` climbs it; each
of its steps takes K gradients. Few points make the bound somewhat too high, which does no harm to a start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.arrival.ascent import Ascent, Line, Point
from mgvbp.core.linalg import Array
from mgvbp.core.records import replace
from mgvbp.estimators.draws import sobol
from mgvbp.families.gaussian import Gaussian

POINTS = 8
"""Fixed points of a climb. With 8 the ends on the zoo's hard targets are within 0.2 to 4 nats of the best diagonal
Gaussian; with 4 some standard deviations shrink to nothing, and 16 cost twice as much."""
MOST_STEPS = 100
"""Steps of a climb; most take 30 to 60."""
PROMISE = 0.02
"""A climb ends when its next step promises fewer nats per parameter than this (plus a tenth of a nat in all)."""
LARGEST = 100.0
"""Largest logarithm of a standard deviation that is evaluated; a line search may ask for more."""
HALVINGS = 12
"""How often the standard deviations are halved if a value is not finite at the start."""


@dataclass(frozen=True, eq=False)
class Climb:
    """A climb of the bound; ``x`` of its ascent are the mean and the log standard deviations, (2d,).

    Examples
    --------
    The target is N((3, 0), diag(1, ¼)):

    >>> climb = Climb.start(np.zeros(2), np.zeros(2), np.random.default_rng(0))
    >>> while not climb.arrived:
    ...     x = climb.ask()
    ...     climb = climb.tell(-0.5 * (x - [3.0, 0.0]) ** 2 @ [1.0, 4.0], ([3.0, 0.0] - x) * [1.0, 4.0])
    >>> bool(np.abs(np.exp(climb.ascent.here.x[2:]) - [1.0, 0.5]).max() < 0.2)
    True
    """

    points: Array
    """The fixed points, (K, d)."""
    ascent: Ascent
    halvings: int = 0

    @classmethod
    def start(cls, mean: Array, log_sd: Array, rng: np.random.Generator) -> Climb:
        """Begin at a diagonal Gaussian, whose bound is not known yet."""
        d, x = len(mean), np.concatenate([mean, log_sd])
        ascent = Ascent(
            Point(x, -math.inf, np.zeros(2 * d)), PROMISE * d + 0.1, MOST_STEPS, Line(0.0 * x, 0.0)
        )
        return cls(fixed_points(POINTS, d, rng), ascent)

    @property
    def arrived(self) -> bool:
        """Whether the climb has ended."""
        return self.ascent.arrived

    @property
    def is_improper(self) -> bool:
        """Whether a standard deviation has grown by more than `constants.WIDEST`: the density has no scale there."""
        return bool(self.ascent.here.x[len(self.ascent.here.x) // 2 :].max() > math.log(constants.WIDEST))

    @property
    def value(self) -> float:
        """The bound on the fixed points, in the initial frame and without the entropy's constant; −inf if unknown."""
        return self.ascent.here.value

    def ask(self) -> Array:
        """The points of the initial frame to evaluate next, (K, d)."""
        mean, log_sd = np.split(self.ascent.ask(), 2)
        return np.asarray(mean + np.exp(np.minimum(log_sd, LARGEST)) * self.points)

    def tell(self, values: Array, slopes: Array) -> Climb:
        """Take the values (K,) and gradients (K, d) at the points of `ask`, in the initial frame."""
        x = self.ascent.ask()
        log_sd = x[len(x) // 2 :]
        with np.errstate(all="ignore"):
            value = float(values.mean() + log_sd.sum())
            by_width = (slopes * self.points).mean(axis=0) * np.exp(log_sd) + 1.0
        gradient = np.concatenate([slopes.mean(axis=0), by_width])
        if self.value > -math.inf:
            moved = replace(self, ascent=self.ascent.tell(value, gradient))
            return replace(moved, ascent=replace(moved.ascent, arrived=True)) if moved.is_improper else moved
        point = Point(x, value, gradient)
        if point.is_finite:
            ascent = Ascent.start(point, self.ascent.promise, self.ascent.budget)
            return replace(self, ascent=ascent)
        narrower = x - np.concatenate([0.0 * log_sd, np.full(len(log_sd), math.log(2.0))])
        given_up = self.halvings == HALVINGS
        ascent = replace(self.ascent, here=self.ascent.here._replace(x=narrower), arrived=given_up)
        return replace(self, ascent=ascent, halvings=self.halvings + 1)

    def lower_bound(self, first: Gaussian) -> float:
        """The bound of the diagonal Gaussian on the fixed points; ``first`` is the initial Gaussian."""
        d = first.dim
        volume = float(np.log(first.family.diagonal(first.factor)).sum())
        return self.value + 0.5 * d * (1.0 + math.log(2.0 * math.pi)) - volume

    def gaussian(self, first: Gaussian) -> Gaussian:
        """The Gaussian where the climb has ended, in the family of ``first``, the initial Gaussian."""
        mean, log_sd = np.split(self.ascent.here.x, 2)
        family = first.family
        factor = family.product(first.factor, family.factor(variance=np.exp(2.0 * log_sd)))
        return Gaussian.from_factor(first.mean + family.from_frame(first.factor, mean), factor, family)


def fixed_points(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Points ±ε of a scrambled Sobol sequence, as normals (count, dim) with variance 1 on every axis."""
    half = sobol(rng, count // 2, dim)
    half /= np.sqrt(np.square(half).mean(axis=0))
    return np.concatenate([half, -half])
