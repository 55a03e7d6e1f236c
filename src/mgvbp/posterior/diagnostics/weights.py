r"""Fresh draws from q with their importance weights p/q, and Pareto smoothing of these weights.

Smoothing replaces the largest weights, min(S/5, 3√S) of S, by quantiles of a generalised Pareto distribution that
is fitted to them. Its shape k-hat says how many moments the weights have: the variance is finite below ½, the mean
below 1 (Vehtari, Simpson, Gelman, Yao and Gabry 2024, *Pareto smoothed importance sampling*).

The shape k, estimated from M weights of a generalised Pareto tail, has the asymptotic standard error
:math:`(1+k)/\sqrt M` (Smith 1987, for :math:`k > -½`). Smoothing has a prior for the shape that counts as ten weights
of shape ½, which multiplies the error by :math:`M/(M+10)`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.special import softmax

from mgvbp.core.checks import as_generator, as_key, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import DivergenceError, InvalidTypeError
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.failures import Failures
from mgvbp.problem.calling import checked_values

LogDensity = Callable[[Array], Array]


Evaluate = Callable[[Array], tuple[Array, Array | None]]


@runtime_checkable
class Target(Protocol):
    """A log density that may know its gradient, as that of a fit does (`mgvbp.run.density.Density`)."""

    @property
    def has_gradient(self) -> bool:
        """Whether `evaluating` may be asked for gradients."""

    def evaluating(
        self, gradients: bool, n_jobs: int | None, timeout: float | None, failures: Failures, /
    ) -> AbstractContextManager[Evaluate]:
        """A function of θ (S, d) that gives log densities (S,) and, if wanted, gradients (S, d)."""


FEWEST = 25
"""Fewest draws for which a tail can be fitted: with fewer the tail, a fifth of them, would have less than five."""
PRIOR_COUNT = 10
"""Number of weights that the prior of the shape counts as."""
EQUAL = 1e-9
"""Log weights that differ by fewer nats than this are equal but for rounding."""


APART = 22
"""Any number: with the seed it makes a key that no seed alone makes."""


class Evaluated(NamedTuple):
    """Draws from q (S, d), the log density of q at them (S,) and that of the target (S,), which may be −inf."""

    theta: Array
    log_q: Array
    log_p: Array
    gradients: Array | None = None
    """Gradients of the target's log density, (S, d), where they were asked for and exist."""

    @property
    def log_weights(self) -> Array:
        """``h = log p − log q``, (S,)."""
        return self.log_p - self.log_q


class Smoothed(NamedTuple):
    """Pareto-smoothed weights (S,), which add up to 1, and the shape of their tail with its standard error."""

    weights: Array
    khat: float
    khat_se: float

    @property
    def ess(self) -> float:
        """Kish's effective number of draws."""
        return float(1.0 / (self.weights @ self.weights))


def beyond(log_weights: Array, shape: float) -> float:
    """The part of the mean of weights that lies beyond all draws, given their logarithms (S,); inf if not known.

    For a tail of ``shape`` k it is the share of the largest weight (above the mean), divided by 1 − k. If k is 1 or
    more, weights may have no mean.

    Examples
    --------
    >>> log_weights = np.append(np.zeros(1000), 5.0)
    >>> round(beyond(log_weights, 0.0), 2), round(beyond(log_weights, 0.5), 2), beyond(log_weights, 1.0)
    (0.13, 0.26, inf)
    """
    shares = softmax(log_weights)
    shape = max(shape, 0.0)
    return float((shares.max() - shares.mean()) / (1.0 - shape)) if shape < 1.0 else math.inf


def evaluated(
    q: Gaussian,
    log_density: LogDensity,
    num_draws: int,
    rng: int | np.random.Generator,
    *,
    gradients: bool = False,
) -> Evaluated:
    """Evaluate ``log_density`` (log prior + log-likelihood) at ``num_draws`` draws from ``q``, with ``gradients``."""
    positive_integer(num_draws, "num_draws", least=FEWEST)
    if not callable(log_density):
        raise InvalidTypeError(f"log_density must be a function of an (S, d) array; got {log_density!r}")
    theta = q.sample(num_draws, rng)
    log_p, slopes = _at(log_density, theta, gradients)
    if slopes is not None and not np.isfinite(slopes).all():
        slopes = None
    if np.isnan(log_p).any() or np.isposinf(log_p).any() or np.isneginf(log_p).all():
        raise DivergenceError("the log density is nan or infinite at draws from the approximation", theta)
    return Evaluated(theta, q.log_density_at(theta), log_p, slopes)


