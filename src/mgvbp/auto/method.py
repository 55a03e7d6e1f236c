"""`Auto`: the user's options of the tuning-free method, and the families for which it is affordable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto import constants
from mgvbp.auto.search import Search, Starts
from mgvbp.auto.searches.by_gradients import ByGradients
from mgvbp.auto.searches.by_values import ByValues
from mgvbp.auto.searches.low_rank import ByLowRank
from mgvbp.auto.searches.many import ManyParameters
from mgvbp.auto.searches.pairs import ByPairs
from mgvbp.auto.searches.structured import ByStructure
from mgvbp.core.checks import as_floats, as_key, positive_integer, positive_number, true_or_false
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families import Diagonal, Family, Full, LowRank, Structured, resolve_family
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.methods.optimizer import STREAM, initial_frame
from mgvbp.problem.problem import Prior, Problem, prior_and_dim

NEEDS_GRADIENTS = (
    "the {family} family needs gradients of the log-likelihood: give grad=, or grad='jax' or 'torch' if the function "
    "is one of theirs; without gradients use family='diagonal' or 'full'"
)


def affordable(family: Family, problem: Problem) -> bool:
    """Whether `Auto` can fit its surfaces for this family."""
    if isinstance(family, Structured):
        return uses_gradient(problem)
    if uses_gradient(problem):
        return family.dim <= constants.MOST_PARAMETERS or isinstance(family, Diagonal)
    return family.num_monomials <= constants.MOST_COEFFICIENTS


def uses_gradient(target: int | Gaussian | Problem) -> bool:
    """Whether ``target`` is a `Problem` that has a gradient, and a prior that has one too."""
    if not isinstance(target, Problem):
        return False
    return target.has_gradient and not target.missing_gradient


@dataclass(frozen=True)
class Auto:
    """The tuning-free method.

    Parameters
    ----------
    tol : float, optional
        How far below the optimum, in nats, the lower bound may be. By default 0.01 for at most 50 parameters, and
        d/5000 for more, so that each of them is known equally well: 0.2 nats for 1,000.
    """

    tol: float | None = None

    def __post_init__(self) -> None:
        if self.tol is not None:
            positive_number(self.tol, "tol")

    def tolerance(self, dim: int) -> float:
        """The tolerance in nats for so many parameters.

        Examples
        --------
        >>> Auto().tolerance(10), Auto().tolerance(1000), Auto(0.05).tolerance(1000)
        (0.01, 0.2, 0.05)
        """
        return constants.TOLERANCE * max(1.0, dim / constants.MANY) if self.tol is None else self.tol

    def start(
        self,
        target: int | Gaussian | Problem,
        *,
        family: str | Family = "full",
        initial_mean: ArrayLike | None = None,
        initial_variance: ArrayLike | None = None,
        max_evaluations: int | None = None,
        starts: int | ArrayLike = 1,
        gradients: bool | None = None,
        noise: float | None = None,
        rng: int | np.random.Generator | tuple[int, ...] = 0,
    ) -> Search:
        """Begin an ask/tell run.

        Parameters
        ----------
        target : int, Gaussian or Problem
            As for `Method.start`.
        family : {"full", "diagonal"} or BlockDiagonal
        initial_mean, initial_variance
            As for `fit`.
        max_evaluations : int, optional
            The search never makes more evaluations than this.
        starts : int or array_like of shape (K, d)
            As for `fit`.
        gradients : bool, optional
            Whether ``tell(values, gradients)`` is given the gradients too. By default it is if ``target`` is a
            `Problem` that has them.
        noise : float, optional
            As for `fit`.
        rng : int or numpy.random.Generator

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
        prior, dim = prior_and_dim(target)
        family = resolve_family(family, dim, getattr(target, "labels", None))
        given = uses_gradient(target) if gradients is None else true_or_false(gradients, "gradients")
        by: type[ByGradients | ByValues | ByStructure | ByLowRank] = ByGradients if given else ByValues
        if given and isinstance(family, Full) and dim > constants.PAIRS_ONLY_ABOVE:
            by = ManyParameters
        limit = constants.DIAGONAL_SUMS_ABOVE if noise is None else constants.MOST_PARAMETERS
        many = isinstance(family, Diagonal) and dim > limit
        if isinstance(family, Structured) or (many and given):
            if not given:
                raise InvalidInputError(NEEDS_GRADIENTS.format(family=family.name))
            by = ByLowRank if isinstance(family, LowRank) else ByStructure
        rules = by(family, prior, self.tolerance(dim), getattr(target, "labels", None))
        mean, factor, *_ = initial_frame(family, prior, initial_mean, initial_variance)
        first, key = Gaussian.from_factor(mean, factor, family), as_key(rng)
        means = start_means(starts, first, prior, key)
        if noise is not None and not (isinstance(noise, int | float | np.number) and noise == 0):
            noise = positive_number(noise, "noise")
        budget = rules.most * len(means)
        if max_evaluations is not None:
            least = rules.least if isinstance(rules, ByPairs) else 2
            budget = positive_integer(max_evaluations, "max_evaluations", least=least)
        single = len(means) == 1
        states: list[Any] = [
            rules.start(
                first if mean is first.mean else Gaussian.from_factor(mean, factor, family),
                key if single else (*key, k),
                budget,
                noise,
            )
            for k, mean in enumerate(means)
        ]
        return Search(rules, Starts.of(states, rules.least, budget))


def start_means(
    starts: int | ArrayLike, first: Gaussian, prior: Prior | None, key: tuple[int, ...]
) -> list[Array]:
    """The means of all starts.

    If ``starts`` is a number, the first mean is that of ``first``. The others are drawn from a Gaussian prior, or
    from ``first`` if the prior is not Gaussian.
    """
    if isinstance(starts, int | float | str | np.generic) or starts is None:
        number = positive_integer(starts, "starts")
        source = prior if isinstance(prior, Gaussian | GaussianMixture) else first
        return [first.mean, *source.sample(number - 1, np.random.default_rng((*key, STREAM)))]
    means = as_floats(starts, "starts")
    if means.ndim != 2 or means.shape[1] != first.dim or len(means) == 0:
        raise InvalidInputError(
            f"starts has shape {means.shape}; expected a number, or means (K, {first.dim})"
        )
    return list(means)
