r"""How a marginal of the posterior differs from that of q along a whole line: its profile.

With x a parameter in standard deviations of q, and r what q holds to be independent of it, the profile is
:math:`\varphi(x) = \log p(x)/q(x)`, up to a constant. Its slope is that of h = log p − log q, averaged over r under the
posterior,

.. math:: \varphi'(x) = E_p[\partial_x h(x, r) \mid x],

here under q instead; `path` adds to first order what that leaves out. Only the terms of h that involve x take part, so
that a profile can be known where the weights of all parameters together are useless. It is seen by slopes, where there
are gradients, and by differences of h between two points of one line, :math:`\varphi(x_1) - \varphi(x_0)`.

The slope is piecewise linear between `KNOTS`, and a random walk before anything is seen: where there are no draws it
goes on as it was. Beyond the last knots log p is a straight line: heavy tails count for less than they are, light ones
for nothing. Moments of :math:`q\,e^{\varphi}` are sums over a fine grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from mgvbp.core.linalg import Array

STEP = 0.5
"""Standard deviations between two knots."""
KNOTS = np.arange(-6.0, 6.0 + 0.5 * STEP, STEP)
WALKS = (0.01, 0.1, 1.0)
"""Variances of the slope's change over a standard deviation, of which each profile has the most probable. For a Student
t with three degrees of freedom, and for the logarithm of an exponential variable, slopes change by about 1."""
ANY = 4.0
"""Variance of the slope at 0, in those of its change."""
ROUNDS = 3
"""Rounds in which slopes and their noise are found in turn."""
LIGHTEST = 6.0
"""Nats below 0 down to which differences count: a tail that has e⁻⁶ of the mass of q's own has none."""
NOISE, NOISE_COUNT = 0.03, 2.0
"""Before anything is seen: the standard deviation of the slopes at 0 about their average, and how many observations
that counts as."""

GRID = np.linspace(-20.0, 20.0, 1601)
_LOG_NORMAL = -0.5 * GRID**2


def _beyond(x: Array) -> Array:
    """How far points are beyond the last knots, with their sign: it adds to the slope, as log p is straight there."""
    return np.asarray(x - np.clip(x, KNOTS[0], KNOTS[-1]))


def _slope_rows(x: Array) -> Array:
    """The matrix (n, G) that turns slopes at the knots, constant beyond them, into slopes at points x (n,)."""
    at = np.clip((x - KNOTS[0]) / STEP, 0.0, len(KNOTS) - 1.0)
    left = np.minimum(at.astype(np.intp), len(KNOTS) - 2)
    rows, each = np.zeros((len(x), len(KNOTS))), np.arange(len(x))
    rows[each, left], rows[each, left + 1] = 1.0 - (at - left), at - left
    return rows


