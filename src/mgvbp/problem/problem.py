"""What is to be approximated: a log-likelihood, a prior and a dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import getattr_static
from typing import Any, Literal, Protocol, TypeGuard, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, positive_integer, require_memory, shown, true_or_false
from mgvbp.core.linalg import Array
from mgvbp.errors import EvaluationError, InvalidInputError, InvalidTypeError
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.problem.calling import called, checked_derivatives, checked_values, takes_one
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.priors import ThetaPrior

LogLikelihood = Callable[[Array], Any]
Needs = Literal["values", "gradients", "squares"]
"""What an estimator asks of a log-likelihood; each includes the earlier ones."""


class Prior(Protocol):
    """Anything with a log density of rows: (S, d) -> (S,)."""

    def log_density(self, theta: Array, /) -> ArrayLike:
        """Log density at each row of ``theta``."""


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


@runtime_checkable
class Streamed(Protocol):
    """A log-likelihood that sees other data at every iteration, and is unbiased: `mgvbp.Minibatches`."""

    @property
    def num_batches(self) -> int:
        """Iterations until all data were seen once; with 1 it is always the same."""

    def at(self, iteration: int, /) -> LogLikelihood:
        """The log-likelihood of iteration 1, 2, ..."""

    def share(self, iteration: int, /) -> float:
        """The share of all data that an iteration sees: `at` divides by it."""

    def __call__(self, theta: Array, /) -> Any:
        """The log-likelihood of all data."""


@dataclass(frozen=True)
class Problem:
    """A posterior to approximate.

    Parameters
    ----------
    log_likelihood : callable
        (S, d) -> (S,), one value a row, or (d,) -> float.
        With ``prior=None`` it is the whole log posterior density, up to a constant.
    prior : Gaussian, object with ``log_density((S, d)) -> (S,)``, or None
        Distributions, functions and mappings become such an object, as `fit` takes them. None becomes the attribute
        ``default_prior`` of the log-likelihood, if it has one, as `mgvbp.models` and `from_statsmodels` have, or its
        ``flat_prior``: see `Model`.
    dim : int, optional
        The number of parameters d; taken from named parameters or a Gaussian prior.
    vectorized : bool, optional
        Whether the functions take all draws at once, True, or one, False. If it is not said, the first evaluation finds
        out: it tries all draws, and one of them if that fails. `evaluate_at` then sets this.
    grad : callable, optional
        The gradient of ``log_likelihood``: (S, d) -> (S, d), or (d,) -> (d,) where that takes one draw. Not needed
        where the log-likelihood has a method ``value_and_grad``: (S, d) -> (S,), (S, d).
    labelled : NamedParameters, optional
        Names of the entries of θ, where neither the log-likelihood nor the prior has any.

    Attributes
    ----------
    parameters : NamedParameters or None
        The attribute ``parameters`` of the log-likelihood or of the prior, if one of them has it, or ``labelled``.
    num_batches : int
        Iterations until all data were seen once; more than 1 for minibatches.

    Examples
    --------
    >>> problem = Problem(lambda theta: -(theta**2).sum(axis=1), Gaussian(variance=1.0, dim=2))
    >>> problem.evaluate(np.ones((3, 2)))
    array([-2., -2., -2.])
    """

    log_likelihood: LogLikelihood
    prior: Prior | None = None
    dim: int = 0
    vectorized: bool | None = None
    grad: Callable[[Array], Any] | None = None
    labelled: NamedParameters | None = None
    parameters: NamedParameters | None = field(init=False, default=None)
    num_batches: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        if self.vectorized is not None:
            true_or_false(self.vectorized, "vectorized")
        f: Any = self.log_likelihood
        if not callable(f) or isinstance(f, type):
            what = f"the class {f.__name__} itself" if isinstance(f, type) else type(f).__name__
            raise InvalidTypeError(f"log_likelihood must be a function of an (S, d) array; got {what}")
        if isinstance(self.log_likelihood, Streamed):
            object.__setattr__(self, "num_batches", self.log_likelihood.num_batches)
        if self.grad is not None and not callable(self.grad):
            raise InvalidTypeError(f"grad must be a function, 'jax' or 'torch'; got {shown(self.grad)}")
        if self.grad is not None and self.num_batches > 1:
            raise InvalidInputError("minibatches need their own value_and_grad: grad= would be of all data")
        if self.prior is not None and getattr(self.log_likelihood, "includes_prior", False):
            raise InvalidInputError("the model has its own prior, which would count twice: leave prior out")
        if self.prior is None:
            given = (getattr(self.log_likelihood, name, None) for name in ("default_prior", "flat_prior"))
            object.__setattr__(self, "prior", next((prior for prior in given if prior is not None), None))
        object.__setattr__(self, "prior", as_density(self.prior, self.log_likelihood))
        agreed = agreed_parameters(self.log_likelihood, self.prior)
        if agreed is not None and self.labelled is not None and agreed.labels != self.labelled.labels:
            raise InvalidInputError(
                f"the parameters have names, {shown(agreed.labels)}, and labels= gives others: leave labels= out"
            )
        object.__setattr__(self, "parameters", self.labelled if agreed is None else agreed)
        object.__setattr__(self, "dim", checked_dim(self.prior, self.dim, self.parameters))

    @property
    def labels(self) -> tuple[str, ...] | None:
        """A label for each parameter, if they have names."""
        return None if self.parameters is None else self.parameters.labels

    @property
    def has_gradient(self) -> bool:
        """Whether the log-likelihood comes with its gradient."""
        return self.grad is not None or hasattr(self.log_likelihood, "value_and_grad")

    @property
    def missing_gradient(self) -> str:
        """Why a gradient of the log-likelihood cannot be used: the prior has none. Empty if it can be used."""
        if self.prior is None or hasattr(self.prior, "grad_log_density"):
            return ""
        return (
            f"the prior, a {type(self.prior).__name__}, has no grad_log_density((S, d)) -> (S, d): give it one, use a "
            "Gaussian or Parameters.prior, or put the prior into the function and leave prior out"
        )

    def evaluate(self, theta: ArrayLike) -> Array:
        """The log-likelihood of all data at each row of ``theta``, (S, d) -> (S,); values need not be finite."""
        points = as_floats(theta, "theta", finite=False)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise InvalidInputError(f"theta has shape {points.shape}; expected (S, {self.dim})")
        return self.evaluate_at(None, points, "values")[0]

    def share(self, iteration: int) -> float:
        """The share of all data that an iteration sees."""
        return cast(Streamed, self.log_likelihood).share(iteration) if self.num_batches > 1 else 1.0

    def evaluate_at(self, iteration: int | None, theta: Array, needs: Needs) -> tuple[Array, ...]:
        """What an estimator needs at each row: values (S,), gradients (S, d) and squares (S, d), so far as it does.

        Squares are the sums over the observations of their squared gradients. Of minibatches the one of
        ``iteration`` = 1, 2, ... is taken; None stands for all data.
        """
        function = self.log_likelihood
        if self.num_batches > 1 and iteration is not None:
            function = cast(Streamed, function).at(iteration)
        if needs == "values" or (needs == "gradients" and self.grad is not None):
            together = self.vectorized is not False
            if self.vectorized is None and len(theta) == self.dim > 1:  # rows might be taken for columns
                parts = [self.evaluate_at(iteration, part, needs) for part in (theta[:1], theta[1:])]
                return tuple(np.concatenate(both) for both in zip(*parts, strict=True))
            try:
                given = called(function, theta, together, self._wrapping)
                values = checked_values(given, theta, "log_likelihood", together)
            except Exception as error:
                if self.vectorized is not None or not takes_one(function, theta, error):
                    raise
                object.__setattr__(self, "vectorized", False)
                return self.evaluate_at(iteration, theta, needs)
            if len(theta) > 1:  # a single draw may be taken for all by chance
                object.__setattr__(self, "vectorized", together)
            if needs == "values":
                return (values,)
            rows = called(cast(LogLikelihood, self.grad), theta, together, self._wrapping)
            return values, checked_derivatives(rows, theta, "grad")
        name, number = ("value_and_grad", 2) if needs == "gradients" else ("value_grad_and_squares", 3)
        found = called(getattr(function, name), theta)
        if not isinstance(found, tuple | list) or len(found) != number:
            came = f"{len(found)} arrays" if isinstance(found, tuple | list) else f"a {type(found).__name__}"
            raise EvaluationError(
                f"{name} returned {came}; expected {number}: values ({len(theta)},) and derivatives {theta.shape}",
                theta,
            )
        values = checked_values(found[0], theta, name)
        return values, *(checked_derivatives(rows, theta, name) for rows in found[1:])

    def one_by_one(self, needs: Needs) -> bool:
        """Whether `evaluate_at` calls the user's functions for one draw after the other."""
        return self.vectorized is False and (needs == "values" or self.grad is not None)

    def require(self, needs: Needs) -> None:
        """Raise if the log-likelihood or the prior lacks what an estimator needs."""
        if needs == "values":
            return
        if needs == "squares" and not hasattr(self.log_likelihood, "value_grad_and_squares"):
            raise InvalidInputError(
                "this estimator needs per-example gradients, which networks have: see mgvbp.networks"
            )
        if not self.has_gradient:
            raise InvalidInputError(
                "estimator='gradient' needs a gradient: give grad=, or grad='jax' or 'torch' if the function is one of "
                "theirs"
            )
        if self.missing_gradient:
            raise InvalidInputError(self.missing_gradient)

    @property
    def _wrapping(self) -> str:
        """What to try where the parameters have names of which the function may be one, but does not know it."""
        if self.parameters is None or self.parameters is self.labelled:
            return ""
        if hasattr(self.log_likelihood, "parameters"):
            return ""
        return f"; if it is a function of {', '.join(self.parameters.names)}, wrap it: mgvbp.Model(f, parameters)"


