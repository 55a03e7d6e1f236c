r"""Fresh draws of q together with outer ones, and with those that the fit has evaluated on its way.

The fit's draws came from other Gaussians, wider ones and such that were elsewhere. Draws of q alone seldom reach the
tails of a posterior that q is too narrow for, nor another mode. All draws together count as one sample of the mixture
of all that was drawn from, :math:`m = \sum_k n_k q_k` (the balance heuristic), with weights p/m for the posterior and
q/m for q itself. So the fit's draws cost nothing, and show what draws of q alone would miss.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.outer import Outer
from mgvbp.posterior.diagnostics.weights import Evaluated
from mgvbp.surfaces.archive import Archive

MOST_NUMBERS = 4_000_000
"""A posterior keeps the draws of its fit if they and the Gaussians behind them have at most so many numbers (32 MB)."""


class Pool(NamedTuple):
    """Draws of several Gaussians, one of which is q."""

    theta: Array
    """(N, d)"""
    log_p: Array
    """The log density of the target, (N,), which may be −inf."""
    log_q: Array
    """(N,)"""
    log_mixture: Array
    """The logarithm of Σ n_k q_k, (N,), up to a constant."""
    gradients: Array | None
    """Gradients of log p, (N, d), if all draws have them."""
    fresh: int
    """How many of the draws are fresh ones of q; they are the last."""

    @property
    def log_weights(self) -> Array:
        """Logarithms of the weights p/m, (N,)."""
        return self.log_p - self.log_mixture

    @property
    def weights_of_q(self) -> Array:
        """Weights q/m, (N,), which add up to 1."""
        return np.asarray(softmax(self.log_q - self.log_mixture))

    @property
    def share_of_q(self) -> Array:
        """The probability of each draw to be one of q, (N,)."""
        return np.asarray(np.exp(math.log(self.fresh) + self.log_q - self.log_mixture))


class Outside(NamedTuple):
    """Outer draws (n, d), with the log density of the target (n,) and the distribution that they came from."""

    theta: Array
    log_p: Array
    source: Outer


def pooled(q: Gaussian, draws: Evaluated, outside: Outside | None, archive: Archive | None) -> Pool:
    """``draws`` of ``q`` with those further out, and with those of the ``archive`` of its fit."""
    parts = [(draws.theta, draws.log_p, draws.gradients)]
    if outside is not None:
        parts.insert(0, (outside.theta, outside.log_p, None))
    if archive is not None and len(archive.theta):
        slopes = archive.gradients if len(archive.gradients) else None
        parts.insert(0, (archive.theta, archive.values, slopes))
    if len(parts) == 1:
        theta, log_p, log_q = draws.theta, draws.log_p, draws.log_q
    else:
        theta, log_p = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        log_q = q.log_density_at(theta)
    fresh = len(draws.theta)
    terms = [math.log(fresh) + log_q]
    if outside is not None:
        terms.append(math.log(len(outside.theta)) + outside.source.log_density(theta))
    if archive is not None:
        terms += [math.log(n) + source.log_density_at(theta) for source, n in archive.proposals]
    known = [slopes for *_, slopes in parts if slopes is not None]
    gradients = np.concatenate(known) if len(known) == len(parts) else None
    return Pool(theta, log_p, log_q, np.logaddexp.reduce(terms), gradients, fresh)


def kept(archive: Archive | None) -> Archive | None:
    """The archive, if it is small enough to stay in memory with the posterior."""
    if archive is None:
        return None
    numbers = archive.theta.size + archive.gradients.size + sum(q.factor.size for q, _ in archive.proposals)
    return archive if numbers <= MOST_NUMBERS else None
