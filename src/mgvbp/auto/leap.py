r"""One step on a quadratic surface: the largest natural-gradient step whose KL divergence is within a radius.

With step β the frame gets the precision :math:`F = I + 2\beta G` (the family's entries) and the mean
:math:`\delta = \beta (I + 2\beta G)^{-1} g`; β = 1 is the optimum of the surface. Then

.. math::
    2\,\mathrm{KL}(q^+\,\|\,q) = \operatorname{tr} F^{-1} - d + \log\det F + \|\delta\|^2 .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dtrsm

from mgvbp._linalg import cholesky
from mgvbp.auto.surface import Surface, solve_lower
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.gaussian import Gaussian

STEPS = np.concatenate([[1.0, 0.9], 0.7 ** np.arange(1, 97)])
"""Steps that are tried, the largest first."""
MISS = 3.0
"""Times the promised gain that an extrapolated surface may miss."""
ROUND_OFF = 1e-6
"""A residual of so few nats, of a surface that is quadratic, does not grow with the distance."""
SMALLEST = 1e-12
"""Eigenvalue of F below which the surface is not believed: variances grow by at most 1/SMALLEST a step."""


@dataclass(frozen=True)
class Leap:
    """A proposed step: where to, the step size β, its divergence and the gain of the bound on the surface."""

    q: Gaussian
    beta: float
    kl: float
    gain: float


def propose(surface: Surface, radius: float, *, extrapolate: bool) -> Leap | None:
    """The largest step that stays within ``radius`` nats, or within what the surface can be trusted with.

    What a surface misses is mostly cubic: at t times the distance from the mean it is t³ times the residual.
    ``extrapolate`` allows steps for which that is at most `MISS` times the promised gain.
    """
    q, g, G = surface.q, surface.g, surface.G
    curvatures, U = np.linalg.eigh(G)
    mask = q.family.mask
    kept = curvatures if mask.all() else np.linalg.eigvalsh(np.where(mask, G, 0.0))
    beta = STEPS[:, None]
    H, F = 1.0 + 2.0 * beta * curvatures, 1.0 + 2.0 * beta * kept  # eigenvalues for each β
    slopes = g @ U
    with np.errstate(all="ignore"):
        delta = beta * slopes / H
        kl = 0.5 * (1.0 / F - 1.0 + np.log(F)).sum(axis=1) + 0.5 * np.square(delta).sum(axis=1)
        gain = (delta * (slopes - curvatures * delta)).sum(axis=1) + (kept - kept / F).sum(axis=1) - kl
        allowed = kl <= radius
        if extrapolate:
            missed = max(surface.residual - ROUND_OFF, 0.0)
            allowed |= missed * (1.0 + 2.0 * kl / q.dim) ** 1.5 <= MISS * gain
    for k in np.flatnonzero(allowed & (H.min(axis=1) > 0.0) & (F.min(axis=1) > SMALLEST)):
        if (q_next := _step(surface, float(STEPS[k]))) is not None:
            return Leap(q_next, float(STEPS[k]), float(kl[k]), float(gain[k]))
    return None


def _step(surface: Surface, beta: float) -> Gaussian | None:
    q = surface.q
    H = np.eye(q.dim) + 2.0 * beta * surface.G
    try:
        root = cholesky(H)
        factor = q.family.product(q.factor, q.family.cholesky(q.family.from_dense(H)))
    except NotPositiveDefiniteError:
        return None
    delta = beta * dtrsm(1.0, root, solve_lower(root, surface.g[:, None]), lower=1, trans_a=1)[:, 0]
    mean = q.mean + q.family.from_frame(q.factor, delta)
    return Gaussian.from_factor(mean, factor, q.family) if np.isfinite(mean).all() else None
