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
from typing import ClassVar

import numpy as np
from scipy.linalg import lstsq

from mgvbp._linalg import Array
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.families import Family
from mgvbp.gaussian import Gaussian
from mgvbp.problem import Needs, Prior

REGRESSION_UP_TO = 100
"""Dimension up to which the default number of draws pays for a regression."""


@dataclass(frozen=True)
class Gradient(Estimator):
    """Reparametrisation gradients, for log-likelihoods that come with theirs."""

    name = "gradient"
    needs: ClassVar[Needs] = "gradients"

    def estimate(self, q: Gaussian, prior: Prior | None, sample: Sample, control: Control | None) -> Estimate:
        """Estimate g, G and the lower bound."""
        eps, family, v = sample.eps, q.family, slopes(q, sample)
        if (fit := regression(eps, v)) is None:
            g, c = v.mean(axis=0), 0.0 if control is None else control.mean
            return Estimate(g, -0.5 * family.cross_moment(v - c, eps), float(sample.h.mean()), Control(g))
        g, B = fit
        explained = eps @ g + 0.5 * (np.einsum("si,ij,sj->s", eps, B, eps, optimize=True) - B.trace())
        return Estimate(g, family.from_dense(-0.25 * (B + B.T)), float((sample.h - explained).mean()))

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


def regression(eps: Array, v: Array) -> tuple[Array, Array] | None:
    """``g`` and ``B`` of ``v ≈ g + B ε``, or None where the draws do not determine them."""
    S, d = eps.shape
    if len(eps) < d + 2:
        return None
    Z = np.column_stack([np.ones(S), eps])
    coefficients, _, rank, _ = lstsq(Z, v, S * np.finfo(float).eps, lapack_driver="gelsy", check_finite=False)
    return (coefficients[0], coefficients[1:].T) if rank == d + 1 else None
