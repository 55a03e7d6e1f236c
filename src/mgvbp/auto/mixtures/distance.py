r"""How far a mixture is from the posterior: few true values, with the surrogate as a control variate.

With weights :math:`w = p/q` the distance is :math:`\log E_q[w] - E_q[\log w]`. The surrogate's weights ŵ are free, so
that both expectations under ŵ are known from thousands of draws, and the true values are needed only for the
differences :math:`E_q[\log w - \log \hat w]` and :math:`E_q[w - \hat w]`, which are small where the surrogate is good.
Draws of q seldom reach mass that q misses. So the result of a search is measured by draws further out as well, with
their own weights in the second difference.
Where these cannot be computed, the plain averages of the true weights are used. Without a surrogate there are more
true values, and these alone tell the distance (`weighed`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mgvbp.auto.mixtures.exploration import candidates, log_proposal
from mgvbp.core.distance import Distance
from mgvbp.core.linalg import Array
from mgvbp.families.mixture import GaussianMixture
from mgvbp.surfaces.surrogate import Surrogate

FREE_DRAWS = 4000
"""Draws under the surrogate; their share in the errors is counted."""
HOPES = 1000
"""Those of them that also show how much mass there may be beyond the fence, which takes longer."""

MOST_HOPE = 0.2
"""Most nats that are added for mass beyond the fence; the rest of what may be there counts as error alone."""

MOST_ERROR = 0.3
"""Error of the surrogate's mass, relative to it, above which its value is not used: one far candidate makes it up."""


class Expected(NamedTuple):
    """What the surrogate says about a mixture, all that is needed once the true values are there."""

    bound: float
    bound_error: float
    """Standard error."""
    log_mass: float
    """The logarithm of the integral: between what is within the fence and what the surrogate expects."""
    mass_error: float
    """Error of that: half the distance of the two, and the relative standard error of the integral."""
    log_weights: Array
    """``log ŵ`` at the draws whose true values were asked for, (n,)."""
    log_shares: Array
    """Logarithms of the density of q there divided by that of what they came from, (n,)."""
    own: int
    """How many of them are draws of q; they are the last."""


