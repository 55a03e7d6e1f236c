r"""The prosecutor: evaluations that try to refute a result before it is certified.

Draws from q seldom show what lies beyond three standard deviations, and a surface that was fitted to them knows nothing
of it. A trial asks for a few more evaluations, which no decision has depended on:

- *A draw again, twice.* If the two values differ, the function is random. If they agree with each other but not with
  the value that the draw had before, values depend on the other draws of a batch.
- *Draws without a finite value again.* If the points beside most of them fail too, q has mass where the density is
  zero, and then the lower bound of every Gaussian is −∞. The same is said of a probe of the tails that fails twice.
- *The tails.* Probes lie on the axes of the parameters (for a given value of the parameter, where q is largest) and on
  a few diagonals, five and a half standard deviations out. As many are scattered in random directions, at distances
  that are spread evenly: what fixed probes step over they may meet. There the density is compared with the surface. A
  difference that would cost too much of the bound makes the direction a *suspect*: `court` then calls witnesses, draws
  from a Gaussian that is wider in this direction (`witnesses`). They enter the archive with their weights, so that the
  next surface takes the tail into account.
- *Far away.* From t to 3t standard deviations the logarithm of a proper density falls by more than log 3. It is looked
  at from 5.5 to 16.5 and, where it falls much less than that of a Gaussian, from there to 49.5. Where it rises or
  hardly falls, eight points farther out show whether that is another mode, or goes on, as with a floor or waves.
- *Askew.* What is oblique to all axes hardly shows five standard deviations out on one of them, but it does at sixteen.
  From three parameters on, where the surface misses such a probe, the gradient of what it misses is the direction in
  which to look (`bearing`): differences show it, or the gradients at the probe.
- *Elsewhere.* All these points are also looked at for other modes, and for Gaussians that are much wider (`rivals`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mgvbp.auto import constants
from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.surfaces.archive import Archive
from mgvbp.surfaces.surface import Surface

NEAR, FAR, FARTHER = 5.5, 16.5, 49.5
"""Standard deviations from the mean at which the tails are looked at. The mass of a Gaussian beyond `NEAR` is 4e-8."""
NEAREST, REACH = 2.0, 3.0
"""Scattered probes lie from `NEAREST` to `NEAREST` + `REACH` standard deviations out, plus √(d−1) in random directions:
where draws from q have hardly looked, and where what they miss still matters."""
GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)
"""Multiples of it, modulo 1, fill the unit interval evenly however many there are."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What has been asked about ``q``, and what is known of it."""

    q: Gaussian
    rows: NDArray[np.intp]
    """Draws of the archive to evaluate again, twice; the first may have a value, the others have none."""
    directions: Array
    """The directions of the probes in the frame of q, of length 1, (k, d): first the axes of parameters."""
    axes: tuple[int, ...]
    """The parameters that the first directions belong to."""
    along: NDArray[np.intp]
    """The direction of each probe, (m,)."""
    steps: Array
    """Signed distance of each probe from the mean of q, in standard deviations, (m,)."""
    values: Array
    """The log density at the probes, (m,); nan where it is not known."""
    nearer: Array
    """Factor on the distances, (m,): where a function failed here and there, it is finite a little nearer."""
    hearing: int = 1
    """The number of the hearing."""
    around: int = -1
    """The probe at whose sides the last d probes lie; −1 if there are none."""
    found: int = 0
    """Directions that were found by looking beside probes."""

    @property
    def probes(self) -> Array:
        """The points on the axes and diagonals, (m, d)."""
        return self.place(self.eps)

    @property
    def eps(self) -> Array:
        """The probes in the frame, (m, d)."""
        return np.asarray((self.nearer * self.steps)[:, None] * self.directions[self.along])

    def place(self, eps: Array) -> Array:
        """Points of the frame (n, d) as θ."""
        return self.q.mean + self.q.family.from_frame(self.q.factor, eps)

    @property
    def near(self) -> NDArray[np.bool_]:
        """Marks the probes that are compared with the surface, (m,)."""
        return np.asarray(np.abs(self.steps) < FAR)

    def points(self, archive: Archive) -> Array:
        """The points to evaluate now, (n, d): draws of the archive, then the probes without a value.

        Instead of a draw that failed, two points beside it are evaluated: a function that fails here and there is
        finite there.
        """
        again, q = archive.theta[self.rows], self.q
        lost = ~np.isfinite(archive.values[self.rows])
        step = q.family.from_frame(q.factor, constants.BESIDE * self.directions[0]) * lost[:, None]
        return np.concatenate([again + step, again - step, self.probes[np.isnan(self.values)]])

    def told(self, evaluated: Array) -> Trial:
        """The trial with the log densities (n,) at its points; a probe that fails at a later hearing has none."""
        values = self.values.copy()
        values[np.isnan(values)] = evaluated[2 * len(self.rows) :]
        if self.hearing > 1:
            values[np.isnan(values)] = -np.inf
        return replace(self, values=values)

    def adjourned(self, surface: Surface, slopes: Array | None = None) -> Trial | None:
        """The next hearing, if there is more to ask; ``slopes`` (n, d) are the gradients at the last points.

        At the second, near probes that failed are repeated, and tails that are heavy are looked at farther out. The
        sides of a probe that the surface misses show a direction, in which probes follow. If these fall little, the
        direction is corrected in the same way, once: nearly flat is not yet flat.
        """
        lost = np.isnan(self.values)
        again = lost & self.near
        following = replace(
            self,
            rows=np.empty(0, dtype=np.intp),
            values=np.where(lost & ~self.near, -np.inf, self.values),
            nearer=np.where(again, constants.NEARER, self.nearer),
            hearing=self.hearing + 1,
            around=-1,
        )
        if self.around >= 0:
            direction = _from_sides(self, surface)
            return None if direction is None else following.towards(direction)
        following = _farther(following)
        missed = _most_missed(self, surface)
        if missed < 0:
            return following if np.isnan(following.values).any() else None
        if slopes is None:
            return following.at_sides_of(missed)
        slope = slopes[missed - len(self.values) + len(slopes)]
        direction = _from_slope(self, surface, missed, slope)
        return following if direction is None else following.towards(direction)

    def with_probes(self, along: NDArray[np.intp], steps: Array) -> Trial:
        """The trial with more probes in known directions."""
        return replace(
            self,
            along=np.concatenate([self.along, along]),
            steps=np.concatenate([self.steps, steps]),
            values=np.concatenate([self.values, np.full(len(steps), np.nan)]),
            nearer=np.concatenate([self.nearer, np.ones(len(steps))]),
        )

    def towards(self, direction: Array) -> Trial:
        """The trial with probes on both sides in another direction (d,)."""
        directions = np.concatenate([self.directions, direction[None]])
        turned = replace(self, directions=directions, found=self.found + 1)
        steps = np.array([-NEAR, NEAR, -FAR, FAR])
        return turned.with_probes(np.full(len(steps), len(self.directions)), steps)

    def at_sides_of(self, k: int) -> Trial:
        """The trial with d probes beside the k-th one: one standard deviation further out on each axis of the frame."""
        centre, d = self.eps[k], self.q.dim
        sides = centre + np.diag(np.where(centre < 0.0, -1.0, 1.0))
        lengths = np.linalg.norm(sides, axis=1)
        turned = replace(
            self, directions=np.concatenate([self.directions, sides / lengths[:, None]]), around=k
        )
        return turned.with_probes(len(self.directions) + np.arange(d), lengths)


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


