r"""What a quadratic misses, as a smooth random function: fewer draws give the same certainty.

With :math:`h = Z\beta + u(\varepsilon) + e`, u a Gaussian process that is orthogonal to the quadratics under
N(0, I) and e noise of variance :math:`\sigma^2 / w`, the best linear unbiased estimate of β is that of
generalised least squares, with covariance :math:`V = \lambda K + W^{-1}` ("universal kriging"). The kernel is
Mehler's, without its terms of degree two and less:

.. math::
    K(x, y) = \sum_{|\alpha| \ge 3} \rho^{|\alpha|} \frac{He_\alpha(x)\, He_\alpha(y)}{\alpha!},

so that a function's size falls by the factor ρ from one degree to the next: mostly cubic, as log posteriors are.
λ is the one of `RATIOS` with the largest restricted likelihood (Patterson and Thompson 1971).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dtrtri

from mgvbp._linalg import Array, cholesky
from mgvbp.errors import NotPositiveDefiniteError

RHO = 0.1
RATIOS = ((1e2, 1e3, 1e4), (10.0, 1.0))
"""Variances of u, on average over the draws, in units of that of the noise: upwards from the first, then down."""


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
    best, largest = None, -math.inf
    for direction in RATIOS:
        for ratio in direction:
            V = ratio * K
            V.flat[:: N + 1] += 1.0 / (N * weights)
            try:
                L = cholesky(V)
                T = dtrsm(1.0, L, np.column_stack([Z, h]), lower=1)
                C = cholesky(T.T @ T)  # of [Z h]ᵀ V⁻¹ [Z h]: its last entry is the length of the residual
            except NotPositiveDefiniteError:
                break
            logs = np.log(C.diagonal())
            restricted = -float(np.log(L.diagonal()).sum() + logs[:p].sum() + (N - p) * logs[p])
            if not restricted > largest:
                break
            best, largest = (L, T, C), restricted
    if best is None:
        return None
    L, T, C = best
    inverse, _ = dtrtri(L, lower=1)
    projected = dtrsm(1.0, C[:p, :p], T[:, :p].T @ inverse, lower=1)
    influence = dtrsm(1.0, C[:p, :p], projected, lower=1, trans_a=1)
    coefficients = influence @ h
    # leave-one-out (Dubrule 1983): P h over the diagonal of P = V⁻¹ − V⁻¹Z(ZᵀV⁻¹Z)⁻¹ZᵀV⁻¹
    diagonal = np.einsum("ij,ij->j", inverse, inverse)
    rest = np.maximum(diagonal - np.einsum("ij,ij->j", projected, projected), 0.05 * diagonal)
    return Kriging(coefficients, influence, ((T[:, p] - T[:, :p] @ coefficients) @ inverse) / rest)


def kernel(eps: Array) -> Array:
    """Mehler's kernel of all pairs of rows, without the terms of degree 0, 1 and 2."""
    d, products = eps.shape[1], eps @ eps.T
    norms = products.diagonal()
    sums = norms[:, None] + norms
    exponent = (RHO * products - 0.5 * RHO**2 * sums) / (1.0 - RHO**2)
    low = 1.0 + RHO * products + 0.5 * RHO**2 * (np.square(products) - sums + d)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(exponent - 0.5 * d * math.log1p(-(RHO**2))) - low)
