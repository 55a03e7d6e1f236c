r"""How far an approximation q is from the posterior, by importance weights.

With weights :math:`w = p/q` the distance is :math:`\log E_q[w] - E_q[\log w]`, log evidence minus lower bound. The
bound is the average over fresh draws of q. These seldom reach tails that q is too narrow for, nor another mode, so that
the evidence takes all draws together, with those further out and those of the fit (`pool`). By the same draws the mass
of q, which is 1, is estimated too; the ratio of both has less noise than either. With many parameters the weights are
too uneven for that. Their logarithms are then nearly normal, as sums of many terms are, and what is known half-way to
the posterior gives the distance (`path`). Draws moved out along the line of each parameter (`lines`) add what its tails
change. Where that is much, or where all parameters have a tail in common, the distance is not known.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp, softmax

from mgvbp.core.distance import Distance as Distance
from mgvbp.errors import ConvergenceWarning, warn_user
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.diagnosing import HOPELESS, MANY, SPREAD, affordable, further_out, outer
from mgvbp.posterior.diagnostics.lines import along_lines
from mgvbp.posterior.diagnostics.path import CONVERGES, distance
from mgvbp.posterior.diagnostics.pool import pooled
from mgvbp.posterior.diagnostics.verdict import CLOSE, correctable, limit
from mgvbp.posterior.diagnostics.weights import LogDensity, apart, beyond, evaluated, pareto_smoothed
from mgvbp.surfaces.archive import Archive

STEEPEST = 0.8
"""Largest shape of the tail of all draws together: those further out, and those of the fit, bound their weights."""
VAGUE = 1.0
"""Error, in nats, from which on a distance is not known."""
FEWEST = 20.0
"""Fewest effective draws of a fit that give a rough distance."""


def rough(q: Gaussian, archive: Archive | None) -> float | None:
    """The distance of ``q`` by the draws of its fit alone, in nats; None if they are too few or have noise.

    They carry the weight of q among all Gaussians that they came from. What lies beyond all of them is missing from the
    evidence, so that the distance comes out too small, by a fifth in the median of `benchmarks/mixtures.py`.
    """
    if archive is None or archive.noise or not len(archive.values):
        return None
    view = archive.view(q)
    if view.size < FEWEST:
        return None
    some = view.weights > 0.0
    weights, h = view.weights[some] / view.weights[some].sum(), archive.values[some] - view.log_q[some]
    return max(float(logsumexp(h, b=weights) - weights @ h), 0.0)


def from_weights(
    q: Gaussian, log_density: LogDensity, evaluations: int, archive: Archive | None = None
) -> Distance:
    """The distance of ``q``, with nan and a warning where draws cannot tell.

    It takes half as many ``evaluations`` as the fit did, which has left its draws in the ``archive``.
    """
    rng, num_draws, many = apart(0), affordable(evaluations, q.dim), q.dim > MANY
    draws = evaluated(q, log_density, num_draws, rng, gradients=many)
    h = draws.log_weights
    if not np.isfinite(h).all():
        return Distance(math.inf, math.inf, -math.inf, math.inf, math.nan, math.nan)
    plain = Distance.of_weights(h)
    why = ""
    if many:
        smoothed = pareto_smoothed(h)
        by_weights = plain.kl, math.hypot(plain.kl_se, beyond(h, smoothed.khat + smoothed.khat_se))
        usable = correctable(smoothed.khat, smoothed.ess, num_draws)
        by_path = None if usable else distance(h, smoothed)
        found = by_path or by_weights
        lines = along_lines(q, draws, log_density, outer(num_draws), rng)
        unseen = 0.0 if lines is None else lines.profiles.unseen
        if lines is not None and lines.spread > SPREAD:
            why = "the lengths of its draws vary far more than those of the approximation"
        elif abs(unseen) > max(CONVERGES * found[0], CLOSE):
            why = f"tails of single parameters that its draws do not reach change the distance by {unseen:.2g} nats"
        elif found[1] < VAGUE:
            kl = found[0] + (unseen if by_path else 0.0)
            return _with_evidence(plain, plain.lower_bound + kl, math.hypot(found[1], unseen))
    else:
        pool = pooled(q, draws, further_out(q, log_density, num_draws, rng), archive)
        num_draws = len(pool.theta)
        smoothed = pareto_smoothed(pool.log_weights)
        if smoothed.khat <= HOPELESS:
            log_evidence = float(logsumexp(pool.log_weights) - logsumexp(pool.log_q - pool.log_mixture))
            noise = 0.0 if archive is None else archive.noise  # of the values, whose exponentials it raises
            shape = min(smoothed.khat + smoothed.khat_se, STEEPEST)
            spread = np.linalg.norm(softmax(pool.log_weights) - pool.weights_of_q)
            error = math.hypot(spread, beyond(pool.log_weights, shape))
            return _with_evidence(plain, log_evidence - 0.5 * noise**2, error)
    most = limit(num_draws) if many else HOPELESS
    return unknown(
        f"{why or f'k-hat is {smoothed.khat:.2f}, above {most:.2f}'}: how far the approximation is from the "
        "posterior cannot be known from its draws; fit(..., family='mixture') comes nearer, posterior.mcmc() draws "
        "from the posterior itself",
        plain.lower_bound,
        plain.lower_bound_se,
    )


def unknown(warning: str, bound: float = math.nan, bound_se: float = math.nan) -> Distance:
    """A distance that is not known, with a warning that says why."""
    warn_user(warning, ConvergenceWarning, "distance-unknown")
    return Distance(math.nan, math.nan, bound, bound_se, math.nan, math.nan)


def _with_evidence(plain: Distance, log_evidence: float, error: float) -> Distance:
    """The distance with another estimate of the evidence."""
    return plain._replace(
        kl=max(log_evidence - plain.lower_bound, 0.0),
        kl_se=math.hypot(error, plain.lower_bound_se),
        log_evidence=log_evidence,
        log_evidence_se=error,
    )