def summoned(
    archive: Archive, q: Gaussian, axes: NDArray[np.intp], rng: np.random.Generator, *, repeat: bool
) -> Trial:
    """The trial of ``q`` on these axes; ``repeat`` says whether a draw with a value is evaluated again."""
    eps = q.family.to_frame(q.factor, archive.theta - q.mean)
    distance, finite = np.einsum("nd,nd->n", eps, eps), np.isfinite(archive.values)
    lost = np.flatnonzero(~finite & (distance < (math.sqrt(q.dim) + NEAR) ** 2))
    lost = lost[np.argsort(distance[lost])]
    some = np.linspace(0, len(lost), constants.MOST_REPEATED, endpoint=False, dtype=np.intp)
    lost = lost[np.unique(some)] if len(lost) else lost
    central = [_central(archive, q)] if repeat else []
    lines = np.concatenate([_axes(q, axes), _diagonals(q.dim, rng)])
    scattered = _scattered(2 * (len(axes) + constants.DIAGONALS), q.dim, rng)
    steps = np.concatenate([np.tile([-NEAR, NEAR, -FAR, FAR], len(lines)), np.linalg.norm(scattered, axis=1)])
    return Trial(
        q=q,
        rows=np.array([*central, *lost], dtype=np.intp),
        directions=np.concatenate([lines, scattered / steps[4 * len(lines) :, None]]),
        axes=tuple(axes.tolist()),
        along=np.concatenate([np.repeat(np.arange(len(lines)), 4), len(lines) + np.arange(len(scattered))]),
        steps=steps,
        values=np.full(len(steps), np.nan),
        nearer=np.ones(len(steps)),
    )


