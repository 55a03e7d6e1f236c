r"""Gradients of the lower bound from gradients of the log density: reparametrised draws, and least squares.

With :math:`\theta = \mu + L^{-\top}\varepsilon` the gradient of h in ε is

.. math:: v = L^{-1} \nabla_\theta (\log p(\theta) + \log p(y|\theta)) + \varepsilon ,

where the parameters of q in :math:`-\log q` are held fixed ("sticking the landing"): v is zero at every draw if q
is the posterior. The whitened gradients are :math:`g = E[v]` and, by Stein's identity,
:math:`G = -\tfrac12 E[\nabla v] = -\tfrac12 \operatorname{sym} E[v\varepsilon^\top]`.

If there are enough draws (S ≥ d + 2, in antithetic pairs 2d), v is regressed on 1 and ε,
:math:`v \approx g + B\varepsilon` and :math:`G = -\tfrac12\operatorname{sym} B`, which is exact for a quadratic log
density. With fewer draws :math:`E[(v - c)\varepsilon^\top]` is estimated by the average over the draws, where c is
the g of the previous iteration, so that there is no bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mgvbp.core.linalg import SINGULAR, Array
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.families import Family, Structured
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Needs, Prior

REGRESSION_UP_TO = 100
"""Largest dimension in which the default number of draws suffices for a regression."""
ROWS = 2.0
"""With this many draws (or pairs) per coefficient the control variate removes more noise than it adds."""
SATURATED = 1e-8
"""If 1 − leverage of a draw is below this, the other draws do not determine the coefficients, and the correction that
leaves the draw out is not made."""
EXACT = 1e-9
"""The fit is exact, but for round-off, if it leaves less than this share of the spread of h."""


@dataclass(frozen=True)
class Gradient(Estimator):
    """Reparametrisation gradients, for log-likelihoods that have gradients."""

    name = "gradient"
    needs: ClassVar[Needs] = "gradients"

    def estimate(self, q: Gaussian, prior: Prior | None, sample: Sample, control: Control | None) -> Estimate:
        """Estimate g, G and the lower bound."""
        eps, family, v = sample.eps, q.family, slopes(q, sample)
        g, h = v.mean(axis=0), sample.h
        if isinstance(family, Structured):  # its coordinates are not those of the frame
            c, delta = 0.0 if control is None else control.mean, family.from_frame(q.factor, eps)
            G = family.gradient(q.factor, delta, v - c)[0] / math.sqrt(2.0)
            return Estimate(g, G, float(h.mean()), Control(g))
        if len(eps) < q.dim + 2 or (fit := regression(eps, v, h)) is None:
            c = 0.0 if control is None else control.mean
            return Estimate(g, -0.5 * family.cross_moment(v - c, eps), float(h.mean()), Control(g))
        return Estimate(fit.g, family.from_dense(-0.25 * (fit.B + fit.B.T)), fit.bound)

    def minimum_draws(self, family: Family, draws: str) -> int:
        """Two: one determines the estimate, and the spread of the lower bound needs another."""
        return 2

    def default_draws(self, family: Family) -> int:
        """Two per coefficient of the regression; 50, without a regression, in high dimension."""
        return 2 * (family.dim + 2) if family.dim <= REGRESSION_UP_TO else 50


def slopes(q: Gaussian, sample: Sample) -> Array:
    """The gradients of h in the frame, (S, d)."""
    assert sample.gradients is not None
    return q.family.solve(q.factor, sample.gradients) + sample.eps


class Linear(NamedTuple):
    """``v ≈ g + B ε``, and the mean of h, for which the potential of ``g + B ε`` is the control variate."""

    g: Array
    B: Array
    bound: float


def regression(eps: Array, v: Array, h: Array) -> Linear | None:
    r"""Least squares, or None if the draws do not determine the coefficients.

    The control variate is :math:`g^\top\varepsilon + \tfrac12(\varepsilon^\top B\varepsilon - \operatorname{tr} B)`.
    It has mean 0 if the coefficients come from other draws. So its value at a draw uses the coefficients of all other
    draws (if they are antithetic, of all other pairs). It is used if there are enough draws or if the fit is exact:
    this decision must not depend on its values, but for one case. Where h falls exponentially, the straight line is so
    bad a fit that the control variate adds many powers of ten of noise: a mean outside the range of h is not believed.
    """
    mean, half = v.mean(axis=0), len(eps) // 2
    if paired := len(eps) % 2 == 0 and np.array_equal(eps[:half], -eps[half:]):
        # in a pair, B depends only on the odd part of v, and the mean of h only on its even part
        eps, v, h = eps[:half], 0.5 * (v[:half] - v[half:]), 0.5 * (h[:half] + h[half:])
    Z = eps if paired else np.column_stack([eps, np.ones(len(eps))])
    if len(Z) < Z.shape[1]:
        return None
    Q, R = np.linalg.qr(Z)
    pivots = np.abs(R.diagonal())
    if pivots.min() <= SINGULAR * pivots.max():
        return None
    d = eps.shape[1]
    coefficients = solve_triangular(R, Q.T @ v)
    g, B = np.zeros(d) if paired else coefficients[d], coefficients[:d].T
    u = eps @ g + 0.5 * (np.einsum("si,si->s", eps @ B, eps) - B.trace())
    # leaving out draw i reduces the coefficients by (ZᵀZ)⁻¹zᵢ rᵢᵀ / (1 − leverage)
    influence, r = solve_triangular(R, Q.T).T, v - Q @ (Q.T @ v)
    own = 0.5 * (
        (r * eps).sum(axis=1) * (influence[:, :d] * eps).sum(axis=1) - (r * influence[:, :d]).sum(axis=1)
    )
    if not paired:
        own += influence[:, d] * (r * eps).sum(axis=1)
    others = 1.0 - np.square(Q).sum(axis=1)
    rest = h - u + np.divide(own, others, where=others > SATURATED, out=np.zeros_like(h))
    exact = np.ptp(rest) <= EXACT * np.ptp(h)
    enough = len(Z) >= ROWS * Z.shape[1] and h.min() <= rest.mean() <= h.max()
    return Linear(mean if paired else g, B, float((rest if exact or enough else h).mean()))
