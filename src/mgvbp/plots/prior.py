"""The prior of single numbers: its density where there is a formula, and draws where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError, MgvbpWarning, warn_user
from mgvbp.families.gaussian import Gaussian
from mgvbp.plots.entries import Entry
from mgvbp.posterior.posterior import Posterior
from mgvbp.problem.priors import ConstrainedPrior, univariate

Prior = Gaussian | ConstrainedPrior


def has_formula(prior: Prior, entry: Entry) -> bool:
    """Whether `prior_density` has a formula for the density of a number."""
    if isinstance(prior, Gaussian):
        return entry.column is not None
    # where entries share a constraint, a distribution of single entries is not the density that the constraint leaves
    return univariate(prior.distributions.get(entry.name)) and (entry.column is not None or not entry.shape)


def prior_density(prior: Prior, entry: Entry, grid: Array) -> Array:
    """The density of one number at the points of ``grid``.

    For parameters under a common constraint it is the distribution as it was given, which ignores what the constraint
    cuts off.
    """
    if isinstance(prior, Gaussian):
        law = entry.law(prior)
        assert law is not None
        return np.asarray(law.density(grid))
    every = np.broadcast_to(grid.reshape(-1, *[1] * len(entry.shape)), (len(grid), *entry.shape))
    return entry.of({entry.name: np.asarray(prior.distributions[entry.name].pdf(every))})


def prior_draws(prior: Prior, posterior: Posterior, entries: list[Entry], n: int) -> dict[str, Array]:
    """``n`` draws of each parameter that has entries without a formula, (n, *shape).

    A parameter whose prior cannot be drawn from is left out, with a warning.
    """
    if not isinstance(prior, Gaussian | ConstrainedPrior):
        raise InvalidTypeError(
            f"prior must be a mgvbp.Gaussian, or what parameters.prior(...) returns; got {prior!r}"
        )
    if isinstance(prior, Gaussian) and prior.dim != posterior.dim:
        raise InvalidInputError(f"the prior has {prior.dim} dimensions, the posterior {posterior.dim}")
    wanted = {entry.name: entry for entry in entries if not has_formula(prior, entry)}
    if isinstance(prior, Gaussian):
        return posterior.named(prior.sample(n, rng=0)) if wanted else {}
    unknown = [name for name in wanted if not _can_be_drawn(prior.distributions.get(name))]
    if unknown:
        warn_user(
            f"the prior of {', '.join(unknown)} is left out of the picture, as the density of single entries is not "
            "known where the prior is a function, or one of single numbers under a vector constraint: give a "
            "distribution of the whole value that can be drawn from, as scipy.stats.dirichlet for a Simplex",
            MgvbpWarning,
        )
    rng = np.random.default_rng(0)
    return {
        name: np.reshape(prior.distributions[name].rvs(size=n, random_state=rng), (n, *entry.shape))
        for name, entry in wanted.items()
        if name not in unknown
    }


def _can_be_drawn(distribution: Any) -> bool:
    """Whether it is a multivariate distribution with draws of a whole value."""
    return hasattr(distribution, "rvs") and not univariate(distribution)
