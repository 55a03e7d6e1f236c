"""Densities of known shape: their evidence and independent draws are in ``closed_forms``."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from zoo import logpdf
from zoo.base import Density

from .registry import target


def rosenbrock(dim: int, first_sd: float, sd: float) -> Density:
    """``x₁ ~ N(1, first_sd²)`` and ``x_{i+1} ~ N(x_i², sd²)``, normalised."""

    def density(theta, xp):
        start = logpdf.prior(xp, theta[:, :1], 1.0, first_sd)
        return start + logpdf.prior(xp, theta[:, 1:], theta[:, :-1] ** 2, sd)

    return density


ROSENBROCK = {"rosenbrock_2": (2, 0.8, 0.4), "rosenbrock_4": (4, 0.3, 0.3)}
"""Dimension, sd of the first coordinate and of the others given the one before."""


@target(2, "curved")
def rosenbrock_2():
    return rosenbrock(*ROSENBROCK["rosenbrock_2"])


@target(4, "curved")
def rosenbrock_4():
    return rosenbrock(*ROSENBROCK["rosenbrock_4"])


RING = (2.0, 0.4)
"""Radius and width."""


@target(2, "curved", "multimodal")
def ring_2():
    """The radius is normal around 2: no Gaussian and no single mode."""
    radius, width = RING

    def density(theta, xp):
        r = xp.sqrt((theta**2).sum(-1) + 1e-12)
        return -0.5 * ((r - radius) / width) ** 2

    return density


class Modes(NamedTuple):
    """A mixture of normals: weights (K,), means (K, d), sds (K, d) before a common rotation (d, d)."""

    weights: np.ndarray
    means: np.ndarray
    sds: np.ndarray
    rotation: np.ndarray


def modes(weights: list[float], means: list[list[float]], sds: list[list[float]], seed: int) -> Modes:
    dim = len(means[0])
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]
    return Modes(np.array(weights), np.array(means), np.array(sds), rotation)


MODES = {
    "two_modes_2": modes([0.65, 0.35], [[-1.5, 0.0], [1.5, 0.5]], [[0.8, 0.5], [0.5, 1.0]], 1),
    "two_modes_3": modes([0.7, 0.3], [[-2.0, 0.0, 0.0], [2.0, 1.0, 0.0]], [[1, 0.6, 0.8], [0.6, 1, 0.5]], 2),
    "three_modes_2": modes([0.5, 0.3, 0.2], [[-3, 0], [2, 2], [2, -3]], [[1, 0.7], [0.6, 0.6], [0.8, 1]], 3),
    "two_modes_5": modes(
        [0.8, 0.2],
        [[-0.8, 0, 0, 0, 0], [2.4, 0.5, 0, -0.5, 0]],
        [[1, 0.8, 0.6, 1, 0.9], [0.6, 0.6, 0.6, 0.6, 0.6]],
        4,
    ),
    "three_modes_5": modes(
        [0.55, 0.3, 0.15],
        [[-2, 0, 0, 0, 0], [2, 1.5, 0, 0, 0], [1, -3, 1, 0, 0]],
        [[1, 1, 0.7, 0.7, 1], [0.7, 0.7, 1, 0.7, 1], [0.5, 0.7, 0.7, 1, 1]],
        5,
    ),
}


def mixture(parts: Modes) -> Density:
    def density(theta, xp):
        x = theta @ parts.rotation
        each = [
            math.log(weight) + logpdf.prior(xp, x, mean, sd)
            for weight, mean, sd in zip(*parts[:3], strict=True)
        ]
        return logpdf.logsumexp(xp, xp.stack(each, axis=-1))

    return density


@target(2, "multimodal")
def two_modes_2():
    """Overlapping modes."""
    return mixture(MODES["two_modes_2"])


@target(3, "multimodal")
def two_modes_3():
    """Weights 0.7 and 0.3, four apart."""
    return mixture(MODES["two_modes_3"])


@target(2, "multimodal")
def three_modes_2():
    return mixture(MODES["three_modes_2"])


@target(5, "multimodal")
def two_modes_5():
    """A narrow second mode of weight 0.2 on the shoulder of the first."""
    return mixture(MODES["two_modes_5"])


@target(5, "multimodal")
def three_modes_5():
    return mixture(MODES["three_modes_5"])


SINH_SKEW = np.array([0.6, -0.5, 0.4, 0.3, 0.0, 0.0])
SINH_TAIL = np.array([1.0, 1.0, 1.0, 1.0, 0.75, 1.3])
SINH_MIX = np.eye(6) + 0.5 * np.eye(6, k=1)
"""θ = x SINH_MIX⁻¹ with independent sinh-arcsinh coordinates x."""


@target(6, "skewed")
def sinh_arcsinh_6():
    """Four skewed coordinates, a heavy-tailed and a light-tailed one, sheared; normalised."""

    def density(theta, xp):
        x = theta @ SINH_MIX
        inner = SINH_TAIL * xp.arcsinh(x) - SINH_SKEW
        z = xp.sinh(inner)
        log_slope = xp.log(SINH_TAIL * xp.cosh(inner)) - 0.5 * xp.log1p(x**2)
        return (-0.5 * z**2 - 0.5 * logpdf.LOG_2PI + log_slope).sum(-1)

    return density
