"""Constraints on single numbers: real, positive, bounded below, above, or on both sides.

Each entry of a value is an increasing function of one unconstrained number, in C order. Numbers with one bound go
through an exponential, so that a Gaussian becomes a (shifted, reflected) log-normal with known moments.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from mgvbp.core.checks import as_floats, positive_integer, shown
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.transforms.base import Transform, finite_number, just_inside


@dataclass(frozen=True, repr=False)
class Elementwise(Transform):
    """An increasing function applied to each number by itself.

    Attributes
    ----------
    bounds : tuple of two floats
        The ends of the support, which are not part of it.
    """

    bounds: tuple[float, float]

    increasing: ClassVar[bool] = True

    def _set(self, bounds: tuple[float, float], given: tuple[float, ...], shape: tuple[int, ...]) -> None:
        dims = tuple(positive_integer(n, f"the shape of {type(self).__name__}") for n in shape)
        Elementwise.__init__(self, (*given, *dims), dims, math.prod(dims), bounds)

    @property
    def single(self) -> Elementwise:
        """The same constraint on one number; its arguments are those before the shape."""
        make: Callable[..., Elementwise] = type(self)
        return make(*self.arguments[: len(self.arguments) - len(self.shape)])

    @abstractmethod
    def log_derivative(self, x: Array) -> Array:
        """``log dvalue/dx`` of each number by itself; any shape."""

    @abstractmethod
    def _forward(self, x: Array) -> Array:
        """The value of each number; may round to a bound."""

    @abstractmethod
    def _inverse(self, value: Array) -> Array: ...

    def _constrain(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            return just_inside(self._forward(x), *self.bounds).reshape(len(x), *self.shape)

    def _unconstrain(self, value: Array) -> Array:
        lower, upper = self.bounds
        self._require((value > lower) & (value < upper), value, f"values in ({lower:g}, {upper:g})")
        return self._inverse(value).reshape(len(value), self.size)

    def _log_jacobian(self, x: Array) -> Array:
        return np.asarray(self.log_derivative(x).sum(axis=1))


class Real(Elementwise):
    """Numbers without a constraint: the identity.

    Parameters
    ----------
    *shape : int
        The shape of one value; without it the value is a single number. All constraints on single numbers take it.

    Examples
    --------
    >>> Real(2).constrain([[1.0, -2.0]])
    array([[ 1., -2.]])
    """

    def __init__(self, *shape: int) -> None:
        self._set((-math.inf, math.inf), (), shape)

    def log_derivative(self, x: Array) -> Array:
        return np.zeros_like(x)

    def mean(self, mu: ArrayLike, sd: ArrayLike) -> Array:
        return np.broadcast_arrays(*moments(mu, sd))[0].copy()

    def std(self, mu: ArrayLike, sd: ArrayLike) -> Array:
        return np.broadcast_arrays(*moments(mu, sd))[1].copy()

    def _forward(self, x: Array) -> Array:
        return x

    def _inverse(self, value: Array) -> Array:
        return value


class LowerBound(Elementwise):
    """Numbers above ``lower``: ``lower + exp(x)``.

    Examples
    --------
    >>> LowerBound(2.0).constrain([[0.0]])
    array([3.])
    """

    def __init__(self, lower: float, *shape: int) -> None:
        bound = finite_number(lower, "lower")
        self._set((bound, math.inf), (bound,), shape)

    def log_derivative(self, x: Array) -> Array:
        return x

    def mean(self, mu: ArrayLike, sd: ArrayLike) -> Array:
        return self.bounds[0] + log_normal_mean(mu, sd)

    def std(self, mu: ArrayLike, sd: ArrayLike) -> Array:
        return log_normal_std(mu, sd)

    def _forward(self, x: Array) -> Array:
        return self.bounds[0] + np.exp(x)

    def _inverse(self, value: Array) -> Array:
        return np.log(value - self.bounds[0])


class Positive(LowerBound):
    """Positive numbers: ``exp(x)``, so that a Gaussian ``x`` is a log-normal.

    Examples
    --------
    >>> sigma = Positive()
    >>> sigma.constrain([[0.0], [-700.0]])
    array([1.00000000e+000, 9.85967654e-305])
    >>> sigma.mean(0.0, 1.0).round(4), sigma.std(0.0, 1.0).round(4)
    (np.float64(1.6487), np.float64(2.1612))
    """

    def __init__(self, *shape: int) -> None:
        self._set((0.0, math.inf), (), shape)


class UpperBound(Elementwise):
    """Numbers below ``upper``: ``upper − exp(−x)``, which increases with ``x`` as all other transforms here do.

    Examples
    --------
    >>> UpperBound(2.0).constrain([[0.0]])
    array([1.])
    """

    def __init__(self, upper: float, *shape: int) -> None:
        bound = finite_number(upper, "upper")
        self._set((-math.inf, bound), (bound,), shape)

    def log_derivative(self, x: Array) -> Array:
        return -x

    def mean(self, mu: ArrayLike, sd: ArrayLike) -> Array:
        return self.bounds[1] - log_normal_mean(-as_floats(mu, "mu"), sd)

    def std(self, mu: ArrayLike, sd: ArrayLike) -> Array:
        return log_normal_std(-as_floats(mu, "mu"), sd)

    def _forward(self, x: Array) -> Array:
        return self.bounds[1] - np.exp(-x)

    def _inverse(self, value: Array) -> Array:
        return -np.log(self.bounds[1] - value)


class Interval(Elementwise):
    """Numbers between ``lower`` and ``upper``: ``lower + (upper − lower) / (1 + exp(−x))``.

    The mean of a logit-normal has no closed form; its quantiles are the transformed quantiles of ``x``.

    Examples
    --------
    >>> Interval(-1.0, 1.0).constrain([[0.0]])
    array([0.])
    """

    def __init__(self, lower: float, upper: float, *shape: int) -> None:
        a, b = finite_number(lower, "lower"), finite_number(upper, "upper")
        if not 0.0 < b - a < math.inf or np.nextafter(a, b) >= np.nextafter(b, a):
            raise InvalidInputError(f"Interval needs lower < upper, a finite distance apart; got {a} and {b}")
        self._set((a, b), (a, b), shape)

    def log_derivative(self, x: Array) -> Array:
        lower, upper = self.bounds
        return math.log(upper - lower) + log_expit(x) + log_expit(-x)

    def _forward(self, x: Array) -> Array:
        lower, upper = self.bounds
        # the distance to the nearer end is accurate even if this end is 0
        distance = (upper - lower) * expit(-np.abs(x))
        return np.where(x < 0.0, lower + distance, upper - distance)

    def _inverse(self, value: Array) -> Array:
        lower, upper = self.bounds
        return np.log(value - lower) - np.log(upper - value)


def log_normal_mean(mu: ArrayLike, sd: ArrayLike) -> Array:
    """The mean ``exp(μ + σ²/2)`` of ``exp(x)``, x ~ N(μ, σ²); inf if it overflows."""
    location, scale = moments(mu, sd)
    with np.errstate(over="ignore"):
        return np.exp(location + 0.5 * scale**2)


def log_normal_std(mu: ArrayLike, sd: ArrayLike) -> Array:
    """The standard deviation ``exp(μ + σ²/2) √(exp(σ²) − 1)`` of ``exp(x)``, x ~ N(μ, σ²)."""
    location, scale = moments(mu, sd)
    with np.errstate(over="ignore", divide="ignore"):
        variance = scale**2
        # computed in logs, since exp(μ) may underflow while exp(σ²) overflows: √(e^v − 1) = e^{v/2} √(1 − e^{−v})
        return np.exp(location + variance + 0.5 * np.log(-np.expm1(-variance)))


def moments(mu: ArrayLike, sd: ArrayLike) -> tuple[Array, Array]:
    """Means and standard deviations of numbers as float arrays, whose shapes need only be compatible."""
    location, scale = as_floats(mu, "mu"), as_floats(sd, "sd")
    if (scale < 0.0).any():
        raise InvalidInputError(f"sd must not be negative; got {shown(sd)}")
    return location, scale
