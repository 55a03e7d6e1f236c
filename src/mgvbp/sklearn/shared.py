r"""Expectations of regressions whose rows share parameters besides the coefficients, by Gauss–Hermite quadrature.

The log-likelihood is :math:`\sum_i w_i f(η_i, φ; y_i)` with :math:`η_i = x_i^\top β` and a few shared numbers φ, such
as the logarithm of a scale. Under a Gaussian of (β, φ), φ is Gaussian, and so is :math:`η_i` given φ, with a mean that
is linear in φ and a variance that does not depend on it. So there are nodes of φ that all rows share, and nodes of
:math:`η_i` for each of them. With the derivatives of f at the nodes, the chain rule gives those by (β, φ).
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from typing import NamedTuple

import numpy as np

from mgvbp.core import Array
from mgvbp.sklearn.exact import Expectations, ExpectedLikelihood, variances
from mgvbp.sklearn.integrals import row_blocks

SHARED_NODES, ROW_NODES = 7, 11
"""Nodes for each shared number and for a row's η: so many that twice as many change a bound by less than `ERROR`."""
ERROR = 1e-4
"""Nats by which a bound may be off for want of nodes; a test compares with twice as many on eight rows."""


class Derivatives(NamedTuple):
    """f and its derivatives at nodes of η and φ; all but the value are by name: the first, then the second ones."""

    value: Array
    eta: Array
    shared: list[Array]
    eta_eta: Array
    eta_shared: list[Array]
    shared_shared: dict[tuple[int, int], Array]
    """For pairs (a, b) with a ≤ b."""


class SharedLikelihood(ExpectedLikelihood):
    """A likelihood of this kind; ``num_shared`` entries follow β in θ."""

    num_shared: int
    error = ERROR

    @abstractmethod
    def derivatives(self, eta: Array, shared: Array, y: Array) -> Derivatives:
        """Of f at η (n, J, G) and φ (J, num_shared), for responses y (n,): arrays that broadcast to (n, J, G)."""

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        X, s = self.model.X, self.num_shared
        k = X.shape[1]
        z, z_weights = product_nodes(SHARED_NODES, s)
        t, t_weights = product_nodes(ROW_NODES, 1)
        share = np.multiply.outer(z_weights, t_weights)
        variance, axes = np.linalg.eigh(covariance[k:, k:])
        root = axes * np.sqrt(np.maximum(variance, 0.0))
        shared = mean[k:] + z @ root.T
        # Cov(η, z) of the standardised φ, and what is left of the variance of η
        slope = X @ (covariance[:k, k:] @ np.linalg.pinv(root.T))
        rest = np.sqrt(np.maximum(variances(X, covariance[:k, :k]) - np.square(slope).sum(axis=1), 0.0))
        centre = X @ mean[:k]
        value, gradient = 0.0, np.zeros(k + s)
        curvature = np.zeros((k + s, k + s))
        for rows in row_blocks(len(X), share.size):
            eta = (centre[rows, None] + slope[rows] @ z.T)[:, :, None] + rest[rows, None, None] * t[:, 0]
            at = self.derivatives(eta, shared, self.model.y[rows])

            def mean_of(
                values: Array, w: Array = self.weights[rows], shape: tuple[int, ...] = eta.shape
            ) -> Array:
                return np.asarray(w * np.einsum("njg,jg->n", np.broadcast_to(values, shape), share))

            value += float(mean_of(at.value).sum())
            gradient[:k] += X[rows].T @ mean_of(at.eta)
            curvature[:k, :k] -= (X[rows] * mean_of(at.eta_eta)[:, None]).T @ X[rows]
            for a in range(s):
                gradient[k + a] += mean_of(at.shared[a]).sum()
                curvature[:k, k + a] -= X[rows].T @ mean_of(at.eta_shared[a])
            for (a, b), values in at.shared_shared.items():
                curvature[k + a, k + b] -= mean_of(values).sum()
        curvature[k:, :k] = curvature[:k, k:].T
        lower = np.tril_indices(s, -1)
        curvature[k:, k:][lower] = curvature[k:, k:].T[lower]
        return Expectations(value, gradient, curvature)


@cache
def product_nodes(number: int, dim: int) -> tuple[Array, Array]:
    """Nodes (number^dim, dim) and weights of the standard normal distribution.

    Examples
    --------
    >>> nodes, weights = product_nodes(3, 2)
    >>> nodes.shape, float((weights * nodes[:, 0] ** 4).sum().round(6))
    ((9, 2), 3.0)
    """
    x, w = np.polynomial.hermite_e.hermegauss(number)
    grid = np.meshgrid(*[x] * dim, indexing="ij")
    weights = np.meshgrid(*[w / w.sum()] * dim, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1), np.prod(weights, axis=0).ravel()
