r"""Draws from the posterior itself, as far as importance weights reach: sampling-importance-resampling.

Systematic resampling: of n equidistant points, shifted together at random, draw s gets those that fall into its
share :math:`w_s` of [0, 1], which are :math:`\lfloor n w_s \rfloor` or :math:`\lceil n w_s \rceil` and on average
:math:`n w_s`. Expectations are those of the weighted draws (resampling without replacement would lean towards q), and a
draw is repeated only if its weight is above 1/n: with several times n draws, few are.
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
"""Draws that are evaluated for each that is returned ..."""
LEAST_DRAWS = 1000
"""... and at least: smoothing needs a tail."""


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
        )
    chosen = systematic(smoothed.weights, n, generator)
    generator.shuffle(chosen)  # or else copies of a draw would stay together
    return np.asarray(draws.theta[chosen])


def systematic(weights: Array, n: int, rng: np.random.Generator) -> Indices:
    """``n`` indices in ascending order, each about ``n`` times its weight (S,) often.

    Examples
    --------
    >>> systematic(np.array([0.5, 0.0, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 2, 3])
    """
    shares = np.cumsum(weights)
    points = (1.0 - rng.random() + np.arange(n)) / n  # above 0: a first draw of weight 0 gets none
    return np.searchsorted(shares / shares[-1], points)
