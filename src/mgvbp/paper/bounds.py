"""Lower bounds without Monte Carlo error: in closed form, or by a Gauss–Hermite rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import mgvbp
from mgvbp.models import LinearRegression
from mgvbp.paper.common import Array


def divergence(q: mgvbp.Gaussian, prior: mgvbp.Gaussian) -> float:
    """KL(q ‖ prior) in nats."""
    difference = q.mean - prior.mean
    P0, covariance = prior.precision, q.covariance
    log_dets = np.linalg.slogdet(P0)[1] + np.linalg.slogdet(covariance)[1]
    return float(0.5 * (np.trace(P0 @ covariance) + difference @ P0 @ difference - q.dim - log_dets))


def linear_lower_bound(model: LinearRegression, prior: mgvbp.Gaussian, q: mgvbp.Gaussian) -> float:
    """The lower bound of a linear regression at ``q``, in closed form; θ = (β, ψ) with ψ = log σ.

    A weight of exp(−2ψ) moves the mean of β by −2 Cov(β, ψ) and leaves its covariance as it is. Therefore
    E[exp(−2ψ) ‖y − Xβ‖²] = exp(−2μ_ψ + 2σ²_ψ) (‖y − X(μ_β − 2 Cov(β, ψ))‖² + tr(XᵀX Σ_β)).
    """
    mean, covariance = q.mean, q.covariance
    residual = model.y - model.X @ (mean[:-1] - 2.0 * covariance[:-1, -1])
    squares = residual @ residual + np.vdot(model.X.T @ model.X, covariance[:-1, :-1])
    with np.errstate(over="ignore"):  # a run that breaks down has a bound of −inf
        weight = np.exp(-2.0 * mean[-1] + 2.0 * covariance[-1, -1])
        likelihood = -len(model.y) * (0.5 * np.log(2.0 * np.pi) + mean[-1]) - 0.5 * weight * squares
    return float(likelihood) - divergence(q, prior)


@cache
def hermite(order: int, dim: int = 1) -> tuple[Array, Array]:
    """Nodes (n, dim) and weights (n,) for means over a standard normal: all combinations of a rule of this order."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    nodes, weights = (
        np.stack(np.meshgrid(*[each] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
        for each in (x, w / w.sum())
    )
    return nodes, weights.prod(axis=1)


def grid_lower_bound(
    likelihood: Callable[[Array], Array], prior: mgvbp.Gaussian, q: mgvbp.Gaussian, order: int
) -> float:
    """The lower bound at ``q`` by a rule of ``order`` in each direction: for few parameters, as it grows as order^d."""
    nodes, weights = hermite(order, q.dim)
    values = likelihood(q.mean + nodes @ np.linalg.cholesky(q.covariance).T)
    return float(weights @ values) - divergence(q, prior)
