r"""Gradients from gradients: reparametrised draws, and least squares for the curvature.

With :math:`\theta = \mu + L^{-\top}\varepsilon` the gradient of h in ε is

.. math:: v = L^{-1} \nabla_\theta (\log p(\theta) + \log p(y|\theta)) + \varepsilon ,

where the parameters of q in :math:`-\log q` are held fixed ("sticking the landing"): v vanishes, draw by draw, where q
is the posterior. The whitened gradients are :math:`g = E[v]` and, by Stein's identity,
:math:`G = -\tfrac12 E[\nabla v] = -\tfrac12 \operatorname{sym} E[v\varepsilon^\top]`.

Where the draws determine it (S ≥ d + 2, in antithetic pairs 2d), v is regressed on 1 and ε,
:math:`v \approx g + B\varepsilon` and :math:`G = -\tfrac12\operatorname{sym} B`: a quadratic log density is met
exactly. With fewer draws :math:`E[(v - c)\varepsilon^\top]` is their average, without bias: c is the g of the
previous iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mgvbp.core.linalg import SINGULAR, Array
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Needs, Prior

REGRESSION_UP_TO = 100
"""Dimension up to which the default number of draws pays for a regression."""
ROWS = 2.0
"""Draws (or pairs) per coefficient from which the control variate takes more noise away than it brings."""
SATURATED = 1e-8
"""Share of a draw that the others do not determine below which they say nothing about it."""
EXACT = 1e-9
"""Spread of what is left of h, relative to its own, that is round-off."""


@dataclass(frozen=True)
class Gradient(Estimator):
    """Reparametrisation gradients, for log-likelihoods that come with theirs."""

    name = "gradient"
    needs: ClassVar[Needs] = "gradients"

    def estimate(self, q: Gaussian, prior: Prior | None, sample: Sample, control: Control | None) -> Estimate:
        """Estimate g, G and the lower bound."""
        eps, family, v = sample.eps, q.family, slopes(q, sample)
        g, h = v.mean(axis=0), sample.h
        if len(eps) < q.dim + 2 or (fit := regression(eps, v, h)) is None:
            c = 0.0 if control is None else control.mean
            return Estimate(g, -0.5 * family.cross_moment(v - c, eps), float(h.mean()), Control(g))
        return Estimate(fit.g, family.from_dense(-0.25 * (fit.B + fit.B.T)), fit.bound)

    def minimum_draws(self, family: Family, draws: str) -> int:
        """One, and one more for the spread of the lower bound."""
        return 2

    def default_draws(self, family: Family) -> int:
        """Two per coefficient of the regression; in high dimension half a hundred, without one."""
        return 2 * (family.dim + 2) if family.dim <= REGRESSION_UP_TO else 50


def slopes(q: Gaussian, sample: Sample) -> Array:
    """The gradients of h in the frame, (S, d)."""
    assert sample.gradients is not None
    return q.family.solve(q.factor, sample.gradients) + sample.eps


class Linear(NamedTuple):
    """``v ≈ g + B ε``, and the mean of h with what follows from that as its control variate."""

    g: Array
    B: Array
    bound: float


def regression(eps: Array, v: Array, h: Array) -> Linear | None:
    r"""Least squares, or None where the draws do not determine the coefficients.

    The control variate is :math:`g^\top\varepsilon + \tfrac12(\varepsilon^\top B\varepsilon - \operatorname{tr} B)`, of
    mean 0 for coefficients from other draws: each draw has those of all but itself (all but its pair, if they are
    antithetic). Whether it is used must not depend on its values: with draws enough, or if the fit is exact.
    """
    mean, half = v.mean(axis=0), len(eps) // 2
    if paired := len(eps) % 2 == 0 and np.array_equal(eps[:half], -eps[half:]):
        # of a pair only the odd part of v depends on B, and only the even part of h has a mean
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
    # without draw i the coefficients are (ZᵀZ)⁻¹zᵢ rᵢᵀ / (1 − leverage) less
    influence, r = solve_triangular(R, Q.T).T, v - Q @ (Q.T @ v)
    own = 0.5 * (
        (r * eps).sum(axis=1) * (influence[:, :d] * eps).sum(axis=1) - (r * influence[:, :d]).sum(axis=1)
    )
    if not paired:
        own += influence[:, d] * (r * eps).sum(axis=1)
    others = 1.0 - np.square(Q).sum(axis=1)
    rest = h - u + np.divide(own, others, where=others > SATURATED, out=np.zeros_like(h))
    believed = len(Z) >= ROWS * Z.shape[1] or np.ptp(rest) <= EXACT * np.ptp(h)
    return Linear(mean if paired else g, B, float((rest if believed else h).mean()))
