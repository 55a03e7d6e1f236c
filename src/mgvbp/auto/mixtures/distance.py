r"""How far a mixture is from the posterior: few true values, with the surrogate as a control variate.

With weights :math:`w = p/q` the distance is :math:`\log E_q[w] - E_q[\log w]`. The surrogate's weights ŵ are free, so
that both expectations under ŵ are known from thousands of draws, and the true values are needed only for the
differences :math:`E_q[\log w - \log \hat w]` and :math:`E_q[w - \hat w]`, which are small where the surrogate is good.
Where these cannot be computed, or where there is no surrogate, the averages of the true weights are used.

Draws of q seldom reach tails that q is too narrow for. So the last word about the evidence have `candidates`, half of
which are draws of q and half are stretched; that about the bound have the former alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mgvbp.auto.mixtures.exploration import candidates, log_proposal
from mgvbp.auto.mixtures.surrogate import Surrogate
from mgvbp.core.distance import Distance
from mgvbp.core.linalg import Array
from mgvbp.families.mixture import GaussianMixture

FREE_DRAWS = 4000
"""Draws under the surrogate; their share in the errors is counted."""
HOPES = 1000
"""Those of them that also show how much mass there may be beyond the fence, which takes longer."""

MOST_HOPE = 0.2
"""Most nats that are added for mass beyond the fence; the rest of what may be there counts as error alone."""

MOST_ERROR = 0.3
"""Error of the surrogate's mass, relative to it, above which its value is not used: one far candidate makes it up."""


SURPRISING = 1.5
"""Errors by which the evidence must be higher with candidates further out, or else these are not heard."""


class Expected(NamedTuple):
    """What the surrogate says about a mixture, all that is needed once the true values are there."""

    bound: float
    bound_error: float
    """Standard error."""
    log_mass: float
    """The logarithm of the integral: between what is within the fence and what the surrogate expects."""
    mass_error: float
    """Error of that: half the distance of the two, and the relative standard error of the integral."""
    told: Array
    """The surrogate's log density at the draws whose true values were asked for, (n,)."""


