"""The interface of a transform: from real vectors to constrained values, back, and the log-Jacobian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError


@dataclass(frozen=True, repr=False)
class Transform(ABC):
    """A smooth bijection from ``size`` real numbers to values of shape ``shape`` under a constraint.

    All methods take ``S`` points at once. `constrain` takes any finite numbers, without a warning. If the exact value
    rounds to a bound of the support, it returns the nearest float inside, which `unconstrain` accepts. If the exact
    value is beyond the largest float, it returns ±inf. `log_jacobian` is always that of the exact map.

    Attributes
    ----------
    arguments : tuple of int or float
        The arguments of the constructor: ``type(t)(*t.arguments) == t``.
    shape : tuple of int
        The shape of one constrained value.
    size : int
        How many unconstrained numbers one value has.
    increasing : bool
        Whether each entry of the value is an increasing function of one unconstrained number alone, in the
        same (C) order. Quantiles of a marginal are then the transformed quantiles.
    """

    arguments: tuple[float, ...]
    shape: tuple[int, ...]
    size: int

    increasing: ClassVar[bool] = False

    def constrain(self, x: ArrayLike) -> Array:
        """The constrained values of the rows of ``x``, (S, size) -> (S, *shape)."""
        return self._constrain(self._rows(x))

    def unconstrain(self, value: ArrayLike) -> Array:
        """The inverse of `constrain`, (S, *shape) -> (S, size).

        Raises
        ------
        InvalidInputError
            A value is outside the support.
        """
        array = as_floats(value, f"the value of {self!r}")
        if array.ndim == 0 or array.shape[1:] != self.shape:
            expected = ", ".join(["S", *map(str, self.shape)])
            raise InvalidInputError(f"the value of {self!r} has shape {array.shape}; expected ({expected})")
        return self._unconstrain(array)

    def log_jacobian(self, x: ArrayLike) -> Array:
        """``log |det ∂value/∂x|`` at each row of ``x``, (S, size) -> (S,)."""
        return self._log_jacobian(self._rows(x))

    def mean(self, mu: ArrayLike, sd: ArrayLike) -> Array | None:
        """The exact mean of each entry for ``x ~ N(mu, sd²)``, elementwise; None if there is no formula."""
        return None

    def std(self, mu: ArrayLike, sd: ArrayLike) -> Array | None:
        """The exact standard deviation of each entry for ``x ~ N(mu, sd²)``; None if there is no formula."""
        return None

    @abstractmethod
    def _constrain(self, x: Array) -> Array: ...

    @abstractmethod
    def _unconstrain(self, value: Array) -> Array: ...

    @abstractmethod
    def _log_jacobian(self, x: Array) -> Array: ...

    def _rows(self, x: ArrayLike) -> Array:
        rows = as_floats(x, "x")
        if rows.ndim != 2 or rows.shape[1] != self.size:
            raise InvalidInputError(f"x has shape {rows.shape}; {self!r} expects (S, {self.size})")
        return rows

    def _require(self, inside: NDArray[np.bool_], value: Array, support: str) -> None:
        """Raise unless all of ``inside``, (S, ...), are true; the message shows the first value that is outside."""
        if not inside.all():
            row = value[np.argmin(inside.reshape(len(value), -1).all(axis=1))]
            raise InvalidInputError(f"{self!r} takes {support}; got {row}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.arguments))})"


def just_inside(value: Array, lower: ArrayLike, upper: ArrayLike) -> Array:
    """``value``, or the nearest float in the open interval (lower, upper) if it has rounded to an end."""
    # infinite values stay: if they were held at the largest float, the growing Jacobian would make them look likely
    first = np.where(np.isinf(lower), lower, np.nextafter(lower, upper))
    last = np.where(np.isinf(upper), upper, np.nextafter(upper, lower))
    return np.clip(value, first, last)


def finite_number(value: object, name: str) -> float:
    """``value`` as a finite float."""
    array = as_floats(value, name)  # type: ignore[arg-type]
    if array.ndim:
        raise InvalidTypeError(f"{name} must be a number; got an array of shape {array.shape}")
    return float(array)
