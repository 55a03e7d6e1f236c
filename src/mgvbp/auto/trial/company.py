"""Whether two values of the same draw differ by chance, or because of the company that the draw had.

The same draws are evaluated once more. Values that are random differ then. If they do not, every second draw is
replaced by the first: where the values of the others change with that, each is not a function of its own draw. Where
they stay, the noise belongs to the row, as from a generator that begins anew with every call, and is noise like other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mgvbp.auto import constants
from mgvbp.core.linalg import Array


class Company(NamedTuple):
    """Draws (n, d) that were evaluated together, and their values (n,)."""

    theta: Array
    values: Array
    changed: bool = False
    """Whether every second draw is now replaced."""

    @property
    def points(self) -> Array:
        """The points to evaluate next, together, (n, d) or, to have an even number, (n − 1, d)."""
        if not self.changed:
            return self.theta
        pairs = self.theta[: len(self.theta) // 2 * 2].copy()
        pairs[1::2] = pairs[0]
        return pairs

    def change(self, values: Array) -> float:
        """Nats by which the values at `points` differ from the earlier ones at the same draws; 0 if they agree."""
        step = 2 if self.changed else 1
        both = np.stack([self.values[: len(values)], values])[:, ::step]
        finite = np.isfinite(both)
        if (finite[0] != finite[1]).any():
            return math.inf
        earlier, later = both[:, finite[0]]
        apart = np.abs(later - earlier)
        rounded = constants.SAME_VALUE + constants.ROUNDING * np.abs(earlier)
        return float(apart.max()) if (apart > rounded).any() else 0.0
