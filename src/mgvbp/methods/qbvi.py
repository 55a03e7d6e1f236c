"""QBVI: first-order natural-gradient steps in the natural parameters (Magris, Shabani and Iosifidis 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from mgvbp.core.linalg import Array
from mgvbp.families import Family
from mgvbp.methods.base import Method


@dataclass(frozen=True, kw_only=True)
class QBVI(Method):
    r"""Quasi Black-box Variational Inference.

    .. math::
        P^+ = P - 2\beta \nabla_\Sigma = L (I + \beta M) L^\top, \qquad
        \mu^+ = \mu + \beta\, \Sigma^+ \nabla_\mu .

    The exact natural gradient of the precision is :math:`2 L G L^\top`, hence ``precision_scale=2`` here.
    The step is of first order, so that the new precision need not be positive definite. If it is not, the step
    is halved, counted (`Trace.reductions`) and reported. The space of natural parameters is flat, so that momentum is
    averaged in it without transport. The other parameters are those of `Method`.
    """

    precision_scale: float = 2.0

    def scaling(self, family: Family, M: Array, beta: float) -> Array:
        """``K Kᵀ = I + βM``; raises `NotPositiveDefiniteError` if this is not positive definite."""
        return family.cholesky(family.shift(beta * M, 1.0))

    def transport(self, family: Family, K: Array, M: Array) -> Array:
        """``K⁻¹ M K⁻ᵀ``: the same matrix in the new frame."""
        return family.whiten(K, M)

    def mean_direction(self, family: Family, L: Array, g: Array) -> Array:
        """``∇_μ = L g``."""
        return family.times(L, g)

    def mean_move(self, family: Family, L: Array, m: Array) -> Array:
        """``Σ⁺ m``."""
        return family.from_frame(L, family.solve(L, m))