def as_density(given: Any, log_likelihood: object) -> Prior | None:
    """A prior in any form that `fit` takes as a density of θ; what is none passes, to be refused later.

    A distribution or a function is one of θ, and a mapping has distributions of the values of each name.
    """
    if given is None or isinstance(given, type) or hasattr(given, "log_density"):
        return cast("Prior | None", given)
    parameters = getattr(log_likelihood, "parameters", None)
    density = callable(getattr(given, "logpdf", given))
    if isinstance(parameters, Parameters):
        if isinstance(given, Mapping):
            return parameters.prior(**{str(name): distribution for name, distribution in given.items()})
        if density:
            names = ", ".join(f"'{name}': ..." for name in parameters.names)
            raise InvalidTypeError(f"the model has names: give a distribution for each, prior={{{names}}}")
    return ThetaPrior(given) if density else cast(Prior, given)


def agreed_parameters(log_likelihood: object, prior: object) -> NamedParameters | None:
    """The named parameters of the log-likelihood or of the prior, which must not contradict each other."""
    ours, theirs = (getattr(owner, "parameters", None) for owner in (log_likelihood, prior))
    first, second = (given if _names_parameters(given) else None for given in (ours, theirs))
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


def _names_parameters(given: object) -> TypeGuard[NamedParameters]:
    """Whether this is a `NamedParameters`; an attribute of that name may also be the method of a PyTorch module.

    The attributes are looked for, not asked for, as `isinstance` would: there may be a million labels.
    """
    names = ("names", "dim", "labels", "constrain")
    return all(getattr_static(given, name, None) is not None for name in names)


