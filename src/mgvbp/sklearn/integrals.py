r"""Logistic functions averaged over Gaussians: one dimension by the trapezoidal rule, more by Sobol points.

The trapezoidal rule with step h is off by about :math:`2 \exp(-2π^2 / (s h))` for
:math:`E[\mathrm{expit}(m + s z)]`, z standard normal, since expit has its poles at ±iπ. A step of 0.7/s makes that
1e-12 for any s, which no Gauss–Hermite rule does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from mgvbp._linalg import Array
from mgvbp.draws import sobol
from mgvbp.models.base import BLOCK

WIDTH = 8.5
"""Beyond ±8.5 there is 2e-17 of the normal distribution."""
NUM_POINTS = 1024


def log_mean_expit(mean: Array, variance: Array) -> Array:
    """``log E[expit(η)]`` for each ``η ~ N(mean, variance)``, (M,) -> (M,).

    Examples
    --------
    >>> np.exp(log_mean_expit(np.array([0.0, 1.0, 1.0]), np.array([4.0, 0.0, 4.0]))).round(4)
    array([0.5   , 0.7311, 0.6477])
    """
    values = np.empty(len(mean))
    for rows, eta, weights in line(mean, variance):
        values[rows] = logsumexp(log_expit(eta) + np.log(weights), axis=1)
    return values


def sigmoid_moments(mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """``E[log(1 + exp η)]``, ``E[p]`` and ``E[p(1 − p)]``, p = expit(η), for each ``η ~ N(mean, variance)``."""
    values = np.empty((3, len(mean)))
    for rows, eta, weights in line(mean, variance):
        p = expit(eta)
        values[0, rows] = -log_expit(-eta) @ weights
        values[1, rows] = p @ weights
        values[2, rows] = (p * expit(-eta)) @ weights
    return values[0], values[1], values[2]


def line(mean: Array, variance: Array) -> Iterator[tuple[slice, Array, Array]]:
    """Blocks of rows with the nodes η of each, (n, J), and the weights (J,) of the trapezoidal rule."""
    std = np.sqrt(np.maximum(variance, 0.0))
    step = min(0.5, 0.7 / max(std.max(initial=0.0), 1e-300))
    half = int(np.ceil(WIDTH / step))
    nodes = step * np.arange(-half, half + 1)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    for rows in row_blocks(len(mean), len(nodes)):
        yield rows, mean[rows, None] + std[rows, None] * nodes, weights


class SoftmaxMoments:
    """``E[log Σ exp]``, ``E[p]`` and ``E[diag(p) − p pᵀ]`` of p = softmax(0, η), η ~ N(mean, covariance).

    Parameters
    ----------
    mean : ndarray of shape (M, K − 1)
    covariance : ndarray of shape (M, K − 1, K − 1)

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

    def __init__(self, mean: Array, covariance: Array) -> None:
        M, others = mean.shape
        points = normal_points(others)
        self.log_normaliser = np.empty(M)
        self.p = np.empty((M, others + 1))
        self.weight = np.empty((M, others, others))
        for rows in row_blocks(M, len(points) * (others + 1)):
            # the symmetric root is continuous: equal rows get equal values, whatever rows are beside them
            variances, axes = np.linalg.eigh(covariance[rows])
            root = (axes * np.sqrt(np.maximum(variances, 0.0))[:, None, :]) @ axes.mT
            scores = np.zeros((len(root), len(points), others + 1))
            scores[..., 1:] = mean[rows, None] + points @ root
            top = scores.max(axis=2, keepdims=True)
            p = np.exp(scores - top)
            total = p.sum(axis=2, keepdims=True)
            p /= total
            self.log_normaliser[rows] = (top + np.log(total)).mean(axis=(1, 2))
            self.p[rows] = p.mean(axis=1)
            q = p[..., 1:]
            self.weight[rows] = q.mT @ q / -len(points)
        diagonal = np.arange(others)
        self.weight[:, diagonal, diagonal] += self.p[:, 1:]


@cache
def normal_points(dim: int) -> Array:
    """Sobol points and their negatives, (`NUM_POINTS`, dim), always the same; cubics are integrated exactly.

    Odd moments cancel, and the points are stretched to have the covariance of the standard normal distribution.
    """
    points = sobol(np.random.default_rng(0), NUM_POINTS // 2, dim)
    L = np.linalg.cholesky(points.T @ points / len(points))
    points = np.linalg.solve(L, points.T).T
    return np.concatenate([points, -points])


def row_blocks(rows: int, numbers: int) -> list[slice]:
    """Slices of rows of about `BLOCK` numbers each, at ``numbers`` a row."""
    height = max(1, BLOCK // numbers)
    return [slice(i, i + height) for i in range(0, rows, height)]
