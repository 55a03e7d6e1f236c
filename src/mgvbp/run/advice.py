"""Sentences on how a run ended: how far the optimum may be, what it may take, what to try."""

from __future__ import annotations

import math

import numpy as np

from mgvbp.auto import MOST_BY_GRADIENTS, MixtureSearch, Search
from mgvbp.auto.searches.by_values import ByValues
from mgvbp.core.outcome import Outcome
from mgvbp.families import Family
from mgvbp.families.gaussian import Gaussian
from mgvbp.problem.problem import Problem
from mgvbp.run.loop import Run

UNBOUNDED = 1e10
"""A lower bound of more nats than this is taken for unbounded: a billion observations, each known to four digits,
would give no more."""
FARTHEST = 1e12
"""A run without a lower bound has run away if its mean is this many initial standard deviations from the start."""
GROWS = "the density grows without bound: is it the negative log-likelihood, or is a prior missing?"


def too_many(family: Family, *, gradient: bool) -> str:
    """Why auto cannot be used, and what to try."""
    if gradient:
        return (
            f"auto is for at most {MOST_BY_GRADIENTS:,} parameters, and there are {family.dim:,}: running mgvbp, which "
            "has no certificate; consider family=mgvbp.LowRank(), mgvbp.SparsePrecision(pattern) or family='diagonal'"
        )
    return (
        f"the {family.name} family has {family.num_monomials:,} coefficients at d = {family.dim}, too many for "
        "auto: running mgvbp, which has no certificate; consider a gradient (grad=), family='diagonal' or "
        "BlockDiagonal, which need fewer draws"
    )


def better_way(problem: Problem) -> str:
    """What to try where the function is a method of another package's model, whose constraints it does not know."""
    package = type(getattr(problem.log_likelihood, "__self__", None)).__module__.partition(".")[0]
    if package not in ("statsmodels", "arch"):
        return ""
    return (
        f"; the function is that of a model of {package}: fit mgvbp.from_{package}(model), which knows its constraints "
        "and where to start"
    )


def grows(outcome: Run, start: Gaussian) -> bool:
    """Whether the lower bound grew without bound, or the mean ran away before there was a lower bound."""
    if outcome.converged or outcome.lower_bound > -math.inf:
        return not outcome.converged and outcome.lower_bound > UNBOUNDED
    return bool((np.abs(outcome.best.mean - start.mean) > FARTHEST * start.std).any())


def distance(gap: float | None, tol: float) -> str:
    """A sentence on how far the optimum may be, and why the run is not converged if it is near."""
    if gap is None:
        return ""
    if gap == math.inf:
        return "nothing is known yet about how far the lower bound is below its maximum"
    unconfirmed = f", within tol = {tol:g}, but fresh draws have not confirmed that" if gap < tol else ""
    return f"the lower bound may be {gap:.2g} nats below its maximum{unconfirmed}"


def more(outcome: Outcome, search: Search | MixtureSearch, tol: float) -> str:
    """How many more evaluations a search may take that has come to its limit; empty if that cannot be said.

    The noise falls with the number of effective draws, so that a gap of k tolerances takes k times as many of them.
    """
    surface, gap = getattr(search.best, "surface", None), search.best.gap
    if outcome is not Outcome.MAX_EVALUATIONS or surface is None or gap is None or not tol < gap < math.inf:
        return ""
    more = math.ceil(surface.size * (gap / tol - 1.0))
    return f", and it may take about {max(more, 1):,} more evaluations to be within tol = {tol:g}"


def expected(search: Search | MixtureSearch) -> str:
    """What a progress bar says of the evaluations that a search by values will take, while it goes on."""
    if search.ending is not None or not isinstance(search, Search) or not isinstance(search.rules, ByValues):
        return ""
    low, high = search.rules.usual
    soon = search.n_evaluations < high and low < search.max_evaluations
    return f" (usually {low:,} to {high:,})" if soon else ""
