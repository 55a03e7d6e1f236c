r"""One step on a quadratic surface: the largest natural-gradient step whose KL divergence is within a radius.

With step β the frame gets the precision :math:`F = I + 2\beta G` (the family's entries) and the mean
:math:`\delta = \beta (I + 2\beta G)^{-1} g`; β = 1 is the optimum of the surface. Then

.. math::
    2\,\mathrm{KL}(q^+\,\|\,q) = \operatorname{tr} F^{-1} - d + \log\det F + \|\delta\|^2 .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from mgvbp.auto import constants
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.surface import Surface

STEPS = np.concatenate([[1.0, 0.9], 0.7 ** np.arange(1, 97)])
"""Steps that are tried, the largest first."""
ROUND_OFF = 1e-6
"""Nats of the residual that are taken for round-off: they do not grow with the distance."""
SMALLEST = 1e-12
"""Smallest eigenvalue of F that a step may have: variances grow by at most 1/SMALLEST in a step."""


@dataclass(frozen=True)
class Leap:
    """A proposed step: the Gaussian it leads to, the step size β, its KL divergence and the promised gain (nats)."""

    q: Gaussian
    beta: float
    kl: float
    gain: float


def propose(surface: Surface, radius: float, *, extrapolate: bool) -> Leap | None:
    """The largest step within ``radius`` nats or, if ``extrapolate``, that the surface can be trusted with.

    What a surface misses is mostly cubic: at t times the distance from the mean it is t³ times the residual.
    The surface is trusted with steps for which this is at most `constants.MISS` times the promised gain.
    """
    q, mask = surface.q, surface.q.family.mask
    curvatures, U = np.linalg.eigh(surface.G)  # in ascending order
    kept = curvatures if mask.all() else np.linalg.eigvalsh(np.where(mask, surface.G, 0.0))
    slopes = surface.g @ U
    missed = max(surface.residual - ROUND_OFF, 0.0) if extrapolate else np.inf
    for steps in (STEPS[:1], STEPS[1:]):  # the full step suffices most of the time
        beta = steps[(2.0 * curvatures[0] * steps > -1.0) & (2.0 * kept[0] * steps > SMALLEST - 1.0)][:, None]
        H, F = 1.0 + 2.0 * beta * curvatures, 1.0 + 2.0 * beta * kept  # eigenvalues for each β
        with np.errstate(all="ignore"):
            delta = beta * slopes / H
            kl = 0.5 * (1.0 / F - 1.0 + np.log(F) + delta * delta).sum(axis=1)
            gain = (delta * (slopes - curvatures * delta) + kept - kept / F).sum(axis=1) - kl
            believed = missed * (1.0 + 2.0 * kl / q.dim) ** 1.5 <= constants.MISS * gain
        for k in np.flatnonzero((kl <= radius) | believed):
            if (q_next := step(surface, float(beta[k, 0]))) is not None:
                return Leap(q_next, float(beta[k, 0]), float(kl[k]), float(gain[k]))
    return None


def step(surface: Surface, beta: float) -> Gaussian | None:
    """The Gaussian that the step β leads to; None if the new precision is not positive definite."""
    q = surface.q
    H = np.eye(q.dim) + 2.0 * beta * surface.G
    _, solved, info = dposv(H, surface.g, lower=1)
    try:
        factor = q.family.product(q.factor, q.family.cholesky(q.family.from_dense(H)))
    except NotPositiveDefiniteError:
        return None
    mean = q.mean + q.family.from_frame(q.factor, beta * solved)
    return Gaussian.from_factor(mean, factor, q.family) if info == 0 and np.isfinite(mean).all() else None
