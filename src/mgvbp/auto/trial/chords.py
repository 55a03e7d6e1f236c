r"""Do the values say what the gradients say? Chords between draws, halved where the two differ.

A surface of gradients is blind to a jump in the values, and a wrong gradient leads it astray. On the way from a draw a
to a draw b, with t from 0 to 1 and :math:`f'` the derivative by t, the difference

.. math:: \Delta = f(b) - f(a) - \tfrac12 (f'(a) + f'(b))

is known without any evaluation. Where it is large, the middle of the chord is evaluated, then that of the part that
differs most, and so on. For a smooth function a halving leaves a quarter of the difference of a part, which
extrapolation removes. Where a gradient is wrong, or the values jump, it stays. A jump of J nats has a variance of at
most J²/4 under any q, and the bound is off by at most half of that, so that small differences do no harm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mgvbp.auto import constants
from mgvbp.core.linalg import Array
from mgvbp.core.outcome import Ending, Outcome
from mgvbp.core.records import replace


@dataclass(frozen=True, eq=False)
class Chords:
    """Chords on which values and gradients still differ by more than is allowed, each with n points on it."""

    start: Array
    """The first ends, (k, d)."""
    step: Array
    """From there to the other ends, (k, d)."""
    t: Array
    """The points on each chord, ascending from 0 to 1, (k, n)."""
    values: Array
    """The log density at the points, (k, n)."""
    slopes: Array
    """Its derivatives by t there, (k, n)."""
    smooth: Array
    """What halvings say that the trapezoidal rule misses of a smooth function, on each part, (k, n − 1)."""
    allowed: Array
    """Nats by which values and gradients may differ on each chord, (k,)."""

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
        half = len(theta) // 2
        ends = rng.permutation(len(theta))[: 2 * half].reshape(half, 2)
        step = theta[ends[:, 1]] - theta[ends[:, 0]]
        slopes = np.einsum("ked,kd->ke", gradients[ends], step)
        rounded = constants.ROUNDING * float(np.abs(values).max(initial=0.0))
        least = constants.HARMLESS_JUMP * math.sqrt(tol) + constants.OUTLYING * noise + rounded
        t, smooth = np.tile([0.0, 1.0], (half, 1)), np.zeros((half, 1))
        off = np.abs(_trapezoidal(t, values[ends], slopes)[:, 0])
        allowed = least + constants.HARMLESS_SHARE * off
        found = cls(theta[ends[:, 0]], step, t, values[ends], slopes, smooth, allowed)
        return found._kept(np.argsort(-off)[: constants.CHORDS])._open()

    @property
    def parts(self) -> Array:
        """The differences between values and gradients on the parts of the chords, in nats, (k, n − 1)."""
        return _trapezoidal(self.t, self.values, self.slopes) - self.smooth

    @property
    def difference(self) -> Array:
        """The difference on each chord, (k,)."""
        return np.asarray(self.parts.sum(axis=1))

    @property
    def ended(self) -> bool:
        """Whether all chords agree, or were halved often enough."""
        return not len(self.t) or self.t.shape[1] == constants.MOST_HALVINGS + 2

    @property
    def jump(self) -> float:
        """The largest jump that was found, in nats; 0 if there is none."""
        if not self.ended:
            return 0.0
        short = np.diff(self.t, axis=1) < constants.JUMP_WITHIN
        parts = np.where(short, np.abs(self.parts), 0.0)
        return float(parts[parts > self.allowed[:, None]].max(initial=0.0))

    @property
    def error(self) -> float:
        """The largest difference, in nats, if values and gradients contradict each other on many chords; 0 if not."""
        if not self.ended or len(self.t) < constants.CONTRADICTORY:
            return 0.0
        return float(np.abs(self.difference).max())

    def ask(self) -> Array:
        """The next points, one for each chord, (k, d)."""
        return np.asarray(self.start + self._middles[:, None] * self.step)

    @property
    def _worst(self) -> NDArray[np.intp]:
        """The part of each chord that differs most, (k,)."""
        return np.asarray(np.argmax(np.abs(self.parts), axis=1))

    @property
    def _middles(self) -> Array:
        row, k = np.arange(len(self.t)), self._worst
        return np.asarray(0.5 * (self.t[row, k] + self.t[row, k + 1]))

    def tell(self, values: Array, gradients: Array) -> Chords:
        """Take values (k,) and gradients (k, d) at the points of `ask`.

        A chord is given up if they are not finite: that is for other checks.
        """
        row, k = np.arange(len(self.t)), self._worst
        slopes = np.einsum("kd,kd->k", gradients, self.step)
        before = _trapezoidal(self.t, self.values, self.slopes)[row, k]
        t = _inserted(self.t, k + 1, self._middles)
        all_values, all_slopes = _inserted(self.values, k + 1, values), _inserted(self.slopes, k + 1, slopes)
        after = _trapezoidal(t, all_values, all_slopes)
        # the rule misses a quarter of what it missed before: a third of the change is still missed, half of it each
        missed = (before - after[row, k] - after[row, k + 1]) / 6.0
        smooth = _inserted(self.smooth, k + 1, missed)
        smooth[row, k] = missed
        told = replace(self, t=t, values=all_values, slopes=all_slopes, smooth=smooth)
        return told._kept(np.flatnonzero(np.isfinite(values) & np.isfinite(slopes)))._open()

    def _open(self) -> Chords:
        """Those that differ by more than is allowed."""
        return self._kept(np.flatnonzero(np.abs(self.difference) > self.allowed))

    def _kept(self, rows: NDArray[np.intp]) -> Chords:
        names = ("start", "step", "t", "values", "slopes", "smooth", "allowed")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})


def contradiction(chords: Chords) -> Ending | None:
    """Why a result of gradients cannot stand, if values contradict them; None if they do not."""
    if chords.jump:
        return Ending.of(Outcome.JUMP, nats=chords.jump)
    if chords.error:
        where = f"on the way from one draw to another the difference is {chords.error:.2g} nats"
        return Ending.of(Outcome.DISAGREE, where=where)
    return None


def _trapezoidal(t: Array, values: Array, slopes: Array) -> Array:
    """The differences of the values (k, n) less the trapezoidal rule for the slopes, (k, n − 1)."""
    rise = 0.5 * (slopes[:, 1:] + slopes[:, :-1]) * np.diff(t, axis=1)
    return np.asarray(np.diff(values, axis=1) - rise)


def _inserted(rows: Array, at: NDArray[np.intp], new: Array) -> Array:
    """The rows (k, n) with one number more in each, (k, n + 1), before the index ``at``."""
    k, n = rows.shape
    wider = np.empty((k, n + 1))
    free = np.arange(n + 1) == at[:, None]
    wider[free], wider[~free] = new, rows.ravel()
    return wider
