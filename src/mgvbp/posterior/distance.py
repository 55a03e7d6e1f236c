r"""How far an approximation q is from the posterior, by importance weights of fresh draws.

With weights :math:`w = p/q` the distance is :math:`\log E_q[w] - E_q[\log w]`, log evidence minus lower bound.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core.distance import Distance as Distance
from mgvbp.errors import ConvergenceWarning, warn_user
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.verdict import correctable, limit
from mgvbp.posterior.diagnostics.weights import LogDensity, evaluated, pareto_smoothed


def from_weights(q: Gaussian, log_density: LogDensity, num_draws: int) -> Distance:
    """The distance of ``q``, with nan and a warning where its weights are too uneven to tell."""
    draws = evaluated(q, log_density, num_draws, 0)
    h = draws.log_weights
    smoothed = pareto_smoothed(h)
    if not np.isfinite(h).all():
        return Distance(math.inf, math.inf, -math.inf, math.inf, math.nan, math.nan)
    if not correctable(smoothed.khat, smoothed.ess, num_draws):
        warn_user(
            f"k-hat is {smoothed.khat:.2f}, above {limit(num_draws):.2f}: how far the approximation is from the "
            "posterior cannot be known from its draws; fit(..., family='mixture') comes nearer, posterior.mcmc() draws "
            "from the posterior itself",
            ConvergenceWarning,
        )
        nan = dict.fromkeys(("kl", "kl_se", "log_evidence", "log_evidence_se"), math.nan)
        return Distance.of_weights(h)._replace(**nan)
    return Distance.of_weights(h)
