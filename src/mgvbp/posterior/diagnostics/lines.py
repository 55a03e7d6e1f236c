r"""Draws of q that are moved outwards along the line of one parameter, beside the same draws unmoved.

On the line of a parameter the others follow their conditional means: its standardised coordinate x becomes another
number, and what q holds to be independent of it stays. The difference of h = log p − log q between both places involves
only the terms of h that know this parameter, however many others there are. With gradients a draw is moved along
several lines at once, as the slopes at its new place tell of each. What is seen gives a profile for each parameter
(`profiles`).

One more line goes through the centre of q: a draw is scaled as a whole, so that tails are met which all parameters have
in common. The length of a draw of q, in its frame, is :math:`\sqrt d + z/\sqrt2` with z about N(0, 1), and z has
a profile as the parameters have.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.base import Indices
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.profiles import GRID, Profiles, Seen, fitted
from mgvbp.posterior.diagnostics.weights import Evaluated, LogDensity, evaluated_outside

NEAREST, FARTHEST = 2.5, 6.5
"""Standard deviations of q to which draws are moved: draws of q seldom come so far, and a heavy tail still counts
there."""
AT_ONCE = 50
"""Of so many parameters one is moved at once: with a fiftieth of its entries far out a draw is still typical."""
RAYS = 12
"""Draws that are scaled as a whole."""
SHORTEST = 0.1
"""A draw is shortened at most to this part of its usual length."""


class Lines(NamedTuple):
    """Profiles of the parameters, what is known of the length of a draw, and how many evaluations that took."""

    profiles: Profiles
    spread: float
    """Variance of the length of a draw, in the frame of q, under the posterior divided by that under q."""
    n_evaluations: int


def along_lines(
    q: Gaussian, draws: Evaluated, log_density: LogDensity, number: int, rng: np.random.Generator
) -> Lines | None:
    """Profiles from fresh ``draws`` of ``q`` and ``number`` moved ones, at least one for each parameter.

    It is None if that would be more than ``number`` and more than the draws, and where the function fails out there.
    """
    together = 1 if draws.gradients is None else max(1, q.dim // AT_ONCE)
    if q.dim > together * max(number, len(draws.theta)):
        return None
    axes, ends = _turns(q.dim, max(1, (number - RAYS) * together // q.dim), together, rng)
    pairs = np.arange(len(axes)) % len(draws.theta)
    x = (draws.theta - q.mean) / q.std
    steps = np.zeros((len(axes), q.dim))
    np.put_along_axis(steps, axes, ends - np.take_along_axis(x[pairs], axes, axis=1), axis=1)
    out = draws.theta[pairs] + _along(q, steps / q.std)
    rays, near, far = _scaled(q, draws.theta[:RAYS], rng)
    found = evaluated_outside(log_density, np.concatenate([out, rays]), draws.gradients is not None)
    if found is None:
        return None
    log_p, gradients = found
    h, before = log_p - q.log_density_at(np.concatenate([out, rays])), draws.log_weights
    length = Seen.changed(near, far, before[: len(rays)], h[len(out) :])
    moved = (out - q.mean) / q.std
    slopes = None
    if draws.gradients is not None and gradients is not None:
        slopes = np.concatenate(
            [slopes_along(q, draws.theta, draws.gradients), slopes_along(q, out, gradients[: len(out)])]
        )
    lines = []
    for j in range(q.dim):
        rows = np.flatnonzero((axes == j).any(axis=1))
        alone = rows if together == 1 else rows[:0]
        line = Seen.changed(x[pairs[alone], j], moved[alone, j], before[pairs[alone]], h[alone])
        if slopes is not None:
            mine = slopes[np.concatenate([np.arange(len(x)), len(x) + rows]), j]
            line = line.with_slopes(np.concatenate([x[:, j], moved[rows, j]]), mine)
        lines.append(line)
    return Lines(fitted(lines), _spread(length, q.dim), len(out) + len(rays))


def slopes_along(q: Gaussian, theta: Array, gradients: Array) -> Array:
    """Slopes of h by the standardised parameters along their lines, (S, d), from gradients of log p (S, d)."""
    return np.asarray(_along(q, gradients - q.grad_log_density_at(theta)) / q.std)


def _along(q: Gaussian, rows: Array) -> Array:
    """Rows (S, d) times the covariance of q."""
    return np.asarray(q.family.from_frame(q.factor, q.family.solve(q.factor, rows)))


def _turns(dim: int, each: int, together: int, rng: np.random.Generator) -> tuple[Indices, Array]:
    """The parameters that each draw is moved along, and where to, (n, together) both.

    Each parameter has as many turns, alternately on either side, at distances that are spread evenly.
    """
    axes = np.concatenate([rng.permutation(dim) for _ in range(each)])
    turn, first = np.arange(len(axes)) // dim, rng.choice([-1.0, 1.0], dim)
    part = (turn // 2 + rng.uniform(0.25, 0.75, len(axes))) / math.ceil(each / 2)
    ends = first[axes] * (-1.0) ** turn * (NEAREST + (FARTHEST - NEAREST) * part)
    shape = math.ceil(len(axes) / together), together
    return np.resize(axes, shape), np.resize(ends, shape)


def _scaled(q: Gaussian, theta: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Draws (n, d) at other distances from the centre, and their z before and after, (n,) both."""
    usual, eps = math.sqrt(q.dim), q.family.to_frame(q.factor, theta - q.mean)
    before = np.linalg.norm(eps, axis=1)
    part = (np.arange(len(eps)) // 2 + rng.uniform(0.25, 0.75, len(eps))) / math.ceil(len(eps) / 2)
    z = (-1.0) ** np.arange(len(eps)) * (NEAREST + (FARTHEST - NEAREST) * part)
    after = np.maximum(usual + z / math.sqrt(2.0), SHORTEST * usual)
    moved = q.mean + q.family.from_frame(q.factor, eps * (after / before)[:, None])
    return moved, math.sqrt(2.0) * (before - usual), math.sqrt(2.0) * (after - usual)


def _spread(seen: Seen, dim: int) -> float:
    """`Lines.spread`, by the profile of z; under q the length of a draw has a chi distribution."""
    lengths = np.maximum(math.sqrt(dim) + GRID / math.sqrt(2.0), 0.0)
    with np.errstate(divide="ignore"):
        log_q = (dim - 1) * np.log(lengths) - 0.5 * lengths**2
    found = fitted([seen], log_q).moments[0]
    edge = 0.5 * float(GRID[-1])  # mass at the end of the grid: the length has no end
    return found.square - found.mean**2 if abs(found.mean) < edge else math.inf
