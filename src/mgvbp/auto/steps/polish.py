r"""Find the best q on the draws at hand by accelerated leaps, where the target is far from Gaussian.

A full leap maps q to the optimum of its surface, and the optimum q* of the bound is the fixed point. For a Gaussian
target one leap arrives. For others the bound may bend more than its surface, so that leaps overshoot, or less, so
that a leap promises only a small part of the gain. Anderson's (1965) acceleration learns that from earlier leaps:
with x = (mean, precision) in the frame of the first q and f(x) the leap from x, the next x is the combination
:math:`\sum_k \alpha_k f(x_k)`, :math:`\sum \alpha_k = 1`, for which :math:`\|\sum_k \alpha_k (f(x_k) - x_k)\|` is
least. All surfaces come from the same draws, so that their bounds can be compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.steps.leap import propose, step
from mgvbp.core.linalg import Array
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.surface import Surface

Look = Callable[[Gaussian], Surface | None]


class Polished(NamedTuple):
    """Where accelerated leaps have led."""

    surface: Surface
    """The surface with the best bound."""
    arrived: bool
    """Whether it is the optimum of these draws; otherwise the leaps led to where the draws say little."""
    gained: float
    """By how many nats its bound is higher than that of the first surface."""


def polish(surface: Surface, look: Look, least: float, tol: float) -> Polished:
    """Follow the surfaces of the draws at hand to the optimum of the bound that they show.

    Parameters
    ----------
    surface : Surface
        Where to begin.
    look : callable
        Fits the surface at a Gaussian, from the same draws; returns None if they do not determine one.
    least : float
        The leaps end at a surface that promises a gain of fewer nats than this.
    tol : float
        Nats that matter: if all leaps together gain far less, the optimum of these draws is reached.
    """
    start = best = current = surface
    height = gained = 0.0
    points: list[Array] = []
    images: list[Array] = []
    for _ in range(min(constants.MOST_LEAPS, max(2, constants.MOST_POLISHED // surface.num_draws))):
        if current.gap < least:
            return Polished(best, True, gained)
        target = step(current, 1.0)
        if target is None:
            break
        points.append(coordinates(start.q, current.q))
        images.append(coordinates(start.q, target))
        memory = slice(-constants.REMEMBERED_LEAPS, None)
        mixed = gaussian(start.q, _mixed(points[memory], images[memory]))
        following = look(mixed or target)
        if following is None or following.clipped or following.size < constants.POLISHED_SHARE * start.size:
            break
        height += risen(current, following)
        current = following
        if height > gained:
            best, gained = current, height
    arrived = best.gap < least or gained < constants.POLISHED_GAIN * tol
    return Polished(best, arrived, gained)


def risen(before: Surface, after: Surface) -> float:
    """By how many nats the bound is higher at a second surface.

    The difference of two bounds has the noise of the values, which may be far more than what gradients say: half the
    sum of the bound's slopes along the way, at either end. They are believed within the error of the values.
    """
    by_values = after.lower_bound - before.lower_bound
    if not (before.slopes and after.slopes):
        return by_values
    by_slopes = 0.5 * (slope(before, after.q) - slope(after, before.q))
    error = constants.CONFIDENCE * math.hypot(before.lower_bound_se, after.lower_bound_se)
    return min(max(by_slopes, by_values - error), by_values + error)


def slope(surface: Surface, q: Gaussian) -> float:
    """The derivative of the bound on the straight way to ``q``, at its beginning, by the gradients."""
    x, d = coordinates(surface.q, q), q.dim
    precision, family = x[d:].reshape(q.family.shape), q.family
    G = family.from_dense(surface.G)
    return float(surface.g @ x[:d] + np.vdot(G, family.shift(precision, -1.0)))


def higher(
    surface: Surface, look: Look, glance: Look, tol: float, rng: np.random.Generator, best: Array, axes: Array
) -> Surface | None:
    """A surface nearby whose bound is higher by more than ``tol`` nats; None if there seems to be none.

    At a saddle of the bound its gradient is zero, so that leaps stay there. From a Gaussian that was moved a little at
    random they lead away, and from one moved near a maximum they lead back. ``best`` is the
    highest draw, (d,), and ``axes`` are directions of the frame, (k, d), along which q is doubled and halved. The leaps
    go by a cheap ``glance``, and what seems to be higher by that must be so by ``look``.
    """
    looks, here = constants.MOST_LOOKED // surface.num_draws, glance(surface.q)
    level = surface.lower_bound if here is None else here.lower_bound
    for moved in _moved(surface.q, rng, best, axes):
        current, promised = glance(moved), 0.0
        for leaps in range(constants.MOST_DEPARTURES, 0, -1):
            looks -= 1
            if (
                looks < 0
                or current is None
                or current.clipped
                or current.size < constants.DEPARTED_SHARE * surface.size
            ):
                break
            short = level + tol - current.lower_bound + current.lower_bound_se
            if leaps * current.gap < short and current.gap < promised:
                break  # the leaps that are left would not get there, and lead back: away from a saddle they grow
            promised = current.gap
            if short < 0.0:
                found = look(current.q)
                if found and found.lower_bound - found.lower_bound_se > surface.lower_bound + tol:
                    return found
            leap = propose(current, constants.DEPARTURE, extrapolate=False)
            current = None if leap is None else glance(leap.q)
    return None


def _moved(q: Gaussian, rng: np.random.Generator, best: Array, axes: Array) -> list[Gaussian]:
    """Gaussians around q: narrower, wider, moved at random, and along some axes doubled or on either half of q."""
    d, identity = q.dim, np.eye(q.dim)
    shift, change = rng.standard_normal(d), rng.standard_normal((d, d))
    shift *= constants.SHIFT / np.linalg.norm(shift)
    values, U = np.linalg.eigh(np.where(q.family.mask, change + change.T, 0.0))
    values *= constants.CHANGE / np.abs(values).max()
    peak = q.family.to_frame(q.factor, best - q.mean)
    found = [
        _in_frame(q, peak, identity / narrow**2) for narrow in (constants.NARROWED, constants.NARROWED**2)
    ]
    found += [_in_frame(q, sign * shift, (U * np.exp(sign * values)) @ U.T) for sign in (1.0, -1.0)]
    along = [np.outer(axis, axis) for axis in axes]
    found += [_in_frame(q, 0.0 * shift, identity - (1.0 - constants.HALF**2) * square) for square in along]
    for axis, square in zip(axes, along, strict=True):
        halved = identity + (constants.HALF**-2 - 1.0) * square
        found += [_in_frame(q, sign * axis, halved) for sign in (1.0, -1.0)]
    found.append(_in_frame(q, 0.0 * shift, identity / constants.WIDE**2))
    return [moved for moved in found if moved is not None]


def _in_frame(q: Gaussian, mean: Array, precision: Array) -> Gaussian | None:
    """The Gaussian with this mean (d,) and precision (d, d) in the frame of q."""
    return gaussian(q, np.concatenate([mean, q.family.from_dense(precision).ravel()]))


def _mixed(points: list[Array], images: list[Array]) -> Array:
    """Anderson's combination of the images f(x) of the points x."""
    image, residuals = images[-1], [f - x for f, x in zip(images, points, strict=True)]
    if len(points) == 1:
        return image
    changes = np.column_stack([residuals[-1] - r for r in residuals[:-1]])
    gamma = np.linalg.lstsq(changes, residuals[-1], rcond=1e-10)[0]
    return np.asarray(image - np.column_stack([image - f for f in images[:-1]]) @ gamma)


def coordinates(frame: Gaussian, q: Gaussian) -> Array:
    """The mean and the precision of q in the frame of ``frame``, as one vector."""
    family = frame.family
    mean = family.to_frame(frame.factor, q.mean - frame.mean)
    return np.concatenate([mean, family.whitened_precision(frame.factor, family, q.factor).ravel()])


def gaussian(frame: Gaussian, x: Array) -> Gaussian | None:
    """The Gaussian with the coordinates ``x``; None if their precision is not positive definite."""
    family, d = frame.family, frame.dim
    try:
        factor = family.product(frame.factor, family.cholesky(x[d:].reshape(family.shape)))
    except NotPositiveDefiniteError:
        return None
    return Gaussian.from_factor(frame.mean + family.from_frame(frame.factor, x[:d]), factor, family)
