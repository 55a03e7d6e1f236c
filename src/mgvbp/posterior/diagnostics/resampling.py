r"""Draws from the posterior itself, as far as importance weights allow: sampling-importance-resampling.

Resampling is systematic. It takes n equidistant points of [0, 1], shifted together at random, and divides [0, 1] into
one interval of length :math:`w_s` for each draw s. Draw s is taken as often as points fall into its interval:
:math:`\lfloor n w_s \rfloor` or :math:`\lceil n w_s \rceil` times, and :math:`n w_s` times on average. Expectations
are those of the weighted draws (resampling without replacement would be biased towards q). A draw is repeated only if
its weight is above 1/n: among several times n draws, few are.
"""

from __future__ import annotations

import numpy as np

from mgvbp.core.checks import as_generator, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import ConvergenceWarning, InvalidInputError, warn_user
from mgvbp.families.base import Indices
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.verdict import correctable, limit
from mgvbp.posterior.diagnostics.weights import LogDensity, evaluated, pareto_smoothed

DRAWS_EACH = 5
"""Draws that are evaluated, by default, for each draw that is returned."""
LEAST_DRAWS = 1000
"""Fewest draws that are evaluated by default: smoothing needs a tail."""


def resample(
    q: Gaussian, log_density: LogDensity, n: int, num_draws: int | None, rng: int | np.random.Generator
) -> Array:
    """``n`` of ``num_draws`` draws from ``q``, (n, d), chosen by their smoothed weights."""
    positive_integer(n, "n")
    if num_draws is None:
        num_draws = max(LEAST_DRAWS, DRAWS_EACH * n)
    elif positive_integer(num_draws, "num_draws") < n:
        raise InvalidInputError(
            f"num_draws is {num_draws}, too few to choose {n} from: it should be several times n"
        )
    generator = as_generator(rng)
    draws = evaluated(q, log_density, num_draws, generator)
    smoothed = pareto_smoothed(draws.log_weights)
    if not correctable(smoothed.khat, smoothed.ess, num_draws):
        warn_user(
            f"k-hat is {smoothed.khat:.2f}, above {limit(num_draws):.2f}: the resampled draws may be far from the "
            "posterior; see posterior.diagnose()",
            ConvergenceWarning,
            "khat",
        )
    chosen = systematic(smoothed.weights, n, generator)
    generator.shuffle(chosen)  # otherwise copies of a draw would stand together
    return np.asarray(draws.theta[chosen])


def systematic(weights: Array, n: int, rng: np.random.Generator) -> Indices:
    """``n`` indices in ascending order; index s occurs about ``n * weights[s]`` times.

    Examples
    --------
    >>> systematic(np.array([0.5, 0.0, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 2, 3])
    """
    shares = np.cumsum(weights)
    # all points are above 0, so that a first draw of weight 0 is not taken
    points = (1.0 - rng.random() + np.arange(n)) / n
    return np.searchsorted(shares / shares[-1], points)
