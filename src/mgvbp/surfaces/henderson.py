r"""Kriging of many draws: the smooth function by its largest terms, so that the time is linear in the draws.

`kriging` solves equations in the N draws. Written out, Mehler's kernel is a sum over multi-indices,
:math:`K(x, y) = \sum_\alpha \rho^\alpha \phi_\alpha(x) \phi_\alpha(y)` with :math:`\phi_\alpha = He_\alpha /
\sqrt{\alpha!}`, and most of it lies in the terms with the largest :math:`\rho^\alpha`. With these terms as the columns
of Φ, and the share r of the kernel that they leave counted as noise,

.. math:: V = \lambda Φ Φ^\top + D, \qquad D = (1 + \lambda r) W^{-1}, \qquad
          r = \tfrac1N \mathrm{tr}(K - Φ Φ^\top),

the same estimates come from Henderson's (1975) mixed-model equations in the p + P unknowns: with :math:`A =
D^{-1/2} [\sqrt\lambda Φ, Z]` and :math:`M = A^\top A + \mathrm{diag}(I, 0)`,

.. math::
    (\hat\gamma, \hat\beta) = M^{-1} A^\top D^{-1/2} h, \quad P h = D^{-1} (h - Z\hat\beta - \sqrt\lambda Φ\hat\gamma),
    \quad P_{ii} = (1 - a_i^\top M^{-1} a_i) / D_{ii}, \quad |V| |Z^\top V^{-1} Z| = |D| |M|.

The noise that stands for the terms left out has the same variance everywhere, although they are larger far out: they
are orthogonal to the quadratics under N(0, I), and unequal weights would undo that. With 3,000 draws the error that is
stated is then near the true one, where the equations of all pairs state an eighth of it (``benchmarks/surfaces.py``).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dposv, dpotrf

from mgvbp.core.linalg import Array, collinear
from mgvbp.families.base import Indices
from mgvbp.surfaces import constants


class Solved(NamedTuple):
    """The estimates for one λ, in the notation of `kriging`."""

    coefficients: Array
    influence: Array
    Ph: Array
    diagonal_P: Array
    diagonal_V: Array
    """The diagonal of V⁻¹, (N,)."""
    half_log_det: float
    """½ log |V| + ½ log |ZᵀV⁻¹Z|."""


class Terms(NamedTuple):
    """The largest terms of the kernel at N points, and the share of it that they leave; the kernel has trace N."""

    columns: Array
    """√ρ^α φ_α, (P, N)."""
    left: float

    @classmethod
    def of(cls, x: Array, rho: Array) -> Terms:
        """At points ``x`` (N, d) along the axes of the metric, whose eigenvalues are ``rho`` (d,)."""
        N, d = x.shape
        count = min(max(constants.LEAST_TERMS, math.comb(d + 2, 3)), constants.MOST_CUBIC)
        order = np.argsort(-rho)
        orders, which = _largest(tuple(np.log(np.maximum(rho[order], constants.TINY_RHO))), count)
        tables = [np.ones_like(x.T), x.T[order]]
        for k in range(1, int(orders.max())):  # He_{k+1} = x He_k − k He_{k−1}, each divided by √(k!)
            tables.append((tables[1] * tables[k] - math.sqrt(k) * tables[k - 1]) / math.sqrt(k + 1.0))
        scale = np.sqrt(np.maximum(rho[order], constants.TINY_RHO))
        H = np.stack(tables) * scale[None, :, None] ** np.arange(len(tables))[:, None, None]
        columns = H[orders[:, 0], which[:, 0]]
        for t in range(1, orders.shape[1]):
            columns *= H[orders[:, t], which[:, t]]
        diagonal = _diagonal(x, rho)
        share = N / diagonal.sum()
        columns *= math.sqrt(share)
        return cls(columns, max(1.0 - float(np.vdot(columns, columns)) / N, 0.0))

    def solved(self, Z: Array, h: Array, noise: Array, ratio: float) -> Solved | None:
        """The estimates for λ = ``ratio``; None if the equations are singular."""
        P = len(self.columns)
        A, M, root_D = self._equations(Z, noise, ratio)
        root, failed = dpotrf(M.T, lower=1, overwrite_a=1)
        normal_root = root[P:, P:]  # of ZᵀV⁻¹Z
        if failed or collinear(normal_root, np.square(normal_root).sum(axis=1)):
            return None
        Q = dtrsm(1.0, root, A, lower=1)  # M = RRᵀ, so that AᵀM⁻¹A = QᵀQ
        influence = dtrsm(1.0, normal_root, Q[P:], lower=1, trans_a=1) / root_D
        y, D = h / root_D, np.square(root_D)
        smooth = 1.0 - np.einsum("pn,pn->n", Q[:P], Q[:P])
        return Solved(
            coefficients=influence @ h,
            influence=influence,
            Ph=(y - (Q @ y) @ Q) / root_D,
            diagonal_P=(smooth - np.einsum("pn,pn->n", Q[P:], Q[P:])) / D,
            diagonal_V=smooth / D,
            half_log_det=float(np.log(root.diagonal()).sum() + np.log(root_D).sum()),
        )

    def followed(self, Z: Array, h: Array, noise: Array, ratio: float) -> Array | None:
        """The coefficients alone."""
        A, M, root_D = self._equations(Z, noise, ratio)
        _, solution, failed = dposv(M.T, A @ (h / root_D), lower=1, overwrite_a=1)
        return None if failed else np.asarray(solution[len(self.columns) :])

    def _equations(self, Z: Array, noise: Array, ratio: float) -> tuple[Array, Array, Array]:
        """The matrices A and M, and the root of the diagonal of D."""
        P, root_D = len(self.columns), np.sqrt(noise * (1.0 + ratio * self.left))
        A = np.concatenate([math.sqrt(ratio) * self.columns, Z.T])
        A /= root_D
        M = A @ A.T
        M.flat[: P * len(M) : len(M) + 1] += 1.0
        return A, M, root_D


@lru_cache(maxsize=16)
def _largest(log_rho: tuple[float, ...], count: int) -> tuple[Indices, Indices]:
    """The orders and axes of the ``count`` multi-indices of degree 3 or more with the largest ρ^α, each padded with 0.

    A multi-index is a sorted tuple of axes. The search begins at axis 0 three times, and from each it goes to the next
    axis for one of them, or to a higher degree; ``log_rho`` falls, so that no step leads to a larger ρ^α.
    """
    first: tuple[int, ...] = (0, 0, 0)
    queue, known = [(-3.0 * log_rho[0], first)], {first}
    found: list[tuple[int, ...]] = []
    while queue and len(found) < count:
        size, axes = heapq.heappop(queue)
        found.append(axes)
        following: list[tuple[float, tuple[int, ...]]] = [(size - log_rho[axes[-1]], (*axes, axes[-1]))]
        for i, axis in enumerate(axes):
            if axis + 1 < len(log_rho) and (i + 1 == len(axes) or axis < axes[i + 1]):
                change = log_rho[axis] - log_rho[axis + 1]
                following.append((size + change, (*axes[:i], axis + 1, *axes[i + 1 :])))
        for candidate in following:
            if candidate[1] not in known:
                known.add(candidate[1])
                heapq.heappush(queue, candidate)
    counted = [sorted(Counter(axes).items()) for axes in found]
    width = max(len(each) for each in counted)
    padded = np.array([each + [(0, 0)] * (width - len(each)) for each in counted])
    return padded[:, :, 1], padded[:, :, 0]


def _diagonal(x: Array, rho: Array) -> Array:
    """``K(x, x)`` of each row, (N,): see `kriging.kernel`."""
    squares, rest = np.square(x), 1.0 - np.square(rho)
    whole = np.exp(squares @ (rho / (1.0 + rho)) - 0.5 * np.log(rest).sum())
    low = 0.5 * np.square(1.0 + squares @ rho) + 0.5 - squares @ np.square(rho) + 0.5 * float(rho @ rho)
    return np.asarray(whole - low)
