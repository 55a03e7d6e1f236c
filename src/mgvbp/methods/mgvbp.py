"""MGVBP: retraction on the manifold of precision matrices (the paper's Algorithms 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass

from mgvbp.core.linalg import Array
from mgvbp.families import Family
from mgvbp.methods.base import Method


@dataclass(frozen=True, kw_only=True)
class MGVBP(Method):
    r"""Manifold Gaussian Variational Bayes on the Precision matrix.

    .. math::
        P^+ = R_P(\beta m) = P + \beta m + \tfrac12\, \beta m\, P^{-1} \beta m = L\, F(\beta M)\, L^\top,
        \qquad F(A) = I + A + \tfrac12 A^2 .

    :math:`F(A) = \tfrac12(I + (I+A)^2)` has no eigenvalue below ½, so that every step stays positive
    definite. The parameters are those of `Method`.

    Examples
    --------
    >>> MGVBP(step_size=0.05).step_size_at(2000)
    0.025
    """

    def scaling(self, family: Family, M: Array, beta: float) -> Array:
        """``K Kᵀ = I + A + ½A²``, ``A = βM``: the retraction eq:retr in the frame."""
        return family.cholesky(family.retraction(M, beta))
