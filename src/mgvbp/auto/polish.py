r"""Find the best q on the draws at hand by accelerated leaps, where the target is far from Gaussian.

A full leap maps q to the optimum of its surface, and the optimum q* of the bound is the fixed point. For a Gaussian
target one leap arrives. For others the bound may bend more than its surface, so that leaps overshoot, or less, so
that a leap promises only a small part of the gain. Anderson's (1965) acceleration learns that from earlier leaps:
with x = (mean, precision) in the frame of the first q and f(x) the leap from x, the next x is the combination
:math:`\sum_k \alpha_k f(x_k)`, :math:`\sum \alpha_k = 1`, for which :math:`\|\sum_k \alpha_k (f(x_k) - x_k)\|` is
least. All surfaces come from the same draws, so that their bounds can be compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.leap import step
from mgvbp.core.linalg import Array
from mgvbp.errors import NotPositiveDefiniteError
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.surface import Surface


def polish(surface: Surface, look: Callable[[Gaussian], Surface | None], least: float) -> Surface:
    """The surface with the best bound that accelerated leaps reach.

    Parameters
    ----------
    surface : Surface
        Where to begin.
    look : callable
        Fits the surface at a Gaussian, from the same draws; returns None if they do not determine one.
    least : float
        The leaps end at a surface that promises a gain of fewer nats than this.
    """
    start = best = current = surface
    points: list[Array] = []
    images: list[Array] = []
    for _ in range(min(constants.MOST_LEAPS, max(2, constants.MOST_POLISHED // surface.num_draws))):
        target = step(current, 1.0)
        if target is None or current.gap < 1e-3 * least:
            break
        points.append(_coordinates(start.q, current.q))
        images.append(_coordinates(start.q, target))
        memory = slice(-constants.REMEMBERED_LEAPS, None)
        mixed = _gaussian(start.q, _mixed(points[memory], images[memory]))
        following = look(mixed or target)
        if following is None or following.clipped or following.size < constants.POLISHED_SHARE * start.size:
            break
        current = following
        if current.lower_bound > best.lower_bound:
            best = current
    return best


def _mixed(points: list[Array], images: list[Array]) -> Array:
    """Anderson's combination of the images f(x) of the points x."""
    image, residuals = images[-1], [f - x for f, x in zip(images, points, strict=True)]
    if len(points) == 1:
        return image
    changes = np.column_stack([residuals[-1] - r for r in residuals[:-1]])
    gamma = np.linalg.lstsq(changes, residuals[-1], rcond=1e-10)[0]
    return np.asarray(image - np.column_stack([image - f for f in images[:-1]]) @ gamma)


def _coordinates(frame: Gaussian, q: Gaussian) -> Array:
    """The mean and the precision of q in the frame of ``frame``, as one vector."""
    family = frame.family
    mean = family.to_frame(frame.factor, q.mean - frame.mean)
    return np.concatenate([mean, family.whitened_precision(frame.factor, family, q.factor).ravel()])


def _gaussian(frame: Gaussian, x: Array) -> Gaussian | None:
    """The Gaussian with the coordinates ``x``; None if their precision is not positive definite."""
    family, d = frame.family, frame.dim
    try:
        factor = family.product(frame.factor, family.cholesky(x[d:].reshape(family.shape)))
    except NotPositiveDefiniteError:
        return None
    return Gaussian.from_factor(frame.mean + family.from_frame(frame.factor, x[:d]), factor, family)
