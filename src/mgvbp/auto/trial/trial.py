r"""The prosecutor: evaluations that try to refute a result before it is certified.

Draws from q seldom show what lies beyond three standard deviations, and a surface that was fitted to them knows nothing
of it. A trial asks for a few more evaluations, which no decision has depended on:

- *A draw again, twice.* If the two values differ, the function is random. If they agree with each other but not with
  the value that the draw had before, values depend on the other draws of a batch.
- *Draws without a finite value again.* If the points beside most of them fail too, q has mass where the density is
  zero, and then the lower bound of every Gaussian is −∞. The same is said of a probe of the tails that fails twice.
- *The tails.* Probes lie on the axes of the parameters (for a given value of the parameter, where q is largest) and on
  a few diagonals, five and a half standard deviations out. As many are scattered in random directions, at distances
  that are spread evenly: what fixed probes step over they may meet. There the density is compared with the surface. A
  difference that would cost too much of the bound makes the direction a *suspect*: `court` then calls witnesses, draws
  from a Gaussian that is wider in this direction (`witnesses`). They enter the archive with their weights, so that the
  next surface takes the tail into account.
- *Far away.* From t to 3t standard deviations the logarithm of a proper density falls by more than log 3. It is looked
  at from 5.5 to 16.5 and, where it falls much less than that of a Gaussian, from there to 49.5. Where it rises or
  hardly falls, eight points farther out show whether that is another mode, or goes on, as with a floor or waves.
- *Askew.* What is oblique to all axes hardly shows five standard deviations out on one of them, but it does at sixteen.
  From two parameters on, where the surface misses such a probe, the gradient of what it misses is the direction in
  which to look (`hearings`): differences show it, or the gradients at the probe.
- *Elsewhere.* All these points are also looked at for other modes, and for Gaussians that are much wider (`rivals`).

This file has what is asked at first; `hearings` has what is asked next, and `sentence` what the answers say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mgvbp.auto import constants
from mgvbp.core.linalg import Array
from mgvbp.core.records import replace
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive

NEAR, FAR, FARTHER = 5.5, 16.5, 49.5
"""Standard deviations from the mean at which the tails are looked at. The mass of a Gaussian beyond `NEAR` is 4e-8."""
NEAREST, REACH = 2.0, 3.0
"""Scattered probes lie from `NEAREST` to `NEAREST` + `REACH` standard deviations out, plus √(d−1) in random directions:
where draws from q have hardly looked, and where what they miss still matters."""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Multiples of it, modulo 1, fill the unit interval evenly however many there are."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What has been asked about ``q``, and what is known of it."""

    q: Gaussian
    rows: NDArray[np.intp]
    """Draws of the archive to evaluate again, twice; the first may have a value, the others have none."""
    directions: Array
    """The directions of the probes in the frame of q, of length 1, (k, d): first the axes of parameters."""
    axes: tuple[int, ...]
    """The parameters that the first directions belong to."""
    along: NDArray[np.intp]
    """The direction of each probe, (m,)."""
    steps: Array
    """Signed distance of each probe from the mean of q, in standard deviations, (m,)."""
    values: Array
    """The log density at the probes, (m,); nan where it is not known."""
    nearer: Array
    """Factor on the distances, (m,): where a function failed here and there, it is finite a little nearer."""
    hearing: int = 1
    """The number of the hearing."""
    around: int = -1
    """The probe at whose sides the last d probes lie; −1 if there are none."""
    found: int = 0
    """Directions that were found by looking beside probes."""

    @property
    def probes(self) -> Array:
        """The points on the axes and diagonals, (m, d)."""
        return self.place(self.eps)

    @property
    def eps(self) -> Array:
        """The probes in the frame, (m, d)."""
        return np.asarray((self.nearer * self.steps)[:, None] * self.directions[self.along])

    def place(self, eps: Array) -> Array:
        """Points of the frame (n, d) as θ."""
        return self.q.mean + self.q.family.from_frame(self.q.factor, eps)

    @property
    def near(self) -> NDArray[np.bool_]:
        """Marks the probes that are compared with the surface, (m,)."""
        return np.asarray(np.abs(self.steps) < FAR)

    def points(self, archive: Archive) -> Array:
        """The points to evaluate now, (n, d): draws of the archive, then the probes without a value.

        Instead of a draw that failed, two points beside it are evaluated: a function that fails here and there is
        finite there.
        """
        again, q = archive.theta[self.rows], self.q
        lost = ~np.isfinite(archive.values[self.rows])
        step = q.family.from_frame(q.factor, constants.BESIDE * self.directions[0]) * lost[:, None]
        return np.concatenate([again + step, again - step, self.probes[np.isnan(self.values)]])

    def told(self, evaluated: Array) -> Trial:
        """The trial with the log densities (n,) at its points; a probe that fails at a later hearing has none."""
        values = self.values.copy()
        values[np.isnan(values)] = evaluated[2 * len(self.rows) :]
        if self.hearing > 1:
            values[np.isnan(values)] = -np.inf
        return replace(self, values=values)

    def with_probes(self, along: NDArray[np.intp], steps: Array) -> Trial:
        """The trial with more probes in known directions."""
        return replace(
            self,
            along=np.concatenate([self.along, along]),
            steps=np.concatenate([self.steps, steps]),
            values=np.concatenate([self.values, np.full(len(steps), np.nan)]),
            nearer=np.concatenate([self.nearer, np.ones(len(steps))]),
        )

    def towards(self, direction: Array) -> Trial:
        """The trial with probes on both sides in another direction (d,)."""
        directions = np.concatenate([self.directions, direction[None]])
        turned = replace(self, directions=directions, found=self.found + 1)
        steps = np.array([-NEAR, NEAR, -FAR, FAR])
        return turned.with_probes(np.full(len(steps), len(self.directions)), steps)

    def at_sides_of(self, k: int) -> Trial:
        """The trial with d probes beside the k-th one: one standard deviation further out on each axis of the frame."""
        centre, d = self.eps[k], self.q.dim
        sides = centre + np.diag(np.where(centre < 0.0, -1.0, 1.0))
        lengths = np.linalg.norm(sides, axis=1)
        turned = replace(
            self, directions=np.concatenate([self.directions, sides / lengths[:, None]]), around=k
        )
        return turned.with_probes(len(self.directions) + np.arange(d), lengths)


