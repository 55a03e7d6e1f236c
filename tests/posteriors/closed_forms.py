"""Log evidence in closed form and independent draws, for the targets that have them.

From a million independent draws come the moments and quantiles, to a thousandth of an sd.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, ndtr

from zoo.logpdf import LOG_2PI
from zoo.targets_hierarchical import SCHOOLS_EFFECT, SCHOOLS_SE
from zoo.targets_shapes import rotation

from .hierarchies import MEANS_PRIOR, MEANS_SE, MEANS_Y
from .shapes import MODES, RING, ROSENBROCK, SINH_MIX, SINH_SKEW, SINH_TAIL, Modes

Draw = Callable[[np.random.Generator, int], np.ndarray]


class Exact(NamedTuple):
    """The log evidence, and ``draw(rng, num)`` for independent draws (num, d)."""

    log_evidence: float
    draw: Draw


def normal(mean: np.ndarray, precision_factor: np.ndarray) -> Exact:
    """A normalised Gaussian with precision ``F Fᵀ``, as `zoo.targets_shapes.gaussian` has it."""
    inverse = np.linalg.inv(precision_factor)
    return Exact(0.0, lambda rng, num: mean + rng.standard_normal((num, len(mean))) @ inverse)


def gaussian_scales() -> Exact:
    sd = np.logspace(-6, 6, 6)
    correlation = 0.5 * np.eye(6) + 0.5
    factor = np.linalg.inv(np.linalg.cholesky(correlation)).T / sd[:, None]
    return normal(sd * np.array([1, -1, 2, -2, 1, 3]), factor)


def log_gamma(shapes: np.ndarray, mix: np.ndarray, log_evidence: float) -> Exact:
    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        # log Gamma(a) = log Gamma(a + 1) + log(U) / a, which does not underflow for small a
        x = np.log(rng.gamma(shapes + 1.0, size=(num, len(shapes))))
        return (x + np.log(rng.random(x.shape)) / shapes) @ np.linalg.inv(mix)

    return Exact(log_evidence, draw)


def skew_normal_2() -> Exact:
    """``x`` if a normal falls below its slant, else ``-x``."""
    slant = np.array([4.0, -2.0])

    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        x = rng.standard_normal((num, 2)) * np.array([1.0, 3.0])
        return np.where((rng.random(num) < ndtr(x @ slant))[:, None], x, -x)

    return Exact(math.log(0.5), draw)


def banana(curvature: np.ndarray) -> Exact:
    half = len(curvature)

    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        x = 2.0 * rng.standard_normal((num, half))
        y = curvature * (x**2 - 4.0) + rng.standard_normal((num, half))
        return np.column_stack([x, y])

    return Exact(half * (math.log(2.0) + LOG_2PI), draw)


def funnel(dim: int, sd: float) -> Exact:
    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        v = sd * rng.standard_normal((num, 1))
        return np.column_stack([v, np.exp(0.5 * v) * rng.standard_normal((num, dim - 1))])

    return Exact(0.0, draw)


def student_t_5() -> Exact:
    root = np.linalg.cholesky(0.4 * np.eye(5) + 0.6)
    log_det = float(np.log(np.diag(root)).sum())
    constant = float(gammaln(5.0) - gammaln(2.5)) - 2.5 * math.log(5.0 * math.pi) - log_det

    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        scale = np.sqrt(rng.chisquare(5.0, num) / 5.0)[:, None]
        return 1.0 + rng.standard_normal((num, 5)) @ root.T / scale

    return Exact(-constant, draw)


def laplace_4() -> Exact:
    scale = np.array([0.1, 0.5, 2.0, 10.0])
    inverse = np.linalg.inv(np.eye(4) + 0.5 * np.eye(4, k=1))
    return Exact(
        4 * math.log(2.0) + float(np.log(scale).sum()),
        lambda rng, num: (rng.laplace(size=(num, 4)) @ inverse + 1.0) * scale,
    )


def mixture(parts: Modes) -> Exact:
    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        which = rng.choice(len(parts.weights), num, p=parts.weights)
        x = parts.means[which] + parts.sds[which] * rng.standard_normal((num, parts.means.shape[1]))
        return x @ parts.rotation.T

    return Exact(0.0, draw)


def rosenbrock(dim: int, first_sd: float, sd: float) -> Exact:
    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        theta = rng.standard_normal((num, dim))
        theta[:, 0] = 1.0 + first_sd * theta[:, 0]
        for i in range(1, dim):
            theta[:, i] = theta[:, i - 1] ** 2 + sd * theta[:, i]
        return theta

    return Exact(0.0, draw)


def ring(radius: float, width: float) -> Exact:
    """The radius has density r N(r; radius, width²) on r > 0, and the angle is uniform."""
    z = radius / width
    tail = width**2 * math.exp(-0.5 * z**2) + radius * width * math.sqrt(2 * math.pi) * float(ndtr(z))

    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        r = np.zeros(0)
        while len(r) < num:  # the acceptance is about 1 / 2
            trial = radius + width * rng.standard_normal(num)
            limit = radius + 6.0 * width
            r = np.concatenate([r, trial[(trial > 0) & (rng.random(num) * limit < trial)]])
        angle = rng.uniform(0.0, 2.0 * np.pi, num)
        return r[:num, None] * np.column_stack([np.cos(angle), np.sin(angle)])

    return Exact(math.log(2.0 * math.pi * tail), draw)


def sinh_arcsinh() -> Exact:
    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        z = rng.standard_normal((num, 6))
        return np.sinh((np.arcsinh(z) + SINH_SKEW) / SINH_TAIL) @ np.linalg.inv(SINH_MIX)

    return Exact(0.0, draw)


def hierarchy(
    y: np.ndarray, se: np.ndarray, log_prior: Callable[[np.ndarray], np.ndarray], centred: bool
) -> Exact:
    """Estimates y of effects around μ ~ N(0, 10²): log τ on a grid, then μ and the effects given it are normal."""
    log_tau = np.linspace(-25.0, 12.0, 40_001)
    variance = np.exp(2.0 * log_tau)[:, None] + se**2
    precision = 1.0 / 10.0**2 + (1.0 / variance).sum(axis=1)
    mu = (y / variance).sum(axis=1) / precision
    value = log_prior(log_tau) - 0.5 * (np.log(2.0 * np.pi * variance) + y**2 / variance).sum(axis=1)
    value += 0.5 * precision * mu**2 - 0.5 * np.log(precision) - np.log(10.0)
    total = logsumexp(value)
    step = log_tau[1] - log_tau[0]

    def draw(rng: np.random.Generator, num: int) -> np.ndarray:
        which = rng.choice(len(log_tau), num, p=np.exp(value - total))
        where = log_tau[which] + step * (rng.random(num) - 0.5)
        tau2 = np.exp(2.0 * where)[:, None]
        middle = (mu[which] + rng.standard_normal(num) / np.sqrt(precision[which]))[:, None]
        shrunk = 1.0 / (1.0 / tau2 + 1.0 / se**2)
        effects = shrunk * (middle / tau2 + y / se**2) + np.sqrt(shrunk) * rng.standard_normal((num, len(y)))
        last = effects if centred else (effects - middle) / np.sqrt(tau2)
        return np.column_stack([middle[:, 0], where, last])

    return Exact(float(total + np.log(step)), draw)


def schools(centred: bool) -> Exact:
    """τ is half-normal(10), without the constant."""
    return hierarchy(
        SCHOOLS_EFFECT, SCHOOLS_SE, lambda log_tau: log_tau - 0.5 * (np.exp(log_tau) / 10.0) ** 2, centred
    )


def groups(centred: bool) -> Exact:
    """τ is half-Cauchy."""
    scale = MEANS_PRIOR[2]

    def log_prior(log_tau: np.ndarray) -> np.ndarray:
        return np.log(2.0 / (np.pi * scale)) + log_tau - np.log1p((np.exp(log_tau) / scale) ** 2)

    return hierarchy(MEANS_Y, MEANS_SE, log_prior, centred)


BIMODAL = Modes(
    np.array([0.8, 0.2]), np.array([[-2.0, 0.0], [4.0, 1.0]]), np.array([[1.0] * 2, [0.7] * 2]), np.eye(2)
)

EXACT: dict[str, Callable[[], Exact]] = {
    "gaussian_condition_1e10": lambda: normal(
        np.linspace(-1.0, 1.0, 10), rotation(10, 1) * np.logspace(-2.5, 2.5, 10)
    ),
    "gaussian_scales": gaussian_scales,
    "gaussian_far_narrow": lambda: normal(np.full(3, 50.0), np.eye(3) / 0.1),
    "gaussian_location_1e3": lambda: normal(
        np.array([1e3, -1e3, 2e3, 1e3]), rotation(4, 2) / np.array([1.0, 5.0, 20.0, 100.0])
    ),
    "log_gamma": lambda: log_gamma(np.array([2.0]), np.eye(1), 0.0),
    "log_gamma_5": lambda: log_gamma(
        np.array([0.3, 0.7, 1.5, 4.0, 10.0]), np.eye(5) + 0.4 * np.eye(5, k=1), 0.0
    ),
    "skew_normal_2": skew_normal_2,
    "banana_2": lambda: banana(np.array([0.15])),
    "banana_10": lambda: banana(np.linspace(0.03, 0.15, 5)),
    "funnel_3": lambda: funnel(3, 1.5),
    "funnel_10": lambda: funnel(10, 1.0),
    "student_t_5": student_t_5,
    "laplace_4": laplace_4,
    "bimodal_2": lambda: mixture(BIMODAL),
    "eight_schools_centred": lambda: schools(True),
    "eight_schools_noncentred": lambda: schools(False),
    "groups_centred": lambda: groups(True),
    "groups_noncentred": lambda: groups(False),
    "ring_2": lambda: ring(*RING),
    "sinh_arcsinh_6": sinh_arcsinh,
    **{name: lambda parts=parts: mixture(parts) for name, parts in MODES.items()},
    **{name: lambda numbers=numbers: rosenbrock(*numbers) for name, numbers in ROSENBROCK.items()},
}
"""By the target's name, of this package or of the zoo."""
