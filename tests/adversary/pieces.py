"""A piece: a log density of a few coordinates, its expectation under a Gaussian, and its best Gaussian.

Nothing here uses mgvbp. An expectation is a closed form, or a sum over fixed nodes of N(0, I): the trapezoidal rule out
to ten standard deviations in one dimension and to eight in two (its error vanishes faster than any power for smooth
functions, and a jump costs at most half the weight of a node), Sobol points with exact moments in more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import approx_fprime, minimize

from zoo.bound import LOG_2PI, cached_normals

STEP = 1e-4
"""Step of the differences that give gradients: their errors, of fourth order, are below 1e-10 at scales of one."""
SPREADS = {1: (1.0, 0.2, 30.0, 1e-4), 2: (1.0, 0.2, 30.0), 3: (0.5,)}
"""Standard deviations from which the search for the best Gaussian starts; the last is for three dimensions and more."""


class Nodes(NamedTuple):
    """Points of N(0, I), (n, k), and their weights."""

    z: np.ndarray
    weight: np.ndarray


@functools.lru_cache(maxsize=12)
def nodes(dim: int, level: int = 0) -> Nodes:
    """The nodes in so many dimensions; a level of -1 has fewer, for a search."""
    if dim > 2:
        z = cached_normals(2 ** (15 + 2 * level), dim, 40 + level)
        return Nodes(z, np.full(len(z), 1.0 / len(z)))
    reach, intervals = ((10.0, 2**14), (8.0, 320))[dim - 1]
    line = np.linspace(-reach, reach, int(intervals * 2.0**level) + 1)
    axes = np.meshgrid(*[line] * dim, indexing="ij")
    z = np.stack([axis.ravel() for axis in axes], axis=1)
    weight = np.exp(-0.5 * (z**2).sum(axis=1))
    return Nodes(z, weight / weight.sum())


@dataclass(frozen=True, eq=False)
class Piece:
    """A log density of k coordinates.

    Parameters
    ----------
    f : callable
        ``f(x, y, ...)``: one array for each coordinate, to the log densities.
    dim : int
    starts : tuple of float or of tuples
        Means from which the search for the best Gaussian starts too, where zero is not enough.
    closed : callable, optional
        ``closed(mean, covariance)``: the expectation of f.
    """

    f: Callable[..., np.ndarray]
    dim: int = 1
    starts: tuple = ()
    closed: Callable[[np.ndarray, np.ndarray], float] | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Log density at the rows of x (S, k); -inf where it is not defined."""
        with np.errstate(all="ignore"):
            values = self.f(*x.T)
        return np.where(np.isnan(values), -np.inf, values)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradients (S, k), by differences of fourth order."""
        shifts = STEP * np.concatenate([h * np.eye(self.dim) for h in (1.0, -1.0, 2.0, -2.0)])
        values = self((x + shifts[:, None]).reshape(-1, self.dim)).reshape(4, self.dim, len(x))
        ahead, behind, far_ahead, far_behind = values
        return ((8.0 * (ahead - behind) - (far_ahead - far_behind)) / (12.0 * STEP)).T

    def expectation(self, mean: np.ndarray, scale: np.ndarray) -> float:
        """E f under a Gaussian with this mean and factor of the covariance."""
        if self.closed:
            return self.closed(mean, scale @ scale.T)
        z, weight = nodes(self.dim)
        values = self(mean + z @ scale.T)
        return float(weight @ values) if np.isfinite(values).all() else -np.inf


def lower_factor(root: np.ndarray) -> np.ndarray:
    """The lower factor of ``rootᵀ root``, with a positive diagonal; never by the product, which may lose all digits."""
    upper = np.linalg.qr(root)[1]
    return upper.T * np.where(np.diag(upper) < 0.0, -1.0, 1.0)


class Best(NamedTuple):
    """The best Gaussian: its lower bound, mean and the lower factor of its covariance."""

    bound: float
    mean: np.ndarray
    scale: np.ndarray


class Chart:
    """Parameters of a Gaussian for L-BFGS: the mean, the log diagonal of the factor T and, if full, the rest of it."""

    def __init__(self, dim: int, diagonal: bool) -> None:
        self.dim = dim
        self.below = np.tril_indices(dim, -1) if not diagonal else (np.array([], int), np.array([], int))

    def gaussian(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scale = np.diag(np.exp(x[self.dim : 2 * self.dim]))
        scale[self.below] = x[2 * self.dim :]
        return x[: self.dim], scale

    def start(self, mean: np.ndarray, sd: float) -> np.ndarray:
        return np.concatenate([mean, np.full(self.dim, np.log(sd)), np.zeros(len(self.below[0]))])

    def pull(self, to_mean: np.ndarray, to_scale: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """The derivative of the bound in x, from that of the expectation by mean (k,) and factor (k, k)."""
        return np.concatenate([to_mean, np.diag(to_scale) * np.diag(scale) + 1.0, to_scale[self.below]])


def loss(x: np.ndarray, piece: Piece, chart: Chart, level: int) -> tuple[float, np.ndarray]:
    """Minus the lower bound, and its gradient.

    In one and two dimensions the derivatives come from those of the normal density, so f may jump; in more from the
    differences of f at the nodes.
    """
    mean, scale = chart.gaussian(x)
    entropy = 0.5 * chart.dim * (1.0 + LOG_2PI) + float(x[chart.dim : 2 * chart.dim].sum())
    if piece.closed:

        def whole(x: np.ndarray) -> float:
            mean, scale = chart.gaussian(x)
            return -piece.expectation(mean, scale) - float(x[chart.dim : 2 * chart.dim].sum())

        return whole(x), approx_fprime(x, whole, 1e-7)
    z, weight = nodes(chart.dim, level)
    points = mean + z @ scale.T
    values = piece(points)
    if not np.isfinite(values).all():
        return 1e12, np.zeros_like(x)
    average = float(weight @ values)
    if chart.dim > 2:
        gradients = weight[:, None] * piece.gradient(points)
        to_mean, to_scale = gradients.sum(axis=0), gradients.T @ z
    else:
        weighted = weight * (values - average)
        to_mean = np.linalg.solve(scale.T, weighted @ z)
        to_scale = np.linalg.solve(scale.T, (z.T * weighted) @ z)
    return -average - entropy, -chart.pull(to_mean, to_scale, scale)


def climb(x: np.ndarray, piece: Piece, chart: Chart, level: int) -> np.ndarray:
    """L-BFGS on the nodes of a level, begun again twice, since it may stop early."""
    free = [(None, None)]
    bounds = free * chart.dim + [(-30.0, 30.0)] * chart.dim + free * len(chart.below[0])
    options = {"maxiter": 500, "maxcor": 20, "ftol": 1e-13, "gtol": 1e-7}
    for _ in range(3):
        x = minimize(
            loss,
            x,
            args=(piece, chart, level),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=options,
        ).x
    return x


def best(piece: Piece, diagonal: bool = False) -> Best:
    """The best Gaussian of a piece, by L-BFGS from several means and standard deviations, on ever more nodes."""
    dim, chart = piece.dim, Chart(piece.dim, diagonal)
    aside = np.random.default_rng(5).standard_normal((2, dim))
    means = [np.zeros(dim), *aside, *(np.broadcast_to(np.array(m, float), dim) for m in piece.starts)]
    coarse, fine = (-2, -1) if dim > 2 else (0, 0) if dim == 1 else (-1, -1)
    ends = [
        climb(chart.start(mean, sd), piece, chart, coarse) for mean in means for sd in SPREADS[min(dim, 3)]
    ]
    top = min(ends, key=lambda x: loss(x, piece, chart, coarse)[0])
    mean, scale = chart.gaussian(climb(top, piece, chart, fine))
    bound = piece.expectation(mean, scale) + 0.5 * dim * (1.0 + LOG_2PI)
    return Best(bound + float(np.log(np.diag(scale)).sum()), mean, scale)
