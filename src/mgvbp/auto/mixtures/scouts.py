"""Scouts look for mass that the best Gaussian does not explain, in places where none of its draws can come.

Draws of q show nothing of another mode, and so the distance that they give knows nothing of it either. Points far out
do. There the log density less log q and the lower bound of q, the *excess*, is about 0 if the posterior is Gaussian,
and large on the side of another mode, long before the mode itself is near. So points are scattered around q and over
the initial Gaussian, and the mean of q is tried with two entries exchanged, as labels that can be exchanged make modes
that are narrow and far. From the point with the largest excess an approach by values (`approach`, in the frame of q)
climbs the density; the next begins at the highest point that has excess, then it is the largest excess again. Where
tails are heavy, points very far out have the largest excess and lead nowhere, and the highest ones lead to modes. If
it arrives where there is still excess, across a valley, a search for another Gaussian begins there. What that
explains is no excess any more, and the scouts go on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from mgvbp.auto.arrival.approach import Approach
from mgvbp.auto.arrival.laplace import place
from mgvbp.auto.trial.rivals import top
from mgvbp.auto.trial.trial import GOLDEN
from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian

SCATTERED = {False: 8, True: 32}
"""Points, times d + 2, by values and where there are gradients, whose rounds take ten times the evaluations."""
VAIN = {False: 3, True: 16}
"""Approaches that may find nothing, likewise. With 6 by gradients, five of 64 targets of ``benchmarks/modes.py
--warped`` missed a mode; with 16, two or three."""
NEAREST, FARTHEST = 3.0, 15.0
"""Standard deviations, plus √(d−1), at which points around q lie, with evenly spread logarithms. Beyond another mode as
wide as q nearly a half-space belongs to it; a narrow one is seen from near by alone."""
DISPERSED = 2.0
"""Standard deviations of the initial Gaussian by which the others are scattered around its mean."""
EXCESS = 2.0
"""Least excess, in nats, of a point that is worth an approach; one that comes to less has come to what is known."""
PROMISE = 0.1
"""Nats that a step of an approach promises when it has arrived."""
ON_THE_WAY, VALLEY = np.array([0.3, 0.5, 0.7]), 0.5
"""Where a valley is looked for between an approach that has arrived and what is known, and its least depth in nats: the
tail of one mode has none."""
NEGLIGIBLE = 12.0
"""A mode whose mass is so many nats less than what is known is left alone, here and in the `rounds`."""
BUDGET = {False: 10, True: 30}
"""Evaluations of an approach, times d + 2, likewise: with 10 none arrived at the second mode of a compartment model
that has a sixth of the mass."""


def exchanged(mean: Array) -> Array:
    """A mean (d,) with two entries exchanged, for each pair of them, (d (d − 1) / 2, d)."""
    i, j = np.triu_indices(len(mean), 1)
    rows, points = np.arange(len(i)), np.tile(mean, (len(i), 1))
    points[rows, i], points[rows, j] = mean[j], mean[i]
    return points


@dataclass(frozen=True, eq=False)
class Scouts:
    """Points of the frame of ``q`` whose values are known, and the approach from one of them."""

    q: Gaussian
    known: tuple[tuple[Gaussian, float], ...]
    """The Gaussians that were found so far, q and others, with their lower bounds."""
    vain: int
    """Approaches that may still find nothing before the scouts are back."""
    budget: int
    """Evaluations of an approach."""
    pending: Array
    """Points to evaluate next, (n, d); none once an approach has arrived, or none is worth a try."""
    points: Array
    """The scattered points, (N, d) ..."""
    values: Array
    """... and the log density there, (N,); empty before it is known."""
    climb: Approach | None = None
    again: bool = False
    """Whether it began where another had arrived: what few points say of the curvature may end the first too early."""
    tried: tuple[int, ...] = ()
    """The points from which approaches have begun."""
    candidate: Gaussian | None = None
    """Laplace's approximation where the last one has arrived, while it is not known whether there is a valley."""
    found: Gaussian | None = None
    """The same, once there is one."""

    @classmethod
    def start(
        cls,
        q: Gaussian,
        known: tuple[tuple[Gaussian, float], ...],
        first: Gaussian,
        rng: np.random.Generator,
        *,
        gradients: bool,
    ) -> Scouts:
        """Scatter points around ``q`` and over the ``first`` Gaussian of the search, where these are ``known``."""
        d = q.dim
        half = SCATTERED[gradients] * (d + 2) // 2
        directions = rng.standard_normal((half, d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        share = (rng.uniform() + GOLDEN * np.arange(half)) % 1.0
        distances = NEAREST * (FARTHEST / NEAREST) ** share + math.sqrt(d - 1.0)
        wide = first.family.from_frame(first.factor, DISPERSED * rng.standard_normal((half, d)))
        others = q.family.to_frame(q.factor, first.mean + wide - q.mean)
        swapped = q.family.to_frame(q.factor, exchanged(q.mean) - q.mean)
        far = swapped[np.linalg.norm(swapped, axis=1) > NEAREST][:half]
        points = np.concatenate([distances[:, None] * directions, others, far])
        budget = BUDGET[gradients] * (d + 2)
        return cls(q, known, VAIN[gradients], budget, points, points, np.empty(0))

    @property
    def theta(self) -> Array:
        """The points to evaluate next, (n, d)."""
        return place(self.q, self.pending)

    def tell(self, log_density: Array) -> Scouts:
        """Take the log density (n,) at the pending points; −inf where it is not known."""
        if self.climb is None:
            return replace(self, values=log_density)._next()
        if self.candidate is not None:
            valley = log_density.min() < self.climb.values.max() - VALLEY
            told = replace(self, candidate=None, pending=self.pending[:0])
            return replace(told, found=self.candidate, vain=self.vain + 1) if valley else told._next()
        climb = self.climb.tell(log_density)
        value = float(climb.values.max())
        if not (value - self._explained(climb.best[None])[0] > EXCESS and math.isfinite(value)):
            return self._next()
        if climb.arrived(PROMISE) or (climb.lost and value > self._highest - NEGLIGIBLE):
            return self._judged(climb) if self.again else self._begun(climb.best, again=True)
        return self._next() if climb.lost else replace(self, climb=climb, pending=climb.pending)

    def _begun(self, point: Array, *, again: bool) -> Scouts:
        """Begin an approach at a point (d,)."""
        climb = Approach.start(len(point), self.budget, point)
        return replace(self, climb=climb, pending=climb.pending, again=again)

    def _judged(self, climb: Approach) -> Scouts:
        """Look for a valley between an approach that has arrived, if there is enough mass, and what is known."""
        there = climb.gaussian(self.q, self.q.family)
        if climb.values.max() - top(there) < max(bound for _, bound in self.known) - NEGLIGIBLE:
            return self._next()
        q = self.q
        means = [q.family.to_frame(q.factor, other.mean - q.mean) for other, _ in self.known]
        nearest = min(means, key=lambda mean: float(np.linalg.norm(mean - climb.best)))
        between = climb.best + ON_THE_WAY[:, None] * (nearest - climb.best)
        return replace(self, climb=climb, candidate=there, pending=between)

    def resumed(self, known: tuple[tuple[Gaussian, float], ...]) -> Scouts:
        """Go on, now that these Gaussians are known with their lower bounds."""
        return replace(self, known=known, found=None)._next()

    def _next(self) -> Scouts:
        """Begin an approach at the point with the largest excess, far from those where others began, if any."""
        excess = self.values - self._explained(self.points)
        rank = self.values if len(self.tried) % 2 else excess
        worth = np.flatnonzero((excess > EXCESS) & (self.vain > 0))
        for i in worth[np.argsort(-rank[worth], kind="stable")]:
            apart = np.linalg.norm(self.points[list(self.tried)] - self.points[i], axis=1)
            if (apart > 0.5 * np.linalg.norm(self.points[i])).all():
                tried = replace(self, vain=self.vain - 1, tried=(*self.tried, int(i)))
                return tried._begun(self.points[i], again=False)
        return replace(self, pending=self.pending[:0])

    @property
    def _highest(self) -> float:
        """About the highest log density of what is known."""
        return max(bound + top(q) for q, bound in self.known)

    def _explained(self, points: Array) -> Array:
        """The log density (n,) that points (n, d) of the frame would have, were there nothing but what is known."""
        theta = place(self.q, points)
        return np.asarray(logsumexp([bound + q.log_density(theta) for q, bound in self.known], axis=0))