def checked_dim(prior: object, dim: int, parameters: NamedParameters | None) -> int:
    """The dimension that ``prior``, ``dim`` and ``parameters`` agree on."""
    positive_integer(dim, "dim", least=0)
    # a mean and a few draws; labels take ten times the memory of a number each
    numbers = 4 * dim if parameters is None else 14 * parameters.dim
    require_memory(numbers, f"a fit of {dim or numbers // 14:,} parameters", "fit fewer parameters")
    if prior is not None and (isinstance(prior, type) or not callable(getattr(prior, "log_density", None))):
        raise InvalidTypeError(
            "prior must be a mgvbp.Gaussian, a posterior, a distribution of scipy.stats, a function (S, d) -> (S,), "
            "for a mgvbp.Model a dict of distributions by name, an object with a method log_density, or None; "
            f"got {type(prior).__name__}"
        )
    of_prior = prior.dim if isinstance(prior, Gaussian | GaussianMixture | ThetaPrior) else 0
    if parameters is not None:
        for given, what in ((dim, "dim= is"), (of_prior, "the prior's dimension is")):
            if given not in (0, parameters.dim):
                raise InvalidInputError(
                    f"{what} {given}, but the model has {parameters.dim} unconstrained parameters: "
                    f"{', '.join(parameters.labels)}"
                )
        return parameters.dim
    if of_prior:
        if dim not in (0, of_prior):
            raise InvalidInputError(f"the prior has {of_prior} parameters, but {dim} were asked for")
        return of_prior
    if dim < 1:
        raise InvalidInputError(
            "the dimension is not known: give dim=, initial_mean= or a Gaussian prior (a NumPyro model goes in by "
            "mgvbp.from_numpyro(model, *data), a network by mgvbp.networks)"
        )
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
    if isinstance(prior, Gaussian):
        return prior.log_density_at(theta)
    return checked_values(called(prior.log_density, theta), theta, "prior.log_density")


def density_and_gradient(
    prior: Prior | None, theta: Array, values: ArrayLike, gradients: ArrayLike | None
) -> tuple[Array, Array]:
    """The log density (S,) and its gradient (S, d), from what a search was told of the log-likelihood."""
    if gradients is None:
        raise InvalidInputError("this search needs gradients: tell(values, gradients)")
    density = checked_values(values, theta, "log_likelihood") + log_prior(prior, theta)
    return density, checked_derivatives(gradients, theta, "the gradient") + grad_log_prior(prior, theta)


def grad_log_prior(prior: Prior | None, theta: Array) -> Array:
    """The gradient of the log prior density at each row of ``theta``, (S, d); zeros for no prior."""
    if prior is None:
        return np.zeros_like(theta)
    if isinstance(prior, Gaussian):
        return prior.grad_log_density_at(theta)
    gradient: Callable[[Array], Any] = prior.grad_log_density  # type: ignore[attr-defined]
    return checked_derivatives(called(gradient, theta), theta, "prior.grad_log_density")
