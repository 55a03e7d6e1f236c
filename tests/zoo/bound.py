"""The lower bound of a Gaussian on a target, by scrambled Sobol points with exact first two moments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from .base import Target

if TYPE_CHECKING:
    from mgvbp import Gaussian

CHUNK = 1024
LOG_2PI = float(np.log(2.0 * np.pi))


def sobol_normals(num: int, dim: int, seed: int) -> np.ndarray:
    """Scrambled Sobol points as normals (num, dim), centred and whitened: mean 0, covariance I exactly.

    The bound of a Gaussian target is then exact, and that of a nearly Gaussian one nearly so.
    """
    uniforms = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed)).random(num)
    eps = ndtri(np.clip(uniforms, 2.0**-32, 1.0 - 2.0**-32))
    eps -= eps.mean(axis=0)
    whiten = np.linalg.inv(np.linalg.cholesky(eps.T @ eps / num))
    return np.asarray(eps @ whiten.T)


cached_normals = functools.lru_cache(maxsize=8)(sobol_normals)


def mean_log_density(
    log_density: Callable[[np.ndarray], np.ndarray],
    points: Callable[[np.ndarray], np.ndarray],
    eps: np.ndarray,
) -> float:
    """Average of ``log_density(points(eps))`` in chunks that keep the memory small."""
    total = sum(
        float(log_density(points(chunk)).sum()) for chunk in np.split(eps, range(CHUNK, len(eps), CHUNK))
    )
    return total / len(eps)


def lower_bound(
    target: Target, gaussian: Gaussian, num: int = 2**14, seeds: Iterable[int] = range(4)
) -> tuple[float, float]:
    """``E_q log p(θ) + entropy of q``: the average over scrambles and its standard error between them.

    Parameters
    ----------
    target : Target
    gaussian : Gaussian
        The q to judge.
    num : int
        Points per scramble, a power of two.
    seeds : iterable of int
        One scramble each.

    Returns
    -------
    value, se : float
        ``se`` is nan for one seed. A target that is -inf or nan under q gives a non-finite value.
    """
    family, factor = gaussian.family, gaussian.factor
    entropy = 0.5 * gaussian.dim * (1.0 + LOG_2PI) - float(np.log(family.diagonal(factor)).sum())

    def points(eps: np.ndarray) -> np.ndarray:
        return gaussian.mean + family.from_frame(factor, eps)

    values = [
        mean_log_density(target.log_density, points, cached_normals(num, gaussian.dim, seed))
        for seed in seeds
    ]
    with np.errstate(invalid="ignore"):
        se = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
    return float(np.mean(values)) + entropy, se
