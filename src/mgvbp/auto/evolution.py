"""Far away: CMA-ES (Hansen 2016, "The CMA Evolution Strategy: A Tutorial") in the frame of a Gaussian.

Only the ranks of the values count: log densities of −1e12, −inf and any monotone distortion do no harm. It
runs until the values spread not much more than those of a Gaussian do. Equation numbers are the tutorial's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from mgvbp._linalg import Array
from mgvbp.families import Family, Full
from mgvbp.gaussian import Gaussian

SPREAD = 1.5
"""In units of d/2 + 1, which is about what the best of some draws is above their median for a Gaussian."""


class Generation(NamedTuple):
    """Draws (size, d) with their values (size,), and what they were drawn from."""

    q: Gaussian
    theta: Array
    values: Array


class Evolution:
    """An ask/tell run of CMA-ES that starts as N(mean, Σ) with Σ the covariance of ``q``."""

    def __init__(self, q: Gaussian, mean: Array) -> None:
        d = self.dim = q.dim
        self._origin, self._frame = mean, q
        size = self.size = 4 + int(3.0 * math.log(d))  # (48)
        raw = math.log((size + 1) / 2) - np.log(np.arange(1, size + 1))  # (49)
        parents, others = raw[: size // 2], raw[size // 2 :]
        self._mu_eff = mu_eff = parents.sum() ** 2 / np.square(parents).sum()
        self._c1 = c1 = 2.0 / ((d + 1.3) ** 2 + mu_eff)  # (57)
        self._c_mu = c_mu = min(
            1.0 - c1, 2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / ((d + 2.0) ** 2 + mu_eff)
        )  # (58)
        mu_eff_minus = others.sum() ** 2 / np.square(others).sum()
        limits = (
            1.0 + c1 / max(c_mu, 1e-12),
            1.0 + 2.0 * mu_eff_minus / (mu_eff + 2.0),
            (1.0 - c1 - c_mu) / (d * max(c_mu, 1e-12)),
        )  # (50) to (52)
        positive, negative = raw[raw > 0.0].sum(), -raw[raw < 0.0].sum()
        self._weights = np.where(raw >= 0.0, raw / positive, min(limits) * raw / negative)  # (53)
        self._c_sigma = (mu_eff + 2.0) / (d + mu_eff + 5.0)  # (55)
        self._damping = 1.0 + 2.0 * max(0.0, math.sqrt((mu_eff - 1.0) / (d + 1.0)) - 1.0) + self._c_sigma
        self._c_c = (4.0 + mu_eff / d) / (d + 4.0 + 2.0 * mu_eff / d)  # (56)
        self._chi = math.sqrt(d) * (1.0 - 1.0 / (4.0 * d) + 1.0 / (21.0 * d * d))
        self._mean, self._sigma, self._C = np.zeros(d), 1.0, np.eye(d)
        self._path_sigma, self._path_c = np.zeros(d), np.zeros(d)
        self.generations: list[Generation] = []
        self._decompose()

    def _decompose(self) -> None:
        eigenvalues, self._B = np.linalg.eigh(self._C)
        self._D = np.sqrt(np.maximum(eigenvalues, 1e-20 * eigenvalues.max()))

    @property
    def gaussian(self) -> Gaussian:
        """The distribution that the next generation is drawn from."""
        root = self._B / (self._sigma * self._D)  # precision in the frame: root rootᵀ
        factor = Full(self.dim).factor(precision=root @ root.T)
        L = self._frame.family.dense_factor(self._frame.factor)
        return Gaussian.from_factor(
            self._place(self._mean), np.asfortranarray(_lower(L @ factor)), Full(self.dim)
        )

    def _place(self, x: Array) -> Array:
        return self._origin + self._frame.family.from_frame(self._frame.factor, x)

    def ask(self, rng: np.random.Generator) -> Array:
        """The draws of the next generation, (size, d)."""
        z = rng.standard_normal((self.size, self.dim))
        self._y = (z * self._D) @ self._B.T
        self._theta = self._place(self._mean + self._sigma * self._y)
        return self._theta

    def tell(self, values: Array) -> None:
        """Rank the generation and adapt."""
        d = self.dim
        self.generations.append(Generation(self.gaussian, self._theta, values))
        y = self._y[np.argsort(-values, kind="stable")]
        parents = self._weights[: self.size // 2]
        step = parents @ y[: len(parents)]
        self._mean = self._mean + self._sigma * step
        whitening = (self._B / self._D) @ self._B.T
        self._path_sigma = (1.0 - self._c_sigma) * self._path_sigma + math.sqrt(
            self._c_sigma * (2.0 - self._c_sigma) * self._mu_eff
        ) * (whitening @ step)  # (43)
        length = float(np.linalg.norm(self._path_sigma))
        settled = math.sqrt(1.0 - (1.0 - self._c_sigma) ** (2 * len(self.generations)))
        moving = float(length / settled < (1.4 + 2.0 / (d + 1.0)) * self._chi)
        self._sigma *= math.exp(
            min(1.0, (self._c_sigma / self._damping) * (length / self._chi - 1.0))
        )  # (44)
        self._path_c = (1.0 - self._c_c) * self._path_c + moving * math.sqrt(
            self._c_c * (2.0 - self._c_c) * self._mu_eff
        ) * step  # (45)
        norms = np.square(y @ whitening).sum(axis=1)
        weights = np.where(
            self._weights >= 0.0, self._weights, self._weights * d / np.maximum(norms, 1e-300)
        )  # (46)
        fading = self._c1 * (1.0 - moving) * self._c_c * (2.0 - self._c_c)
        self._C = (
            (1.0 + fading - self._c1 - self._c_mu * self._weights.sum()) * self._C
            + self._c1 * np.outer(self._path_c, self._path_c)
            + self._c_mu * (y * weights[:, None]).T @ y
        )  # (47)
        self._C = 0.5 * (self._C + self._C.T)
        self._decompose()

    def last(self, num_draws: int) -> list[Generation]:
        """The last generations, as many as hold ``num_draws`` draws."""
        return self.generations[-math.ceil(num_draws / self.size) :]

    @property
    def arrived(self) -> bool:
        """Whether the last values spread no more than those of a Gaussian at its own draws."""
        recent = [generation.values for generation in self.last(max(2 * self.size, 2 * self.dim))]
        if len(self.generations) < 3 or not np.isfinite(recent).all():
            return False
        return bool(np.max(recent) - np.median(recent) < SPREAD * (self.dim / 2 + 1.0))


def moments(theta: Array, family: Family) -> Gaussian:
    """The Gaussian of ``family`` with the mean and, entry by entry, the precision of the draws."""
    mean = theta.mean(axis=0)
    R = np.linalg.qr((theta - mean) / math.sqrt(len(theta)), mode="r")  # covariance Rᵀ R
    L = _lower(solve_triangular(R, np.eye(len(R))))
    factor = L if isinstance(family, Full) else family.factor(precision=L @ L.T)
    return Gaussian.from_factor(mean, factor, family)


def project(q: Gaussian, family: Family) -> Gaussian:
    """The Gaussian of ``family`` with the mean and, entry by entry, the precision of ``q``."""
    return Gaussian.from_factor(q.mean.copy(), family.factor(precision=q.precision), family)


def _lower(R: Array) -> Array:
    """The lower triangular factor of ``R Rᵀ``, without forming it."""
    (T,) = qr(R.T, mode="r", check_finite=False)
    return np.asfortranarray(T.T * np.where(T.diagonal() < 0.0, -1.0, 1.0))
