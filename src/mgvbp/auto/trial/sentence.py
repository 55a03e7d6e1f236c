"""What the answers of a trial say about a result."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from mgvbp.auto import constants
from mgvbp.auto.trial.trial import FAR, FARTHER, NEAR, Trial
from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive
from mgvbp.surfaces.surface import Surface


class Verdict(NamedTuple):
    """What speaks against a result; nothing does if no field is set."""

    inconsistent: float = 0.0
    """Nats by which the value of a draw changed in the company of other draws."""
    noise: float = 0.0
    """Nats by which two values of the same draw differ."""
    outside: tuple[int, float] | None = None
    """A parameter and a value of it at which the density is zero; the parameter is −1 if none stands out."""
    improper: int | None = None
    """A direction in which the density does not fall."""
    suspects: tuple[tuple[int, int], ...] = ()
    """Directions in which the surface misses the tails, the worst first, and how many witnesses each needs."""
    heavy: bool = False
    """Whether some tail is so heavy that few draws are not to be believed."""


def same_values(trial: Trial, evaluated: Array, archive: Archive) -> Verdict:
    """What the draws that were evaluated again say; ``evaluated`` (n,) has the log densities at `Trial.points`."""
    first, second = evaluated[: 2 * len(trial.rows)].reshape(2, -1)
    before = archive.values[trial.rows]
    lost = before == -np.inf
    again = ~(np.isfinite(first[lost]) | np.isfinite(second[lost]))
    if again.size and again.mean() >= 0.5:
        return Verdict(outside=_boundary(archive, trial.q))
    for a, b, known in zip(first[~lost], second[~lost], before[~lost], strict=True):
        same = constants.SAME_VALUE + constants.ROUNDING * abs(known) + constants.OUTLYING * archive.noise
        if not (math.isfinite(a) or math.isfinite(b)):
            return Verdict(inconsistent=math.inf)
        if archive.noise and not max(abs(a - b), abs(a - known)) <= same:
            return Verdict(noise=float(max(abs(a - b), abs(a - known))))
        if abs(a - b) > same:
            return Verdict(noise=float(abs(a - b)))
        if abs(a - known) > same:
            return Verdict(inconsistent=float(abs(a - known)))
    return Verdict()


def tails(trial: Trial, archive: Archive, surface: Surface, tol: float) -> Verdict:
    """What the probes of a trial, all of which have values, say about a surface at its q or near it."""
    failures = np.count_nonzero(archive.values == -np.inf)
    zero = trial.near & (trial.values == -np.inf)
    if zero.any() and failures < constants.SCATTERED * len(archive.values):
        k = int(np.flatnonzero(zero)[0])
        axis = trial.axes[trial.along[k]] if trial.along[k] < len(trial.axes) else -1
        return Verdict(outside=(axis, float(trial.probes[k, axis])))
    if (flat := _improper(trial)) is not None:
        return Verdict(improper=flat)
    heavy = bool(too_flat(trial, NEAR, FAR, constants.HEAVY_TAIL))
    return Verdict(suspects=_suspects(trial, archive, surface, tol), heavy=heavy)


def too_flat(trial: Trial, start: float, end: float, least: float = 0.0) -> list[int]:
    """Probes at ``end`` where the density has fallen from ``start`` by less than ``least`` nats, or than log 3."""
    least = max(least, constants.SLOWEST_FALL * math.log(end / start))
    ends = np.flatnonzero(np.abs(trial.steps) == end).tolist()
    return [k for k in ends if fall(trial, k, start) < least]


def fall(trial: Trial, k: int, start: float) -> float:
    """Nats by which the density falls from ``start`` to the k-th probe; inf if one of them has no value."""
    values = trial.values[nearer(trial, k, start)], trial.values[k]
    return float(values[0] - values[1]) if np.isfinite(values).all() else math.inf


def _improper(trial: Trial) -> int | None:
    """The direction of a line on which the density falls more slowly than 1/θ, from `NEAR` or from `FARTHER` on.

    Half of the remote probes must show it: some may belong to another mode, or to a slow exponential tail. In a
    direction that was found, which is not quite exact, two are enough.
    """
    shown: dict[tuple[int, float], int] = {}
    for k in np.flatnonzero(np.abs(trial.steps) > FARTHER).tolist():
        line = int(trial.along[k]), math.copysign(1.0, trial.steps[k])
        flat = any(
            fall(trial, k, start) < constants.SLOWEST_FALL * math.log(abs(trial.steps[k]) / start)
            for start in (NEAR, FARTHER)
        )
        shown[line] = shown.get(line, 0) + int(flat)
    original = len(trial.axes) + constants.DIAGONALS
    needed = {line: constants.REMOTE // 2 if line[0] < original else 2 for line in shown}
    return next((line[0] for line, count in shown.items() if count >= needed[line]), None)


def nearer(trial: Trial, k: int, distance: float) -> int:
    """The probe on the line and the side of the k-th one, at a smaller distance."""
    same = (trial.along == trial.along[k]) & (trial.steps == math.copysign(distance, trial.steps[k]))
    return int(np.flatnonzero(same)[0])


def _suspects(trial: Trial, archive: Archive, surface: Surface, tol: float) -> tuple[tuple[int, int], ...]:
    """The directions in which the surface misses near probes by more than it may, unless draws show what is there."""
    near, finite = np.flatnonzero(trial.near), np.isfinite(archive.values)
    theta = archive.theta[finite]
    eps = trial.q.family.to_frame(trial.q.factor, theta - trial.q.mean)
    off = np.abs(archive.values[finite] - predicted(surface, theta))
    missed = np.abs(trial.values[near] - predicted(surface, trial.probes[near]))
    limits = _limits(np.abs(trial.steps[near]), trial.q.dim, surface.rest, tol)
    lacking: dict[int, float] = {}
    for k, distance, limit in zip(near, missed, limits, strict=True):
        along = int(trial.along[k])
        beyond = np.sign(trial.steps[k]) * (eps @ trial.directions[along]) > constants.TAIL
        # a probe that misses little shows no more nearer by
        shown = off > min(constants.SHOWN, 0.5 * distance)
        lacks = constants.WITNESSES * min(distance / limit, 1e12) ** 0.25 - np.count_nonzero(beyond & shown)
        if limit < distance < np.inf and lacks > 0.0:
            lacking[along] = max(float(lacks), lacking.get(along, 0.0))
    worst = sorted(lacking, key=lambda along: -lacking[along])[: constants.MOST_SUSPECTS]
    # enough draws for one witness at least
    return tuple((along, math.ceil(max(lacking[along], 1.0) / constants.REACHING)) for along in worst)


def _limits(distances: Array, dim: int, rest: float, tol: float) -> Array:
    """Nats by which the surface may miss points at these distances from the mean (n,), in standard deviations.

    A step of D nats at t standard deviations takes D Φ(−t) from the bound. What is left of a smooth function, ``rest``
    on average, grows like its fourth power. Scattered probes have √(d−1) of their distance from the other coordinates.
    """
    out = np.where(distances == NEAR, NEAR, distances - math.sqrt(dim - 1.0))
    nats = np.clip(0.5 / ndtr(-out), constants.LEAST_MISS, constants.TAIL_NATS)
    return np.maximum(tol * nats, grown(distances, dim, rest))


def grown(distances: Array, dim: int, rest: float) -> Array:
    """Nats by which the surface misses points at these distances (n,) of a smooth function, if ``rest`` on average."""
    # the typical distance of draws, for a term of the fourth degree in d coordinates instead of one
    typical = math.sqrt((min(dim, constants.FEW_DIMENSIONS) + 2.0) / 3.0)
    further = np.where(distances == NEAR, 1.0, (distances / (NEAR * typical)) ** 4)
    return np.asarray(constants.TAIL_GROWTH * np.maximum(further, constants.LEAST_GROWTH) * rest)


def predicted(surface: Surface, theta: Array) -> Array:
    """The log density at some points (n, d) according to the quadratic part of a surface."""
    q = surface.q
    return surface.predicted(q.family.to_frame(q.factor, theta - q.mean))


def _boundary(archive: Archive, q: Gaussian) -> tuple[int, float]:
    """The parameter, and its value, that best separates draws with a finite value from those without."""
    eps = q.family.to_frame(q.factor, archive.theta - q.mean)
    inside = np.einsum("nd,nd->n", eps, eps) < (math.sqrt(q.dim) + NEAR) ** 2
    theta, finite = archive.theta[inside], np.isfinite(archive.values[inside])
    for axis in range(q.dim):
        some, others = theta[finite, axis], theta[~finite, axis]
        for sign in (1.0, -1.0):
            if (sign * others).max() < (sign * some).min():
                return axis, float(0.5 * sign * ((sign * others).max() + (sign * some).min()))
    return -1, 0.0
