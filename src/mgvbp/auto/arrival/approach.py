r"""Approach from far away by values: Newton's steps on a quadratic that few points determine (after Powell 2006).

In the frame of the initial Gaussian, with x the distance from the best point so far, the log density is modelled as

.. math::
    f(x) - f(0) = g^\top x + \tfrac12 x^\top H x + \text{error}, \qquad
    \text{error} \sim N(0, \eta^2 \max(\|z\|, 1)^6),

since what a quadratic misses is mostly cubic. Here z is x in units of the trust region's half-axes, and the changes of
the entries of H since the last model are independent normals. Their posterior mean is a regression with the kernel
:math:`\kappa\, z^\top z' + \tfrac12 (z^\top z')^2`. It takes about as many points as parameters to see which way is up,
where a full quadratic has (d + 1)(d + 2)/2 coefficients.

The trust region is an ellipsoid. Its half-axis along an axis of the frame is ``width``, or ``reach`` standard
deviations of the model's curvature if that is less. So scales may differ by orders of magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mgvbp.core.linalg import Array
from mgvbp.core.records import replace
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian

SLOPES, ERROR = 100.0, 0.01
"""Prior variance κ of the slopes and standard deviation η of the error, where entries of H have a variance of 1."""
LOWEST = -1e20
"""Values below it are taken for −inf: where a function is so steep, quadratics lose their digits."""
BEYOND = 1e3
"""Points that are further away, in half-axes, tell nothing, unless they are among the 2d nearest ones."""
SUCCESS, FAILURE = 0.7, 0.1
"""Shares of its promise that a step must gain for the region to grow, and not to shrink."""
FACTOR = 2.0
"""By which it grows or shrinks."""
UNSEEN = 0.3
"""Smallest singular value of the points in the region, in half-axes. If it is less, a step that failed is followed by a
point in the direction that they leave out."""
WIDE = 3.0
"""Standard deviations that the region must reach for its promises to say that there is nothing more to gain."""
LOPSIDED = 1e6
"""An axis along which the values bend by so many times the median is too narrow for an approach."""
NEWTON = 50
"""Most of Newton's steps for the multiplier of the step: to round-off, which takes fewer than ten."""
SMALLEST = 1e-8
"""Half-axis, in standard deviations of the initial Gaussian, below which the approach is given up."""
BESIDE = 0.01
"""Standard deviations, times a number in (−1, 1), by which it begins beside the mean: there a function may be singular,
or two modes balance."""
ENDLESS = 1e6
"""Half-axis, in the same units, above which it is given up too."""
UNKNOWN = 0.1
"""Least curvature of the Gaussian that an approach ends with, as a share of the median curvature."""


