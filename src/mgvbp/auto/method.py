"""`Auto`: what a user says of the tuning-free method, and for which families it is affordable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mgvbp.auto.gradient import GradientAutoOptimizer
from mgvbp.auto.optimizer import AutoOptimizer
from mgvbp.checks import positive_number
from mgvbp.families import Family
from mgvbp.gaussian import Gaussian
from mgvbp.problem import Problem

COEFFICIENT_LIMIT = 1000
"""Coefficients beyond which a surface costs too many draws: d = 43 if full, 499 if diagonal."""


DIMENSION_LIMIT = 500
"""Parameters beyond which it costs too much even with gradients, of which it takes some tens a parameter."""


def affordable(family: Family, problem: Problem) -> bool:
    """Whether `Auto` can fit its surfaces for this family."""
    if uses_gradient(problem):
        return family.dim <= DIMENSION_LIMIT
    return family.num_monomials <= COEFFICIENT_LIMIT


def uses_gradient(target: int | Gaussian | Problem) -> bool:
    """Whether it is a problem with a gradient, and a prior whose gradient is known as well."""
    if not isinstance(target, Problem):
        return False
    return target.has_gradient and not target.missing_gradient


@dataclass(frozen=True)
class Auto:
    """The tuning-free method.

    Parameters
    ----------
    tol : float
        How far below the optimum, in nats, the lower bound may be.
    """

    tol: float = 0.01

    def __post_init__(self) -> None:
        positive_number(self.tol, "tol")

    def start(
        self, target: int | Gaussian | Problem, **options: Any
    ) -> AutoOptimizer | GradientAutoOptimizer:
        """Begin an ask/tell run; see `AutoOptimizer` for the arguments.

        Of a `Problem` with a gradient, ``tell(values, gradients)`` wants the gradients too.

        Examples
        --------
        >>> from mgvbp import Auto
        >>> opt = Auto().start(2)
        >>> while not opt.stop_reason:
        ...     theta = opt.ask()
        ...     info = opt.tell(-(theta - 3.0) ** 2 @ [1.0, 100.0])
        >>> opt.gaussian.mean.round(6), opt.converged
        (array([3., 3.]), True)
        """
        kind = GradientAutoOptimizer if uses_gradient(target) else AutoOptimizer
        return kind(self, target, **options)
