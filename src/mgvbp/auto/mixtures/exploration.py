"""Draws under a surrogate, which cost no query, and the few draws that are worth one."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from mgvbp.core.linalg import Array
from mgvbp.families.mixture import GaussianMixture
from mgvbp.surfaces.surrogate import Surrogate

CANDIDATES = 1500
"""Candidates among which draws are chosen."""
WALKERS, TRAJECTORIES, BURN_IN, LEAPS = 200, 12, 4, 8
"""Walkers, their trajectories, how many of these are left out, and leapfrog steps of each."""
STRETCHES = np.array([2.0, 4.0])
"""Half the candidates are stretched along one axis of their Gaussian by one of these factors."""


def candidates(mixture: GaussianMixture, n: int, rng: np.random.Generator) -> Array:
    """Draws of the mixture, one half of them stretched along an axis of their Gaussian's frame, (n, d)."""
    which = rng.choice(mixture.components, n, p=mixture.weights)
    z = rng.standard_normal((n, mixture.dim))
    far = np.arange(n // 2)
    z[far, rng.integers(mixture.dim, size=len(far))] *= rng.choice(STRETCHES, len(far))
    x = np.empty_like(z)
    for k in range(mixture.components):
        mine = which == k
        x[mine] = mixture.placed(k, z[mine])
    return x


def log_proposal(mixture: GaussianMixture, x: Array) -> Array:
    """The log density of `candidates`, (n, d) -> (n,)."""
    terms, frames = mixture.terms(x)
    shrunk = 0.5 * (1.0 - STRETCHES**-2.0)[:, None, None]
    choices = len(STRETCHES) * mixture.dim
    stretched = [
        logsumexp(shrunk * eps**2 - np.log(STRETCHES)[:, None, None], axis=(0, 2)) - np.log(choices)
        for eps in frames
    ]
    return np.asarray(logsumexp(terms + np.logaddexp(0.0, stretched), axis=0) - np.log(2.0))


def walked(surrogate: Surrogate, mixture: GaussianMixture, rng: np.random.Generator) -> Array:
    """Draws of the density within the surrogate's fence, (N, d): resampled candidates, moved by Hamiltonian steps."""
    pool = candidates(mixture, 2 * CANDIDATES, rng)
    log_weights = surrogate.cautious(pool) - log_proposal(mixture, pool)
    weights = np.exp(log_weights - log_weights.max())
    x = pool[rng.choice(len(pool), WALKERS, p=weights / weights.sum())]
    value, gradient = surrogate.with_gradient(x)
    step, kept = 0.25, []
    for t in range(TRAJECTORIES):
        p = rng.standard_normal(x.shape)
        energy = value - 0.5 * np.einsum("nd,nd->n", p, p)
        y, f, g = x, value, gradient
        e = step * rng.uniform(0.6, 1.2)
        with np.errstate(over="ignore", invalid="ignore"):  # trajectories that diverge are not accepted
            for _ in range(LEAPS):
                p = p + 0.5 * e * g
                y = y + e * p
                f, g = surrogate.with_gradient(y)
                p = p + 0.5 * e * g
            accepted = np.log(rng.random(len(x))) < f - 0.5 * np.einsum("nd,nd->n", p, p) - energy
        x = np.where(accepted[:, None], y, x)
        value, gradient = np.where(accepted, f, value), np.where(accepted[:, None], g, gradient)
        step *= np.exp(0.5 * (accepted.mean() - 0.75))
        if t >= BURN_IN:
            kept.append(x)
    return np.concatenate(kept)


def informative(surrogate: Surrogate, mixture: GaussianMixture, n: int, rng: np.random.Generator) -> Array:
    r"""``n`` draws where much of the mass may be that the surrogate is not sure of, (n, d).

    A process with mean m and variance s² expects the density :math:`e^{m + s^2/2}`. Candidates are taken with
    probabilities proportional to it (`Surrogate.hopeful`) and to s. Each draw makes those near it (correlated under the
    process) less likely.
    """
    process, pool = surrogate.process, candidates(mixture, CANDIDATES, rng)
    variance = process.uncertain(pool)
    log_weights = surrogate.hopeful(pool) - log_proposal(mixture, pool)
    log_weights += 0.5 * np.log(np.maximum(variance, 1e-6))
    scales, chosen = np.sqrt(process.variances(pool)), list[int]()
    for _ in range(n):
        weights = np.exp(log_weights - log_weights.max())
        i = int(rng.choice(len(pool), p=weights / weights.sum()))
        correlation = process.kernel(pool, pool[[i]])[:, 0] / (scales * scales[i])
        log_weights = log_weights + 0.5 * np.log(np.maximum(1.0 - correlation**2, 1e-3))
        log_weights[i] = -np.inf
        chosen.append(i)
    return np.asarray(pool[chosen])