def repetition(archive: Archive, q: Gaussian) -> Trial:
    """A trial that evaluates a central draw again, and no more."""
    nowhere, d = np.empty(0), q.dim
    along = np.empty(0, dtype=np.intp)
    return Trial(q, np.array([_central(archive, q)]), np.eye(1, d), (), along, nowhere, nowhere, nowhere)


def _central(archive: Archive, q: Gaussian) -> int:
    """The index of the draw with a value that is nearest to the mean of q."""
    eps = q.family.to_frame(q.factor, archive.theta - q.mean)
    return int(np.argmin(np.where(np.isfinite(archive.values), np.einsum("nd,nd->n", eps, eps), np.inf)))


def _scattered(count: int, dim: int, rng: np.random.Generator) -> Array:
    """Points (count, d) of the frame at evenly spread distances, in random directions (on a line: in turn)."""
    distances = NEAREST + REACH * ((rng.uniform() + GOLDEN * np.arange(count)) % 1.0)
    sides = np.where(np.arange(count)[:, None] % 2, -1.0, 1.0)
    directions = rng.standard_normal((count, dim)) if dim > 1 else sides
    lengths = (math.sqrt(dim - 1.0) + distances) / np.linalg.norm(directions, axis=1)
    return np.asarray(lengths[:, None] * directions)


def _axes(q: Gaussian, axes: NDArray[np.intp]) -> Array:
    r"""The directions :math:`L^{-1} e_i / \|L^{-1} e_i\|` of the axes of some parameters, (k, d)."""
    unit = np.zeros((len(axes), q.dim))
    unit[np.arange(len(axes)), axes] = 1.0
    frame = q.family.solve(q.factor, unit)
    return np.asarray(frame / np.linalg.norm(frame, axis=1, keepdims=True))


def _diagonals(dim: int, rng: np.random.Generator) -> Array:
    """Directions that have equal parts of all axes of the frame, (k, d), orthogonal to each other in two dimensions."""
    signs = np.where(rng.uniform(size=(constants.DIAGONALS if dim > 1 else 0, dim)) < 0.5, -1.0, 1.0)
    if dim == 2:
        signs = np.array([[1.0, 1.0], [1.0, -1.0]])
    return signs / math.sqrt(dim)


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
    heavy = bool(_too_flat(trial, NEAR, FAR, constants.HEAVY_TAIL))
    return Verdict(suspects=_suspects(trial, archive, surface, tol), heavy=heavy)


def _too_flat(trial: Trial, start: float, end: float, least: float = 0.0) -> list[int]:
    """Probes at ``end`` where the density has fallen from ``start`` by less than ``least`` nats, or than log 3."""
    least = max(least, constants.SLOWEST_FALL * math.log(end / start))
    ends = np.flatnonzero(np.abs(trial.steps) == end).tolist()
    return [k for k in ends if trial.values[_nearer(trial, k, start)] - trial.values[k] < least]


