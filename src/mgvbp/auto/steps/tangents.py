r"""Linear algebra of the tangents of low-rank precisions, with :math:`N = I - QQ^\top` for orthonormal columns Q."""

from __future__ import annotations

import numpy as np

from mgvbp.core.linalg import Array

SOLVED, MOST_PRODUCTS = 1e-6, 50
"""Accuracy, and most products, of the conjugate gradients."""


def worth(values: Array) -> Array:
    """The nats that columns of U with these eigenvalues are worth."""
    positive = np.maximum(values, 0.0)
    return np.asarray(0.5 * (positive - np.log1p(positive)))


def outside(Q: Array, v: Array) -> Array:
    """The parts of the rows of ``v`` that are orthogonal to the columns of ``Q``."""
    return np.asarray(v - (v @ Q) @ Q.T)


def symmetric(Q: Array, RQ: Array) -> Array:
    """The product of a symmetric R with Q, of which ``Qᵀ R Q`` is not symmetric because of noise."""
    inside = Q.T @ RQ
    return np.asarray(RQ + 0.5 * Q @ (inside.T - inside))


def squared(Q: Array, x: Array) -> Array:
    r"""The product :math:`(N \circ N)\,x`, which is the diagonal of :math:`N\,\mathrm{diag}(x)\,N`."""
    share = np.square(Q).sum(axis=1)
    return np.asarray(x - 2.0 * share * x + ((Q @ (Q.T @ (x[:, None] * Q))) * Q).sum(axis=1))


def solved(Q: Array, c: Array, damping: float = 0.0) -> Array:
    r"""The solution a of :math:`(N \circ N + \text{damping})\,a = c` by conjugate gradients."""
    scale = 1.0 / np.maximum(np.square(1.0 - np.square(Q).sum(axis=1)) + damping, 1e-8)
    a, left = np.zeros_like(c), c
    z = scale * left
    p, size = z, float(left @ z)
    first = size
    for _ in range(MOST_PRODUCTS):
        if size <= SOLVED**2 * first:
            break
        Ap = squared(Q, p) + damping * p
        curvature = float(p @ Ap)
        if curvature <= 0.0:
            break
        step = size / curvature
        a, left = a + step * p, left - step * Ap
        z = scale * left
        size, before = float(left @ z), size
        p = z + (size / before) * p
    return a
