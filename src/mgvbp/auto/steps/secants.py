"""What the last steps of a structured search show of the bound's curvature, and the step that follows from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families import SparsePrecision
from mgvbp.families.gaussian import Gaussian

DISTINCT = 0.03
"""Directions of the last moves whose singular value, of moves of length 1, is below this are noise."""
MOST_STRETCH, FASTEST = 64.0, 4.0
"""The largest factor, and one over the smallest, by which a step is stretched in some direction."""


class Secant(NamedTuple):
    """A move of the mean (d,) and the factor, and by how much the natural gradient fell along it."""

    mean: Array
    factor: Array
    mean_fall: Array
    factor_fall: Array

    @classmethod
    def between(
        cls, old: Gaussian, full_old: tuple[Array, Array], new: Gaussian, full_new: tuple[Array, Array]
    ) -> Secant:
        """The move from one Gaussian to the next; ``full`` is where the whole step from each of them leads."""
        mean_fall = (full_old[0] - old.mean) - (full_new[0] - new.mean)
        factor_fall = (full_old[1] - old.factor) - (full_new[1] - new.factor)
        return cls(new.mean - old.mean, new.factor - old.factor, mean_fall, factor_fall)


class Ritz(NamedTuple):
    """Directions, and how fast the natural gradient falls along each: 1 where one step leads to the maximum."""

    weights: Array
    """The directions as sums of the moves of the secants, (k, secants)."""
    vectors: Array
    """The directions in whitened coordinates, (k, d + nnz)."""
    rates: Array

    @classmethod
    def of(cls, family: SparsePrecision, q: Gaussian, secants: tuple[Secant, ...]) -> Ritz | None:
        """The curvature of the bound in the plane of the secants, in units of the Fisher information at ``q``."""
        if not secants:
            return None
        moves = np.array([_whitened(family, q, s.mean, s.factor) for s in secants])
        falls = np.array([_whitened(family, q, s.mean_fall, s.factor_fall) for s in secants])
        lengths = np.linalg.norm(moves, axis=1, keepdims=True)
        U, sizes, Q = np.linalg.svd(moves / lengths, full_matrices=False)
        kept = sizes > DISTINCT
        combined = (U[:, kept] / sizes[kept]).T / lengths.T  # (k', k): the orthonormal Q of the moves
        A = (combined @ falls) @ Q[kept].T
        rates, V = np.linalg.eigh(0.5 * (A + A.T))
        return cls(V.T @ combined, V.T @ Q[kept], rates)

    def stretched(
        self,
        family: SparsePrecision,
        q: Gaussian,
        full: tuple[Array, Array],
        secants: tuple[Secant, ...],
        reach: float,
    ) -> tuple[Array, Array] | None:
        """The whole step, stretched by up to ``reach`` in directions of slow progress, and shortened in fast ones."""
        dm, dL = full[0] - q.mean, full[1] - q.factor
        along = self.vectors @ _whitened(family, q, dm, dL)
        factors = 1.0 / np.clip(self.rates, 1.0 / reach, FASTEST) - 1.0
        for w, s in zip((factors * along) @ self.weights, secants, strict=True):
            dm, dL = dm + w * s.mean, dL + w * s.factor
        factor = q.factor + dL
        return (q.mean + dm, factor) if (family.diagonal(factor) > 0.0).all() else None


def _whitened(family: SparsePrecision, q: Gaussian, mean: Array, factor: Array) -> Array:
    """A change of the mean and the factor in whitened coordinates, (d + nnz,)."""
    return np.concatenate([family.to_frame(q.factor, mean), family.whitened(q.factor, factor)])
