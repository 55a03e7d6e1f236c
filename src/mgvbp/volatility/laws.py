"""The distributions of the errors z_t, with mean 0 and variance 1: normal, Student's t, Hansen's skew-t, the GED.

A `Law` holds the shape parameters of S draws, arrays of shape (S,), and points have the draws as their last axis.
Names, ranges and formulas are those of the package `arch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammainc, gammaincc, gammainccinv, gammaln, ndtr, ndtri, stdtr, stdtrit

from mgvbp.core import Array
from mgvbp.families import LOG_2PI
from mgvbp.transforms import Interval, Transform
from mgvbp.volatility.filters.score import score, score_power, score_skewed

Shape = tuple[int, int]


class Law(ABC):
    """A distribution with mean 0 and variance 1, for each of S draws of its shape parameters."""

    transforms: ClassVar[dict[str, Transform]] = {}
    """The shape parameters and their ranges."""
    typical: ClassVar[dict[str, float]] = {}
    """Where searches start. The prior of each is normal with variance 1 around it, on the unconstrained scale."""
    tail: ClassVar[str] = ""
    """What the short name of a model ends with."""
    kernel: Callable[..., None]
    """It writes Σ log h and the sum that `total` needs to an array (2, LANES): see `filters.score.score`."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The law with the shape parameters among the ``values`` of all parameters."""
        return cls(*(values[name] for name in cls.transforms))

    @classmethod
    def prior_moments(cls) -> dict[str, tuple[float, float]]:
        """Mean and variance of the default prior of each shape parameter on the unconstrained scale."""
        return {
            name: (float(cls.transforms[name].unconstrain([value])[0, 0]), 1.0)
            for name, value in cls.typical.items()
        }

    @property
    @abstractmethod
    def title(self) -> str:
        """Its name with the values of its parameters, for a label."""

    @abstractmethod
    def log_density(self, z: Array) -> Array: ...

    @abstractmethod
    def cdf(self, z: Array) -> Array: ...

    @abstractmethod
    def quantile(self, p: Array) -> Array: ...

    @abstractmethod
    def partial_mean(self, z: Array) -> Array:
        """``∫_{−∞}^z u f(u) du``: over ``cdf(z)`` it is the mean below z."""

    @abstractmethod
    def sample(self, shape: Shape, rng: np.random.Generator) -> Array:
        """Independent errors (H, S)."""

    def mirrored(self, where: NDArray[np.bool_]) -> Law:
        """The law of z or, ``where`` (..., 1) says so, of −z; itself if it is symmetric."""
        return self

    @abstractmethod
    def rows(self, draws: int) -> Array:
        """The numbers that the kernel needs of each of S draws, (R, S)."""

    @abstractmethod
    def total(self, days: int, logs: Array, terms: Array) -> Array:
        """The log-likelihood of so many days, (S,), from the two sums of each draw."""


class Normal(Law):
    """The standard normal distribution."""

    title = "standard normal"
    kernel = staticmethod(partial(score, False))

    def log_density(self, z: Array) -> Array:
        return -0.5 * (LOG_2PI + z**2)

    def cdf(self, z: Array) -> Array:
        return np.asarray(ndtr(z))

    def quantile(self, p: Array) -> Array:
        return np.asarray(ndtri(p))

    def partial_mean(self, z: Array) -> Array:
        return -np.exp(self.log_density(z))

    def sample(self, shape: Shape, rng: np.random.Generator) -> Array:
        return rng.standard_normal(shape)

    def rows(self, draws: int) -> Array:
        return np.zeros((1, draws))

    def total(self, days: int, logs: Array, terms: Array) -> Array:
        return np.asarray(-0.5 * (days * LOG_2PI + logs + terms))


