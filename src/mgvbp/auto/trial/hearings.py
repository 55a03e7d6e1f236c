"""What a trial asks next: farther out where tails are heavy, and in directions that the first answers show."""

from __future__ import annotations

import math

import numpy as np

from mgvbp.auto import constants
from mgvbp.auto.trial.sentence import fall, predicted, too_flat
from mgvbp.auto.trial.trial import FAR, FARTHER, NEAR, Trial
from mgvbp.core.linalg import Array
from mgvbp.core.records import replace
from mgvbp.surfaces.surface import Surface


def adjourned(trial: Trial, surface: Surface, slopes: Array | None = None) -> Trial | None:
    """The next hearing, if there is more to ask; ``slopes`` (n, d) are the gradients at the last points.

    At the second, near probes that failed are repeated, and tails that are heavy are looked at farther out. The
    sides of a probe that the surface misses show a direction, in which probes follow. If these fall little, the
    direction is corrected in the same way, once: nearly flat is not yet flat.
    """
    lost = np.isnan(trial.values)
    again = lost & trial.near
    following = replace(
        trial,
        rows=np.empty(0, dtype=np.intp),
        values=np.where(lost & ~trial.near, -np.inf, trial.values),
        nearer=np.where(again, constants.NEARER, trial.nearer),
        hearing=trial.hearing + 1,
        around=-1,
    )
    if trial.around >= 0:
        direction = _from_sides(trial, surface)
        return None if direction is None else following.towards(direction)
    following = _farther(following)
    missed = _most_missed(trial, surface)
    if missed < 0:
        return following if np.isnan(following.values).any() else None
    if slopes is None:
        return following.at_sides_of(missed)
    asked = missed - len(trial.values) + len(slopes)  # negative if it was asked for at an earlier hearing
    direction = _from_slope(trial, surface, missed, slopes[asked]) if asked >= 0 else None
    if direction is not None:
        return following.towards(direction)
    return following if np.isnan(following.values).any() else None


def _farther(trial: Trial) -> Trial:
    """The trial with probes at `FARTHER` where tails are heavy, and remote ones where they rise or hardly fall."""
    heavy = too_flat(trial, NEAR, FAR, constants.SUSPICIOUS_TAIL)
    rising = [k for k in heavy if fall(trial, k, NEAR) < 0.0]
    remote = FARTHER * constants.REMOTE_RATIO ** np.arange(1, constants.REMOTE + 1)
    asked, lines = trial, 0
    for k in heavy:
        if not _reaches(trial, k, FARTHER):
            asked = asked.with_probes(trial.along[[k]], np.array([math.copysign(FARTHER, trial.steps[k])]))
    for k in rising + too_flat(trial, FAR, FARTHER):
        if lines < constants.MOST_SUSPECTS and not _reaches(asked, k, float(remote[0])):
            steps = np.asarray(math.copysign(1.0, trial.steps[k]) * remote, dtype=np.float64)
            asked, lines = asked.with_probes(np.full(len(steps), trial.along[k]), steps), lines + 1
    return asked


def _reaches(trial: Trial, k: int, distance: float) -> bool:
    """Whether there is a probe so far out on the line and the side of the k-th one."""
    line = (trial.along == trial.along[k]) & (np.sign(trial.steps) == np.sign(trial.steps[k]))
    return bool((np.abs(trial.steps[line]) >= distance).any())


def _most_missed(trial: Trial, surface: Surface) -> int:
    """The probe at `FAR` beside which to look for a direction; −1 if there is none.

    It is the one that the surface misses most, then one in the direction that was found if the fall there is small.
    """
    far = (np.abs(trial.steps) == FAR) & np.isfinite(trial.values)
    if trial.q.dim < constants.LEAST_ASKEW or trial.found == constants.MOST_FOUND:
        return -1
    if trial.found:
        flat = too_flat(trial, NEAR, FAR, constants.SUSPICIOUS_TAIL)
        return max((k for k in flat if trial.along[k] == trial.along[-1]), default=-1)
    missed = np.where(far, np.abs(trial.values - predicted(surface, trial.probes)), 0.0)
    k = int(np.argmax(missed))
    return k if missed[k] > constants.ASKEW else -1


def _from_sides(trial: Trial, surface: Surface) -> Array | None:
    """The `bearing` by differences between the probe and those at its sides."""
    k, d = trial.around, trial.q.dim
    off = trial.values - predicted(surface, trial.probes)
    return bearing((off[-d:] - off[k]) * np.where(trial.eps[k] < 0.0, -1.0, 1.0))


def _from_slope(trial: Trial, surface: Surface, k: int, slope: Array) -> Array | None:
    """The `bearing` by the gradient of the log density at the k-th probe, (d,)."""
    d, q = trial.q.dim, trial.q
    ahead, behind = (predicted(surface, trial.place(trial.eps[k] + h * np.eye(d))) for h in (1.0, -1.0))
    return bearing(q.family.solve(q.factor, slope[None])[0] - 0.5 * (ahead - behind))


def bearing(slope: Array) -> Array | None:
    """The direction (d,), of length 1, of the gradient of what a surface misses; None if that is too small.

    Whatever depends on one direction u alone, such as an oblique wall or floor, has a gradient along u everywhere.
    """
    length = float(np.linalg.norm(slope))
    return slope / length if constants.ASKEW / FAR < length < np.inf else None
