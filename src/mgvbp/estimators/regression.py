r"""Gradients by least squares: regress h on a quadratic in ε and read the gradients off the coefficients.

With :math:`h \approx a + g^\top\varepsilon + \varepsilon^\top Q\,\varepsilon - \operatorname{tr} Q` the
whitened gradients are g and :math:`G = -Q`, and the intercept a is the lower bound (the regressors have mean
zero under q). For a quadratic log density the result is exact for any draws that determine the coefficients;
otherwise the noise is that of the residual, not of h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

from mgvbp.core.linalg import SINGULAR, Array
from mgvbp.errors import DivergenceError
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.families import Family, Full
from mgvbp.families.base import Indices
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Prior

FULL_QUADRATIC_FROM = 2.0
"""Diagonal and block families use the full quadratic if there are this many draws per monomial of it.

It is two, because antithetic pairs determine the full quadratic from somewhat fewer than two on.
"""

FULL_QUADRATIC_UP_TO = 500
"""If the full quadratic has at most this many monomials (d = 30), the default number of draws suffices for it."""


@dataclass(frozen=True)
class Regression(Estimator):
    """Least squares on the monomials 1, ε_i, ε_i ε_j.

    A diagonal or block family needs only its own monomials. If there are enough draws (two per coefficient), the full
    quadratic is fitted nevertheless, and the family's part of it is kept: the cross terms are then explained and add
    no noise.
    """

    name = "regression"

    def estimate(self, q: Gaussian, prior: Prior | None, sample: Sample, control: Control | None) -> Estimate:
        """Estimate g, G and the lower bound."""
        family, (S, d) = q.family, sample.eps.shape
        full = Full(d)
        chosen = full if FULL_QUADRATIC_FROM * full.num_monomials <= S else family
        if chosen.num_monomials > S:
            raise DivergenceError(
                f"{S} draws with finite values are left, but the regression needs {chosen.num_monomials}: "
                "give a larger num_draws or a start where the function is finite"
            )
        Z = monomials(chosen, sample.eps)
        coefficients, _, rank, _ = lstsq(Z, sample.h, SINGULAR, lapack_driver="gelsy", check_finite=False)
        if rank < Z.shape[1]:
            raise DivergenceError(
                f"the {S} draws do not determine the {Z.shape[1]} coefficients of the regression"
            )
        quadratic = coefficients[1 + d :]
        if chosen is not family:
            quadratic = quadratic[_positions(family)]
        return Estimate(coefficients[1 : 1 + d], -family.from_pairs(quadratic), float(coefficients[0]))

    def minimum_draws(self, family: Family, draws: str) -> int:
        """One per coefficient; an antithetic pair gives one equation for the even monomials and one for the odd."""
        even = family.num_monomials - family.dim
        antithetic = isinstance(draws, str) and draws == "antithetic"
        return max(2 * even, 2 * family.dim) if antithetic else family.num_monomials

    def default_draws(self, family: Family) -> int:
        """Two per coefficient: of the full quadratic if that is small, else of the family's."""
        full = Full(family.dim).num_monomials
        return 2 * (full if full <= FULL_QUADRATIC_UP_TO else family.num_monomials)


def monomials(family: Family, eps: Array) -> Array:
    """The regressors 1, ε_i and ε_i ε_j − δ_ij as columns, (S, num_monomials)."""
    i, j = family.pairs
    S, d = eps.shape
    Z = np.empty((S, family.num_monomials), order="F")
    Z[:, 0] = 1.0
    Z[:, 1 : 1 + d] = eps
    np.multiply(eps[:, i], eps[:, j], out=Z[:, 1 + d :])
    Z[:, 1 + d + np.flatnonzero(i == j)] -= 1.0
    return Z


def _positions(family: Family) -> Indices:
    """The positions of the family's pairs among the pairs of the full family."""
    i, j = np.minimum(*family.pairs), np.maximum(*family.pairs)
    return np.asarray(i * family.dim - i * (i - 1) // 2 + (j - i))
