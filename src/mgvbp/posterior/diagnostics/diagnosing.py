"""`diagnose`: fresh draws from an approximation, further out too, and what they say about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp, softmax

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.certificate import UNKNOWN, certify
from mgvbp.posterior.diagnostics.condition import condition
from mgvbp.posterior.diagnostics.diagnosis import Diagnosis
from mgvbp.posterior.diagnostics.lines import Lines, along_lines
from mgvbp.posterior.diagnostics.marginals import Marginals, by_weights
from mgvbp.posterior.diagnostics.outer import MOST, PER_DRAW, Outer
from mgvbp.posterior.diagnostics.path import UNLIKELY, by_path, by_profiles
from mgvbp.posterior.diagnostics.pool import Outside, Pool, pooled
from mgvbp.posterior.diagnostics.predicted import by_surrogate
from mgvbp.posterior.diagnostics.verdict import ERRORS, TOLERANCE, correctable
from mgvbp.posterior.diagnostics.weights import (
    LogDensity,
    Smoothed,
    apart,
    beyond,
    evaluated,
    evaluated_outside,
    pareto_smoothed,
)
from mgvbp.surfaces.archive import Archive

if TYPE_CHECKING:
    from mgvbp.posterior.approximation import Approximation

BUDGET = (100, 1000)
"""Fewest and most evaluations of a diagnosis by default."""
MANY = 20
"""With more parameters than this weights are uneven even where every marginal is right: what `lines` and `path` say
counts then, and gradients are evaluated with the draws. With fewer, weights that fail tell of a tail."""

HOPELESS = 1.0
"""With a k-hat of all draws together above this, q misses much of the mass: where q has draws, their weights are
bounded."""

SPREAD = 4.0
"""The variance of the length of a draw in the frame of q, divided by that of draws of q itself, above which nothing
is known about many parameters. Their scales are then uncertain together, as those of a multivariate t are, and no
line of a single parameter shows it. A t with ten degrees of freedom and 30 parameters, whose standard deviations are
12% too small, has about this value."""

OBLIQUE = 0.01
"""Nats of the distance, for each of many parameters, that no line of a parameter explains. Above this nothing is
known although every line looks right: there are tails in directions that mix the parameters. Independent t variables
that are turned have 0.013 with four degrees of freedom, and 0.004 with ten."""

FINE = 0.1 * TOLERANCE
"""Errors of the weights below which no surrogate is needed ..."""
PLENTY = 5000
"""... nor with so many draws, of which it could hold a fifth."""

MISSED = 0.08
"""With a larger share of the weight on draws that hardly came from q, q misses much of the mass. Other modes have 0.1
and more there; heavy tails of Student's t with three degrees of freedom have 0.06 at most."""


def diagnose(
    q: Approximation,
    log_density: LogDensity,
    num_draws: int,
    rng: int | np.random.Generator,
    labels: Sequence[str],
    below: tuple[float, ...] | None = None,
    cost: int | None = None,
    *,
    archive: Archive | None = None,
    farthest: float | None = None,
    missed: bool = False,
) -> Diagnosis:
    """Evaluate ``log_density`` (log prior + log-likelihood) at ``num_draws`` draws from ``q``.

    ``archive`` has the draws of the fit, evaluated by the same function; ``farthest`` is about a mixture. ``missed``
    tells that the fit has met mass, or tails that do not fall, where no draw of q comes.
    """
    generator, many, gaussian = apart(rng), q.dim > MANY, q.mixture is None
    draws = evaluated(q, log_density, num_draws, generator, gradients=many and gaussian)
    far = None if many else further_out(q, log_density, num_draws, generator)
    lines = None
    if many and gaussian:
        lines = along_lines(q, draws, log_density, outer(num_draws), generator)
    h = draws.log_weights
    smoothed = pareto_smoothed(h)
    outside = int(np.count_nonzero(np.isneginf(h)))
    gap, gap_se = certify(q, draws, archive) if gaussian else UNKNOWN
    pool = pooled(q, draws, far, archive)
    known, elsewhere, marginals = _marginals(q, pool, gaussian=gaussian, lines=lines)
    exact = archive is None or not archive.noise
    if exact and not many and marginals.typical_error > FINE and len(pool.theta) < PLENTY:
        marginals = _surer(marginals, by_surrogate(q, pool, generator))
    ratio = np.exp(marginals.log_ratio)
    return Diagnosis(
        elbo=float(h.mean()),
        elbo_se=np.inf if outside else float(h.std(ddof=1) / np.sqrt(num_draws)),
        khat=smoothed.khat,
        khat_se=smoothed.khat_se,
        log_evidence=float(logsumexp(h) - np.log(num_draws)),
        log_evidence_se=_evidence_error(h, smoothed),
        ess=smoothed.ess,
        mean_shift=marginals.shift,
        sd_ratio=ratio,
        mean_shift_se=marginals.shift_se,
        sd_ratio_se=ratio * marginals.log_ratio_se,
        known=known,
        missed=missed or elsewhere,
        reused=0 if archive is None else len(archive.theta),
        n_evaluations=num_draws + (len(far.theta) if far else 0) + (lines.n_evaluations if lines else 0),
        gap=gap,
        gap_se=gap_se,
        condition=condition(q),
        outside=outside,
        family=q.family.name if gaussian else "mixture",
        labels=tuple(labels),
        log_weights=h,
        below=below,
        cost=cost,
        farthest=farthest,
    )


