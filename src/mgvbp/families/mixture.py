"""A mixture of Gaussians, kept as its weights and, for each Gaussian, the mean and the factor of the precision."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.special import logsumexp, ndtr, ndtri

from mgvbp.core.checks import as_floats, as_generator, positive_integer, require_memory
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.full import Full
from mgvbp.families.gaussian import LOG_2PI, Gaussian, as_rows, frozen

ROUNDING = 1e-12
"""Weights whose sum differs from 1 by less than this have been divided by their sum."""
BISECTIONS = 60
"""Halvings of the interval that a quantile is looked for in; fifty reach the last digit of a float."""


class GaussianMixture:
    r"""The density :math:`\sum_k w_k N(\theta;\, \mu_k, (L_k L_k^\top)^{-1})`.

    Parameters
    ----------
    weights : array_like of shape (K,)
        Positive; they are divided by their sum.
    means : array_like of shape (K, d)
    factors : array_like of shape (K, d, d)
        The lower factors L of the precisions.

    Examples
    --------
    >>> two = GaussianMixture([3.0, 1.0], [[0.0], [4.0]], np.ones((2, 1, 1)))
    >>> two.mean, two.covariance
    (array([1.]), array([[4.]]))
    >>> two.quantiles([0.5]).round(3)
    array([[0.431]])
    """

    parameters: object = None
    """What the entries of θ stand for, where the mixture is the prior of a fit."""

    def __init__(self, weights: ArrayLike, means: ArrayLike, factors: ArrayLike) -> None:
        w, self.means = as_floats(weights, "weights"), frozen(np.array(as_floats(means, "means")))
        self.factors = frozen(np.array(as_floats(factors, "factors")))
        count, dim = self.means.shape if self.means.ndim == 2 else (0, 0)
        if w.shape != (count,) or self.factors.shape != (count, dim, dim) or not count * dim:
            raise InvalidInputError(
                f"weights, means and factors have shapes {w.shape}, {self.means.shape} and {self.factors.shape}; "
                "expected (K,), (K, d) and (K, d, d)"
            )
        diagonals = self.factors.diagonal(axis1=1, axis2=2)
        if not (w > 0.0).all() or not (diagonals > 0.0).all() or np.triu(self.factors, 1).any():
            raise InvalidInputError(
                "weights must be positive, and factors lower triangular with a positive diagonal"
            )
        total = w.sum()
        # weights that were divided before stay as they are, to the last digit
        self.weights = frozen(w.copy() if abs(total - 1.0) < ROUNDING else w / total)
        self._log_scales = np.log(diagonals).sum(axis=1) - 0.5 * dim * LOG_2PI

    @classmethod
    def of(cls, gaussian: Gaussian) -> GaussianMixture:
        """The mixture of one Gaussian."""
        factor = gaussian.family.dense_factor(gaussian.factor)
        if np.triu(factor, 1).any():  # blocks may interleave
            return cls([1.0], gaussian.mean[None], np.linalg.cholesky(gaussian.precision)[None])
        return cls([1.0], gaussian.mean[None], factor[None])

    @property
    def dim(self) -> int:
        """The number of parameters d."""
        return int(self.means.shape[1])

    @property
    def components(self) -> int:
        """The number of Gaussians K."""
        return len(self.weights)

    @property
    def mean(self) -> Array:
        """The mean, (d,)."""
        return self.weights @ self.means

    @cached_property
    def covariance(self) -> Array:
        """The covariance matrix, (d, d): that within the Gaussians, and that of their means."""
        apart = self.means - self.mean
        return np.asarray(
            np.einsum("k,kij->ij", self.weights, self.covariances) + (self.weights * apart.T) @ apart
        )

    @cached_property
    def covariances(self) -> Array:
        """The covariance of each Gaussian, (K, d, d)."""
        inverses = np.stack([dtrsm(1.0, L, np.eye(self.dim), lower=1) for L in self.factors])
        return np.asarray(inverses.swapaxes(1, 2) @ inverses)

    @property
    def std(self) -> Array:
        """The standard deviations, (d,)."""
        return np.sqrt(self.covariance.diagonal())

    @property
    def moments(self) -> Gaussian:
        """The Gaussian with the same mean and covariance."""
        full = Full(self.dim)
        return Gaussian.from_factor(self.mean, full.factor(variance=self.covariance), full)

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``n`` points, (n, d)."""
        number = positive_integer(n, "n", least=0)
        require_memory(
            3 * number * self.dim, f"{number:,} draws of {self.dim:,} numbers", "draw fewer at a time"
        )
        generator = as_generator(rng)
        which = generator.choice(self.components, number, p=self.weights)
        theta = generator.standard_normal((number, self.dim))
        for k in range(self.components):
            mine = which == k
            theta[mine] = self.placed(k, theta[mine])
        return theta

    def placed(self, k: int, z: Array) -> Array:
        """``μ_k + L_k⁻ᵀ z`` for each row of ``z``, (S, d) -> (S, d)."""
        return np.asarray(self.means[k] + dtrsm(1.0, self.factors[k], z.T, lower=1, trans_a=1).T)

    def log_density(self, theta: ArrayLike) -> Array:
        """Log density at each row of ``theta``, (S, d) -> (S,)."""
        return self.log_density_at(as_rows(theta, self.dim))

    def log_density_at(self, theta: Array) -> Array:
        """`log_density` without its checks, for draws that we made ourselves."""
        return np.asarray(logsumexp(self.terms(theta)[0], axis=0))

    def grad_log_density(self, theta: ArrayLike) -> Array:
        """The gradient of the log density at each row of ``theta``, (S, d) -> (S, d)."""
        return self.with_gradient(as_rows(theta, self.dim))[1]

    def with_gradient(self, theta: Array) -> tuple[Array, Array]:
        """The log density (S,) and its gradient (S, d)."""
        terms, frames = self.terms(theta)
        total = logsumexp(terms, axis=0)
        shares = np.exp(terms - total)
        gradient = np.zeros_like(theta)
        for share, eps, L in zip(shares, frames, self.factors, strict=True):
            gradient -= share[:, None] * dtrmm(1.0, L, eps.T, lower=1).T  # −P(θ − μ) = −L ε
        return np.asarray(total), gradient

    def shares(self, theta: Array) -> Array:
        """The probability of each Gaussian to have made each row of ``theta``, (K, S)."""
        terms, _ = self.terms(theta)
        return np.asarray(np.exp(terms - logsumexp(terms, axis=0)))

    def marginal(self, entries: list[int]) -> GaussianMixture:
        """The joint distribution of some entries of θ."""
        full, where = Full(len(entries)), np.ix_(entries, entries)
        factors = [full.factor(variance=covariance[where]) for covariance in self.covariances]
        return GaussianMixture(self.weights, self.means[:, entries], np.stack(factors))

    def quantiles(self, levels: ArrayLike) -> Array:
        """Quantiles of each entry of θ, (len(levels), d), by bisection."""
        p = np.asarray(levels, dtype=np.float64)[:, None]
        sds = np.sqrt(self.covariances.diagonal(axis1=1, axis2=2))
        ends = self.means[:, None] + sds[:, None] * ndtri(p)
        low, high = ends.min(axis=0), ends.max(axis=0)
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            below = (
                np.einsum("k,kpd->pd", self.weights, ndtr((middle - self.means[:, None]) / sds[:, None])) < p
            )
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def terms(self, theta: Array) -> tuple[Array, list[Array]]:
        """``log w_k N_k(θ)``, (K, S), and the draws in the frame of each Gaussian, K times (S, d)."""
        frames = [
            dtrmm(1.0, L, (theta - mean).T, lower=1, trans_a=1).T
            for mean, L in zip(self.means, self.factors, strict=True)
        ]
        squares = np.stack([np.einsum("sd,sd->s", eps, eps) for eps in frames])
        return (np.log(self.weights) + self._log_scales)[:, None] - 0.5 * squares, frames

    def __repr__(self) -> str:
        return f"GaussianMixture(components={self.components}, dim={self.dim})"


def to_frame(frame: Gaussian, mixture: GaussianMixture) -> GaussianMixture:
    """A mixture of θ as one of ``ε = Lᵀ(θ − μ)``."""
    inverse = frame.family.solve(frame.factor, np.eye(frame.dim)).T  # L⁻¹
    factors = np.tril(np.stack([inverse @ L for L in mixture.factors]))
    return GaussianMixture(
        mixture.weights, frame.family.to_frame(frame.factor, mixture.means - frame.mean), factors
    )


def from_frame(frame: Gaussian, mixture: GaussianMixture) -> GaussianMixture:
    """A mixture of ε as one of ``θ = μ + L⁻ᵀ ε``."""
    factors = np.tril(np.stack([frame.factor @ L for L in mixture.factors]))
    return GaussianMixture(
        mixture.weights, frame.mean + frame.family.from_frame(frame.factor, mixture.means), factors
    )
