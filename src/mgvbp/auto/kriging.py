r"""What a quadratic misses, as a smooth random function: fewer draws give the same certainty.

With :math:`h = Z\beta + u(\varepsilon) + e`, u a Gaussian process that is orthogonal to the quadratics under
N(0, I) and e noise of variance :math:`\sigma^2 / w`, the best linear unbiased estimate of β is that of
generalised least squares, with covariance :math:`V = \lambda K + W^{-1}` ("universal kriging"). The kernel is
Mehler's, without its terms of degree two and less:

.. math::
    K(x, y) = \sum_{|\alpha| \ge 3} \rho^{|\alpha|} \frac{He_\alpha(x)\, He_\alpha(y)}{\alpha!},

so that a function's size falls by the factor ρ from one degree to the next: mostly cubic, as log posteriors are.
λ is the first of `RATIOS` at which the restricted likelihood (Patterson and Thompson 1971) does not fall
with λ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dsymm, dsymv
from scipy.linalg.lapack import dposv, dpotrf, dpotri

from mgvbp._linalg import Array

RHO = 0.1
RATIOS = (1e4, 1e3, 1e2)
"""Variances of u, on average over the draws, in units of that of the noise; most want the first."""


class Kriging(NamedTuple):
    """Coefficients, the influence of each value on each of them, (p, N), and leave-one-out residuals, (N,)."""

    coefficients: Array
    influence: Array
    residuals: Array


def krige(eps: Array, Z: Array, h: Array, weights: Array) -> Kriging | None:
    """Fit ``h`` (N,) by the regressors ``Z`` (N, p) and a smooth function; None if that is singular."""
    N, p = Z.shape
    K = kernel(eps)
    K *= N / K.trace()
    noise = 1.0 / (N * weights)
    for ratio in RATIOS:
        V = ratio * K
        V.flat[:: N + 1] += noise
        root, failed = dpotrf(V.T, lower=1, overwrite_a=1)
        inverse, _ = dpotri(root, lower=1, overwrite_c=1)  # the lower triangle of V⁻¹
        solved = dsymm(1.0, inverse, Z, lower=1)
        _, influence, singular = dposv(Z.T @ solved, solved.T, lower=1)  # (ZᵀV⁻¹Z)⁻¹ZᵀV⁻¹
        if failed or singular:
            return None
        coefficients = influence @ h
        # P = V⁻¹ − V⁻¹Z(ZᵀV⁻¹Z)⁻¹ZᵀV⁻¹
        Ph = dsymv(1.0, inverse, h, lower=1) - solved @ coefficients
        diagonal = inverse.diagonal()
        diagonal_P = diagonal - np.einsum("np,pn->n", solved, influence)
        # λ times the derivative by λ of minus twice the logarithm of the restricted likelihood, times hᵀPh
        if (N - p) * (Ph @ (noise * Ph)) <= (noise @ diagonal_P) * (h @ Ph):
            break
    residuals = Ph / np.maximum(diagonal_P, 0.05 * diagonal)  # leave-one-out (Dubrule 1983)
    return Kriging(coefficients, influence, residuals) if np.isfinite(residuals).all() else None


def kernel(eps: Array) -> Array:
    """Mehler's kernel of all pairs of rows, without the terms of degree 0, 1 and 2.

    With t = ρ x·y and s = ½ρ²‖·‖² it is exp((t − s_x − s_y) / (1 − ρ²)) (1 − ρ²)^(−d/2) less
    ½ (1 + t)² + ½ − s_x − s_y + ½ρ²d; in place, because passes over (N, N) arrays are what it costs.
    """
    d = eps.shape[1]
    t = (RHO * eps) @ eps.T
    s = 0.5 * RHO * t.diagonal()
    log_scale = s / (1.0 - RHO**2) + 0.25 * d * math.log1p(-(RHO**2))
    K = t / (1.0 - RHO**2)
    K -= log_scale[:, None]
    K -= log_scale
    with np.errstate(over="ignore"):
        np.exp(K, out=K)
    t += 1.0
    np.square(t, out=t)
    t *= 0.5
    K -= t
    shift = s - 0.25 * (1.0 + RHO**2 * d)
    K += shift[:, None]
    K += shift
    return np.asarray(K)
