r"""One step on a quadratic surface: the largest natural-gradient step whose KL divergence is within a radius.

With step β the frame gets the precision :math:`F = I + 2\beta G` (the family's entries) and the mean
:math:`\delta = \beta (I + 2\beta G)^{-1} g`; β = 1 is the optimum of the surface. Then

.. math::
    2\,\mathrm{KL}(q^+\,\|\,q) = \operatorname{tr} F^{-1} - d + \log\det F + \|\delta\|^2 .
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm

from mgvbp._linalg import cholesky
from mgvbp.auto.surface import Surface, solve_lower
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.gaussian import Gaussian

SHRINK = 0.7
SMALLEST = 1e-12
"""Eigenvalue of F below which the surface is not believed: variances grow by at most 1/SMALLEST a step."""


@dataclass(frozen=True)
class Leap:
    """A proposed step: where to, the step size β, its divergence and the gain of the bound on the surface."""

    q: Gaussian
    beta: float
    kl: float
    gain: float


def propose(surface: Surface, radius: float) -> Leap | None:
    """The largest of the steps 1, 0.7, 0.49, ... that stays within ``radius`` nats; None if there is none."""
    beta = 1.0
    while beta > 1e-15:
        if (leap := _leap(surface, beta)) is not None and leap.kl <= radius:
            return leap
        beta *= SHRINK
    return None


def _leap(surface: Surface, beta: float) -> Leap | None:
    q, g, G = surface.q, surface.g, surface.G
    d = q.dim
    H = np.eye(d) + 2.0 * beta * G
    F = np.where(q.family.mask, H, 0.0)
    try:
        root_H, K = cholesky(H), cholesky(F)
        factor = q.family.product(q.factor, q.family.cholesky(q.family.from_dense(F)))
    except NotPositiveDefiniteError:
        return None
    if np.square(root_H.diagonal()).min() < SMALLEST:
        return None
    delta = beta * dtrsm(1.0, root_H, solve_lower(root_H, g[:, None]), lower=1, trans_a=1)[:, 0]
    inverse = solve_lower(K, np.eye(d))
    V = inverse.T @ inverse
    half_log_det, trace, length = float(np.log(K.diagonal()).sum()), float(np.trace(V)), float(delta @ delta)
    kl = 0.5 * (trace - d + length) + half_log_det
    gain = (
        g @ delta
        - np.sum(G * V)
        - delta @ G @ delta
        + np.trace(G)
        - 0.5 * (trace + length - d)
        - half_log_det
    )
    mean = q.mean + q.family.from_frame(q.factor, delta)
    if not (np.isfinite(mean).all() and math.isfinite(kl)):
        return None
    return Leap(Gaussian.from_factor(mean, factor, q.family), beta, kl, float(gain))
