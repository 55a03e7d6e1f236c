"""The evidence by bridge sampling and by importance sampling, both with a mixture of t distributions."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

DEGREES = 8.0
"""Degrees of freedom of the components: heavier tails than a normal's keep the weights bounded."""
SIZES = (1, 4, 12, 30)
"""Numbers of components that are tried; the held-out log density decides."""
USED = 9_000
"""Draws at most that the mixture is fitted to (three quarters) and judged by (the rest)."""


class Estimate(NamedTuple):
    """A log evidence and its standard error."""

    value: float
    se: float


class Proposal(NamedTuple):
    """A mixture of t distributions: weights (K,), means (K, d), lower factors (K, d, d)."""

    weights: np.ndarray
    means: np.ndarray
    factors: np.ndarray

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """(n, d) -> (n,)"""
        dim = theta.shape[1]
        constant = (
            gammaln(0.5 * (DEGREES + dim)) - gammaln(0.5 * DEGREES) - 0.5 * dim * np.log(DEGREES * np.pi)
        )
        each = np.empty((len(self.weights), len(theta)))
        for k, (weight, mean, factor) in enumerate(zip(*self, strict=True)):
            z = solve_triangular(factor, (theta - mean).T, lower=True)
            square = np.log1p((z**2).sum(axis=0) / DEGREES)
            each[k] = (
                np.log(weight) + constant - np.log(np.diag(factor)).sum() - 0.5 * (DEGREES + dim) * square
            )
        return np.asarray(logsumexp(each, axis=0))

    def sample(self, rng: np.random.Generator, num: int) -> np.ndarray:
        """(num, d), each component in proportion to its weight (stratified)."""
        dim = self.means.shape[1]
        edges = (np.arange(num) + rng.random(num)) / num
        which = np.minimum(np.searchsorted(np.cumsum(self.weights), edges), len(self.weights) - 1)
        scale = np.sqrt(rng.chisquare(DEGREES, num) / DEGREES)[:, None]
        z = rng.standard_normal((num, dim)) / scale
        return self.means[which] + np.einsum("nij,nj->ni", self.factors[which], z)


def fitted(theta: np.ndarray, rng: np.random.Generator) -> Proposal:
    """The Gaussian mixture of the draws (n, d) with the best held-out density, its components turned into t's."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    centre, sd = theta.mean(axis=0), theta.std(axis=0)
    z = (theta[rng.permutation(len(theta))[:USED]] - centre) / sd
    train, held = np.split(z, [3 * len(z) // 4])
    best, score = None, -np.inf
    for size in SIZES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a proposal need not be the best fit
            model = GaussianMixture(
                size, init_params="k-means++", reg_covar=1e-5, max_iter=30, tol=3e-3, random_state=1
            ).fit(train)
        now = model.score(held)
        if now < score + 0.005:
            break
        best, score = model, now
    assert best is not None
    return Proposal(
        best.weights_, centre + sd * best.means_, sd[:, None] * np.linalg.cholesky(best.covariances_)
    )


def importance(log_weights: np.ndarray) -> tuple[Estimate, float]:
    """From the log weights f - log g of draws of g; and the share of the draws that is effective."""
    value = logsumexp(log_weights) - np.log(len(log_weights))
    weights = np.exp(log_weights - value)
    return Estimate(float(value), float(weights.std() / np.sqrt(len(weights)))), float(
        1.0 / (weights**2).mean()
    )


def bridge(chain: np.ndarray, proposal: np.ndarray) -> Estimate:
    """Meng and Wong (1996), iterated.

    Parameters
    ----------
    chain : ndarray, shape (C, n)
        f - log g at the draws of C chains, none of which g was fitted to.
    proposal : ndarray, shape (m,)
        f - log g at independent draws of g.
    """
    shift = float(np.median(chain))
    l1, l2 = chain - shift, proposal - shift
    share = 0.5
    r = logsumexp(l2) - np.log(len(l2))
    for _ in range(200):
        # both sums divided by f or g: h = 1 / (s1 f + s2 r g), up to a constant
        upper = l2 - np.logaddexp(np.log(share) + l2, np.log(1.0 - share) + r)
        lower = -np.logaddexp(np.log(share) + l1, np.log(1.0 - share) + r)
        new = logsumexp(upper) - np.log(upper.size) - logsumexp(lower) + np.log(lower.size)
        if abs(new - r) < 1e-10:
            break
        r = new
    # the relative errors of both means: independent draws above, chains below
    above = np.exp(upper - logsumexp(upper) + np.log(upper.size))
    below = np.exp(lower - logsumexp(lower) + np.log(lower.size)).mean(axis=1)
    variance = above.var() / above.size + below.var(ddof=1) / len(below)
    return Estimate(float(r + shift), float(np.sqrt(variance)))