def _surer(one: Marginals, other: Marginals | None) -> Marginals:
    """Those with the smaller error."""
    return other if other is not None and other.typical_error < one.typical_error else one


def _evidence_error(h: Array, smoothed: Smoothed) -> float:
    """The standard error of the log evidence by log weights (S,), as far as their tail is known; else inf.

    To the spread of the mean it adds the part that lies beyond all draws. k-hat is taken one standard error too large.
    """
    shares = softmax(h)
    spread = float(np.linalg.norm(shares - shares.mean()))
    return math.hypot(spread, beyond(h, smoothed.khat + smoothed.khat_se))


def _unexplained(pool: Pool, lines: Lines) -> float:
    """Nats of the distance, to second order half the variance of h, that the profiles of the parameters do not have."""
    h = (pool.log_p - pool.log_q)[-pool.fresh :]
    inside = h[np.isfinite(h)]
    return 0.5 * float(inside.var()) - sum(each.kl for each in lines.profiles.moments)


def affordable(evaluations: int, dim: int) -> int:
    """Draws of q such that all of a diagnosis takes half as many evaluations as the fit, and 100 to 1,000.

    If it is not known what the fit took, ``evaluations`` is 0, and 1,000 draws are made.
    """
    if not evaluations:
        return BUDGET[1]
    total = int(np.clip(evaluations // 2, *BUDGET))
    return round(total / (1.0 + PER_DRAW))


def outer(num_draws: int) -> int:
    """How many draws are made further out, beside so many of q."""
    return int(min(MOST, PER_DRAW * num_draws))


def further_out(
    q: Gaussian, log_density: LogDensity, num_draws: int, rng: np.random.Generator
) -> Outside | None:
    """Outer draws in proportion to ``num_draws``, as many for each parameter; None where the function fails there."""
    source = Outer(q)
    each = max(1, outer(num_draws) // q.dim)
    theta = source.sample(each * q.dim, rng)
    found = evaluated_outside(log_density, theta)
    return None if found is None else Outside(theta, found[0], source)


def _marginals(
    q: Gaussian, pool: Pool, *, gaussian: bool, lines: Lines | None
) -> tuple[bool, bool, Marginals]:
    """Whether the marginals are known, whether q misses much of the mass, and what is known best about them."""
    # smoothing would shrink the weights of the few draws that have met a tail; it is here for k-hat
    smoothed, weights = pareto_smoothed(pool.log_weights), softmax(pool.log_weights)
    weighted = by_weights(q, pool, weights)
    usable = correctable(smoothed.khat, smoothed.ess, len(pool.theta))
    if q.dim > MANY:
        half = by_path(q, pool, weights, stein=gaussian, profiles=lines and lines.profiles)
        shared = lines is not None and lines.spread > SPREAD
        # weights of draws of q alone know nothing of tails further out, and cannot correct what all have in common
        better = lines is not None or not usable
        if half is not None and (better or half.typical_error < weighted.typical_error):
            far = lines is not None and _unexplained(pool, lines) > OBLIQUE * q.dim
            oblique = far and bool((half.off(ERRORS) <= TOLERANCE).all())
            return not (shared or oblique), shared, half
        if lines is not None:
            return usable and not shared, shared, weighted.or_farther(by_profiles(lines.profiles))
    foreign = float(weights[pool.share_of_q < UNLIKELY].sum())
    missed = q.dim <= MANY and (smoothed.khat > HOPELESS or foreign > MISSED)
    return usable, missed, weighted
