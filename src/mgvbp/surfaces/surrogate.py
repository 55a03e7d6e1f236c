r"""A surrogate of the log density: the anchor plus a Gaussian process through what it misses, fenced in.

All is in the frame of the first anchor. The log density of the anchor is the mean of the process, so that the tails of
the surrogate are those of a Gaussian. Where the process is uncertain its mean may rise by any number of nats, and a
mixture would run there. The *fence* takes half the variance off where that is more than it is among the draws. The
variance is the one given some draws that span the others (pivoted Cholesky decomposition), which is never too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.special import gammaincinv

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.surfaces.process import NUGGET, ROUNDING, Process, learned

MOST_POINTS = 1000
"""Most draws that a surrogate is fitted to: the time grows with the cube, and half as many double the KL on hierarchies
with ten parameters."""
SPREAD = 400
"""How many of these are those that span all draws that matter; the others have the highest density under the mixture or
an anchor. Without them a surrogate forgets a tail that the mixture has lost, and then the mixture cannot find it again
(a hierarchy with eight parameters: 0.40 nats instead of 0.13)."""
SPANNING = 200
"""Most draws that the fence is computed from."""
WITHIN = 0.95
"""Share of the draws that matter which are within the fence: up to their variance the surrogate is believed ..."""
TOLERATED = (1.0, 4.0)
"""... but at least and at most up to these, in nats²."""
MOST_VARIANCE = 4.0
"""Variance, in nats², beyond which a place is less and less attractive: it would be looked at for its own sake."""
FARTHEST = 1e-4
"""Share of a Gaussian's mass that lies further from its mean than what matters ..."""
MARGIN = 3.0
"""... and nats beyond that down to which values matter."""
EXACT = 1e-4
"""Variance of a value that matters, in nats²: it lets the process pass a hundredth of a nat beside it."""
SHY = 0.1
"""Standard deviation of values below those that matter, as a share of how far they lie below, and besides ½ nat ..."""
DEEPEST = 50.0
"""... and most nats that they may lie below: lower ones are raised."""


def axes_of(frame: Gaussian) -> tuple[Array, Array]:
    """The axes that a process may have: those of the parameters as they were written, and those of the frame."""
    identity = np.eye(frame.dim)
    return frame.family.from_frame(frame.factor, identity) / frame.std, identity


def log_volume(frame: Gaussian) -> float:
    """Log density of θ less that of its place in the frame."""
    return float(np.log(frame.family.diagonal(frame.factor)).sum())


def reach(dim: int) -> float:
    """Nats below the highest value down to which a value matters: nearly all the mass of a Gaussian is above."""
    return float(gammaincinv(0.5 * dim, 1.0 - FARTHEST)) + MARGIN


@dataclass(frozen=True, eq=False)
class Surrogate:
    """A log density in the frame that costs no query."""

    anchor: GaussianMixture
    process: Process
    spanning: Array
    """The draws that the fence is computed from, (r, d)."""
    whitening: Array
    """The inverse of the lower factor of the kernel's matrix at these, (r, r)."""
    highest: float
    """The surrogate is nowhere higher: what is best has been looked for, and a process that is far off would be."""
    chosen: NDArray[np.intp]
    """Which of the draws that it was given it goes through, (n,): their places."""
    tolerated: float
    """The variance, in nats², up to which the surrogate is believed as it is."""

    def predict(self, x: Array) -> Array:
        """The expected log density at each row, (M, d) -> (M,), without the fence."""
        return np.minimum(self.process.predict(x) + self.anchor.log_density_at(x), self.highest)

    def cautious(self, x: Array) -> Array:
        """The log density within the fence at each row, (M, d) -> (M,)."""
        return self.predict(x) - self._penalty(self.variance(x))[0]

    def unseen(self, x: Array) -> Array:
        """The same at the draws that it was given, (N, d) -> (N,), each as the others predict it."""
        p, found = self.process, self.cautious(x)
        exact = p.noise == EXACT  # others are hardly believed, so that they say little of themselves
        missed, variance = (part[exact] for part in p.left_out())
        value = np.minimum(missed + self.anchor.log_density_at(p.points[exact]), self.highest)
        found[self.chosen[exact]] = value - self._penalty(variance)[0]
        return found

    def variance(self, x: Array) -> Array:
        """The variance of the process at each row given the spanning draws alone, (M, d) -> (M,)."""
        half = self._whitened(x)
        return np.asarray(self.process.variances(x) - np.einsum("rm,rm->m", half, half))

    def hopeful(self, x: Array) -> Array:
        """The logarithm of the expected density, ``m + s²/2`` of the process, (M, d) -> (M,).

        Beyond `MOST_VARIANCE` it falls as fast as it has risen: what is so uncertain is not believed.
        """
        half = 0.5 * self.process.uncertain(x)
        return self.predict(x) + np.minimum(half, MOST_VARIANCE - half)

    def with_gradient(self, x: Array) -> tuple[Array, Array]:
        """The log density within the fence (M,) and its gradient (M, d)."""
        p = self.process
        missed, grad_missed = p.with_gradient(x)
        log_anchor, grad_anchor = self.anchor.with_gradient(x)
        value, gradient = missed + log_anchor, grad_missed + grad_anchor
        gradient[value > self.highest] = 0.0
        solved = dtrmm(1.0, self.whitening, self._whitened(x), lower=1, trans_a=1).T
        explained, grad_explained = p.weighted(x, self.spanning, solved)
        penalty, slope = self._penalty(p.variances(x) - explained)
        radius = 1.0 + p.bend * np.einsum("md,md->m", x, x)
        grad_variance = (4.0 * p.scale * p.bend * radius)[:, None] * x - 2.0 * grad_explained
        return np.minimum(value, self.highest) - penalty, gradient - slope[:, None] * grad_variance

    def _whitened(self, x: Array) -> Array:
        """The kernel of the spanning draws and each row, (M, d) -> (r, M), multiplied by the inverse factor."""
        return np.asarray(dtrmm(1.0, self.whitening, self.process.kernel(x, self.spanning).T, lower=1))

    def _penalty(self, variance: Array) -> tuple[Array, Array]:
        """``½v²/(v + 1)`` and its derivative, where v is the variance beyond what is tolerated."""
        v = np.maximum(variance - self.tolerated, 0.0)
        return 0.5 * v * v / (v + 1.0), 0.5 * v * (v + 2.0) / (v + 1.0) ** 2


