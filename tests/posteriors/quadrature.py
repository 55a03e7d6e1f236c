"""Evidence, moments and quantiles for d ≤ 3 by the trapezoid rule in the frame of some draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .chains import Frame
from .moments import weighted_quantiles

POINTS = {1: 20_001, 2: 1001, 3: 121}
"""Of each axis; odd, so that every second one makes the coarse grid that tells the error."""
EDGE = 1e-7
"""The box grows until its faces hold less than this of the mass, per grid plane."""
CHUNK = 200_000


class Integral(NamedTuple):
    """What a grid says, (d,) or (3, d) where it is of the coordinates."""

    log_evidence: float
    mean: np.ndarray
    sd: np.ndarray
    quantiles: np.ndarray


def grid(axes: list[np.ndarray]) -> np.ndarray:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def on_grid(f: Callable[[np.ndarray], np.ndarray], frame: Frame, axes: list[np.ndarray]) -> np.ndarray:
    """The log densities, as an array of the grid's shape."""
    points = grid(axes)
    parts = np.split(points, range(CHUNK, len(points), CHUNK))
    values = np.concatenate([f(frame.centre + part @ frame.factor.T) for part in parts])
    return np.nan_to_num(values, nan=-np.inf).reshape([len(axis) for axis in axes])


def box(f: Callable[[np.ndarray], np.ndarray], frame: Frame) -> list[tuple[float, float]]:
    """Limits in the frame, grown or shrunk on a coarse grid until they just hold the mass."""
    dim = len(frame.centre)
    limits = [(-6.0, 6.0)] * dim
    for _ in range(25):
        axes = [np.linspace(low, high, {1: 2001, 2: 201, 3: 41}[dim]) for low, high in limits]
        values = on_grid(f, frame, axes)
        weights = np.exp(values - values.max())
        weights /= weights.sum()
        new, held = [], True
        for i, (low, high) in enumerate(limits):
            marginal = weights.sum(axis=tuple(j for j in range(dim) if j != i))
            width = high - low
            grow = [marginal[0] > EDGE, marginal[-1] > EDGE]
            held &= not any(grow)
            inside = (
                np.flatnonzero(np.cumsum(marginal) > EDGE)[0],
                np.flatnonzero(np.cumsum(marginal[::-1]) > EDGE)[0],
            )
            step = width / (len(marginal) - 1)
            shrink = [max(int(k) - 3, 0) * step for k in inside]
            new.append(
                (
                    low - 0.25 * width if grow[0] else low + shrink[0],
                    high + 0.25 * width if grow[1] else high - shrink[1],
                )
            )
        limits = new
        if held:
            return limits
    raise ArithmeticError("the mass does not fit into a box")


def integral(values: np.ndarray, frame: Frame, axes: list[np.ndarray]) -> Integral:
    top = values.max()
    weights = np.exp(values - top).ravel()
    cell = float(np.prod([axis[1] - axis[0] for axis in axes]))
    log_evidence = top + np.log(weights.sum() * cell) + np.log(np.abs(np.diag(frame.factor))).sum()
    weights /= weights.sum()
    kept = weights > 1e-13
    theta, weights = frame.centre + grid(axes)[kept] @ frame.factor.T, weights[kept]
    mean = weights @ theta
    sd = np.sqrt(weights @ (theta - mean) ** 2)
    return Integral(float(log_evidence), mean, sd, weighted_quantiles(theta, weights))


def quadrature(f: Callable[[np.ndarray], np.ndarray], frame: Frame) -> tuple[Integral, Integral]:
    """On the fine grid, and the absolute differences to every second point of it."""
    limits = box(f, frame)
    axes = [np.linspace(low, high, POINTS[len(limits)]) for low, high in limits]
    values = on_grid(f, frame, axes)
    fine = integral(values, frame, axes)
    thinned = tuple(slice(None, None, 2) for _ in axes)
    coarse = integral(values[thinned], frame, [axis[::2] for axis in axes])
    return fine, Integral(*(np.abs(np.subtract(a, b)) for a, b in zip(fine, coarse, strict=True)))
