"""What is to be approximated: a log-likelihood, a prior and a dimension; checks on what comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

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


@runtime_checkable
class NamedParameters(Protocol):
    """What the entries of θ stand for: a `mgvbp.Parameters`, or what a model from elsewhere brings along."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names."""

    @property
    def dim(self) -> int:
        """The length of θ."""

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for each entry of θ: a name, or a name with an index in brackets."""

    def constrain(self, theta: Array, /) -> dict[str, Array]:
        """The values of each name, (S, *shape), at the rows of ``theta`` (S, d)."""


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
        The number of parameters d; taken from named parameters or a Gaussian prior.
    vectorized : bool

    Attributes
    ----------
    parameters : NamedParameters or None
        The attribute ``parameters`` of the log-likelihood or of the prior, if one of them has it.

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
    parameters: NamedParameters | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not callable(self.log_likelihood):
            raise InvalidTypeError(
                "log_likelihood must be a function of an (S, d) array; "
                f"got {type(self.log_likelihood).__name__}"
            )
        if self.prior is not None and getattr(self.log_likelihood, "includes_prior", False):
            raise InvalidInputError("the model has its own prior, which would count twice: leave prior out")
        object.__setattr__(self, "parameters", agreed_parameters(self.log_likelihood, self.prior))
        object.__setattr__(self, "dim", checked_dim(self.prior, self.dim, self.parameters))

    @property
    def labels(self) -> tuple[str, ...] | None:
        """A label for each parameter, if they have names."""
        return None if self.parameters is None else self.parameters.labels

    def evaluate(self, theta: Array) -> Array:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,); may hold non-finite values."""
        if self.vectorized:
            values = attaching(theta, self.log_likelihood, theta)
        else:
            values = [attaching(row, self.log_likelihood, row) for row in theta]
        return checked_values(values, theta, "log_likelihood", advice="try vectorized=False")


def agreed_parameters(log_likelihood: object, prior: object) -> NamedParameters | None:
    """The named parameters of the log-likelihood or of the prior, which must not contradict each other."""
    ours, theirs = (getattr(owner, "parameters", None) for owner in (log_likelihood, prior))
    # anything else by that name is none of our business: the method of a PyTorch module, for one
    first = ours if isinstance(ours, NamedParameters) else None
    second = theirs if isinstance(theirs, NamedParameters) else None
    if first is None or second is None:
        return second if first is None else first
    # those of models from elsewhere hold functions, which cannot be compared: the labels have to do
    specs = [p.spec() for p in (first, second) if hasattr(p, "spec")]
    if first.labels != second.labels or (len(specs) == 2 and specs[0] != specs[1]):
        way_out = "; if they mean the same, mgvbp.Gaussian(prior.mean, prior.covariance) has no names"
        raise InvalidInputError(
            f"the prior is one of other parameters than the model's: {second} against {first}"
            + (way_out if isinstance(prior, Gaussian) else "")
        )
    return first


def checked_dim(prior: object, dim: int, parameters: NamedParameters | None) -> int:
    """The dimension that ``prior``, ``dim`` and ``parameters`` agree on."""
    if prior is not None and (isinstance(prior, type) or not callable(getattr(prior, "log_density", None))):
        raise InvalidTypeError(
            "prior must be a mgvbp.Gaussian, an object with log_density((S, d)) -> (S,), or None; "
            f"got {type(prior).__name__}"
        )
    if parameters is not None:
        of_prior = prior.dim if isinstance(prior, Gaussian) else 0
        for given, what in ((dim, "dim= is"), (of_prior, "the prior's dimension is")):
            if given not in (0, parameters.dim):
                raise InvalidInputError(
                    f"{what} {given}, but the model has {parameters.dim} unconstrained parameters: "
                    f"{', '.join(parameters.labels)}"
                )
        return parameters.dim
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
