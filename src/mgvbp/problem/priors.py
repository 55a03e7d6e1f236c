"""Priors by distributions: of named values, turned into a density of θ, or of θ itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import EvaluationError, InvalidInputError, InvalidTypeError
from mgvbp.problem.calling import as_values, checked_values
from mgvbp.problem.differences import derivatives, gradients
from mgvbp.transforms import Elementwise, Ordered, Real, Transform

if TYPE_CHECKING:
    from mgvbp.problem.parameters import Key, Parameters


class Distribution(Protocol):
    """What the frozen distributions of ``scipy.stats`` have."""

    def logpdf(self, x: Any, /) -> Any:
        """The log density of x."""


@dataclass(frozen=True)
class ConstrainedPrior:
    """The density of θ whose constrained values have the given distributions; see `Parameters.prior`.

    A name without a distribution is flat: all values that its constraint allows are equally likely.
    """

    parameters: Parameters
    distributions: Mapping[str, Any]

    def log_density(self, theta: ArrayLike) -> Array:
        """Log density of θ at each row of ``theta``, (S, d) -> (S,): distributions and log-Jacobian."""
        total = self.parameters.log_jacobian(theta)
        values = self.parameters.constrain(theta) if self.distributions else {}
        for name in self.distributions:
            total += _sum(self.distributions[name], name, values[name])
        return total

    def grad_log_density(self, theta: ArrayLike) -> Array:
        """The gradient of `log_density` at each row, (S, d) -> (S, d), by differences within each constraint.

        Differences are needed since distributions have densities, but no derivatives. The gradient is nan where the
        density is zero all around.
        """
        points = as_floats(theta, "theta")
        return np.concatenate([self._slopes(*block) for block in self.parameters.blocks(points)], axis=1)

    def _slopes(self, key: Key, transform: Transform, columns: Array) -> Array:
        """The gradient in the numbers (S, size) of one constraint; other terms of the density do not contain them."""

        def of_entries(x: Array) -> Array:
            assert isinstance(transform, Elementwise)
            assert isinstance(key, str)
            value = transform.constrain(x)
            terms = np.where(np.isfinite(value), _terms(self.distributions[key], key, value), -np.inf)
            return transform.log_derivative(x) + terms.reshape(x.shape)

        def of_rows(x: Array) -> Array:
            value = transform.constrain(x)
            named = {key: value} if isinstance(key, str) else dict(zip(key, value.T, strict=True))
            known = (
                _sum(self.distributions[name], name, of_name)
                for name, of_name in named.items()
                if name in self.distributions
            )
            return sum(known, start=transform.log_jacobian(x))

        if isinstance(key, str) and isinstance(transform, Elementwise):
            if key not in self.distributions:
                flat = isinstance(transform, Real)
                return np.zeros_like(columns) if flat else derivatives(transform.log_derivative, columns)
            if univariate(self.distributions[key]):
                return derivatives(of_entries, columns)
        return gradients(of_rows, columns)


@dataclass(frozen=True)
class ThetaPrior:
    """The density of θ by a distribution, or a function (S, d) -> (S,); a univariate one is that of every entry."""

    distribution: Any

    def __post_init__(self) -> None:
        require_support("theta", Real(), self.distribution)

    @property
    def dim(self) -> int:
        """The length of θ that a multivariate distribution of scipy is for; 0 if any will do."""
        return int(getattr(self.distribution, "dim", 0))

    def log_density(self, theta: ArrayLike) -> Array:
        """Log density at each row of ``theta``, (S, d) -> (S,)."""
        points = as_floats(theta, "theta")
        if hasattr(self.distribution, "logpdf"):
            return _sum(self.distribution, "theta", points)
        # a number for each entry is not summed: the function may be the gradient, in the place of the prior
        return checked_values(_terms(self.distribution, "theta", points), points, "the prior of theta")

    def grad_log_density(self, theta: ArrayLike) -> Array:
        """The gradient of `log_density` at each row by differences, (S, d) -> (S, d)."""
        points = as_floats(theta, "theta")
        if univariate(self.distribution):
            return derivatives(partial(_terms, self.distribution, "theta"), points)
        return gradients(self.log_density, points)


def _sum(distribution: Any, name: str, value: Array) -> Array:
    """The log density of a name's values, (S, *shape) -> (S,)."""
    terms, entries = _terms(distribution, name, value), tuple(range(1, value.ndim))
    if terms.shape == value.shape:
        terms = terms.sum(axis=entries)
    elif terms.size == len(value) == 1:  # scipy's multivariate distributions drop the axis of one draw
        terms = terms.reshape(1)
    finite = np.isfinite(value).all(axis=entries)
    return np.where(finite, checked_values(terms, value, f"the prior of {name}"), -np.inf)


def _terms(distribution: Any, name: str, value: Array) -> Array:
    """The log density of values (S, *shape), as their distribution returns it: one number per draw or entry."""
    # far out in the tails formulas overflow and the density is 0, which needs no warning
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = log_density_of(distribution, name, value)
    return as_values(found, value, f"the prior of {name}")


def require_support(name: str, transform: Transform, distribution: Any) -> None:
    """Refuse a prior that is zero at some values of ``transform``, if the supports of both are known."""
    support = getattr(distribution, "support", None)
    if not isinstance(transform, Elementwise | Ordered) or not callable(support):
        return
    try:
        low, high = support()
    except TypeError:
        raise InvalidTypeError(
            f"the prior of {name} needs arguments, as scipy.stats.gamma(2.0) has them; got {distribution!r}"
        ) from None
    low, high = float(np.max(low)), float(np.min(high))  # each entry may have its own
    if isinstance(transform, Ordered):  # the entries constrain each other, but each can be any number
        lower, upper = -math.inf, math.inf
        advice = "a distribution of all real numbers, as scipy.stats.norm, or Positive steps and their sums"
    else:
        lower, upper = transform.bounds
        advice = "Positive, LowerBound, UpperBound or Interval"
    # uniform(a, b - a) may end a rounding error before b
    near = partial(math.isclose, rel_tol=1e-9, abs_tol=1e-12)
    if not ((low <= lower or near(low, lower)) and (high >= upper or near(high, upper))):
        raise InvalidInputError(
            f"the prior of {name} has the support ({low}, {high}), but {transform!r} goes beyond it: use {advice}"
        )


def log_density_of(distribution: Any, name: str, value: Array) -> Any:
    """The log density of the values (S, *shape), as the distribution (or function) returns it."""
    if not hasattr(distribution, "logpdf"):
        return distribution(value)
    # scipy's Dirichlet, alone among its distributions, has the draws in the last axis
    columns = type(distribution).__name__ == "dirichlet_frozen"
    try:
        return distribution.logpdf(value.T if columns else value)
    except (TypeError, ValueError) as error:
        raise EvaluationError(
            f"the logpdf of the prior of {name} does not take values of shape {value.shape}, one row per draw: "
            f"{error}; give a function of them that returns shape ({len(value)},)",
            value,
        ) from error


def univariate(distribution: Any) -> bool:
    """Whether ``distribution`` is one of scipy's univariate ones, which treat each entry of an array by itself.

    Other distributions may return one term per entry too, and yet use several entries for it, as a random walk does.
    """
    return type(distribution).__module__.startswith("scipy.stats.") and hasattr(distribution, "support")
