r"""VOGN: the variational online Gauss-Newton method (Khan et al. 2018; Osawa et al. 2019, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgvbp.core.checks import positive_number
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.estimators import Estimate
from mgvbp.families import Family
from mgvbp.methods.optimizer import Frame, Step
from mgvbp.methods.qbvi import QBVI


@dataclass(frozen=True, kw_only=True)
class VOGN(QBVI):
    r"""Natural-gradient steps of a diagonal Gaussian with squared per-example gradients as curvature.

    .. math::
        m &\leftarrow \beta_1 m + \nabla_\mu, \\
        P^+ &= (1-\beta_2) P + \beta_2
               \Bigl(P_0 + E_q\bigl[\textstyle\sum_i (\nabla\log p(y_i|\theta))^2\bigr]\Bigr), \\
        \mu^+ &= \mu + \alpha\, \Sigma^+ m .

    With N observations, :math:`P = N(s + \tilde\delta)` and :math:`P_0 = N\tilde\delta` this is the published form
    :math:`s \leftarrow (1-\beta_2)s + \beta_2\hat h`, :math:`\mu \leftarrow \mu - \alpha\, m/(s+\tilde\delta)` at
    temperature 1, without damping, if draws are antithetic. With plain draws :math:`\nabla_\mu` has the same mean and
    less noise ("sticking the landing"). VOGN is `QBVI` with the estimator ``"fisher"``, another step for the
    precision, and a momentum that is summed, not averaged. With ``estimator="gradient"`` the curvature is the
    expected Hessian instead (variational online Newton). A fit returns the last iterate, since the fixed point is not
    the maximum of the lower bound if squared gradients differ from the Hessian.

    Parameters
    ----------
    step_size : float, or callable of the iteration
        α, the learning rate of the mean.
    momentum : float
        β₁, the weight of the past direction.
    curvature_step : float
        β₂, at most 1: the weight of the new curvature.
    decay_after, window, patience, max_iterations
        As for `Method`; gradients are not clipped.
    """

    climbs: ClassVar[bool] = False

    step_size: float | Callable[[int], float] = 0.01
    momentum: float = 0.9
    curvature_step: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if positive_number(self.curvature_step, "VOGN: curvature_step") > 1.0:
            raise InvalidInputError(f"VOGN: curvature_step must be at most 1; got {self.curvature_step}")
        if self.clip_gradient or self.clip_natural_gradient or self.precision_scale != 2.0:
            raise InvalidInputError(
                "VOGN does not clip gradients, and its precision_scale is 2 by definition"
            )

    @property
    def estimator(self) -> str:
        """The estimator by default: squared per-example gradients."""
        return "fisher"

    def step(self, family: Family, frame: Frame, estimate: Estimate, t: int) -> Step:
        """Take step ``t`` (1, 2, ...) from ``frame``."""
        mu, L, m, _ = frame
        direction = self.mean_direction(family, L, estimate.g)
        if m is not None:
            direction += self.momentum * m
        K, _, reductions = self._scaling_within(family, 2.0 * estimate.G, self.curvature_step)
        L_new = self.apply(family, L, K)
        alpha = self.step_size_at(t)
        mu_new = mu + alpha * self.mean_move(family, L_new, direction)
        if not (np.isfinite(mu_new).all() and np.isfinite(L_new).all()):
            raise DivergenceError("the mean or the precision ran out of bounds; try a smaller step_size")
        return Step(Frame(mu_new, L_new, direction, estimate.G), alpha, reductions)