def expected(
    surrogate: Surrogate,
    mixture: GaussianMixture,
    fresh: Array,
    rng: np.random.Generator,
    *,
    measures: bool = False,
) -> Expected:
    """What the surrogate says about the mixture and ``fresh`` draws (n, d), of the mixture or of `measuring`."""
    x = mixture.sample(FREE_DRAWS, rng)
    h = surrogate.cautious(x) - mixture.log_density_at(x)
    if measures:
        pool = measuring(mixture, FREE_DRAWS, rng)
        proposal = log_measuring(mixture, pool, mixture.log_density_at(pool))
    else:
        pool = candidates(mixture, FREE_DRAWS, rng)
        proposal = log_proposal(mixture, pool)
    within = surrogate.cautious(pool) - proposal
    mass = float(logsumexp(within)) - math.log(len(pool))
    error = float(np.exp(within - mass).std(ddof=1)) / math.sqrt(len(pool))
    some = slice(None, None, len(pool) // HOPES)
    hoped = logsumexp(surrogate.hopeful(pool[some]) - proposal[some])
    more = max(0.0, float(hoped - logsumexp(within[some])))
    log_q = mixture.log_density_at(fresh)
    return Expected(
        float(h.mean()),
        float(h.std(ddof=1)) / math.sqrt(len(h)),
        mass + min(0.5 * more, MOST_HOPE),
        math.hypot(error, 0.5 * more),
        surrogate.cautious(fresh) - log_q,
        log_q - log_measuring(mixture, fresh, log_q) if measures else np.zeros(len(fresh)),
        len(fresh) - len(fresh) // 2 if measures else len(fresh),
    )


def log_mass(surrogate: Surrogate, mixture: GaussianMixture, rng: np.random.Generator) -> float:
    """The logarithm of the integral within the fence, by candidates around the mixture."""
    pool = candidates(mixture, FREE_DRAWS, rng)
    terms = surrogate.cautious(pool) - log_proposal(mixture, pool)
    return float(logsumexp(terms)) - math.log(len(pool))


def measured(known: Expected, log_weights: Array) -> Distance:
    """The distance, given the true ``log_weights`` (n,) at the fresh draws; −inf where the density is zero."""
    told, own = known.log_weights, slice(len(log_weights) - known.own, None)
    if not np.isfinite(log_weights[own]).all():
        return Distance(math.inf, math.inf, -math.inf, math.inf, math.nan, math.inf, math.inf)
    errors = log_weights - told
    expected = told + known.log_shares - known.log_mass
    with np.errstate(over="ignore", invalid="ignore"):
        change = np.exp(expected) * np.expm1(np.minimum(errors, 1.0))
        far = errors > 1.0  # where the first factor may be 0 and the second infinite
        change[far] = np.exp(expected[far] + errors[far]) - np.exp(expected[far])
    mass = 1.0 + float(change.mean())
    errors = errors[own]
    misfit = 0.5 * float(errors.var(ddof=1))
    plain = _by_weights(log_weights, known.log_shares, known.own)._replace(misfit=misfit)
    if known.own == len(log_weights):  # draws of q alone show little of what lies further out
        plain = plain.uncertain(known.mass_error)
    if not (np.isfinite(change).all() and mass > 0.0):
        return plain
    if known.mass_error > MOST_ERROR:  # then the mass that the draws show is all that is known
        return plain
    # what each draw adds to either logarithm; where all are draws of q and the weights near 1, both nearly cancel
    of_mass, of_bound = (change + 1.0 - mass) / (mass * len(change)), np.zeros(len(change))
    of_bound[own] = (errors - errors.mean()) / known.own
    log_evidence, bound = known.log_mass + math.log(mass), known.bound + float(errors.mean())
    evidence_se = math.hypot(float(np.linalg.norm(of_mass)), known.mass_error)
    bound_se = math.hypot(float(np.linalg.norm(of_bound)), known.bound_error)
    joint = float(np.linalg.norm(of_mass - of_bound))
    kl_se = math.sqrt(joint**2 + known.mass_error**2 + known.bound_error**2)
    kl = max(log_evidence - bound, 0.0)
    controlled = Distance(kl, kl_se, bound, bound_se, log_evidence, evidence_se, misfit)
    surer, other = sorted((controlled, plain), key=lambda distance: distance.kl_se)
    return surer._replace(kl_se=math.hypot(surer.kl_se, surer.kl - other.kl))


def measuring(mixture: GaussianMixture, n: int, rng: np.random.Generator) -> Array:
    """``n`` draws to measure a mixture, (n, d): the second half are its own.

    Draws of q seldom reach mass that q misses, which lies beyond its outer and lighter Gaussians. So the first half are
    `candidates` around all of its Gaussians with equal weights.
    """
    return np.concatenate([candidates(_even(mixture), n // 2, rng), mixture.sample(n - n // 2, rng)])


def log_measuring(mixture: GaussianMixture, x: Array, log_q: Array) -> Array:
    """The log density of `measuring` at x (n, d), given that of the mixture, (n,)."""
    return np.asarray(np.logaddexp(log_q, log_proposal(_even(mixture), x)) - math.log(2.0))


def weighed(mixture: GaussianMixture, x: Array, values: Array) -> Distance:
    """The distance by importance weights alone, given the true log density (n,) at the draws of `measuring` (n, d).

    All of them tell the evidence, and the mixture's own the bound. By the same draws the mass of q, which is 1, is
    estimated too; the ratio of both has less noise than either. The largest share of a draw in the evidence counts as
    error: there may be more where it came from.
    """
    log_q = mixture.log_density_at(x)
    return _by_weights(values - log_q, log_q - log_measuring(mixture, x, log_q), len(x) - len(x) // 2)


def _by_weights(log_weights: Array, log_shares: Array, own: int) -> Distance:
    """The same, given the logarithms of the weights p/q (n,), of the shares as `Expected` has them, and ``own``."""
    gains = log_weights[len(log_weights) - own :]
    if not np.isfinite(gains).all():
        return Distance(math.inf, math.inf, -math.inf, math.inf, math.nan, math.inf, math.inf)
    bound, bound_se = float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(len(gains))
    log_w = log_weights + log_shares
    log_evidence = float(logsumexp(log_w) - logsumexp(log_shares))
    shares = np.exp(log_w - logsumexp(log_w))
    parts = shares - np.exp(log_shares - logsumexp(log_shares))
    evidence_se = math.hypot(float(np.linalg.norm(parts)), float(shares.max()))
    parts[len(parts) - own :] -= (gains - bound) / own
    kl_se = math.hypot(float(np.linalg.norm(parts)), float(shares.max()))
    return Distance(max(log_evidence - bound, 0.0), kl_se, bound, bound_se, log_evidence, evidence_se)


def _even(mixture: GaussianMixture) -> GaussianMixture:
    """The mixture with equal weights."""
    return GaussianMixture(np.ones(mixture.components), mixture.means, mixture.factors)