def summoned(
    archive: Archive, q: Gaussian, axes: NDArray[np.intp], rng: np.random.Generator, *, repeat: bool
) -> Trial:
    """The trial of ``q`` on these axes; ``repeat`` says whether a draw with a value is evaluated again."""
    eps = q.family.to_frame(q.factor, archive.theta - q.mean)
    distance, finite = np.einsum("nd,nd->n", eps, eps), np.isfinite(archive.values)
    lost = np.flatnonzero(~finite & (distance < (math.sqrt(q.dim) + NEAR) ** 2))
    lost = lost[np.argsort(distance[lost])]
    some = np.linspace(0, len(lost), constants.MOST_REPEATED, endpoint=False, dtype=np.intp)
    lost = lost[np.unique(some)] if len(lost) else lost
    typical = [_typical(archive, q)] if repeat else []
    lines = np.concatenate([_axes(q, axes), _diagonals(q.dim, rng)])
    scattered = _scattered(2 * (len(axes) + constants.DIAGONALS), q.dim, rng)
    steps = np.concatenate([np.tile([-NEAR, NEAR, -FAR, FAR], len(lines)), np.linalg.norm(scattered, axis=1)])
    return Trial(
        q=q,
        rows=np.array([*typical, *lost], dtype=np.intp),
        directions=np.concatenate([lines, scattered / steps[4 * len(lines) :, None]]),
        axes=tuple(axes.tolist()),
        along=np.concatenate([np.repeat(np.arange(len(lines)), 4), len(lines) + np.arange(len(scattered))]),
        steps=steps,
        values=np.full(len(steps), np.nan),
        nearer=np.ones(len(steps)),
    )


def repetition(archive: Archive, q: Gaussian) -> Trial:
    """A trial that evaluates a typical draw again, and no more."""
    nowhere, d = np.empty(0), q.dim
    along = np.empty(0, dtype=np.intp)
    return Trial(q, np.array([_typical(archive, q)]), np.eye(1, d), (), along, nowhere, nowhere, nowhere)


def _typical(archive: Archive, q: Gaussian) -> int:
    """The index of the draw whose value is the median of those of the likeliest half of the draws.

    A value that depends on the highest, the lowest or the mean of its batch is another one beside the points of a
    trial, which lie far out. The highest draw might be the highest in either company.
    """
    weights = archive.view(q).weights
    likely = np.flatnonzero(weights >= np.median(weights[weights > 0.0]))
    return int(likely[np.argsort(archive.values[likely])[len(likely) // 2]])


def _scattered(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Points (count, d) of the frame at evenly spread distances, in random directions (on a line: in turn)."""
    distances = NEAREST + REACH * ((rng.uniform() + GOLDEN * np.arange(count)) % 1.0)
    sides = np.where(np.arange(count)[:, None] % 2, -1.0, 1.0)
    directions = rng.standard_normal((count, dim)) if dim > 1 else sides
    lengths = (math.sqrt(dim - 1.0) + distances) / np.linalg.norm(directions, axis=1)
    return np.asarray(lengths[:, None] * directions)


def _axes(q: Gaussian, axes: NDArray[np.intp]) -> Array:
    r"""The directions :math:`L^{-1} e_i / \|L^{-1} e_i\|` of the axes of some parameters, (k, d)."""
    unit = np.zeros((len(axes), q.dim))
    unit[np.arange(len(axes)), axes] = 1.0
    frame = q.family.solve(q.factor, unit)
    return np.asarray(frame / np.linalg.norm(frame, axis=1, keepdims=True))


def _diagonals(dim: int, rng: np.random.Generator) -> Array:
    """Directions that have equal parts of all axes of the frame, (k, d), orthogonal to each other in two dimensions."""
    signs = np.where(rng.uniform(size=(constants.DIAGONALS if dim > 1 else 0, dim)) < 0.5, -1.0, 1.0)
    if dim == 2:
        signs = np.array([[1.0, 1.0], [1.0, -1.0]])
    return signs / math.sqrt(dim)
