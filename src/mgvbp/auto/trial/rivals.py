"""Other Gaussians that may be better than a result: at another mode, at a peak inside of it, or much wider.

What is judged here are the points that are known anyway, draws and probes. The search goes where one of them promises
more, and returns if it finds nothing better (`court`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mgvbp.auto import constants
from mgvbp.auto.trial.sentence import grown, predicted
from mgvbp.auto.trial.trial import FAR, NEAR, Trial
from mgvbp.auto.trial.witnesses import widened
from mgvbp.core.linalg import Array
from mgvbp.families import Full
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive
from mgvbp.surfaces.surface import Surface


def elsewhere(trial: Trial, archive: Archive, surface: Surface, seen: Sequence[Gaussian]) -> Array | None:
    """The highest point (d,) that may belong to another mode; None if there is none.

    Outside of q, and of the Gaussians ``seen`` before, it must be hardly lower than the highest draw, and higher than
    the surface predicts: a diagonal q is narrow where its target is long. Inside of q it must be a `peak`. Wherever
    draws have looked, it may also be on the slope of a mode, and low still (`_risen`).
    """
    q = trial.q
    theta = np.concatenate([archive.theta, trial.probes])
    values = np.concatenate([archive.values, trial.values])
    outside = ~inside(q, theta)
    valley = values > predicted(surface, 0.5 * (theta + q.mean))
    outside &= values > values.max() - np.where(valley, constants.ACROSS, constants.HIGH) - 0.5 * q.dim
    outside &= values > predicted(surface, theta) + constants.UNEXPECTED
    peaks = peak(q, values, surface.lower_bound) > constants.PEAK + 0.5 * q.dim + 5.0 * archive.noise
    found = outside | peaks | _risen(trial, archive, surface)
    for other in seen:
        found &= ~inside(other, theta)
    return np.asarray(theta[int(np.argmax(np.where(found, values, -np.inf)))]) if found.any() else None


def _risen(trial: Trial, archive: Archive, surface: Surface) -> NDArray[np.bool_]:
    """Marks draws, then probes, that are higher than a smooth function which the surface misses by as much, (n,).

    Where the surface predicts nearly all draws to the last digit, and one to a few nats, that one sees something else.
    Beyond `NEAR` tails are higher than a quadratic too.
    """
    q, view = trial.q, archive.view(trial.q)
    theta = np.concatenate([archive.theta, trial.probes])
    values = np.concatenate([archive.values, trial.values])
    distances = np.concatenate([np.linalg.norm(view.eps, axis=1), np.abs(trial.steps)])
    least = constants.RISEN + constants.OUTLYING * archive.noise + grown(distances, q.dim, surface.rest)
    return (values - predicted(surface, theta) > least) & (distances <= math.sqrt(q.dim - 1.0) + NEAR)


def inside(q: Gaussian, theta: Array) -> NDArray[np.bool_]:
    """Marks the points (n, d) that draws from q may reach, (n,)."""
    eps = q.family.to_frame(q.factor, theta - q.mean)
    return np.asarray(np.einsum("nd,nd->n", eps, eps) < (math.sqrt(q.dim) + constants.OUTSIDE) ** 2)


def peak(q: Gaussian, values: Array | float, lower_bound: float) -> Array:
    """Nats by which a Gaussian with the covariance of q at points with these values (n,) might be better than q.

    It is Laplace's approximation of its bound. If the mode there is narrower, its volume costs as much as the logarithm
    of the ratio.
    """
    return np.asarray(values - top(q) - lower_bound)


def top(q: Gaussian) -> float:
    """The logarithm of the density of q at its mean."""
    return float(q.log_density_in_frame(np.zeros((1, q.dim)))[0])


def wider(trial: Trial, surface: Surface) -> Gaussian | None:
    """A Gaussian that is several times as wide as q, in all directions or in one, and may be better; else None.

    A direction is judged by the rule with three nodes for E f: the mean of q has 2/3, and points √3 t standard
    deviations to either side have 1/6 each, so that E f is a third of their mean fall below f at the mean. Under q
    itself it is half a nat below, since q fits the curvature. All directions together are judged by points t√d out.
    The entropy is larger by log t for each direction. So a quadratic f promises ½ (1 − t²) + log t, which is never
    positive.
    """
    q, d = trial.q, trial.q.dim
    centre = float(predicted(surface, q.mean[None])[0])
    best, found = constants.WIDER_GAIN, None
    for distance in (NEAR, FAR):
        level = np.abs(trial.steps) == distance
        falls = np.maximum(trial.values[level] - centre, -1e9).reshape(-1, 2).mean(axis=1)
        t, all_t = distance / math.sqrt(3.0), distance / math.sqrt(d)
        k = int(np.argmax(falls))
        if (gain := falls[k] / 3.0 + 0.5 + math.log(t)) > best:
            best, found = gain, widened(q, trial.directions[trial.along[level][2 * k]], t)
        lines = trial.along[level][::2] < len(trial.axes) + constants.DIAGONALS
        if (gain := float(falls[lines].mean()) + 0.5 * d + d * math.log(all_t)) > best:
            best, found = gain, Gaussian.from_factor(q.mean, q.factor / all_t, q.family)
    return found


def blanket(modes: Sequence[Gaussian]) -> Gaussian:
    """The Gaussian that covers several modes: it has the moments of their mixture with equal weights."""
    means = np.array([mode.mean for mode in modes])
    covariance = np.mean([mode.covariance for mode in modes], axis=0) + np.cov(means.T, ddof=0)
    full = Full(means.shape[1])
    precision = np.linalg.inv(np.atleast_2d(covariance))
    return Gaussian.from_factor(means.mean(axis=0), full.factor(precision=precision), full)
