r"""Mixtures of multivariate t distributions, fitted to draws: they tell the kernels what the target looks like.

Draws of a curved or skewed target cost evaluations; a description of their shape costs none. The mixture is fitted by
expectation-maximisation (Peel and McLachlan 2000). The number of components is the one of the largest BIC. t
distributions have heavier tails than what they are fitted to, so that chains do not stay where proposals are rare.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from mgvbp.core.linalg import Array
from mgvbp.sampling.frame import DRAWS_EACH, num_coefficients

DEGREES = 5.0
"""Degrees of freedom; with 15 the tails of a funnel took twice as many evaluations, and others no fewer."""
RIDGE = 0.01
"""Each component has the covariance of all draws as if it had this many times d + 2 of them, which keeps it regular.

With 1 components cannot follow a funnel into its neck: on eight schools 1% of the draws then had to wait for more than
a million proposals to be accepted, instead of 200. With 1e-4 they wait about as long.
"""
NUMBERS = (1, 2, 3, 4, 6, 8, 12)
"""Numbers of components that are tried."""
ROUNDS = 60
"""Rounds of expectation-maximisation at most; most fits end after 10 to 30."""
GAIN = 1e-3
"""Nats a draw by which a round has to improve the fit."""
MOST_DRAWS = 4000
"""Draws that a fit looks at: it then takes a second at most, and more would hardly move a dozen components."""


@dataclass(frozen=True, eq=False)
class TMixture:
    """A mixture of t distributions.

    Parameters
    ----------
    weights : ndarray of shape (K,)
    means : ndarray of shape (K, d)
    roots : ndarray of shape (K, d, d)
        Lower triangular factors of the scale matrices.
    inverses : ndarray of shape (K, d, d)
        Of the roots.
    log_scales : ndarray of shape (K,)
        The log of weight times density at the mean.
    """

    weights: Array
    means: Array
    roots: Array
    inverses: Array
    log_scales: Array

    @classmethod
    def standard(cls, dim: int) -> TMixture:
        """One component with mean 0 and scale I."""
        return cls.of(np.ones(1), np.zeros((1, dim)), np.eye(dim)[None])

    @classmethod
    def of(cls, weights: Array, means: Array, scales: Array) -> TMixture:
        """The mixture with these scale matrices, (K, d, d)."""
        dim, roots = means.shape[1], np.asarray(np.linalg.cholesky(scales), np.float64)
        log_det = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constant = gammaln(0.5 * (DEGREES + dim)) - gammaln(0.5 * DEGREES)
        constant -= 0.5 * dim * math.log(DEGREES * math.pi)
        inverses = np.asarray(np.linalg.inv(roots), np.float64)
        return cls(weights, means, roots, inverses, np.log(weights) + constant - log_det)

    def sample(self, rng: np.random.Generator) -> Array:
        """One draw, (d,)."""
        k = int(np.searchsorted(np.cumsum(self.weights[:-1]), rng.random()))
        normal = rng.standard_normal(self.means.shape[1])
        scale = math.sqrt(rng.chisquare(DEGREES) / DEGREES)
        return np.asarray(self.means[k] + self.roots[k] @ normal / scale)

    def log_density(self, position: Array) -> float:
        """The log density at a position (d,)."""
        return float(np.logaddexp.reduce(self.log_parts(position[None])[0][:, 0]))

    def log_parts(self, draws: Array) -> tuple[Array, Array]:
        """Log of weight times density of each component at each draw (n, d), and squared distances; (K, n) each."""
        z = np.einsum("kij,nkj->nki", self.inverses, draws[:, None] - self.means)
        squares = np.einsum("nki,nki->kn", z, z)
        dim = draws.shape[1]
        return self.log_scales[:, None] - 0.5 * (DEGREES + dim) * np.log1p(squares / DEGREES), squares


def fitted(draws: Array, rng: np.random.Generator) -> TMixture | None:
    """The mixture of largest BIC for ``draws`` (n, d); None if they are too few for a covariance."""
    if len(draws) > MOST_DRAWS:
        draws = draws[rng.choice(len(draws), MOST_DRAWS, replace=False)]
    n, dim = draws.shape
    best, largest = None, -math.inf
    for number in NUMBERS:
        coefficients = number * num_coefficients(dim)
        if DRAWS_EACH * coefficients > n:
            break
        try:
            mixture, log_likelihood = maximised(draws, number, rng)
        except np.linalg.LinAlgError:  # walkers that have hardly moved
            break
        if (bic := log_likelihood - 0.5 * coefficients * math.log(n)) > largest:
            best, largest = mixture, bic
    return best


def maximised(draws: Array, number: int, rng: np.random.Generator) -> tuple[TMixture, float]:
    """A mixture of so many components, and the log-likelihood of the draws."""
    n, dim = draws.shape
    centre, covariance = draws.mean(axis=0), np.atleast_2d(np.cov(draws, rowvar=False))
    more = RIDGE * (dim + 2)
    shares = nearest(np.linalg.solve(np.linalg.cholesky(covariance), (draws - centre).T).T, number, rng)
    scales_of_draws, last = np.ones_like(shares), -math.inf
    for _ in range(ROUNDS):
        weights = (shares.sum(axis=1) + 1.0) / (n + number)
        parts = shares * scales_of_draws
        means = (parts @ draws + centre / n) / (parts.sum(axis=1) + 1.0 / n)[:, None]
        deviations = draws - means[:, None]
        moments = np.einsum("kn,kni,knj->kij", parts, deviations, deviations, optimize=True)
        scales = (moments + more * covariance) / (shares.sum(axis=1) + more)[:, None, None]
        mixture = TMixture.of(weights, means, scales)
        log_parts, squares = mixture.log_parts(draws)
        total = np.logaddexp.reduce(log_parts, axis=0)
        shares, scales_of_draws = np.exp(log_parts - total), (DEGREES + dim) / (DEGREES + squares)
        log_likelihood = float(total.sum())
        if log_likelihood - last < GAIN * n:
            break
        last = log_likelihood
    return mixture, log_likelihood


def nearest(z: Array, number: int, rng: np.random.Generator) -> Array:
    """Whether each of ``number`` far-apart rows of ``z`` is the nearest to each row, (number, n) of zeros and ones.

    The rows are drawn as k-means++ does: each with probability proportional to its squared distance from the others.
    """
    distances = [((z - z[rng.integers(len(z))]) ** 2).sum(axis=1)]
    for _ in range(number - 1):
        least = np.min(distances, axis=0)
        distances.append(((z - z[rng.choice(len(z), p=least / least.sum())]) ** 2).sum(axis=1))
    owner = np.argmin(distances, axis=0)
    return np.asarray(owner == np.arange(number)[:, None], np.float64)