def _improper(trial: Trial) -> int | None:
    """The direction of a line on which the density falls more slowly than 1/θ, from `NEAR` or from `FARTHER` on.

    Half of the remote probes must show it: some may belong to another mode, or to a slow exponential tail. In a
    direction that was found, which is not quite exact, two are enough.
    """
    shown: dict[tuple[int, float], int] = {}
    for k in np.flatnonzero(np.abs(trial.steps) > FARTHER).tolist():
        line = int(trial.along[k]), math.copysign(1.0, trial.steps[k])
        flat = any(
            trial.values[_nearer(trial, k, start)] - trial.values[k]
            < constants.SLOWEST_FALL * math.log(abs(trial.steps[k]) / start)
            for start in (NEAR, FARTHER)
        )
        shown[line] = shown.get(line, 0) + int(flat)
    original = len(trial.axes) + constants.DIAGONALS
    needed = {line: constants.REMOTE // 2 if line[0] < original else 2 for line in shown}
    return next((line[0] for line, count in shown.items() if count >= needed[line]), None)


def _farther(trial: Trial) -> Trial:
    """The trial with probes at `FARTHER` where tails are heavy, and remote ones where they rise or hardly fall."""
    heavy = _too_flat(trial, NEAR, FAR, constants.SUSPICIOUS_TAIL)
    rising = [k for k in heavy if trial.values[k] > trial.values[_nearer(trial, k, NEAR)]]
    remote = FARTHER * constants.REMOTE_RATIO ** np.arange(1, constants.REMOTE + 1)
    asked, lines = trial, 0
    for k in heavy:
        if not _reaches(trial, k, FARTHER):
            asked = asked.with_probes(trial.along[[k]], np.array([math.copysign(FARTHER, trial.steps[k])]))
    for k in rising + _too_flat(trial, FAR, FARTHER):
        if lines < constants.MOST_SUSPECTS and not _reaches(asked, k, float(remote[0])):
            steps = np.asarray(math.copysign(1.0, trial.steps[k]) * remote, dtype=np.float64)
            asked, lines = asked.with_probes(np.full(len(steps), trial.along[k]), steps), lines + 1
    return asked


def _reaches(trial: Trial, k: int, distance: float) -> bool:
    """Whether there is a probe so far out on the line and the side of the k-th one."""
    line = (trial.along == trial.along[k]) & (np.sign(trial.steps) == np.sign(trial.steps[k]))
    return bool((np.abs(trial.steps[line]) >= distance).any())


def _nearer(trial: Trial, k: int, distance: float) -> int:
    """The probe on the line and the side of the k-th one, at a smaller distance."""
    same = (trial.along == trial.along[k]) & (trial.steps == math.copysign(distance, trial.steps[k]))
    return int(np.flatnonzero(same)[0])


def _most_missed(trial: Trial, surface: Surface) -> int:
    """The probe at `FAR` beside which to look for a direction; −1 if there is none.

    It is the one that the surface misses most, then one in the direction that was found if the fall there is small.
    """
    far = (np.abs(trial.steps) == FAR) & np.isfinite(trial.values)
    if trial.q.dim < constants.LEAST_ASKEW or trial.found == constants.MOST_FOUND:
        return -1
    if trial.found:
        flat = _too_flat(trial, NEAR, FAR, constants.SUSPICIOUS_TAIL)
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
        shown = off > min(
            constants.SHOWN, 0.5 * distance
        )  # a probe that misses little shows no more nearer by
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
    # the typical distance of draws, for a term of the fourth degree in d coordinates instead of one
    typical = math.sqrt((min(dim, constants.FEW_DIMENSIONS) + 2.0) / 3.0)
    further = np.where(distances == NEAR, 1.0, (distances / (NEAR * typical)) ** 4)
    growth = constants.TAIL_GROWTH * np.maximum(further, constants.LEAST_GROWTH)
    return np.asarray(np.maximum(tol * nats, growth * rest))


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
