r"""VOGN's curvature: squared per-example gradients in place of the Hessian.

.. math::
    g = E[v], \qquad
    G = \tfrac12 L^{-1} \Bigl(P_0 + E\bigl[\textstyle\sum_i \operatorname{diag}(\nabla\log p(y_i|\theta))^2\bigr]\Bigr)
    L^{-\top} - \tfrac12 I ,

with v as in `mgvbp.estimators.gradient` and the exact precision :math:`P_0` of the prior. The sum over the
observations i is never negative, so that no step can lose positive definiteness. It is not the expected Hessian: if
the model is wrong, the fixed point differs from the optimum of the lower bound (Khan et al. 2018, Osawa et al. 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgvbp.errors import InvalidInputError
from mgvbp.estimators.base import Control, Estimate, Estimator, Sample
from mgvbp.estimators.gradient import slopes
from mgvbp.families import Diagonal, Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Needs, Prior


@dataclass(frozen=True)
class EmpiricalFisher(Estimator):
    """Reparametrisation gradients with the empirical Fisher information as curvature; diagonal family only."""

    name = "fisher"
    needs: ClassVar[Needs] = "squares"

    def estimate(self, q: Gaussian, prior: Prior | None, sample: Sample, control: Control | None) -> Estimate:
        """Estimate g, G and the lower bound."""
        assert sample.squares is not None
        L = q.factor
        curvature = sample.squares.mean(axis=0) / (L * L)
        if isinstance(prior, Gaussian):
            curvature += q.family.whitened_precision(L, prior.family, prior.factor)
        g = slopes(q, sample).mean(axis=0)
        return Estimate(g, 0.5 * (curvature - 1.0), float(sample.h.mean()))

    def minimum_draws(self, family: Family, draws: str) -> int:
        """Two, for the spread of the lower bound; raises if the family is not diagonal."""
        if not isinstance(family, Diagonal):
            raise InvalidInputError(
                f"the fisher estimator has squared gradients only, for family='diagonal'; got {family!r}"
            )
        return 2

    def default_draws(self, family: Family) -> int:
        """As many as for the paper's networks."""
        return 20

    def check_prior(self, prior: Prior | None) -> None:
        """Raise unless the prior is Gaussian or None: its curvature must be known."""
        if prior is not None and not isinstance(prior, Gaussian):
            raise InvalidInputError("the fisher estimator needs a Gaussian prior, or none")
