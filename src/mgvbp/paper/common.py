"""What experiments share: the paper's methods, prior and settings, and lower bounds without Monte Carlo error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mgvbp
from mgvbp.models import LinearRegression
from mgvbp.paper.spec import reference

Array = NDArray[np.float64]
Method = mgvbp.MGVBP | mgvbp.MGVB | mgvbp.QBVI

METHODS: dict[str, type[Method]] = {"MGVBP": mgvbp.MGVBP, "MGVB": mgvbp.MGVB, "QBVI": mgvbp.QBVI}
COLOURS = {"MGVBP": "C0", "MGVB": "C1", "QBVI": "C2"}
DASHES = {"MGVBP": "-", "MGVB": "--", "QBVI": ":"}
"""Each method has dashes of its own, so that lines that coincide can all be seen."""
PRIOR_VARIANCE = 5.0
"""The paper's prior is N(0, 5 I) in every experiment except the non-differentiable model."""
ARRIVED = 0.05
"""A run has arrived when its exact bound is at most 0.05 nats below the exact optimum."""
ROUNDING = 0.000501
"""Half a unit of the paper's third decimal, and a little for our own rounding."""

SYMBOLS = {
    "step_size": "β", "clip_natural_gradient": "clip", "clip_initial": "first clip", "momentum": "ω", "window": "w",
    "max_iterations": "t_max", "decay_after": "t'", "patience": "P",
}  # fmt: skip
"""The settings of a method, and how the paper's table of hyper-parameters calls them."""


def printed(row: str, **changes: Any) -> dict[str, Any]:
    """The settings of a method as the paper prints them for a row of that table, with ``changes``."""
    numbers = reference("settings")["paper"]["hyperparameters"][row]
    return {name: numbers[symbol] for name, symbol in SYMBOLS.items()} | changes


quietly = partial(warnings.catch_warnings, action="ignore", category=mgvbp.MgvbpWarning)
"""Hides the library's warnings: the stored outcome shows shortened steps and runs that end early."""


# --- lower bounds -------------------------------------------------------------------------------------


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
