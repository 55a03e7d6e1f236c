"""MGVB: retraction on the manifold of covariance matrices (Tran, Nguyen and Nguyen 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from mgvbp.core.linalg import Array
from mgvbp.families import Family
from mgvbp.methods.base import Method


@dataclass(frozen=True, kw_only=True)
class MGVB(Method):
    r"""Manifold Gaussian Variational Bayes, on the covariance matrix.

    .. math::
        \Sigma^+ = R_\Sigma(\beta\, \Sigma \nabla_\Sigma \Sigma) = L^{-\top} F(-\beta M)\, L^{-1},
        \qquad F(A) = I + A + \tfrac12 A^2 .

    With :math:`F = W^\top W`, W lower triangular, the precision is
    :math:`P^+ = (LW^{-1})(LW^{-1})^\top`: the frame of MGVBP with :math:`K = W^{-1}`, which is never formed.
    The parameters are those of `Method`.
    """

    def scaling(self, family: Family, M: Array, beta: float) -> Array:
        """``Wᵀ W = I − A + ½A²``, ``A = βM``: eq:retraction_general at Σ in the frame; ``K = W⁻¹``."""
        return family.cholesky_reversed(family.retraction(M, -beta))

    def apply(self, family: Family, L: Array, K: Array) -> Array:
        """``L W⁻¹``."""
        return family.quotient(L, K)

    def transport(self, family: Family, K: Array, M: Array) -> Array:
        """``W M W⁻¹``."""
        return family.conjugate_inverse(K, M)

    def natural_gradient(self, family: Family, L: Array, G: Array) -> Array:
        """``Σ∇_ΣΣ = −L⁻ᵀ G L⁻¹``, returned without its sign, since only its norm is used."""
        return family.covariance_tangent(L, G)
