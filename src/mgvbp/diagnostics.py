"""How good is it? Importance weights of fresh draws from the approximation tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mgvbp._linalg import Array
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.gaussian import Gaussian

LogDensity = Callable[[Array], Array]


class Diagnosis(NamedTuple):
    """Estimates from fresh draws."""

    elbo: float
    """The lower bound, unbiased."""
    elbo_se: float
    khat: float
    """Pareto shape of the importance weights: below 0.7 the approximation can be corrected by weighting."""
    log_evidence: float
    """Importance-sampling estimate of the log marginal likelihood."""
    log_evidence_se: float


def diagnose(
    q: Gaussian, log_density: LogDensity, num_draws: int, rng: int | np.random.Generator
) -> Diagnosis:
    """Evaluate ``log_density`` (log prior + log-likelihood) at ``num_draws`` draws from ``q``."""
    if num_draws < 25:
        raise InvalidInputError(f"num_draws must be at least 25 for the Pareto fit; got {num_draws}")
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    theta = q.sample(num_draws, rng)
    h = log_density(theta) - q.log_density(theta)
    if np.isnan(h).any() or np.isposinf(h).any() or np.isneginf(h).all():
        raise DivergenceError("the log density is nan or infinite at draws from the approximation", theta)
    weights = np.exp(h - h.max())
    _, khat = array_stats.psislw(h)  # type: ignore[no-untyped-call]
    return Diagnosis(
        elbo=float(h.mean()),
        elbo_se=float(h.std(ddof=1) / np.sqrt(num_draws)) if np.isfinite(h).all() else np.inf,
        khat=float(khat),
        log_evidence=float(logsumexp(h) - np.log(num_draws)),
        log_evidence_se=float(weights.std(ddof=1) / weights.mean() / np.sqrt(num_draws)),
    )
