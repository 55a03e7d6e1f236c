"""A Gaussian distribution, kept as its mean and the factor of its precision: a prior, or a fit's result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, as_generator, positive_integer, require_memory, shown
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, NotPositiveDefiniteError
from mgvbp.families.base import Family, require_room
from mgvbp.families.diagonal import Diagonal
from mgvbp.families.full import Full

EXTREME = 1e150
"""The largest variance or precision: the squares of both are still floats."""
LOG_2PI = math.log(2.0 * math.pi)


class Gaussian:
    """A multivariate normal distribution.

    Parameters
    ----------
    mean : float or array_like of shape (d,)
    variance : float, or array_like of shape (d,) or (d, d)
        Isotropic, diagonal or full covariance. Give this or ``precision``.
    precision : float, or array_like of shape (d,) or (d, d)
        The inverse of the covariance.
    dim : int, optional
        The dimension d; needed if ``mean`` and the variance or precision are numbers.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    family : Family
        `Diagonal` for isotropic and diagonal variances, which are kept as vectors; else `Full`.
    factor : ndarray
        The lower factor L of the precision ``L Lᵀ``, as an array of the family.

    Examples
    --------
    >>> prior = Gaussian(mean=0.0, variance=5.0, dim=3)
    >>> prior.std.round(3)
    array([2.236, 2.236, 2.236])
    >>> prior.log_density(np.zeros((1, 3))).round(4)
    array([-5.171])
    """

    mean: Array
    family: Family
    factor: Array

    def __init__(
        self,
        mean: ArrayLike = 0.0,
        variance: ArrayLike | None = None,
        precision: ArrayLike | None = None,
        dim: int | None = None,
    ) -> None:
        if (variance is None) == (precision is None):
            raise InvalidInputError("give exactly one of variance= and precision=")
        mean_array = as_floats(mean, "mean")
        what = "variance" if precision is None else "precision"
        scale = as_floats(variance if precision is None else precision, what)
        if mean_array.ndim > 1:
            raise InvalidInputError(f"mean must be a number or a vector; got shape {mean_array.shape}")
        if dim is None:
            shown = [a.shape[0] for a in (mean_array, scale) if a.ndim]
            if not shown:
                raise InvalidInputError(
                    "give dim=, or a vector as mean or variance: the dimension is not known"
                )
            dim = shown[0]
        dim = positive_integer(dim, "dim")
        if mean_array.shape not in ((), (dim,)) or scale.shape not in ((), (dim,), (dim, dim)):
            raise InvalidInputError(
                f"mean has shape {mean_array.shape} and {what} {scale.shape}; "
                f"with dim={dim} expected () or ({dim},), and (), ({dim},) or ({dim}, {dim})"
            )
        self.family = Full(dim) if scale.ndim == 2 else Diagonal(dim)
        require_room(self.family)
        self.mean = frozen(np.broadcast_to(mean_array, dim).copy())
        self.factor = frozen(checked_factor(self.family, what, scale))

    @classmethod
    def from_factor(cls, mean: Array, factor: Array, family: Family) -> Gaussian:
        """Build from the mean (d,) and the precision's factor, both kept without a copy."""
        self = Gaussian.__new__(Gaussian)
        self._set(mean, factor, family)
        return self

    def _set(self, mean: Array, factor: Array, family: Family) -> Self:
        self.mean, self.factor, self.family = frozen(mean), frozen(factor), family
        return self

    @property
    def dim(self) -> int:
        """The number of parameters d."""
        return len(self.mean)

    @property
    def covariance(self) -> Array:
        """The covariance matrix, (d, d)."""
        return self.family.covariance(self.factor)

    def covariance_of(self, entries: Sequence[int]) -> Array:
        """The covariance of some entries of θ, (k, k), without forming the whole matrix."""
        where = as_floats(entries, "entries")
        flags = any(isinstance(entry, (bool, np.bool_)) for entry in entries) if where.ndim else True
        if flags or where.ndim != 1 or not np.isin(where, np.arange(self.dim)).all():
            raise InvalidInputError(
                f"entries must be a list of indices from 0 to {self.dim - 1}; got {shown(entries)}"
            )
        unit = np.zeros((len(where), self.dim))
        unit[np.arange(len(where)), where.astype(np.intp)] = 1.0
        rows = self.family.solve(self.factor, unit)  # L⁻¹ e_j, whose inner products are the entries of Σ
        return rows @ rows.T

    @property
    def precision(self) -> Array:
        """The precision matrix, (d, d)."""
        return self.family.precision(self.factor)

    @property
    def std(self) -> Array:
        """The standard deviations, (d,)."""
        return np.sqrt(self.family.variances(self.factor))

    def sample(self, n: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``n`` points, (n, d)."""
        number = positive_integer(n, "n", least=0)
        require_memory(
            2 * number * self.dim, f"{number:,} draws of {self.dim:,} numbers", "draw fewer at a time"
        )
        eps = as_generator(rng).standard_normal((number, self.dim))
        return self.mean + self.family.from_frame(self.factor, eps)

    def log_density(self, theta: ArrayLike) -> Array:
        """Log density at each row of ``theta``, (S, d) -> (S,)."""
        return self.log_density_at(as_rows(theta, self.dim))

    def log_density_at(self, theta: Array) -> Array:
        """`log_density` without its checks, for draws that we made ourselves."""
        return self.log_density_in_frame(self.family.to_frame(self.factor, theta - self.mean))

    def grad_log_density(self, theta: ArrayLike) -> Array:
        """The gradient ``−P(θ − μ)`` of the log density at each row of ``theta``, (S, d) -> (S, d)."""
        return self.grad_log_density_at(as_rows(theta, self.dim))

    def grad_log_density_at(self, theta: Array) -> Array:
        """`grad_log_density` without its checks, for draws that we made ourselves."""
        return -self.family.times(self.factor, self.family.to_frame(self.factor, theta - self.mean))

    def log_density_in_frame(self, eps: Array) -> Array:
        """Log density at ``θ = μ + L⁻ᵀ ε`` for each row of ``eps``, (S, d) -> (S,)."""
        return np.asarray(self._log_scale - 0.5 * np.einsum("sd,sd->s", eps, eps))

    @cached_property
    def _log_scale(self) -> float:
        """The log density at the mean."""
        return self.family.log_root(self.factor) - 0.5 * self.dim * LOG_2PI

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, family={self.family!r})"


def checked_factor(family: Family, kind: str, scale: Array, name: str = "") -> Array:
    """The precision's factor for a "variance" or "precision" (``kind``) that a user gave as the argument ``name``."""
    name = name or kind
    size = np.abs(scale.diagonal() if scale.ndim == 2 else scale)
    if ((size > EXTREME) | ((size > 0.0) & (size < 1.0 / EXTREME))).any():
        raise InvalidInputError(
            f"{name} must be between {1.0 / EXTREME:g} and {EXTREME:g}, so that its square is a number; got "
            f"{shown(scale)}: measure the parameter in another unit"
        )
    if scale.ndim == 2 and np.abs(scale - scale.T).max() > 1e-8 * np.abs(scale).max():
        raise NotPositiveDefiniteError(f"{name} is not symmetric")
    try:
        return family.factor(**{kind: scale})
    except NotPositiveDefiniteError:
        raise NotPositiveDefiniteError(f"{name} must be positive definite; got {shown(scale)}") from None


def as_rows(theta: ArrayLike, dim: int) -> Array:
    """Points that a user gave, (S, dim)."""
    points = as_floats(theta, "theta")
    if points.ndim != 2 or points.shape[1] != dim:
        raise InvalidInputError(f"theta has shape {points.shape}; expected (S, {dim})")
    return points


def frozen(array: Array) -> Array:
    """The same array, read-only from now on."""
    array.setflags(write=False)
    return array
