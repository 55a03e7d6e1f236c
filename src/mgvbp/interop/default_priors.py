"""The priors that a likelihood from elsewhere gets by default, and those that take their place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgvbp.core.checks import shown
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidTypeError, UnknownNameError
from mgvbp.families.gaussian import LOG_2PI, Gaussian

WIDE = 10.0
"""The standard deviation of a default prior, in units of the larger of |estimate| and its standard error. A prior
around 0 that is so wide moves the mean of a normal posterior by at most 1% of its standard deviation, which it shrinks
by at most half a percent."""


@dataclass(frozen=True)
class DefaultPrior:
    """Normal with mean 0 and this standard deviation; with ``root`` it is the square root that is half-normal.

    Examples
    --------
    >>> DefaultPrior(3.0), DefaultPrior(2.0, root=True)
    (Normal(0, 3), Square of HalfNormal(2))
    """

    scale: float
    root: bool = False

    def logpdf(self, value: Array) -> Array:
        """The log density of each value."""
        deviation = np.sqrt(value) if self.root else value
        terms = -0.5 * (deviation / self.scale) ** 2 - np.log(self.scale) - 0.5 * LOG_2PI
        return np.asarray(terms - np.log(deviation) if self.root else terms)  # p(σ²) = p(σ) / 2σ

    def __repr__(self) -> str:
        return f"Square of HalfNormal({self.scale:.3g})" if self.root else f"Normal(0, {self.scale:.3g})"


class Uniform:
    """All values that the constraints allow, which bound them, are equally likely."""

    def __repr__(self) -> str:
        return "Uniform"


UNIFORM = Uniform()


def checked_priors(priors: Mapping[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    """The given priors, each of which must be for a known name and have a density."""
    if priors is not None and not isinstance(priors, Mapping):
        raise InvalidTypeError(f"priors must be a dict of distributions by name; got {shown(priors)}")
    given = dict(priors or {})
    for name, prior in given.items():
        if name not in names:
            raise UnknownNameError(f"no parameter is called {name!r}; there are {', '.join(names)}")
        if isinstance(prior, Gaussian):
            given[name] = OfNumbers(prior)
        elif isinstance(prior, type) or not callable(getattr(prior, "logpdf", prior)):
            raise InvalidTypeError(
                f"the prior of {name} must have a logpdf, as scipy.stats.norm(0, 5) has, or be a function of its "
                f"value; got {shown(prior)}"
            )
    return given


@dataclass(frozen=True)
class OfNumbers:
    """A one-dimensional Gaussian as the distribution of a number."""

    gaussian: Gaussian

    def logpdf(self, value: Array) -> Array:
        """The log density of each value."""
        return self.gaussian.log_density(np.reshape(value, (-1, 1))).reshape(np.shape(value))
