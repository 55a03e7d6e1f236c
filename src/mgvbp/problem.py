"""What is to be approximated: a log-likelihood, a prior and a dimension; checks on what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.checks import positive_integer
from mgvbp.errors import EvaluationError, InvalidInputError, InvalidTypeError
from mgvbp.gaussian import Gaussian

LogLikelihood = Callable[[Array], Any]


class Prior(Protocol):
    """Anything with a log density of rows: (S, d) -> (S,)."""

    def log_density(self, theta: Array, /) -> ArrayLike:
        """Log density at each row of ``theta``."""


@dataclass(frozen=True)
class Problem:
    """A posterior to approximate.

    Parameters
    ----------
    log_likelihood : callable
        (S, d) -> (S,), one value a row; with ``vectorized=False`` (d,) -> float.
        With ``prior=None`` it is the whole log posterior density, up to a constant.
    prior : Gaussian, object with ``log_density((S, d)) -> (S,)``, or None
    dim : int, optional
        The number of parameters d; taken from a Gaussian prior.
    vectorized : bool

    Examples
    --------
    >>> problem = Problem(lambda theta: -(theta**2).sum(axis=1), Gaussian(variance=1.0, dim=2))
    >>> problem.evaluate(np.ones((3, 2)))
    array([-2., -2., -2.])
    """

    log_likelihood: LogLikelihood
    prior: Prior | None = None
    dim: int = 0
    vectorized: bool = True

    def __post_init__(self) -> None:
        if not callable(self.log_likelihood):
            raise InvalidTypeError(
                "log_likelihood must be a function of an (S, d) array; "
                f"got {type(self.log_likelihood).__name__}"
            )
        object.__setattr__(self, "dim", checked_dim(self.prior, self.dim))

    def evaluate(self, theta: Array) -> Array:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,); may hold non-finite values."""
        if self.vectorized:
            values = attaching(theta, self.log_likelihood, theta)
        else:
            values = [attaching(row, self.log_likelihood, row) for row in theta]
        return checked_values(values, theta, "log_likelihood", advice="try vectorized=False")


def checked_dim(prior: object, dim: int) -> int:
    """The dimension that ``prior`` and ``dim`` agree on."""
    if prior is not None and (isinstance(prior, type) or not callable(getattr(prior, "log_density", None))):
        raise InvalidTypeError(
            "prior must be a mgvbp.Gaussian, an object with log_density((S, d)) -> (S,), or None; "
            f"got {type(prior).__name__}"
        )
    if isinstance(prior, Gaussian):
        if dim not in (0, prior.dim):
            raise InvalidInputError(f"the prior has {prior.dim} parameters, but {dim} were asked for")
        return prior.dim
    if dim < 1:
        raise InvalidInputError("the dimension is not known: give dim=, initial_mean= or a Gaussian prior")
    return dim


def prior_and_dim(target: object) -> tuple[Prior | None, int]:
    """What an ask/tell run is for: a `Problem`, a Gaussian prior, or a number of parameters without a prior."""
    if isinstance(target, Problem):
        return target.prior, target.dim
    if isinstance(target, Gaussian):
        return target, target.dim
    return None, positive_integer(target, "the dimension")


def log_prior(prior: Prior | None, theta: Array) -> Array:
    """Log prior density at each row of ``theta``; zeros for no prior."""
    if prior is None:
        return np.zeros(len(theta))
    return checked_values(attaching(theta, prior.log_density, theta), theta, "prior.log_density")


def attaching(theta: Array, function: Callable[[Array], Any], *args: Array) -> Any:
    """Call the user's function; an exception passes through with the offending ``theta`` attached."""
    try:
        return function(*args)
    except Exception as error:
        error.theta = theta  # type: ignore[attr-defined]
        error.add_note(
            f"raised by the function given to mgvbp; its argument is this exception's .theta {theta.shape}"
        )
        raise


def checked_values(values: Any, theta: Array, name: str, advice: str = "") -> Array:
    """``values`` as float64 (S,), or an error that says what came."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise EvaluationError(f"{name} returned values of unequal shapes", theta) from None
    if array.dtype.kind not in "fiub":
        raise EvaluationError(f"{name} returned {array.dtype} values; expected real numbers", theta)
    if array.shape != (len(theta),):
        advice = f"; it looks written for one draw: {advice}" if advice and array.size == 1 else ""
        raise EvaluationError(
            f"{name} returned shape {array.shape}; expected ({len(theta)},): one value per draw{advice}",
            theta,
        )
    return array.astype(np.float64, copy=False)
