r"""Logistic functions averaged over Gaussians: one dimension by the trapezoidal rule, more by Sobol points.

The trapezoidal rule with step h is off by about :math:`2 \exp(-2π^2 / (s h))` for
:math:`E[\mathrm{expit}(m + s z)]`, z standard normal, since expit has its poles at ±iπ. A step of 0.7/s makes that
1e-12 for any s, which no Gauss–Hermite rule does.

For a large s that would be many nodes. There the rule sums over the logistic distribution instead: expit is the
distribution function of a logistic L, so that :math:`E[\mathrm{expit}(η)] = E_L[Φ((m - L) / s)]`, and likewise
:math:`E[\log(1 + e^η)] = E[(η - L)_+]`. The poles are the same, and a step of ½ is off by 1e-17 for any s.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_ndtr, logsumexp, ndtr

from mgvbp.core import Array
from mgvbp.estimators import sobol
from mgvbp.models import BLOCK

WIDTH = 8.5
"""Nodes go from −8.5 to 8.5: beyond them there is 2e-17 of the normal distribution."""
WIDE = 10.0
"""Rows with a larger standard deviation go to `mixture`: for them `line` would need ever more nodes."""
LOGISTIC = 0.5 * np.arange(-160, 161)
SHARES = expit(LOGISTIC) * expit(-LOGISTIC)
SHARES /= SHARES.sum()
"""The nodes of the logistic distribution and their probabilities: a step of ½, up to where less than 1e-34 is left."""
NUM_POINTS = 1024
"""Sobol points for three classes or more."""


def log_mean_expit(mean: Array, variance: Array) -> Array:
    """``log E[expit(η)]`` for each ``η ~ N(mean, variance)``, (M,) -> (M,); small values in relative terms.

    Examples
    --------
    >>> np.exp(log_mean_expit(np.array([0.0, 1.0, 1.0]), np.array([4.0, 0.0, 4.0]))).round(4)
    array([0.5   , 0.7311, 0.6477])
    """
    # far out, expit(η) = exp(η) expit(−η) and the normal density tilted by exp(η): N(mean + variance, variance)
    far = mean < -0.5 * variance
    centre = np.where(far, -(mean + variance), mean)
    values = np.where(far, mean + 0.5 * variance, 0.0)
    for rows, eta, weights in line(centre, variance):
        values[rows] += logsumexp(log_expit(eta) + np.log(weights), axis=1)
    for rows, x, _ in mixture(centre, variance):
        values[rows] += logsumexp(log_ndtr(x) + np.log(SHARES), axis=1)
    return values


def sigmoid_moments(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """``E[log(1 + exp η)]``, ``E[p]`` and ``E[p(1 − p)]``, p = expit(η), for each ``η ~ N(mean, variance)``."""
    values = np.empty((3, len(mean)))
    for rows, eta, weights in line(mean, variance):
        p = expit(eta)
        values[0, rows] = -log_expit(-eta) @ weights
        values[1, rows] = p @ weights
        values[2, rows] = (p * expit(-eta)) @ weights
    for rows, x, std in mixture(mean, variance):
        density = np.exp(-0.5 * x**2) / np.sqrt(2.0 * np.pi)
        values[0, rows] = (std * (x * ndtr(x) + density)) @ SHARES
        values[1, rows] = ndtr(x) @ SHARES
        values[2, rows] = (density / std) @ SHARES
    return values[0], values[1], values[2]


def line(mean: Array, variance: Array) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
    """Blocks of narrow rows with the nodes η of each, (n, J), and the weights (J,) of the trapezoidal rule."""
    narrow = np.flatnonzero(variance <= WIDE**2)
    std = np.sqrt(np.maximum(variance, 0.0))
    step = min(0.5, 0.7 / max(std[narrow].max(initial=0.0), 1e-300))
    half = int(np.ceil(WIDTH / step))
    nodes = step * np.arange(-half, half + 1)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    for block in row_blocks(len(narrow), len(nodes)):
        rows = narrow[block]
        yield rows, mean[rows, None] + std[rows, None] * nodes, weights


def mixture(mean: Array, variance: Array) -> Iterator[tuple[NDArray[np.intp], Array, Array]]:
    """Blocks of wide rows with ``(mean − L) / std`` at the nodes L of `SHARES`, (n, J), and their std, (n, 1)."""
    wide = np.flatnonzero(~(variance <= WIDE**2))
    for block in row_blocks(len(wide), len(LOGISTIC)):
        rows = wide[block]
        std = np.sqrt(variance[rows, None])
        yield rows, (mean[rows, None] - LOGISTIC) / std, std


class SoftmaxMoments:
    """``E[log Σ exp]``, ``E[p]`` and ``E[diag(p) − p pᵀ]`` of p = softmax(0, η), η ~ N(mean, covariance).

    Parameters
    ----------
    mean : ndarray of shape (M, K − 1)
    covariance : ndarray of shape (M, K − 1, K − 1)
    num_points : int
        Sobol points.

    Attributes
    ----------
    log_normaliser : ndarray of shape (M,)
    p : ndarray of shape (M, K)
    weight : ndarray of shape (M, K − 1, K − 1)

    Examples
    --------
    >>> SoftmaxMoments(np.array([[0.0, np.log(2.0)]]), np.zeros((1, 2, 2))).p
    array([[0.25, 0.25, 0.5 ]])
    """

    def __init__(self, mean: Array, covariance: Array, num_points: int = NUM_POINTS) -> None:
        M, others = mean.shape
        points = normal_points(others, num_points) if covariance.any() else np.zeros((1, others))
        self.log_normaliser = np.empty(M)
        self.p = np.empty((M, others + 1))
        self.weight = np.empty((M, others, others))
        for rows in row_blocks(M, len(points) * (others + 1)):
            # the symmetric root is continuous: equal rows get equal values, whatever rows are beside them
            variances, axes = np.linalg.eigh(covariance[rows])
            root = (axes * np.sqrt(np.maximum(variances, 0.0))[:, None, :]) @ axes.mT
            # the scores of the other classes, (n, K − 1, points): sums run over long vectors
            p = root @ points.T
            p += mean[rows, :, None]
            top = np.maximum(p.max(axis=1), 0.0)
            p -= top[:, None]
            np.exp(p, out=p)
            first = np.exp(-top)
            total = p.sum(axis=1) + first
            p /= total[:, None]
            self.log_normaliser[rows] = (top + np.log(total)).mean(axis=1)
            self.p[rows, 0] = (first / total).mean(axis=1)
            self.p[rows, 1:] = p.mean(axis=2)
            self.weight[rows] = p @ p.mT / -len(points)
        diagonal = np.arange(others)
        self.weight[:, diagonal, diagonal] += self.p[:, 1:]


@cache
def normal_points(dim: int, number: int) -> Array:
    """Sobol points and their negatives, (number, dim), always the same; cubics are integrated exactly.

    Odd moments cancel, and the points are stretched to have the covariance of the standard normal distribution. Fewer
    than ``dim`` points besides their negatives would span no such covariance, so that there are at least twice as many.
    """
    least = 2 ** (2 * dim - 1).bit_length()
    points = sobol(np.random.default_rng(0), max(number // 2, least), dim)
    L = np.linalg.cholesky(points.T @ points / len(points))
    points = np.linalg.solve(L, points.T).T
    return np.concatenate([points, -points])


def row_blocks(rows: int, numbers: int) -> list[slice]:
    """Slices of rows of about `BLOCK` numbers each, at ``numbers`` a row."""
    height = max(1, BLOCK // numbers)
    return [slice(i, i + height) for i in range(0, rows, height)]
