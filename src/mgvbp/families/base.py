"""What a covariance structure must be able to do in the frame.

A family stores a symmetric matrix of its structure, or a lower-triangular factor, as *one* array, the
"family array": (d, d) for the full family, (d,) for the diagonal one, the entries of all blocks end to end
for the block-diagonal one. Sums and multiples of family arrays are therefore plain NumPy, and the methods
never need to know which family they work on.

The frame is the lower factor ``L`` of the precision, ``P = L Lᵀ``; ``θ = μ + L⁻ᵀ ε``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.checks import require_memory
from mgvbp.core.linalg import NOT_POSITIVE_DEFINITE, Array
from mgvbp.errors import NotPositiveDefiniteError

Indices = NDArray[np.intp]


class Family(ABC):
    """A covariance structure of dimension ``dim``; the operations act on family arrays."""

    name: str
    dim: int

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of a family array."""

    @property
    @abstractmethod
    def num_monomials(self) -> int:
        """How many of ``1, ε_i, ε_i ε_j`` the structure has: the least draws that a regression needs."""

    @property
    @abstractmethod
    def pairs(self) -> tuple[Indices, Indices]:
        """The (i, j) of the products ``ε_i ε_j`` that the structure has, as two index arrays."""

    # --- vectors: v is (d,) or (S, d), one vector a row -------------------------------------------

    @abstractmethod
    def from_frame(self, L: Array, v: Array) -> Array:
        """``L⁻ᵀ v``: from ε to θ − μ."""

    @abstractmethod
    def to_frame(self, L: Array, v: Array) -> Array:
        """``Lᵀ v``: from θ − μ to ε."""

    @abstractmethod
    def solve(self, L: Array, v: Array) -> Array:
        """``L⁻¹ v``: from ∇_μ to the whitened gradient."""

    @abstractmethod
    def times(self, L: Array, v: Array) -> Array:
        """``L v``: from the whitened gradient to ∇_μ."""

    # --- symmetric matrices -----------------------------------------------------------------------

    @abstractmethod
    def moment(self, eps: Array, weights: Array | None = None) -> Array:
        """``(1/S) Σ_s w_s ε_s ε_sᵀ``, the entries of the structure only; eps (S, d), weights (S,)."""

    @abstractmethod
    def cross_moment(self, u: Array, v: Array) -> Array:
        """``(1/2S) Σ_s (u_s v_sᵀ + v_s u_sᵀ)``, the entries of the structure only; u and v (S, d)."""

    @abstractmethod
    def shift(self, A: Array, c: float | Array) -> Array:
        """``A + c I``, or ``A + diag(c)``."""

    @abstractmethod
    def retraction(self, A: Array, beta: float) -> Array:
        """``I + βA + ½(βA)²``; at least the lower triangle."""

    @abstractmethod
    def exponential(self, A: Array, beta: float) -> Array:
        """The matrix exponential of ``βA``; at least the lower triangle."""

    @abstractmethod
    def from_pairs(self, coefficients: Array) -> Array:
        """``Q`` with ``εᵀ Q ε = Σ coefficient · ε_i ε_j`` over ``pairs``."""

    @abstractmethod
    def from_dense(self, A: Array) -> Array:
        """The entries of the structure of a symmetric (d, d) matrix, as a family array."""

    @abstractmethod
    def precision_tangent(self, L: Array, G: Array) -> Array:
        """``L G Lᵀ``: a whitened tangent vector as one of the precision."""

    @abstractmethod
    def covariance_tangent(self, L: Array, G: Array) -> Array:
        """``L⁻ᵀ G L⁻¹``: a whitened tangent vector as one of the covariance."""

    @abstractmethod
    def whiten(self, K: Array, A: Array) -> Array:
        """``K⁻¹ A K⁻ᵀ``."""

    @abstractmethod
    def whitened_precision(self, L: Array, other: Family, R: Array) -> Array:
        """``L⁻¹ R Rᵀ L⁻ᵀ``, the entries of the structure only, for a factor ``R`` of another family."""

    # --- factors ----------------------------------------------------------------------------------

    def factor(self, *, variance: Array | None = None, precision: Array | None = None) -> Array:
        """``L`` for a variance or precision given as (), (d,) or (d, d); off-structure entries ignored."""
        if precision is not None:
            if precision.ndim < 2:
                return self._diagonal_array(positive_roots(precision))
            return self.cholesky(self.from_dense(precision))
        assert variance is not None
        if variance.ndim < 2:
            return self._diagonal_array(1.0 / positive_roots(variance))
        # V = Wᵀ W reversed: P = W⁻¹ W⁻ᵀ, and W⁻¹ is the lower factor. Once a fit, not in the iteration.
        return self.quotient(self._diagonal_array(1.0), self.cholesky_reversed(self.from_dense(variance)))

    def _diagonal_array(self, c: float | Array) -> Array:
        """The family array of ``diag(c)``, c a number or (d,)."""
        return self.shift(np.zeros(self.shape, order="F"), c)

    @abstractmethod
    def cholesky(self, F: Array) -> Array:
        """``K`` with ``K Kᵀ = F``; reads the lower triangle and may overwrite ``F``."""

    @abstractmethod
    def cholesky_reversed(self, F: Array) -> Array:
        """``W`` with ``Wᵀ W = F``; reads the lower triangle."""

    @abstractmethod
    def product(self, L: Array, K: Array) -> Array:
        """``L K``."""

    @abstractmethod
    def quotient(self, L: Array, W: Array) -> Array:
        """``L W⁻¹``."""

    @abstractmethod
    def conjugate(self, K: Array, M: Array) -> Array:
        """``K⁻¹ M K``, known to be symmetric."""

    @abstractmethod
    def conjugate_inverse(self, W: Array, M: Array) -> Array:
        """``W M W⁻¹``, known to be symmetric."""

    @abstractmethod
    def diagonal(self, L: Array) -> Array:
        """The diagonal of a family array in the order of the parameters, (d,)."""

    def log_root(self, L: Array) -> float:
        """Half the log determinant of the precision."""
        return float(np.log(self.diagonal(L)).sum())

    # --- what users see ---------------------------------------------------------------------------

    @abstractmethod
    def dense_factor(self, L: Array) -> Array:
        """A matrix ``R`` (d, d) with ``R Rᵀ`` the precision (lower triangular unless blocks interleave)."""

    def precision(self, L: Array) -> Array:
        """``L Lᵀ`` as a (d, d) matrix."""
        R = self.dense_factor(L)
        return R @ R.T

    @abstractmethod
    def precision_blocks(self, L: Array, blocks: Indices) -> Array:
        """The blocks (..., k, k) of ``L Lᵀ`` whose rows and columns are ``blocks`` (..., k)."""

    @abstractmethod
    def covariance(self, L: Array) -> Array:
        """``(L Lᵀ)⁻¹`` as a (d, d) matrix."""

    @abstractmethod
    def variances(self, L: Array) -> Array:
        """The diagonal of the covariance, (d,)."""

    @cached_property
    def mask(self) -> NDArray[np.bool_]:
        """The entries that a matrix of the structure may have, (d, d)."""
        i, j = self.pairs
        mask = np.zeros((self.dim, self.dim), dtype=bool)
        mask[i, j] = mask[j, i] = True
        return mask

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim})"


def require_room(family: Family) -> None:
    """Raise if this machine cannot hold a Gaussian of the family, and a copy to work on."""
    advice = "try family='diagonal', or a BlockDiagonal of smaller blocks"
    if family.shape == (family.dim,):
        advice = "fit fewer parameters"
    what = f"a Gaussian of the {family.name} family with {family.dim:,} parameters"
    require_memory(2 * (family.dim + math.prod(family.shape)), what, advice)


def positive_roots(values: Array) -> Array:
    """The square roots of numbers that must be positive and finite: a diagonal matrix's Cholesky factor."""
    if not ((values > 0.0) & (np.inf > values)).all():
        raise NotPositiveDefiniteError(NOT_POSITIVE_DEFINITE)
    return np.sqrt(values)
