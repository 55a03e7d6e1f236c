"""Zeros in the precision of the best Gaussian, found before a fit.

The precision of the best Gaussian is minus the expected Hessian of the log density. So it is zero where the Hessian is:
with many parameters, of which each depends on few others, as in time series and hierarchies, the search for a
`SparsePrecision` finds the same Gaussian as that for a full covariance, in a small part of the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.auto import uses_gradient
from mgvbp.families import Diagonal, SparsePrecision
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.patterns import probed
from mgvbp.methods.optimizer import STREAM, initial_frame
from mgvbp.problem.problem import Problem

ABOVE = 100
"""Parameters beyond which zeros are looked for. Below, a full covariance is a matter of seconds."""
SPARSE = 0.2
"""Largest share of the entries of a full precision that a sparse one may have: with many more it saves no time."""
POINTS = 3
"""Draws of the initial Gaussian at which the Hessian is looked at: what is zero at all of them is taken for zero."""


def sparse_family(
    problem: Problem, initial_mean: ArrayLike | None, initial_variance: ArrayLike | None, key: tuple[int, ...]
) -> SparsePrecision | None:
    """The family with the pattern of the Hessian, if the log density is known to JAX and most of its entries are zero.

    The pattern of the prior has to be known too, so that it must be a Gaussian of independent parameters, or a part of
    the function.
    """
    function, prior, d = problem.log_likelihood, problem.prior, problem.dim
    traced = getattr(function, "traced", None)
    if traced is None or d <= ABOVE or not uses_gradient(problem):
        return None
    if initial_variance is not None and np.ndim(initial_variance) > 1:
        return None
    if prior is not None and not (isinstance(prior, Gaussian) and isinstance(prior.family, Diagonal)):
        return None
    mean, factor, *_ = initial_frame(Diagonal(d), prior, initial_mean, initial_variance)
    first = Gaussian.from_factor(mean, factor, Diagonal(d))
    edges = probed(traced, first.sample(POINTS, np.random.default_rng((*key, STREAM))), most=SPARSE)
    if edges is None:
        return None
    family = SparsePrecision.from_edges(d, edges)
    return family if family.num_entries <= SPARSE * d**2 else None
