r"""How far an approximation q is from the posterior, by importance weights of fresh draws.

With weights :math:`w = p/q` the distance is :math:`\log E_q[w] - E_q[\log w]`, log evidence minus lower bound. With
many parameters the weights are too uneven for that. Their logarithms are then nearly normal, as sums of many terms are,
and what is known half-way to the posterior gives the distance (`mgvbp.posterior.diagnostics.path`).
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp.core.distance import Distance as Distance
from mgvbp.errors import ConvergenceWarning, warn_user
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.diagnosis import MANY
from mgvbp.posterior.diagnostics.path import distance
from mgvbp.posterior.diagnostics.verdict import correctable, limit
from mgvbp.posterior.diagnostics.weights import LogDensity, apart, evaluated, pareto_smoothed


def from_weights(q: Gaussian, log_density: LogDensity, num_draws: int) -> Distance:
    """The distance of ``q``, with nan and a warning where its draws cannot tell."""
    h = evaluated(q, log_density, num_draws, apart(0)).log_weights
    smoothed = pareto_smoothed(h)
    if not np.isfinite(h).all():
        return Distance(math.inf, math.inf, -math.inf, math.inf, math.nan, math.nan)
    plain = Distance.of_weights(h)
    if correctable(smoothed.khat, smoothed.ess, num_draws):
        return plain
    half = distance(h) if q.dim > MANY else None
    if half is not None:
        kl, kl_se = half
        evidence_se = math.hypot(kl_se, plain.lower_bound_se)
        return plain._replace(
            kl=kl, kl_se=kl_se, log_evidence=plain.lower_bound + kl, log_evidence_se=evidence_se
        )
    warn_user(
        f"k-hat is {smoothed.khat:.2f}, above {limit(num_draws):.2f}: how far the approximation is from the "
        "posterior cannot be known from its draws; fit(..., family='mixture') comes nearer, posterior.mcmc() draws "
        "from the posterior itself",
        ConvergenceWarning,
    )
    nan = dict.fromkeys(("kl", "kl_se", "log_evidence", "log_evidence_se"), math.nan)
    return plain._replace(**nan)
