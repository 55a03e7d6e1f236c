r"""Model what a quadratic misses as a smooth random function, so that fewer draws give the same certainty.

With :math:`h = Z\beta + u(\varepsilon) + e`, u a Gaussian process that is orthogonal to the quadratics under
N(0, I) and e noise of variance :math:`\sigma^2 / w`, the best linear unbiased estimate of β is that of
generalised least squares, with covariance :math:`V = \lambda K + W^{-1}` ("universal kriging"). The kernel is
Mehler's, without its terms of degree two and less: along the axes of a metric B with eigenvalues ρ,

.. math::
    K(x, y) = \sum_{|\alpha| \ge 3} \rho^\alpha \frac{He_\alpha(x)\, He_\alpha(y)}{\alpha!},

so that the size of u falls from one degree to the next: u is mostly cubic, as what a quadratic misses of a log
posterior is. λ is the first of `RATIOS` at which the restricted likelihood (Patterson and Thompson 1971) does not
fall with λ.

At first all directions are alike, B = ρI. Where many draws show which directions bend, B is `adapted` to the cubic
part of u. The new B is used if it raises the restricted log-likelihood by more than its parameters cost (Akaike
1974).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.linalg.lapack import dposv, dpotrf, dtrtri

from mgvbp.core.linalg import Array, collinear
from mgvbp.surfaces import constants
from mgvbp.surfaces.henderson import Solved, Terms

RATIOS = (1e4, 1e3, 1e2)
"""Values of λ that are tried: the variance of u, on average over the draws, in units of the variance of the noise.
Most fits take the first."""


class Kriging(NamedTuple):
    """A fit of N values by p regressors and a smooth function."""

    coefficients: Array
    influence: Array
    """Influence of each value on each coefficient, (p, N)."""
    residuals: Array
    """Leave-one-out residuals, (N,)."""
    dual: Array
    """The function is proportional to Σ dual_i K(x_i, ·); (N,), orthogonal to the regressors."""
    log_likelihood: float
    """The logarithm of the restricted likelihood, without its constant."""
    metric: Array | None
    """The metric, (d, d); None if all directions are alike."""
    ratio: float
    """λ."""


def krige(eps: Array, Z: Array, h: Array, weights: Array, metric: Array | None = None) -> Kriging | None:
    """Fit ``h`` (N,) by the regressors ``Z`` (N, p) and a smooth function; None if the equations are singular.

    Without a ``metric`` (d, d) all directions of ``eps`` (N, d) are alike.
    """
    N, p = Z.shape
    smooth, noise = _smooth(eps, metric), 1.0 / (N * weights)
    fit: Solved | None = None
    for ratio in RATIOS:
        fit = smooth.solved(Z, h, noise, ratio)
        # λ times the derivative by λ of minus twice the logarithm of the restricted likelihood, times hᵀPh
        if fit is None or (N - p) * (fit.Ph @ (noise * fit.Ph)) <= (noise @ fit.diagonal_P) * (h @ fit.Ph):
            break
    if fit is None:
        return None
    # leave-one-out (Dubrule 1983)
    residuals = fit.Ph / np.maximum(fit.diagonal_P, constants.EVEN_LEVERAGE * fit.diagonal_V)
    if not np.isfinite(residuals).all():
        return None
    log_likelihood = -fit.half_log_det - 0.5 * (N - p) * math.log(
        max(float(h @ fit.Ph), float(np.finfo(float).tiny))
    )
    return Kriging(fit.coefficients, fit.influence, residuals, fit.Ph, float(log_likelihood), metric, ratio)


def krige_followed(
    eps: Array, Z: Array, h: Array, weights: Array, metric: Array | None, ratio: float
) -> Array | None:
    """The coefficients (p,) alone, for a metric and a ratio that are known: a small part of the work of `krige`."""
    return _smooth(eps, metric).followed(Z, h, 1.0 / (len(h) * weights), ratio)


def _smooth(eps: Array, metric: Array | None) -> Dense | Terms:
    """The kernel at the draws."""
    x, rho = (eps, np.full(eps.shape[1], constants.RHO)) if metric is None else _along_axes(eps, metric)
    return Dense.of(x, rho) if len(x) <= constants.DENSE_DRAWS else Terms.of(x, rho)


class Dense(NamedTuple):
    """The kernel of all pairs of N points, with trace N."""

    K: Array

    @classmethod
    def of(cls, x: Array, rho: Array) -> Dense:
        """At points ``x`` (N, d) along the axes of the metric, whose eigenvalues are ``rho`` (d,)."""
        K = kernel(x, rho)
        K *= len(x) / K.trace()
        return cls(K)

    def solved(self, Z: Array, h: Array, noise: Array, ratio: float) -> Solved | None:
        """The estimates for λ = ``ratio``; None if the equations are singular."""
        root = self._root(noise, ratio)
        if root is None:
            return None
        half_log_det = np.log(root.diagonal()).sum()
        inverse, _ = dtrtri(root, lower=1, overwrite_c=1)  # V⁻¹ is inverseᵀ inverse
        half = dtrmm(1.0, inverse, np.column_stack([Z, h]), lower=1)
        normal = half[:, :-1].T @ half[:, :-1]
        whole = dtrmm(1.0, inverse, half, lower=1, trans_a=1, overwrite_b=1)
        solved, h_solved = whole[:, :-1], whole[:, -1]
        normal_root, influence, failed = dposv(normal, solved.T, lower=1)  # (ZᵀV⁻¹Z)⁻¹ZᵀV⁻¹
        if failed or collinear(normal_root, normal.diagonal()):
            return None
        coefficients = influence @ h
        diagonal = np.einsum("mn,mn->n", inverse, inverse)
        return Solved(
            coefficients,
            influence,
            # P = V⁻¹ − V⁻¹Z(ZᵀV⁻¹Z)⁻¹ZᵀV⁻¹
            Ph=h_solved - solved @ coefficients,
            diagonal_P=diagonal - np.einsum("np,pn->n", solved, influence),
            diagonal_V=diagonal,
            half_log_det=float(half_log_det + np.log(normal_root.diagonal()).sum()),
        )

    def followed(self, Z: Array, h: Array, noise: Array, ratio: float) -> Array | None:
        """The coefficients alone."""
        root = self._root(noise, ratio)
        if root is None:
            return None
        half = dtrsm(1.0, root, np.column_stack([Z, h]), lower=1)
        _, coefficients, failed = dposv(half[:, :-1].T @ half[:, :-1], half[:, :-1].T @ half[:, -1], lower=1)
        return None if failed else np.asarray(coefficients)

    def _root(self, noise: Array, ratio: float) -> Array | None:
        """The Cholesky factor of V; None if V is singular."""
        V = ratio * self.K
        V.flat[:: len(V) + 1] += noise
        root, failed = dpotrf(V.T, lower=1, overwrite_a=1)
        return None if failed else root


def krige_adapted(eps: Array, Z: Array, h: Array, weights: Array, plain: Kriging) -> Kriging:
    """The best fit with an adapted metric, if it is worth the d (d+1)/2 parameters of the metric; else ``plain``."""
    d = eps.shape[1]
    best, least = plain, plain.log_likelihood + 0.5 * d * (d + 1)
    fit, metric = plain, constants.RHO * np.eye(d)
    for _ in range(constants.ADAPTATIONS):
        metric = adapted(metric, eps, fit.dual)
        candidate = krige(eps, Z, h, weights, metric)
        if candidate is None:
            break
        fit = candidate
        if fit.log_likelihood > max(least, best.log_likelihood):
            best = fit
    return best


def adapted(metric: Array, eps: Array, dual: Array) -> Array:
    r"""The metric (d, d) in which the cubic part of the fitted function is about as large in all directions.

    In whitened coordinates :math:`x = B^{1/2}\varepsilon` the tensor of the cubic part is :math:`T = \sum_i
    \mathrm{dual}_i\, x_i \otimes x_i \otimes x_i` (the lower terms of the Hermite polynomials cancel, as dual is
    orthogonal to the linear functions), and :math:`S_{jk} = \sum_{lm} T_{jlm} T_{klm}` says how much of it lies in
    each direction. A tensor of independent entries of variance :math:`\rho_j \rho_l \rho_m` has three factors alike:
    hence the cube root.
    """
    axes, rho = _axes(metric)
    root = axes * np.sqrt(rho)
    x = eps @ root
    tensor = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1).T @ (x * dual[:, None])  # T, (d², d)
    shares, U = np.linalg.eigh(tensor.T @ tensor)
    shares = np.maximum(shares / max(shares.mean(), np.finfo(float).tiny), constants.FLATTEST)
    root = root @ (U * shares ** (1.0 / 6.0))
    return np.asarray(root @ root.T)


def _axes(metric: Array) -> tuple[Array, Array]:
    rho, axes = np.linalg.eigh(metric)
    return axes, np.clip(rho, 0.0, constants.LARGEST_RHO)


def _along_axes(eps: Array, metric: Array) -> tuple[Array, Array]:
    axes, rho = _axes(metric)
    return eps @ axes, rho


def kernel(x: Array, rho: Array) -> Array:
    """Mehler's kernel of all pairs of rows (N, d), without the terms of degree 0, 1 and 2; ``rho`` (d,) below 1.

    With t = Σ ρ x y and s = ½ Σ ρ² x² it is ∏ (1 − ρ²)^(−½) exp(Σ (ρ x y − ½ρ² (x² + y²)) / (1 − ρ²)) less
    ½ (1 + t)² + ½ − s_x − s_y + ½ Σ ρ². It is computed in place, because most of its time goes to passes over
    (N, N) arrays.
    """
    squares, rest = np.square(x), 1.0 - np.square(rho)
    log_scale = 0.5 * squares @ (rho * rho / rest) + 0.25 * np.log(rest).sum()
    K = (x * (rho / rest)) @ x.T
    K -= log_scale[:, None]
    K -= log_scale
    with np.errstate(over="ignore"):
        np.exp(K, out=K)
    t = (x * rho) @ x.T
    t += 1.0
    np.square(t, out=t)
    t *= 0.5
    K -= t
    shift = 0.5 * squares @ (rho * rho) - 0.25 * (1.0 + float(rho @ rho))
    K += shift[:, None]
    K += shift
    return np.asarray(K)