def _cumulated() -> Array:
    """The matrix that turns slopes at the knots into profiles on the grid, which are 0 at 0: the trapezoidal rule."""
    rows = _slope_rows(GRID)
    steps = 0.5 * (rows[1:] + rows[:-1]) * (GRID[1] - GRID[0])
    sums = np.concatenate([np.zeros((1, len(KNOTS))), np.cumsum(steps, axis=0)])
    return np.asarray(sums - sums[len(GRID) // 2])


def _walk() -> Array:
    """The prior precision of the slopes at the knots, (G, G), for a walk of variance 1."""
    n = len(KNOTS)
    differences = np.diff(np.eye(n), axis=0)
    precision = differences.T @ differences / STEP
    precision[n // 2, n // 2] += 1.0 / ANY
    return precision


_HEIGHTS, _PRIOR = _cumulated(), _walk()


class Seen(NamedTuple):
    """What is seen of one profile: slopes (n,) at x (n,), and changes (m,) of h from points (m,) to points (m,)."""

    at: Array
    slopes: Array
    start: Array
    end: Array
    changes: Array

    @classmethod
    def changed(cls, start: Array, end: Array, before: Array, after: Array) -> Seen:
        """By h ``before`` and ``after`` (m,) points were moved; those that were at −inf tell nothing."""
        usable = np.isfinite(before)
        changes = after[usable] - before[usable]
        return cls(np.empty(0), np.empty(0), start[usable], end[usable], changes)

    def with_slopes(self, at: Array, slopes: Array) -> Seen:
        """Those that are finite of slopes (n,) at x (n,) beside the changes."""
        usable = np.isfinite(slopes)
        return self._replace(at=at[usable], slopes=slopes[usable])


class Moments(NamedTuple):
    """The moments of a parameter, in standard deviations of q from its mean, and its distance from q in nats.

    `path` corrects the means under q to first order in the error of the profile. The standard errors are those of
    what is left.
    """

    mean: float
    mean_se: float
    square: float
    """The mean of x²."""
    square_se: float
    kl: float
    by_path: float
    """What the formula of `path.distance` gives for the profile alone."""


class Profiles(NamedTuple):
    """Slopes at the knots, (d, G), and moments of the same parameters."""

    slopes: Array
    moments: tuple[Moments, ...]

    @property
    def unseen(self) -> float:
        """Nats of the distance from q that the formula of `path.distance` does not see, if all x were independent."""
        return float(sum(each.kl - each.by_path for each in self.moments))

    def heights(self, some: slice, x: Array) -> Array:
        """The profiles of some parameters at their x (n, some), each 0 at 0."""
        return self._interpolated(some, x, _HEIGHTS) + 0.5 * _beyond(x) ** 2

    def steepness(self, some: slice, x: Array) -> Array:
        """The slopes of the same."""
        return self._interpolated(some, x, _slope_rows(GRID)) + _beyond(x)

    def column(self, name: str, some: slice) -> Array:
        """A moment of some parameters."""
        return np.array([getattr(each, name) for each in self.moments[some]])

    def _interpolated(self, some: slice, x: Array, rows: Array) -> Array:
        pairs = zip(x.T, self.slopes[some], strict=True)
        return np.column_stack([np.interp(column, GRID, rows @ slopes) for column, slopes in pairs])


class Sums(NamedTuple):
    """What least squares need of one line: its rows R and values v as RᵀR, Rᵀv, vᵀv and their number."""

    square: Array
    product: Array
    total: float
    number: int

    @classmethod
    def of(cls, seen: Seen) -> Sums:
        """In units of the noise at 0, which grows with the distance from there."""
        sides = np.sign(seen.at)
        rows = np.concatenate([_slope_rows(seen.at), _height_rows(seen.end) - _height_rows(seen.start)])
        slopes = seen.slopes - _beyond(seen.at)
        changes = seen.changes - 0.5 * (_beyond(seen.end) ** 2 - _beyond(seen.start) ** 2)
        slopes, changes = sides * np.maximum(sides * slopes, -LIGHTEST), np.maximum(changes, -LIGHTEST)
        values = np.concatenate([slopes, changes])
        lengths = np.concatenate([np.ones(len(seen.at)), np.abs(seen.end - seen.start)])
        scale = lengths * np.hypot(1.0, np.concatenate([seen.at, 0.5 * (seen.start + seen.end)]))
        rows, values = rows / scale[:, None], values / scale
        return cls(rows.T @ rows, rows.T @ values, float(values @ values), len(values))


def fitted(lines: Sequence[Seen], log_q: Array = _LOG_NORMAL) -> Profiles:
    """The profiles of parameters that were seen so, each with the walk that makes what was seen most probable.

    ``log_q`` has the log density of x under q on the `GRID`, up to a constant.
    """
    sums = [Sums.of(seen) for seen in lines]
    square, product = np.array([each.square for each in sums]), np.array([each.product for each in sums])
    total, count = np.array([each.total for each in sums]), np.array([each.number for each in sums])
    best = np.full(len(sums), -np.inf)
    slopes, covariances = np.zeros_like(product), np.zeros_like(square)
    for variance in WALKS:
        found, covariance, evidence = _smoothed(square, product, total, count, _PRIOR / variance)
        better = evidence > best
        slopes[better], covariances[better] = found[better], covariance[better]
        best = np.maximum(best, evidence)
    return Profiles(slopes, tuple(_moments(*each, log_q) for each in zip(slopes, covariances, strict=True)))


def _smoothed(
    square: Array, product: Array, total: Array, count: Array, prior: Array
) -> tuple[Array, Array, Array]:
    """Slopes at the knots (d, G), their covariances (d, G, G) and the log evidence (d,); noise is found on the way."""
    noise = np.full(len(total), NOISE**2)
    for _ in range(ROUNDS):
        covariance = np.linalg.inv(prior + square / noise[:, None, None])
        slopes = np.einsum("dij,dj->di", covariance, product) / noise[:, None]
        fit = np.einsum("di,di->d", slopes, product)
        rest = np.maximum(total - 2.0 * fit + np.einsum("di,dij,dj->d", slopes, square, slopes), 0.0)
        determined = np.einsum("dij,dij->d", covariance, square) / noise
        last = noise
        noise = (rest + NOISE_COUNT * NOISE**2) / (np.maximum(count - determined, 0.0) + NOISE_COUNT)
    evidence = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(prior)[1] - (total - fit) / last
    evidence -= (count + NOISE_COUNT) * np.log(last) + NOISE_COUNT * NOISE**2 / last
    return slopes, covariance, 0.5 * evidence


def _height_rows(x: Array) -> Array:
    """The matrix (n, G) that turns slopes at the knots into profiles at points x (n,)."""
    nearest = np.rint((np.clip(x, GRID[0], GRID[-1]) - GRID[0]) / (GRID[1] - GRID[0])).astype(np.intp)
    return np.asarray(_HEIGHTS[nearest] + (x - GRID[nearest])[:, None] * _slope_rows(x))


def _moments(slopes: Array, covariance: Array, log_q: Array) -> Moments:
    heights = _HEIGHTS @ slopes + 0.5 * _beyond(GRID) ** 2
    p, q = softmax(log_q + heights), softmax(log_q)
    (mean, mean_se), (square, square_se) = (
        _with_error(power, p, q, covariance) for power in (GRID, np.square(GRID))
    )
    at_q = heights - q @ heights
    middle = float(softmax(log_q + 0.5 * heights) @ at_q)
    by_path = 0.5 * (0.5 * float(q @ at_q**2) + middle)
    return Moments(mean, mean_se, square, square_se, float(logsumexp(at_q, b=q)), by_path)


def _with_error(values: Array, p: Array, q: Array, covariance: Array) -> tuple[float, float]:
    """The mean under p of values on the grid, and the error that `path` leaves when it corrects their mean under q."""
    mean = float(p @ values)
    influence = (p * (values - mean) - q * (values - q @ values)) @ _HEIGHTS
    return mean, float(np.sqrt(influence @ covariance @ influence))
