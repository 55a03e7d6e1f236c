r"""Fit a mixture to a surrogate: Gaussians split where the density bends, then natural-gradient steps on the bound.

The natural gradient of the bound by the Gaussian k is that of :math:`E_{q_k}[f - \log q]`, as the derivative through
log q vanishes in expectation. With :math:`v = L_k^{-1} \nabla (f - \log q)` at :math:`\theta = \mu_k + L_k^{-\top} z`,
least squares of v on 1 and z give g and H, and a step of size β is

.. math:: F = I - \beta H, \quad L_k \leftarrow L_k \operatorname{chol}(F), \quad
          \mu_k \leftarrow \mu_k + \beta L_k^{-\top} F^{-1} g, \quad
          \log w_k \leftarrow \log w_k + \beta\, (E_{q_k}[f - \log q] - E_q[f - \log q]).

The points z are the same at every step, so that the bound on them must rise; if it does not, β is halved.

A Gaussian is split in two along the direction u of its frame in which the density bends most: with
:math:`T = E_{q_k}[\nabla^3 (f - \log q)]`, from least squares of v on quadratics in z, u maximises
:math:`\sum_{jk} (\sum_i T_{ijk} u_i)^2`. The halves keep mean and covariance, and the density nearly, so that the bound
begins where it was.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.estimators.draws import sobol
from mgvbp.families.mixture import GaussianMixture
from mgvbp.surfaces.surrogate import Surrogate

POINTS = 256
"""Points for each of up to four Gaussians; with 64 the KL on an ODE posterior is half as large again."""
FEWEST_POINTS = 128
"""Points for each Gaussian where there are many; with 64 more than four are seldom better on eight parameters."""
STEPS = 20
"""Most steps; four times as many lower the KL by a tenth."""
LEAST_RISE = 1e-3
"""A step that gains fewer nats is the last."""
SMALLEST_STEP = 0.02
"""Steps are not halved below this."""
STEEPEST, FLATTEST = 5.0, 0.3
"""A step multiplies precisions by factors between these."""
LIGHTEST = 1e-6
"""Smallest weight of a Gaussian."""
APART = 0.6
"""Standard deviations by which the halves of a split Gaussian lie on either side of its mean; 0.4 and 0.8 end alike."""
MOST_BENDS = 1024
"""Most points that the direction of a split is found by."""
FITTING_ROUNDS = 25
"""Most rounds of expectation maximisation: the steps after it do the rest."""
PSEUDO = 0.1
"""Draws per parameter that count as having the covariance of all draws, so that no Gaussian collapses."""


class Position(NamedTuple):
    """Where the steps have come to: a mixture, and what it misses at the points of its Gaussians."""

    mixture: GaussianMixture
    z: Array
    """The points of every Gaussian, in its own frame, (S, d)."""
    missed: Array
    """``f − log q`` at the points, (K, S)."""
    slopes: Array
    """Its whitened gradient v, (K, S, d)."""
    beta: float = 0.5
    gained: float = math.inf
    """Nats that the last step gained."""
    steps: int = 0

    @classmethod
    def begun(cls, mixture: GaussianMixture, z: Array, f: Array, gradient: Array) -> Position:
        """At a mixture, given the log density (KS,) and its gradient (KS, d) at its `points`."""
        K, S, d = mixture.components, len(z), mixture.dim
        log_q, grad_q = mixture.with_gradient(points(mixture, z))
        slopes = (gradient - grad_q).reshape(K, S, d)
        whitened = [np.linalg.solve(L, s.T).T for L, s in zip(mixture.factors, slopes, strict=True)]
        return cls(mixture, z, (f - log_q).reshape(K, S), np.stack(whitened))

    @property
    def bound(self) -> float:
        """The lower bound on the points."""
        return float(self.mixture.weights @ self.missed.mean(axis=1))

    def over(self, rise: float) -> bool:
        """Whether no step gains ``rise`` nats any more."""
        return self.beta < SMALLEST_STEP or self.gained < rise or self.steps >= STEPS

    def proposed(self) -> GaussianMixture:
        """The mixture after a step."""
        return _step(self.mixture, self.missed, self.slopes, _solver(self.z), self.beta)

    def shorter(self) -> Position:
        """The same place, with half the step."""
        return self._replace(beta=0.5 * self.beta)

    def told(self, there: GaussianMixture, f: Array, gradient: Array) -> Position:
        """Take the step, if the log density at its points says that the bound rises; else halve it."""
        ahead = Position.begun(there, self.z, f, gradient)
        gained = ahead.bound - self.bound
        if not gained > 0.0:
            return self.shorter()
        return ahead._replace(beta=min(1.0, 1.5 * self.beta), gained=gained, steps=self.steps + 1)


def points(mixture: GaussianMixture, z: Array) -> Array:
    """The points z (S, d) of each Gaussian one after the other, (KS, d)."""
    return np.concatenate([mixture.placed(k, z) for k in range(mixture.components)])


def paired(rng: np.random.Generator, count: int, dim: int) -> Array:
    """About ``count`` standard normal points, Sobol's with their mirror images, (S, d)."""
    half = sobol(rng, -(-count // 2), dim)
    return np.concatenate([half, -half])


def ascended(mixture: GaussianMixture, surrogate: Surrogate, rng: np.random.Generator) -> GaussianMixture:
    """The mixture after natural-gradient steps on its bound under the surrogate."""
    z = paired(rng, POINTS if mixture.components <= 4 else FEWEST_POINTS, mixture.dim)
    here = Position.begun(mixture, z, *surrogate.with_gradient(points(mixture, z)))
    while not here.over(LEAST_RISE):
        there = here.proposed()
        here = here.told(there, *surrogate.with_gradient(points(there, z)))
    return here.mixture


def _solver(z: Array) -> Array:
    """The matrix that gives the coefficients of least squares on 1 and z, (1 + d, S)."""
    return np.asarray(np.linalg.pinv(np.column_stack([np.ones(len(z)), z])))


def _step(mixture: GaussianMixture, h: Array, v: Array, solver: Array, beta: float) -> GaussianMixture:
    d = mixture.dim
    means, factors = [], []
    for k, L in enumerate(mixture.factors):
        coefficients = solver @ v[k]
        g, H = coefficients[0], 0.5 * (coefficients[1:] + coefficients[1:].T)
        scales, U = np.linalg.eigh(np.eye(d) - beta * H)
        scales = np.clip(scales, FLATTEST, STEEPEST)
        step = U @ ((U.T @ (beta * g)) / scales)
        step *= min(1.0, math.sqrt(d) / max(float(np.linalg.norm(step)), 1e-300))
        means.append(mixture.placed(k, step[None])[0])
        factors.append(L @ np.linalg.cholesky((U * scales) @ U.T))
    gains = h.mean(axis=1)
    change = np.clip(beta * (gains - mixture.weights @ gains), -1.0, 1.0)
    weights = np.maximum(mixture.weights * np.exp(change), LIGHTEST)
    return GaussianMixture(weights, np.stack(means), np.stack(factors))


def split(
    mixture: GaussianMixture, surrogate: Surrogate, most: int, rng: np.random.Generator
) -> GaussianMixture:
    """The mixture with its Gaussians in two halves each, or, if that is more than ``most``, those that bend most."""
    coefficients = mixture.dim * (mixture.dim + 1) // 2 + 1
    z = paired(rng, min(MOST_BENDS, 4 * coefficients), mixture.dim)
    return halved(Position.begun(mixture, z, *surrogate.with_gradient(points(mixture, z))), most)


def halved(here: Position, most: int) -> GaussianMixture:
    """The mixture with its Gaussians in two halves each, as `split` has it."""
    mixture = here.mixture
    directions, bends = _bends(here)
    both = np.zeros(mixture.components, dtype=bool)
    both[np.argsort(-mixture.weights * bends, kind="stable")[: most - mixture.components]] = True
    narrower = 1.0 / (1.0 - APART**2) - 1.0
    weights, means, factors = [], [], []
    for k, (L, u) in enumerate(zip(mixture.factors, directions, strict=True)):
        ends = np.outer([APART, -APART], u) if both[k] else np.zeros((1, mixture.dim))
        weights += [mixture.weights[k] / len(ends)] * len(ends)
        means.append(mixture.placed(k, ends))
        thin = np.eye(mixture.dim) + narrower * np.outer(u, u) * both[k]
        factors += [L @ np.linalg.cholesky(thin)] * len(ends)
    return GaussianMixture(np.array(weights), np.concatenate(means), np.stack(factors))


def _bends(here: Position) -> tuple[Array, Array]:
    """The direction of each Gaussian's frame in which the density bends most (K, d), and how much (K,)."""
    K, d = here.mixture.components, here.mixture.dim
    i, j = np.triu_indices(d)
    half = here.z[: len(here.z) // 2]  # the others are their mirror images
    even = 0.5 * (here.slopes[:, : len(half)] + here.slopes[:, len(half) :])
    solver = np.linalg.pinv(np.column_stack([np.ones(len(half)), half[:, i] * half[:, j]]))
    directions, bends = np.empty((K, d)), np.empty(K)
    for k in range(K):
        T = np.empty((d, d, d))
        T[i, j] = T[j, i] = (solver @ even[k])[1:] * np.where(i == j, 2.0, 1.0)[:, None]
        T = (T + T.transpose(0, 2, 1) + T.transpose(2, 1, 0)) / 3.0
        slices = T.reshape(d, d * d)
        squares, U = np.linalg.eigh(slices @ slices.T)
        directions[k], bends[k] = U[:, -1], math.sqrt(max(squares[-1], 0.0))
    return directions, bends


def clustered(x: Array, components: int, rng: np.random.Generator) -> GaussianMixture:
    """A mixture fitted to draws (N, d) by expectation maximisation, from centres that lie apart (k-means++)."""
    N, d = x.shape
    centres = [x[rng.integers(N)]]
    nearest = np.full(N, np.inf)
    for _ in range(components - 1):
        nearest = np.minimum(nearest, np.square(x - centres[-1]).sum(axis=1))
        if not nearest.any():  # all draws are copies of the centres
            components = len(centres)
            break
        centres.append(x[rng.choice(N, p=nearest / nearest.sum())])
    owner = np.argmin([np.square(x - centre).sum(axis=1) for centre in centres], axis=0)
    shares = 0.9 * np.eye(components)[owner].T + 0.1 / components
    prior = PSEUDO * (d + 2) * np.atleast_2d(np.cov(x.T))
    last = -math.inf
    for _ in range(FITTING_ROUNDS):
        mixture = _maximised(x, shares, prior)
        likelihood = float(mixture.log_density_at(x).mean())
        if likelihood < last + LEAST_RISE:
            break
        shares, last = mixture.shares(x), likelihood
    return mixture


def _maximised(x: Array, shares: Array, prior: Array) -> GaussianMixture:
    """The mixture whose Gaussians have the moments of the draws, weighted by their shares (K, N)."""
    d = x.shape[1]
    sizes = shares.sum(axis=1) + 1e-9
    means = (shares @ x) / sizes[:, None]
    factors = []
    for share, size, mean in zip(shares, sizes, means, strict=True):
        apart = x - mean
        covariance = ((share * apart.T) @ apart + prior) / (size + PSEUDO * (d + 2))
        # the lower factor of the inverse: Σ = J (R Rᵀ) J with J the reversal, so that (J R J)⁻¹ is lower
        R = np.linalg.cholesky(covariance[::-1, ::-1])
        factors.append(np.tril(np.linalg.inv(R)[::-1, ::-1].T))
    return GaussianMixture(sizes, means, np.stack(factors))
