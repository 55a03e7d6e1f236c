"""Approach from far away: CMA-ES (Hansen 2016, "The CMA Evolution Strategy: A Tutorial") in the frame of a Gaussian.

Only the ranks of the values count: log densities of −1e12, −inf and any monotone distortion do no harm. It
runs until the values spread not much more than a Gaussian's would. Equation numbers are the tutorial's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from mgvbp.auto import constants
from mgvbp.core.linalg import Array
from mgvbp.core.records import replace
from mgvbp.families import Family, Full
from mgvbp.families.gaussian import Gaussian


class Generation(NamedTuple):
    """Draws (size, d) with their values (size,), and the Gaussian that they were drawn from."""

    q: Gaussian
    theta: Array
    values: Array


class Strategy(NamedTuple):
    """The constants of CMA-ES in d dimensions, by the tutorial's names."""

    size: int
    weights: Array
    mu_eff: float
    c1: float
    c_mu: float
    c_sigma: float
    damping: float
    c_c: float
    chi: float


@lru_cache(maxsize=8)
def strategy(d: int) -> Strategy:
    """The tutorial's default constants in ``d`` dimensions."""
    size = 4 + int(3.0 * math.log(d))  # (48)
    raw = math.log((size + 1) / 2) - np.log(np.arange(1, size + 1))  # (49)
    parents, others = raw[: size // 2], raw[size // 2 :]
    mu_eff = parents.sum() ** 2 / np.square(parents).sum()
    c1 = 2.0 / ((d + 1.3) ** 2 + mu_eff)  # (57)
    c_mu = min(1.0 - c1, 2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((d + 2.0) ** 2 + mu_eff))  # (58)
    mu_eff_minus = others.sum() ** 2 / np.square(others).sum()
    limits = (
        1.0 + c1 / max(c_mu, 1e-12),
        1.0 + 2.0 * mu_eff_minus / (mu_eff + 2.0),
        (1.0 - c1 - c_mu) / (d * max(c_mu, 1e-12)),
    )  # (50) to (52)
    positive, negative = raw[raw > 0.0].sum(), -raw[raw < 0.0].sum()
    c_sigma = (mu_eff + 2.0) / (d + mu_eff + 5.0)  # (55)
    return Strategy(
        size=size,
        weights=np.where(raw >= 0.0, raw / positive, min(limits) * raw / negative),  # (53)
        mu_eff=mu_eff,
        c1=c1,
        c_mu=c_mu,
        c_sigma=c_sigma,
        damping=1.0 + 2.0 * max(0.0, math.sqrt((mu_eff - 1.0) / (d + 1.0)) - 1.0) + c_sigma,
        c_c=(4.0 + mu_eff / d) / (d + 4.0 + 2.0 * mu_eff / d),  # (56)
        chi=math.sqrt(d) * (1.0 - 1.0 / (4.0 * d) + 1.0 / (21.0 * d * d)),
    )


@dataclass(frozen=True, eq=False)
class Evolution:
    """The state of CMA-ES: N(mean, σ²C) in the frame of ``frame`` about ``origin``, and the last generations.

    Examples
    --------
    >>> evolution = Evolution.start(Gaussian(variance=1.0, dim=2), np.array([3.0, 3.0]), memory=20)
    >>> for t in range(60):
    ...     seed = (0, t)
    ...     theta = evolution.draw(np.random.default_rng(seed))
    ...     evolution = evolution.tell(theta, -(theta**2).sum(axis=1), np.random.default_rng(seed))
    >>> bool(np.linalg.norm(evolution.gaussian.mean) < 0.1), evolution.count
    (True, 60)
    """

    frame: Gaussian
    origin: Array
    memory: int
    """Fewest draws of the last generations that are kept."""
    mean: Array
    sigma: float
    C: Array
    B: Array
    D: Array
    """Axes (d, d) and lengths (d,) of ``C = B D² Bᵀ``."""
    path_sigma: Array
    path_c: Array
    generations: tuple[Generation, ...] = ()
    count: int = 0
    """Generations so far."""

    @classmethod
    def start(cls, q: Gaussian, mean: Array, memory: int) -> Evolution:
        """Begin as N(mean, Σ) with Σ the covariance of ``q``."""
        d = q.dim
        return cls(
            q, mean, memory, np.zeros(d), 1.0, np.eye(d), np.eye(d), np.ones(d), np.zeros(d), np.zeros(d)
        )

    @property
    def dim(self) -> int:
        """The number of parameters, d."""
        return len(self.mean)

    @property
    def size(self) -> int:
        """Draws per generation."""
        return strategy(self.dim).size

    @property
    def gaussian(self) -> Gaussian:
        """The distribution that the next generation is drawn from."""
        root = self.B / (self.sigma * self.D)  # precision in the frame: root rootᵀ
        factor = Full(self.dim).factor(precision=root @ root.T)
        L = self.frame.family.dense_factor(self.frame.factor)
        return Gaussian.from_factor(
            self._place(self.mean), np.asfortranarray(_lower(L @ factor)), Full(self.dim)
        )

    def _place(self, x: Array) -> Array:
        return self.origin + self.frame.family.from_frame(self.frame.factor, x)

    def _steps(self, rng: np.random.Generator) -> Array:
        """The draws y ~ N(0, C) of the next generation, (size, d)."""
        return np.asarray((rng.standard_normal((self.size, self.dim)) * self.D) @ self.B.T)

    def draw(self, rng: np.random.Generator) -> Array:
        """The draws of the next generation, (size, d)."""
        return self._place(self.mean + self.sigma * self._steps(rng))

    def tell(self, theta: Array, values: Array, rng: np.random.Generator) -> Evolution:
        """Rank the generation ``theta``, which `draw` made with a generator in the same state, and adapt."""
        d, (size, all_weights, mu_eff, c1, c_mu, c_sigma, damping, c_c, chi) = self.dim, strategy(self.dim)
        kept = math.ceil(self.memory / size)
        generations = (*self.generations, Generation(self.gaussian, theta, values))[-kept:]
        y = self._steps(rng)[np.argsort(-values, kind="stable")]
        parents = all_weights[: size // 2]
        step = parents @ y[: len(parents)]
        whitening = (self.B / self.D) @ self.B.T
        path_sigma = (1.0 - c_sigma) * self.path_sigma + math.sqrt(c_sigma * (2.0 - c_sigma) * mu_eff) * (
            whitening @ step
        )  # (43)
        length = float(np.linalg.norm(path_sigma))
        settled = math.sqrt(1.0 - (1.0 - c_sigma) ** (2 * (self.count + 1)))
        moving = float(length / settled < (1.4 + 2.0 / (d + 1.0)) * chi)
        path_c = (1.0 - c_c) * self.path_c + moving * math.sqrt(c_c * (2.0 - c_c) * mu_eff) * step  # (45)
        norms = np.square(y @ whitening).sum(axis=1)
        weights = np.where(
            all_weights >= 0.0, all_weights, all_weights * d / np.maximum(norms, 1e-300)
        )  # (46)
        fading = c1 * (1.0 - moving) * c_c * (2.0 - c_c)
        C = (
            (1.0 + fading - c1 - c_mu * all_weights.sum()) * self.C
            + c1 * np.outer(path_c, path_c)
            + c_mu * (y * weights[:, None]).T @ y
        )  # (47)
        C = 0.5 * (C + C.T)
        eigenvalues, B = np.linalg.eigh(C)
        return replace(
            self,
            mean=self.mean + self.sigma * step,
            sigma=self.sigma * math.exp(min(1.0, (c_sigma / damping) * (length / chi - 1.0))),  # (44)
            C=C,
            B=B,
            D=np.sqrt(np.maximum(eigenvalues, 1e-20 * eigenvalues.max())),
            path_sigma=path_sigma,
            path_c=path_c,
            generations=generations,
            count=self.count + 1,
        )

    def last(self, num_draws: int) -> tuple[Generation, ...]:
        """The last generations, as many as hold ``num_draws`` draws."""
        return self.generations[-math.ceil(num_draws / self.size) :]

    @property
    def arrived(self) -> bool:
        """Whether the last values spread no more than a Gaussian's log density does at its own draws."""
        recent = [generation.values for generation in self.last(max(2 * self.size, 2 * self.dim))]
        if self.count < 3 or not np.isfinite(recent).all():
            return False
        return bool(np.max(recent) - np.median(recent) < constants.SPREAD * (self.dim / 2 + 1.0))


def moments(theta: Array, family: Family) -> Gaussian:
    """The Gaussian of ``family`` with the mean of the draws and the family's entries of their precision."""
    mean = theta.mean(axis=0)
    R = np.linalg.qr((theta - mean) / math.sqrt(len(theta)), mode="r")  # covariance Rᵀ R
    L = _lower(solve_triangular(R, np.eye(len(R))))
    factor = L if isinstance(family, Full) else family.factor(precision=L @ L.T)
    return Gaussian.from_factor(mean, factor, family)


def project(q: Gaussian, family: Family) -> Gaussian:
    """The Gaussian of ``family`` with the mean of ``q`` and the family's entries of its precision."""
    return Gaussian.from_factor(q.mean.copy(), family.factor(precision=q.precision), family)


def _lower(R: Array) -> Array:
    """The lower triangular factor of ``R Rᵀ``, computed without forming this product."""
    (T,) = qr(R.T, mode="r", check_finite=False)
    return np.asfortranarray(T.T * np.where(T.diagonal() < 0.0, -1.0, 1.0))
