"""What experiments have in common: the paper's methods and prior, when a run has arrived, closed forms."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

import mgvbp
from mgvbp.models import LinearRegression

Array = NDArray[np.float64]
Method = mgvbp.MGVBP | mgvbp.MGVB | mgvbp.QBVI

METHODS: dict[str, type[Method]] = {"MGVBP": mgvbp.MGVBP, "MGVB": mgvbp.MGVB, "QBVI": mgvbp.QBVI}
COLOURS = {"MGVBP": "C0", "MGVB": "C1", "QBVI": "C2"}
PRIOR_VARIANCE = 5.0
"""The prior is N(0, 5 I), but for the non-differentiable model."""
ARRIVED = 0.05
"""Nats from the exact optimum at which a run counts as there."""


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out the warnings of fits whose shortened steps and unfinished ends the outcome shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mgvbp.MgvbpWarning)
        yield


def divergence(q: mgvbp.Gaussian, prior: mgvbp.Gaussian) -> float:
    """KL(q ‖ prior)."""
    difference = q.mean - prior.mean
    P0, covariance = prior.precision, q.covariance
    log_dets = np.linalg.slogdet(P0)[1] + np.linalg.slogdet(covariance)[1]
    return float(0.5 * (np.trace(P0 @ covariance) + difference @ P0 @ difference - q.dim - log_dets))


def linear_lower_bound(model: LinearRegression, prior: mgvbp.Gaussian, q: mgvbp.Gaussian) -> float:
    """The lower bound of a linear regression at ``q``, in closed form; θ = (β, ψ) with ψ = log σ.

    A weight of exp(−2ψ) moves the mean of β by −2 Cov(β, ψ) and leaves its covariance as it is, so that
    E[exp(−2ψ) ‖y − Xβ‖²] = exp(−2μ_ψ + 2σ²_ψ) (‖y − X(μ_β − 2 Cov(β, ψ))‖² + tr(XᵀX Σ_β)).
    """
    mean, covariance = q.mean, q.covariance
    residual = model.y - model.X @ (mean[:-1] - 2.0 * covariance[:-1, -1])
    squares = residual @ residual + np.vdot(model.X.T @ model.X, covariance[:-1, :-1])
    with np.errstate(over="ignore"):  # a run that breaks down has a bound of −inf
        weight = np.exp(-2.0 * mean[-1] + 2.0 * covariance[-1, -1])
        likelihood = -len(model.y) * (0.5 * np.log(2.0 * np.pi) + mean[-1]) - 0.5 * weight * squares
    return float(likelihood) - divergence(q, prior)
