"""How good is it? Importance weights of fresh draws from the approximation tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from mgvbp._linalg import Array
from mgvbp.checks import positive_integer
from mgvbp.errors import DivergenceError, InvalidTypeError
from mgvbp.gaussian import Gaussian
from mgvbp.problem import checked_values

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
    positive_integer(num_draws, "num_draws", least=25)
    if not callable(log_density):
        raise InvalidTypeError(f"log_density must be a function of an (S, d) array; got {log_density!r}")
    theta = q.sample(num_draws, rng)
    log_q = q.log_density(theta)
    h = checked_values(log_density(theta.copy()), theta, "log_density") - log_q
    if np.isnan(h).any() or np.isposinf(h).any() or np.isneginf(h).all():
        raise DivergenceError("the log density is nan or infinite at draws from the approximation", theta)
    weights = np.exp(h - h.max())
    return Diagnosis(
        elbo=float(h.mean()),
        elbo_se=float(h.std(ddof=1) / np.sqrt(num_draws)) if np.isfinite(h).all() else np.inf,
        khat=_pareto_shape(h),
        log_evidence=float(logsumexp(h) - np.log(num_draws)),
        log_evidence_se=float(weights.std(ddof=1) / weights.mean() / np.sqrt(num_draws)),
    )


def _pareto_shape(log_weights: Array) -> float:
    """PSIS k-hat of the weights; −inf where the largest are all equal, which is as light as a tail can be."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    finite = log_weights[np.isfinite(log_weights)]
    largest = np.sort(finite)[-max(5, len(finite) // 5) :]
    if largest[-1] - largest[0] < 1e-9:
        return -np.inf
    _, khat = array_stats.psislw(-finite)  # type: ignore[no-untyped-call]  # it takes minus the log weights
    return float(khat)