@dataclass(frozen=True, eq=False)
class Approach:
    """Points of the frame (n, d), their values (n,), the model's curvature and the trust region.

    Examples
    --------
    >>> approach = Approach.start(2, budget=60)
    >>> def f(x):
    ...     return -np.square(x - [5.0, 1.0]).sum(axis=1)
    >>> while not (approach.arrived(1e-9) or approach.lost):
    ...     approach = approach.tell(f(approach.pending))
    >>> np.round(approach.best, 3) + 0.0, len(approach.values) < 30
    (array([5., 1.]), True)
    """

    points: Array
    values: Array
    curvature: Array
    pending: Array
    """Points to evaluate next: first the centre with a step to either side of it on every axis, then one at a time."""
    budget: int
    gained: float = math.inf
    """Nats that the last points gained."""
    promised: float = math.inf
    """Nats that the pending step promises; inf if the pending points only show the function."""
    share: float = 0.0
    """Part of that step, squared, along axes whose half-axis is ``width``."""
    interior: bool = False
    """Whether the step ends inside of the region."""
    width: float = 1.0
    reach: float = math.inf
    frame: Gaussian | None = None
    """The Gaussian in whose frame it goes on from a surface; None if it began with no knowledge of the curvature."""

    @classmethod
    def start(cls, dim: int, budget: int, centre: Array | float = 0.0) -> Approach:
        """Begin beside ``centre``, by default the mean of the Gaussian; ``budget`` is the most evaluations."""
        centre = centre + BESIDE * np.cos(np.arange(1.0, dim + 1.0))
        first = centre + np.concatenate([np.zeros((1, dim)), np.eye(dim), -np.eye(dim)])
        return cls(np.empty((0, dim)), np.empty(0), np.zeros((dim, dim)), first, budget)

    @classmethod
    def onward(cls, q: Gaussian, points: Array, values: Array, curvature: Array, budget: int) -> Approach:
        """Go on from draws (n, d) in the frame of ``q``, where a surface has shown the curvature (d, d).

        ``budget`` is the most further evaluations. The region begins about as wide as the draws are spread.
        """
        most = len(values) + budget
        return cls(points, values, curvature, points[:0], most, width=math.sqrt(q.dim), frame=q)._aimed()

    @property
    def best(self) -> Array:
        """The best point, (d,)."""
        return np.asarray(self.points[int(np.argmax(self.values))])

    @property
    def lost(self) -> bool:
        """Whether the approach is given up."""
        small = self._half_axes().max() < SMALLEST
        return bool(small or self.endless or len(self.values) >= self.budget)

    @property
    def endless(self) -> bool:
        """Whether it has gone so far that the function may have no maximum."""
        return self.width > ENDLESS or not np.isfinite(self.pending).all()

    def arrived(self, promise: float) -> bool:
        """Whether the last points gained, and the next step promises, fewer nats than ``promise``.

        If that is so because the region is small, the approach goes on.
        """
        if self.frame is None:
            wide = self.reach >= WIDE
        else:
            wide = bool((self._half_axes() >= WIDE * self._deviations()).all())
        return bool(max(self.promised, self.gained) < promise and (self.interior or wide))

    def climbing(self, nats: float) -> bool:
        """Whether the last 2d points have gained more than ``nats``."""
        before = self.values[: -2 * len(self.best)].max(initial=-np.inf)
        return bool(self.values.max() - before > nats)

    def far(self, nats: float) -> bool:
        """Whether the best of the first values is more than so many nats above the median.

        Where one axis bends very much more than most, steps of one size for all axes show nothing.
        """
        sides = self.values[1:].reshape(2, -1)
        if not np.isfinite(self.values[0]) or np.isfinite(sides).sum() < sides.size / 2:
            return False
        bends = np.abs(sides.sum(axis=0) - 2.0 * self.values[0])
        lopsided = bends.max() > LOPSIDED * np.median(bends)
        return bool(self.values.max() - np.median(self.values) > nats and not lopsided)

    def gaussian(self, first: Gaussian, family: Family) -> Gaussian:
        """Laplace's approximation at the best point; where the curvature is hardly known it is rather too narrow.

        In no direction is it wider than the initial Gaussian, unless a surface has shown the curvature.
        """
        eigenvalues, U = np.linalg.eigh(-self.curvature)
        least = UNKNOWN * float(np.median(np.abs(eigenvalues)))
        if self.frame is None:
            least = max(1.0, least)
        L = first.family.dense_factor(first.factor)
        root = L @ (U * np.sqrt(np.maximum(eigenvalues, least)))
        mean = first.mean + first.family.from_frame(first.factor, self.best)
        return Gaussian.from_factor(mean, family.factor(precision=root @ root.T), family)

    def tell(self, values: Array) -> Approach:
        """Take the values of the pending points, and choose the next; of some of them alone nothing is learnt."""
        if len(values) < len(self.pending):
            return self
        values = np.where(values > LOWEST, values, -np.inf)
        before = self.values.max() if len(self.values) else values[0]
        told = replace(
            self,
            points=np.concatenate([self.points, self.pending]),
            values=np.concatenate([self.values, values]),
            gained=max(float(values.max() - before), 0.0) if before > -np.inf else math.inf,
        )
        if not np.isfinite(told.values).any():
            return told
        if math.isfinite(self.promised):
            gained = (values[-1] - before) / max(self.promised, 1e-300)
            if gained <= FAILURE:
                return told._failed(self.pending[0] - self.best)
            if gained > SUCCESS and not self.interior:
                told = told._grown()
        return told._aimed()

    # --- the model --------------------------------------------------------------------------------

    def _half_axes(self) -> Array:
        """Half-axes of the trust region, (d,)."""
        return np.minimum(self.width, self.reach * self._deviations())

    def _deviations(self) -> Array:
        """Standard deviations according to the curvature along each axis, (d,)."""
        return np.asarray(1.0 / np.sqrt(np.maximum(np.abs(self.curvature.diagonal()), 1e-100)))

    def _aimed(self) -> Approach:
        """Fit the model, and step to its maximum in the region."""
        axes, best = self._half_axes(), self.best
        Z = (self.points - best) / axes
        away = np.where(self.values > -np.inf, np.linalg.norm(Z, axis=1), np.inf)
        d = len(best)
        nearest = np.argsort(away, kind="stable")[: (d + 1) * (d + 2)]
        used = nearest[(away[nearest] > 0.0) & (away[nearest] < np.inf)]
        used = used[(away[used] < BEYOND) | (np.arange(len(used)) < 2 * d)]
        scaled = self.curvature * np.outer(axes, axes)
        g, H = _model(Z[used], self.values[used] - self.values.max(), scaled)
        model = replace(self, curvature=H / np.outer(axes, axes))
        wider = model._half_axes()  # the new curvature changes the region
        change = wider / axes
        step, promised = highest(g * change, H * np.outer(change, change))
        length = float(step @ step)
        capped = wider >= self.width * (1.0 - 1e-9)
        return replace(
            model,
            pending=(best + step * wider).reshape(1, -1),
            promised=promised,
            share=float(step[capped] @ step[capped]) / max(length, 1e-300),
            interior=length < 0.25,
        )

    # --- the trust region -------------------------------------------------------------------------

    def _grown(self) -> Approach:
        """The region after a good step: the half-axes that limited it are longer."""
        if self.share > 0.5:
            return replace(self, width=FACTOR * self.width)
        return replace(self, reach=FACTOR * self.reach)

    def _failed(self, step: Array) -> Approach:
        """A smaller region after a ``step`` that gained little, and a point in the direction that points leave out."""
        axes = self._half_axes()
        length = min(float(np.linalg.norm(step / axes)), 1.0)
        if math.isinf(self.reach):
            shorter = replace(self, reach=float(np.linalg.norm(step / self._deviations())) / FACTOR)
        elif self.share > 0.5:
            shorter = replace(self, width=self.width * length / FACTOR)
        else:
            shorter = replace(self, reach=self.reach * length / FACTOR)
        # a reach that limits no axis is brought down to where it would
        longest = float(shorter.width / shorter._deviations().min())
        shorter = replace(shorter, reach=min(shorter.reach, longest))
        unseen = self._left_out(step / axes)
        return shorter._aimed() if unseen is None else replace(shorter, pending=unseen, promised=math.inf)

    def _left_out(self, step: Array) -> Array | None:
        """A point (1, d) in the direction that the points in the region leave out; None if there is none.

        It is on the side of ``step`` or, if that has no part of the direction, of the initial mean.
        """
        axes, best = self._half_axes(), self.best
        Z = (self.points - best) / axes
        away = np.linalg.norm(Z, axis=1)
        # a step that was halved is two half-axes long, but for round-off
        _, seen, V = np.linalg.svd(Z[(away > 0.0) & (away < FACTOR + 1e-6)])
        unseen = V[int(np.count_nonzero(seen >= UNSEEN)) :]
        if not len(unseen):
            return None
        # the part of an axis, since round-off may turn the vectors themselves
        axis = int(np.argmax(np.round(np.square(unseen).sum(axis=0), 6)))
        direction = unseen.T @ unseen[:, axis]
        direction /= np.linalg.norm(direction)
        # a step among these points has no part of the direction, but for round-off
        known = (side for side in (step @ direction, -(best / axes) @ direction) if abs(side) > 1e-6)
        side = math.copysign(1.0, next(known, 1.0))
        return np.asarray(best + side * direction * axes).reshape(1, -1)