def evaluated_outside(
    log_density: LogDensity, theta: Array, gradients: bool = False
) -> tuple[Array, Array | None] | None:
    """Log densities (S,) where draws of q seldom come, −inf where one is no number, and gradients (S, d).

    It is None where the function fails out there.
    """
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            values, slopes = _at(log_density, theta, gradients)
    except Exception:  # a function of one's own may raise what it likes where no draw of q has been
        return None
    return np.where(np.isfinite(values), values, -np.inf), slopes


def _at(log_density: LogDensity, theta: Array, gradients: bool) -> tuple[Array, Array | None]:
    """Log densities (S,), and gradients (S, d) if they are wanted and there are some."""
    if gradients and isinstance(log_density, Target) and log_density.has_gradient:
        with log_density.evaluating(True, None, None, Failures()) as evaluate:
            return evaluate(theta.copy())
    return checked_values(log_density(theta.copy()), theta, "log_density"), None


def apart(rng: int | np.random.Generator | None) -> np.random.Generator:
    """A generator for a seed whose draws are not those of ``numpy.random.default_rng(seed)``.

    A user who simulates data by ``default_rng(0)`` would otherwise meet the same normal numbers again in the draws of
    q. They may be rows of a design matrix, at which the log density is not typical.
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return as_generator(rng)
    return as_generator((*as_key(rng), APART))


def tail_size(num_draws: int) -> int:
    """How many of the largest weights are smoothed."""
    return int(min(num_draws / 5.0, 3.0 * math.sqrt(num_draws)))


def shape_error(khat: float, num_draws: int) -> float:
    """The standard error of k-hat: ``(1 + k) √M / (M + 10)``, with k = 0 if k-hat is negative.

    For generalised Pareto weights of shape 0 to 1.5 and at least 100 draws, the standard deviation of k-hat over
    seeds is 0.9 to 1.1 times this error. The error is that of chance alone. If the weights above the threshold are
    not generalised Pareto, as for kinked or heavy-tailed targets, k-hat also changes as more draws reach further out.

    Examples
    --------
    >>> round(shape_error(0.5, 1000), 2), round(shape_error(0.5, 100_000), 2)
    (0.14, 0.05)
    """
    size = tail_size(num_draws)
    # for −1 < k < 0 the spread over seeds is that at k = 0 or a little less, and (1 + k) would fall short of it
    return (1.0 + max(khat, 0.0)) * math.sqrt(size) / (size + PRIOR_COUNT)


def pareto_smoothed(log_weights: Array) -> Smoothed:
    """Smooth weights given as logarithms (S,), up to a constant; a draw with −inf has weight 0.

    k-hat is −inf if the largest weights are all equal, which is the lightest possible tail. It is inf if there are
    too few weights for a tail, or if a few outweigh the others by more than the range of floating-point numbers. In
    all these cases the weights are not smoothed.

    Examples
    --------
    >>> uniform = (np.arange(4000) + 0.5) / 4000
    >>> round(pareto_smoothed(-0.9 * np.log(uniform)).khat, 1)  # the weights u^−k have shape k
    0.9
    >>> round(pareto_smoothed(np.zeros(100)).ess)
    100
    """
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    inside = np.isfinite(log_weights)
    some, weights = log_weights[inside], np.zeros(len(log_weights))
    weights[inside] = softmax(some)
    if len(some) < FEWEST:
        return Smoothed(weights, np.inf, np.inf)
    largest = np.sort(some)[-(len(some) // 5) :]
    if largest[-1] - largest[0] < EQUAL:
        return Smoothed(weights, -np.inf, 0.0)
    with np.errstate(all="ignore"):
        smooth, khat = array_stats.psislw(-some)  # type: ignore[no-untyped-call]  # it takes minus the log weights
    if not (np.isfinite(khat) and np.isfinite(smooth).all()):
        return Smoothed(weights, np.inf, np.inf)
    weights[inside] = np.exp(smooth)
    return Smoothed(weights, float(khat), shape_error(float(khat), len(some)))
