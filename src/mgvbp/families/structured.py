r"""Families between diagonal and full, for many parameters: what they have instead of whitened matrices.

The precision of such a family is known by few numbers, its *coordinates*: the entries of a sparse factor. A step
within the family is not one of the frame: :math:`L^{-1}\,dP\,L^{-\top}` has all d² entries. So these families have,
in the place of matrices in the frame, the gradient of the bound by their coordinates, whitened by the Fisher
information of these, and a retraction along a direction. By Stein's identity the gradient along :math:`dP` is

.. math::
    -\tfrac12 E[\,w^\top dP\,(\theta - \mu)], \qquad
    w = \Sigma\,(\nabla f(\theta) + P(\theta - \mu)) = L^{-\top} v ,

where v is the gradient of h in the frame: at the optimum of a Gaussian target it is zero at every draw.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NoReturn

import numpy as np

from mgvbp.core.checks import require_memory
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.base import Family, Indices

LARGEST_DENSE = 20_000
"""Most parameters of which a (d, d) matrix is made on demand: it has 3.2 GB."""


class Structured(Family):
    """A family whose steps go along its own coordinates; it needs gradients of the log density."""

    fitted_by = "it needs gradients of the log-likelihood, and estimator='gradient'"
    """What an error says about how the family is fitted."""

    def _outside(self, *_: object) -> NoReturn:
        raise InvalidInputError(f"the {self.name} family has no such matrix in the frame: {self.fitted_by}")

    moment = cross_moment = retraction = exponential = from_pairs = _outside  # type: ignore[assignment]
    precision_tangent = covariance_tangent = whiten = _outside  # type: ignore[assignment]
    whitened_precision = cholesky_reversed = product = _outside  # type: ignore[assignment]
    quotient = conjugate = conjugate_inverse = _outside  # type: ignore[assignment]

    @property
    def pairs(self) -> tuple[Indices, Indices]:
        return self._outside()

    @abstractmethod
    def gradient(self, L: Array, delta: Array, v: Array, batches: int = 1) -> Array:
        """The whitened gradient of the bound by the coordinates, (batches, *shape).

        ``delta`` (S, d) are ``θ − μ`` and ``v`` (S, d) the gradients of h in the frame; the batches are equal shares
        of the draws. To second order the bound is ``½ Σ gradient²`` nats below its optimum in these coordinates.
        """

    @abstractmethod
    def moved(self, L: Array, t: Array, beta: float) -> Array:
        """The factor after a step ``β`` along the whitened direction ``t``, positive definite by construction."""

    def covariance(self, L: Array) -> Array:
        self.dense()
        rows = self.solve(L, np.eye(self.dim))
        return rows @ rows.T

    def dense(self) -> None:
        """Raise unless a (d, d) matrix is small enough to be made."""
        if self.dim > LARGEST_DENSE:
            raise InvalidInputError(
                f"a ({self.dim}, {self.dim}) matrix is too large: std has the standard deviations, and "
                "covariance_of([...]) the covariance of some entries"
            )
        require_memory(3 * self.dim**2, f"a matrix of {self.dim:,} parameters", "std has the variances")