def expected(
    surrogate: Surrogate, mixture: GaussianMixture, fresh: Array, rng: np.random.Generator
) -> Expected:
    """What the surrogate says about the mixture and its ``fresh`` draws (n, d)."""
    x = mixture.sample(FREE_DRAWS, rng)
    h = surrogate.cautious(x) - mixture.log_density_at(x)
    pool = candidates(mixture, FREE_DRAWS, rng)
    proposal = log_proposal(mixture, pool)
    within = surrogate.cautious(pool) - proposal
    mass = float(logsumexp(within)) - math.log(len(pool))
    error = float(np.exp(within - mass).std(ddof=1)) / math.sqrt(len(pool))
    some = slice(None, None, len(pool) // HOPES)
    hoped = logsumexp(surrogate.hopeful(pool[some]) - proposal[some])
    more = max(0.0, float(hoped - logsumexp(within[some])))
    return Expected(
        float(h.mean()),
        float(h.std(ddof=1)) / math.sqrt(len(h)),
        mass + min(0.5 * more, MOST_HOPE),
        math.hypot(error, 0.5 * more),
        surrogate.cautious(fresh),
    )


def log_mass(surrogate: Surrogate, mixture: GaussianMixture, rng: np.random.Generator) -> float:
    """The logarithm of the integral within the fence, by candidates around the mixture."""
    pool = candidates(mixture, FREE_DRAWS, rng)
    terms = surrogate.cautious(pool) - log_proposal(mixture, pool)
    return float(logsumexp(terms)) - math.log(len(pool))


class Sample(NamedTuple):
    """Draws of a mixture, or candidates around it, that measure it."""

    x: Array
    """(n, d)."""
    own: Array
    """Which of them are draws of the mixture itself, (n,)."""

    @classmethod
    def of(cls, mixture: GaussianMixture, n: int, rng: np.random.Generator) -> Sample:
        """``n`` draws of the mixture."""
        return cls(mixture.sample(n, rng), np.ones(n, dtype=bool))

    @classmethod
    def around(cls, mixture: GaussianMixture, n: int, rng: np.random.Generator) -> Sample:
        """``n`` candidates, the second half of which are draws of the mixture."""
        return cls(candidates(mixture, n, rng), np.arange(n) >= n // 2)

    def log_proposal(self, mixture: GaussianMixture) -> Array:
        """The log density that they were drawn from, (n,)."""
        return mixture.log_density_at(self.x) if self.own.all() else log_proposal(mixture, self.x)


def measured(mixture: GaussianMixture, sample: Sample, values: Array, known: Expected | None) -> Distance:
    """The distance, given the true log density (n,) at the sample; −inf where the density is zero."""
    log_q, log_p, own = mixture.log_density_at(sample.x), sample.log_proposal(mixture), sample.own
    if not np.isfinite(values[own]).all():
        return Distance(math.inf, math.inf, -math.inf, math.inf, math.nan, math.inf, math.inf)
    if known is None:
        return _weighed(values, log_q, log_p, own)
    distance = _corrected(values[own], known.told[own], log_q[own], log_q[own], own[own], known)
    if own.all():
        return distance
    # candidates further out are few, and what they say has a large error: they are heard where they found more mass
    wider = _corrected(values, known.told, log_q, log_p, own, known)
    more = wider.log_evidence - distance.log_evidence
    error = math.hypot(wider.log_evidence_se, distance.log_evidence_se)
    return wider if more > SURPRISING * error and wider.log_evidence_se < 0.5 * MOST_ERROR else distance


def _corrected(
    values: Array, told: Array, log_q: Array, log_p: Array, own: Array, known: Expected
) -> Distance:
    """The distance by what the surrogate has ``told``, corrected by the true ``values`` (n,)."""
    n, errors = len(values), (values - told)[own]
    with np.errstate(over="ignore"):
        change = np.exp(values - log_p - known.log_mass) - np.exp(told - log_p - known.log_mass)
    mass = 1.0 + float(change.mean())
    misfit = 0.5 * float(errors.var(ddof=1))
    plain = _weighed(values, log_q, log_p, own)._replace(misfit=misfit)
    if not (np.isfinite(change).all() and mass > 0.0):
        return plain
    if known.mass_error > MOST_ERROR:  # then the mass that the draws show is all that is known
        return plain._replace(kl_se=math.hypot(plain.kl_se, known.mass_error))
    log_evidence = known.log_mass + math.log(mass)
    evidence_se = math.hypot(float(change.std(ddof=1)) / mass / math.sqrt(n), known.mass_error)
    bound = known.bound + float(errors.mean())
    bound_se = math.hypot(float(errors.std(ddof=1)) / math.sqrt(len(errors)), known.bound_error)
    # errors of both, which partly cancel: where the weights are near 1, so does ŵ(eʳ − 1) equal r
    parts = change / mass
    parts[own] -= errors * (n / len(errors))
    kl_se = math.sqrt(float(parts.var(ddof=1)) / n + known.mass_error**2 + known.bound_error**2)
    kl = max(log_evidence - bound, 0.0)
    return Distance(kl, kl_se, bound, bound_se, log_evidence, evidence_se, misfit)


def _weighed(values: Array, log_q: Array, log_p: Array, own: Array) -> Distance:
    """The distance by importance weights alone, given the log densities of the target, of q and of the proposal (n,).

    By the same draws the mass of q, which is 1, is estimated too; the ratio of both has less noise than either. The
    largest share of a draw in the evidence counts as error: there may be more where it came from.
    """
    n, gains = len(values), (values - log_q)[own]
    bound, bound_se = float(gains.mean()), float(gains.std(ddof=1)) / math.sqrt(len(gains))
    log_w, log_u = values - log_p, log_q - log_p
    log_evidence = float(logsumexp(log_w) - logsumexp(log_u))
    parts = np.exp(log_w - logsumexp(log_w)) - np.exp(log_u - logsumexp(log_u))
    largest = float(np.exp(log_w.max() - logsumexp(log_w)))
    evidence_se = math.hypot(float(np.linalg.norm(parts)), largest)
    parts[own] -= (gains - bound) / len(gains)
    kl_se = math.hypot(float(np.linalg.norm(parts)), largest)
    kl = max(log_evidence - bound, 0.0)
    return Distance(kl, kl_se, bound, bound_se, log_evidence, evidence_se)
