"""Geodesic: the exponential map that the retractions of MGVBP and MGVB approximate."""

from __future__ import annotations

from dataclasses import dataclass

from mgvbp.core.linalg import Array
from mgvbp.families import Family
from mgvbp.methods.base import Method


@dataclass(frozen=True, kw_only=True)
class Geodesic(Method):
    r"""The exact geodesic of the affine-invariant metric.

    .. math::
        P^+ = L \exp(\beta M) L^\top

    The geodesic is the same for the precision as for the covariance:
    :math:`\Sigma^+ = L^{-\top}\exp(-\beta M)L^{-1}`. MGVBP and MGVB agree with it to second order in β, and with each
    other to third. It costs an eigendecomposition per step. The parameters are those of `Method`.
    """

    def scaling(self, family: Family, M: Array, beta: float) -> Array:
        """``K Kᵀ = exp(βM)``."""
        return family.cholesky(family.exponential(M, beta))