def fitted(
    anchors: Sequence[GaussianMixture],
    mixture: GaussianMixture,
    x: Array,
    values: Array,
    numbers: Array,
    axes: Sequence[Array],
    rng: np.random.Generator,
) -> Surrogate:
    """The surrogate through the ``values`` (N,) of the log density at ``x`` (N, d).

    ``anchors`` are the choices for the anchor: the one with which the values are the most likely is taken. ``mixture``
    is the approximation so far, ``numbers`` are those of the last process, from which it goes on, and ``axes`` the
    choices for those of the process.
    """
    chosen = np.arange(len(x))
    highest = float(values.max()) + 0.5 * mixture.dim  # so far below the mode are draws of a Gaussian
    if len(x) > MOST_POINTS:
        matter = np.flatnonzero(values > values.max() - reach(mixture.dim))
        last = Process(x[:1], np.zeros(1), np.ones(1), numbers, axes[0])  # for its kernel
        spread = matter[_pivots(last, x[matter], SPREAD)]
        priority = np.max([mixture.log_density_at(x), *(a.log_density_at(x) - 1.0 for a in anchors)], axis=0)
        priority[spread] = np.inf
        chosen = np.argsort(-priority, kind="stable")[:MOST_POINTS]
        x, values = x[chosen], values[chosen]
    missed = [_believable(values, anchor.log_density_at(x), reach(anchor.dim)) for anchor in anchors]
    processes = [learned(x, *response, numbers, axes, rng) for response in missed]
    anchor, process = max(zip(anchors, processes, strict=True), key=lambda choice: choice[1].log_likelihood)
    known = x[process.noise == EXACT]
    spanning = known[_pivots(process, known, SPANNING)]
    K = process.kernel(spanning, spanning)
    K.flat[:: len(K) + 1] *= 1.0 + ROUNDING
    K.flat[:: len(K) + 1] += EXACT + NUGGET * process.scale
    whitening = solve_triangular(np.linalg.cholesky(K), np.eye(len(K)), lower=True)
    surrogate = Surrogate(anchor, process, spanning, np.asarray(whitening), highest, chosen, 0.0)
    usual = float(np.quantile(surrogate.variance(known), WITHIN))
    return replace(surrogate, tolerated=float(np.clip(usual, *TOLERATED)))


def _believable(values: Array, log_anchor: Array, depth: float) -> tuple[Array, Array]:
    """What the anchor misses at each draw (N,), and the variance with which it is believed (N,).

    Where the density is so low that it does not matter, it should stay so, and more is not asked: values far below
    the anchor are believed with an error in proportion, and values far above the anchor, where that is lower still,
    are set to the anchor's.
    """
    missed = values - log_anchor
    matters = values > values.max() - depth
    usual = float(np.median(missed[matters]))
    below = np.clip((usual - depth) - missed, 0.0, DEEPEST)
    response = np.where(below > 0.0, usual - depth - below, missed)
    noise = np.where(below > 0.0, np.square(0.5 + SHY * below), EXACT)
    heavy = ~matters & (response > usual)
    return np.where(heavy, usual, response), np.where(heavy, 1.0, noise)


def _pivots(process: Process, points: Array, most: int) -> list[int]:
    """Which of the points (N, d), ``most`` at most, explain most of the kernel, one after the other."""
    left = process.variances(points)
    most = min(most, len(points))
    columns, found = np.zeros((len(points), most)), list[int]()
    for i in range(most):
        j = int(np.argmax(left))
        if left[j] < 10.0 * EXACT:
            break
        column = process.kernel(points, points[[j]])[:, 0] - columns[:, :i] @ columns[j, :i]
        columns[:, i] = column / np.sqrt(left[j])
        left = np.maximum(left - columns[:, i] ** 2, 0.0)
        left[j] = 0.0
        found.append(j)
    return found
