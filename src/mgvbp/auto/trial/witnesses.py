"""Draws that show what draws from q seldom do: from a Gaussian that is wider in one direction, or evenly spread."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from mgvbp.auto import constants
from mgvbp.core.linalg import Array
from mgvbp.families import Full
from mgvbp.families.gaussian import Gaussian


def widened(q: Gaussian, direction: Array, factor: float = constants.WIDER) -> Gaussian:
    r"""``q`` with ``factor`` s times the standard deviation in a direction u (d,) of its frame.

    In the frame the precision is :math:`I - (1 - s^{-2}) u u^\top`. The other directions keep their distribution.
    """
    steep = q.family.times(q.factor, direction)
    precision = q.precision - (1.0 - factor**-2) * np.outer(steep, steep)
    full = Full(q.dim)
    return Gaussian.from_factor(q.mean, full.factor(precision=precision), full)


def witnesses(q: Gaussian, direction: Array, count: int, rng: np.random.Generator) -> Array:
    """Draws (count, d) from `widened`, stratified in the direction so that they reach into both tails."""
    eps = rng.standard_normal((count, q.dim))
    eps += (constants.WIDER * stratified(count, 1, rng)[:, 0] - eps @ direction)[:, None] * direction
    return q.mean + q.family.from_frame(q.factor, eps)


def stratified(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Draws (count, d) from N(0, I) that are evenly spread along each coordinate (a Latin hypercube)."""
    order = rng.permuted(np.tile(np.arange(count)[:, None], (1, dim)), axis=0)
    return np.asarray(ndtri((order + rng.uniform(size=(count, dim))) / count))