def _model(Z: Array, y: Array, H: Array) -> tuple[Array, Array]:
    """The slopes (d,) and the curvature (d, d) after values ``y`` at points ``Z``; before them it is ``H``."""
    squares = np.einsum("ni,ni->n", Z, Z)
    error = ERROR * np.maximum(squares, 1.0) ** 1.5
    left = y - 0.5 * np.einsum("ni,ni->n", Z @ H, Z)
    products = Z @ Z.T
    K = (SLOPES * products + 0.5 * np.square(products)) / np.outer(error, error)
    K[np.diag_indices(len(y))] += 1.0
    a = cho_solve(cho_factor(K, check_finite=False), left / error) / error
    return SLOPES * (Z.T @ a), H + (Z.T * a) @ Z


def highest(g: Array, H: Array) -> tuple[Array, float]:
    """The maximum of g·s + s·Hs/2 on the unit ball: the place s (d,), and the value."""
    eigenvalues, U = np.linalg.eigh(H)
    slopes = U.T @ g
    if eigenvalues[-1] < 0.0 and np.linalg.norm(slopes / eigenvalues) <= 1.0:
        s = -slopes / eigenvalues
    else:
        size = float(np.abs(eigenvalues).max(initial=0.0)) + float(np.linalg.norm(g)) + 1e-300
        shift = max(float(eigenvalues[-1]), 0.0) + 1e-12 * size
        s = slopes / (shift - eigenvalues)
        if (length := math.sqrt(float(s @ s))) <= 1.0:  # the slope has no part along the top eigenvector
            s[-1] += math.sqrt(max(1.0 - length**2, 0.0))
        # Newton's steps on 1/‖s‖, which is concave and nearly linear in the shift: none goes too far
        for _ in range(NEWTON):
            if length <= 1.0 + 1e-14:
                break
            shift += (length - 1.0) * length**2 / float(np.square(s) @ (1.0 / (shift - eigenvalues)))
            s = slopes / (shift - eigenvalues)
            length = math.sqrt(float(s @ s))
    return U @ s, float(slopes @ s + 0.5 * eigenvalues @ np.square(s))