@dataclass(frozen=True, eq=False)
class StudentT(Law):
    """Student's t of ``nu`` degrees of freedom, above 2, scaled to variance 1."""

    nu: Array
    transforms: ClassVar[dict[str, Transform]] = {"nu": Interval(2.05, 500.0)}
    typical: ClassVar[dict[str, float]] = {"nu": 10.0}
    tail: ClassVar[str] = "-t"
    kernel = staticmethod(partial(score, True))

    @property
    def title(self) -> str:
        return f"t of {float(self.nu):.1f} degrees of freedom, variance 1"

    @cached_property
    def peak(self) -> Array:
        """The log density at 0."""
        return np.asarray(-betaln(0.5 * self.nu, 0.5) - 0.5 * np.log(self.nu - 2.0))

    def log_density(self, z: Array) -> Array:
        return np.asarray(self.peak - 0.5 * (self.nu + 1.0) * np.log1p(z**2 / (self.nu - 2.0)))

    def cdf(self, z: Array) -> Array:
        return np.asarray(stdtr(self.nu, z * np.sqrt(self.nu / (self.nu - 2.0))))

    def quantile(self, p: Array) -> Array:
        return np.asarray(stdtrit(self.nu, p) * np.sqrt((self.nu - 2.0) / self.nu))

    def partial_mean(self, z: Array) -> Array:
        # −(ν − 2 + z²)/(ν − 1) f(z): McNeil, Frey and Embrechts 2015, ch. 2
        return np.asarray(-(self.nu - 2.0 + z**2) / (self.nu - 1.0) * np.exp(self.log_density(z)))

    def sample(self, shape: Shape, rng: np.random.Generator) -> Array:
        return np.asarray(np.sqrt((self.nu - 2.0) / self.nu) * rng.standard_t(self.nu, shape))

    def rows(self, draws: int) -> Array:
        return 1.0 / (np.asarray(self.nu, dtype=np.float64)[None] - 2.0)

    def total(self, days: int, logs: Array, terms: Array) -> Array:
        half = 0.5 * (self.nu + 1.0)
        constant = gammaln(half) - gammaln(0.5 * self.nu) - 0.5 * np.log(np.pi * (self.nu - 2.0))
        return np.asarray(days * constant - 0.5 * logs - half * terms)


@dataclass(frozen=True, eq=False)
class SkewT(Law):
    r"""Hansen's (1994) skew-t: ``x = a + b z`` is a t variable stretched by 1 − λ left of zero, by 1 + λ right of it.

    With c the density at 0 of Student's t of η degrees of freedom and variance 1, mean 0 and variance 1 need
    :math:`a = 4 \lambda c (\eta - 2)/(\eta - 1)` and :math:`b^2 = 1 + 3 \lambda^2 - a^2`.
    """

    eta: Array
    lam: Array
    transforms: ClassVar[dict[str, Transform]] = {"eta": Interval(2.05, 300.0), "lambda": Interval(-1.0, 1.0)}
    typical: ClassVar[dict[str, float]] = {"eta": 10.0, "lambda": 0.0}
    tail: ClassVar[str] = "-skewt"
    kernel = staticmethod(score_skewed)

    @property
    def title(self) -> str:
        return f"skew-t with eta {float(self.eta):.1f}, lambda {float(self.lam):.2f}"

    @cached_property
    def t(self) -> StudentT:
        """The symmetric law that is stretched."""
        return StudentT(self.eta)

    @cached_property
    def a(self) -> Array:
        return np.asarray(4.0 * self.lam * np.exp(self.t.peak) * (self.eta - 2.0) / (self.eta - 1.0))

    @cached_property
    def b(self) -> Array:
        return np.asarray(np.sqrt(1.0 + 3.0 * self.lam**2 - self.a**2))

    def log_density(self, z: Array) -> Array:
        x = self.a + self.b * z
        return np.log(self.b) + self.t.log_density(x / np.where(x < 0.0, 1.0 - self.lam, 1.0 + self.lam))

    def cdf(self, z: Array) -> Array:
        x = self.a + self.b * z
        left, right = 1.0 - self.lam, 1.0 + self.lam
        return np.where(x < 0.0, left * self.t.cdf(x / left), 1.0 - right * self.t.cdf(-x / right))

    def quantile(self, p: Array) -> Array:
        left, right = 1.0 - self.lam, 1.0 + self.lam
        below = left * self.t.quantile(np.minimum(p / left, 0.5))
        above = -right * self.t.quantile(np.minimum((1.0 - p) / right, 0.5))
        return np.asarray((np.where(p < 0.5 * left, below, above) - self.a) / self.b)

    def partial_mean(self, z: Array) -> Array:
        x = self.a + self.b * z
        left, right = 1.0 - self.lam, 1.0 + self.lam
        below = left**2 * self.t.partial_mean(np.minimum(x, 0.0) / left)
        zero = self.t.partial_mean(np.zeros(()))
        above = right**2 * (self.t.partial_mean(np.maximum(x, 0.0) / right) - zero)
        return np.asarray((below + above - self.a * self.cdf(z)) / self.b)

    def sample(self, shape: Shape, rng: np.random.Generator) -> Array:
        size = np.abs(self.t.sample(shape, rng))
        left = rng.random(shape) < 0.5 * (1.0 - self.lam)
        x = np.where(left, -(1.0 - self.lam) * size, (1.0 + self.lam) * size)
        return np.asarray((x - self.a) / self.b)

    def mirrored(self, where: NDArray[np.bool_]) -> SkewT:
        return SkewT(self.eta, np.where(where, -self.lam, self.lam))

    def rows(self, draws: int) -> Array:
        c = 1.0 / (self.eta - 2.0)
        return np.stack([self.a, self.b, c / (1.0 - self.lam) ** 2, c / (1.0 + self.lam) ** 2])

    def total(self, days: int, logs: Array, terms: Array) -> Array:
        return np.asarray(days * np.log(self.b) + self.t.total(days, logs, terms))


