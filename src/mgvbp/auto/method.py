"""`Auto`: what a user says of the tuning-free method, and for which families it is affordable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mgvbp.auto.optimizer import AutoOptimizer
from mgvbp.checks import positive_number
from mgvbp.families import Family
from mgvbp.gaussian import Gaussian
from mgvbp.problem import Problem

COEFFICIENT_LIMIT = 1000
"""Coefficients beyond which a surface costs too many draws: d = 43 if full, 499 if diagonal."""


def affordable(family: Family) -> bool:
    """Whether `Auto` can fit its surfaces for this family."""
    return family.num_monomials <= COEFFICIENT_LIMIT


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

    def start(self, target: int | Gaussian | Problem, **options: Any) -> AutoOptimizer:
        """Begin an ask/tell run; see `AutoOptimizer` for the arguments.

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
        return AutoOptimizer(self, target, **options)
