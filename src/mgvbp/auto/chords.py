r"""Do the values say what the gradients say? Chords between draws, halved where the two differ.

A gradient does not show where the values jump, so that a surface of gradients is blind to it. On the chord from one draw
to another, with :math:`f'` the derivative along the chord and t from 0 to 1, the difference

.. math:: f(b) - f(a) - \tfrac12 (b - a)\,(f'(a) + f'(b))

is known without any evaluation. Where it is large, the middle of the chord is evaluated, and the half goes on that has the
larger difference. For a smooth function it falls to an eighth at each halving, at a kink to a half, and for a jump it
stays what it is. A jump of J nats has a variance of at most J²/4 under any q, and the bound is off by at most half of
that: a jump below `constants.HARMLESS_JUMP` √tol is not looked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mgvbp.auto import constants
from mgvbp.core.linalg import Array


@dataclass(frozen=True, eq=False)
class Chords:
    """Chords, or what is left of them, on which values and gradients differ by more than is allowed."""

    start: Array
    """The first ends, (k, d)."""
    step: Array
    """From there to the other ends, (k, d)."""
    t: Array
    """The interval of each chord that is looked at, within 0 and 1, (k, 2)."""
    values: Array
    """The log density at the ends of the interval, (k, 2)."""
    slopes: Array
    """Its derivatives by t there, (k, 2)."""
    allowed: float
    """Nats by which values and gradients may differ."""
    halvings: int = 0

    @classmethod
    def among(
        cls,
        theta: Array,
        values: Array,
        gradients: Array,
        tol: float,
        rng: np.random.Generator,
        noise: float = 0.0,
    ) -> Chords:
        """Chords between random pairs of draws (n, d), those on which values (n,) and gradients (n, d) differ most."""
        order = rng.permutation(len(theta))
        half = len(order) // 2
        ends = np.stack([order[:half], order[half : 2 * half]], axis=1)
        step = theta[ends[:, 1]] - theta[ends[:, 0]]
        slopes = np.einsum("ked,kd->ke", gradients[ends], step)
        t = np.tile([0.0, 1.0], (half, 1))
        rounded = constants.ROUNDING * float(np.abs(values).max(initial=0.0))
        allowed = constants.HARMLESS_JUMP * math.sqrt(tol) + constants.OUTLYING * noise + rounded
        found = cls(theta[ends[:, 0]], step, t, values[ends], slopes, allowed)
        most = np.argsort(-np.abs(found.difference))[: constants.CHORDS]
        return found._kept(most)._open()

    @property
    def difference(self) -> Array:
        """The difference of the values less what the gradients say of it, in nats, (k,)."""
        length = self.t[:, 1] - self.t[:, 0]
        return np.asarray(self.values[:, 1] - self.values[:, 0] - 0.5 * length * self.slopes.sum(axis=1))

    @property
    def ended(self) -> bool:
        """Whether all chords agree, or were halved often enough."""
        return not len(self.t) or self.halvings == constants.MOST_HALVINGS

    @property
    def jump(self) -> float:
        """The largest jump that was found, in nats; 0 if there is none."""
        return float(np.abs(self.difference).max(initial=0.0)) if self.ended else 0.0

    def ask(self) -> Array:
        """The middles of what is left of the chords, (k, d)."""
        return np.asarray(self.start + self.t.mean(axis=1)[:, None] * self.step)

    def tell(self, values: Array, gradients: Array) -> Chords:
        """Take values (k,) and gradients (k, d) at the middles; go on with the worse halves.

        A chord is given up if they are not finite: that is for other checks.
        """
        slopes = np.einsum("kd,kd->k", gradients, self.step)
        finite = np.isfinite(values) & np.isfinite(slopes)
        middle = self.t.mean(axis=1)
        lower, upper = (
            replace(
                self,
                t=_with(self.t, end, middle),
                values=_with(self.values, end, values),
                slopes=_with(self.slopes, end, slopes),
                halvings=self.halvings + 1,
            )
            for end in (1, 0)
        )
        worse = (np.abs(upper.difference) > np.abs(lower.difference))[:, None]
        chosen = replace(
            lower,
            t=np.where(worse, upper.t, lower.t),
            values=np.where(worse, upper.values, lower.values),
            slopes=np.where(worse, upper.slopes, lower.slopes),
        )
        return chosen._kept(np.flatnonzero(finite))._open()

    def _open(self) -> Chords:
        """Those that differ by more than is allowed."""
        return self._kept(np.flatnonzero(np.abs(self.difference) > self.allowed))

    def _kept(self, rows: Array) -> Chords:
        return replace(
            self,
            start=self.start[rows],
            step=self.step[rows],
            t=self.t[rows],
            values=self.values[rows],
            slopes=self.slopes[rows],
        )


def _with(ends: Array, end: int, middle: Array) -> Array:
    """The ends (k, 2) of intervals with one of them replaced."""
    moved = ends.copy()
    moved[:, end] = middle
    return moved