@dataclass(frozen=True, eq=False)
class GED(Law):
    r"""The generalised error distribution: density proportional to :math:`\exp(-|z/s|^\nu)`, normal at ν = 2.

    The scale :math:`s^2 = \Gamma(1/\nu)/\Gamma(3/\nu)` makes the variance 1.
    """

    nu: Array
    transforms: ClassVar[dict[str, Transform]] = {"nu": Interval(1.01, 500.0)}
    typical: ClassVar[dict[str, float]] = {"nu": 1.5}
    tail: ClassVar[str] = "-ged"
    kernel = staticmethod(score_power)

    @property
    def title(self) -> str:
        return f"GED with nu {float(self.nu):.2f}"

    @cached_property
    def scale(self) -> Array:
        return np.asarray(np.exp(0.5 * (gammaln(1.0 / self.nu) - gammaln(3.0 / self.nu))))

    @cached_property
    def peak(self) -> Array:
        """The log density at 0."""
        return np.asarray(np.log(0.5 * self.nu / self.scale) - gammaln(1.0 / self.nu))

    def _power(self, z: Array) -> Array:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.abs(z / self.scale) ** self.nu)

    def log_density(self, z: Array) -> Array:
        return np.asarray(self.peak - self._power(z))

    def cdf(self, z: Array) -> Array:
        power = self._power(z)
        below, within = gammaincc(1.0 / self.nu, power), gammainc(1.0 / self.nu, power)
        return np.asarray(np.where(z < 0.0, 0.5 * below, 0.5 + 0.5 * within))

    def quantile(self, p: Array) -> Array:
        size = self.scale * gammainccinv(1.0 / self.nu, 2.0 * np.minimum(p, 1.0 - p)) ** (1.0 / self.nu)
        return np.asarray(np.where(p < 0.5, -size, size))

    def partial_mean(self, z: Array) -> Array:
        ratio = np.exp(gammaln(2.0 / self.nu) - gammaln(1.0 / self.nu))
        return np.asarray(-0.5 * self.scale * ratio * gammaincc(2.0 / self.nu, self._power(z)))

    def sample(self, shape: Shape, rng: np.random.Generator) -> Array:
        size = self.scale * rng.standard_gamma(1.0 / self.nu, shape) ** (1.0 / self.nu)
        return np.asarray(np.where(rng.random(shape) < 0.5, -size, size))

    def rows(self, draws: int) -> Array:
        return np.stack([0.5 * self.nu, 1.0 / self.scale**2])

    def total(self, days: int, logs: Array, terms: Array) -> Array:
        return np.asarray(days * self.peak - 0.5 * logs - terms)


LAWS: dict[str, type[Law]] = {"normal": Normal, "t": StudentT, "skewt": SkewT, "ged": GED}
"""The laws under the names that `arch` has for them."""
