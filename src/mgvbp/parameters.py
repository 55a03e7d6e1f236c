"""Named parameters under constraints, priors on them, and models that are functions of them."""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp._linalg import Array
from mgvbp.checks import as_floats, one_of
from mgvbp.errors import EvaluationError, FileFormatError, InvalidInputError, InvalidTypeError, MgvbpError
from mgvbp.problem import checked_values
from mgvbp.transforms import TRANSFORMS, Elementwise, Transform


class Parameters:
    """Names, shapes and constraints of a model's parameters: how they lie in one unconstrained vector θ.

    Parameters
    ----------
    **transforms : Transform
        One for each name, in the order in which they make up θ.

    Notes
    -----
    A prior can be given on either scale:

    - *unconstrained*, as the paper does: ``mgvbp.Gaussian(variance=5.0, dim=parameters.dim)`` is the density
      of θ itself. There is no Jacobian: a Gaussian on the θ of a `Positive` is a log-normal on its value.
    - *constrained*: ``parameters.prior(sigma=scipy.stats.halfnorm(scale=2.0), ...)`` is the density of the
      values; the log-Jacobian is added, so that it is a density of θ.

    Examples
    --------
    >>> from mgvbp.transforms import Positive, Real
    >>> parameters = Parameters(beta=Real(2), sigma=Positive())
    >>> parameters.dim, parameters.labels
    (3, ('beta[0]', 'beta[1]', 'sigma'))
    >>> parameters.constrain([[1.0, 2.0, 0.0]])
    {'beta': array([[1., 2.]]), 'sigma': array([1.])}
    >>> parameters.unconstrain({"beta": [1.0, 2.0], "sigma": 1.0})
    array([1., 2., 0.])
    """

    def __init__(self, /, **transforms: Transform) -> None:
        if not transforms:
            raise InvalidInputError("give at least one parameter, such as Parameters(beta=Real(3))")
        for name, transform in transforms.items():
            if not name.isidentifier() or keyword.iskeyword(name):
                raise InvalidInputError(f"a parameter's name must be a Python identifier; got {name!r}")
            if not isinstance(transform, Transform):
                raise InvalidTypeError(
                    f"{name} must be a transform, such as Real() or Positive(3); got {transform!r}"
                )
        self._items = tuple(transforms.items())

    @property
    def transforms(self) -> dict[str, Transform]:
        """The transform of each name."""
        return dict(self._items)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of θ."""
        return tuple(name for name, _ in self._items)

    @property
    def dim(self) -> int:
        """The length of θ."""
        return sum(transform.size for _, transform in self._items)

    @property
    def slices(self) -> dict[str, slice]:
        """Where each name's numbers lie in θ."""
        return slices_of({name: (transform.size,) for name, transform in self._items})

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for each number in θ, with the index of the entry it stands for where there is one."""
        return tuple(
            label
            for name, t in self._items
            for label in indexed(name, t.shape if t.increasing else (t.size,))
        )

    def constrain(self, theta: ArrayLike) -> dict[str, Array]:
        """The value of each name, (S, *shape), at the rows of ``theta`` (S, d); without the S for (d,)."""
        points = as_floats(theta, "theta")
        if points.ndim == 1:
            return {name: value[0] for name, value in self.constrain(points[None]).items()}
        slices = self._columns(points)
        return {name: transform.constrain(points[:, slices[name]]) for name, transform in self._items}

    def unconstrain(self, values: Mapping[str, ArrayLike]) -> Array:
        """The θ (d,) of one value for each name, or the (S, d) of values that all have a leading axis S."""
        arrays = {name: as_floats(value, name) for name, value in self._complete(values).items()}
        single = all(arrays[name].shape == transform.shape for name, transform in self._items)
        if single:
            arrays = {name: array[None] for name, array in arrays.items()}
        elif len({array.shape[:1] for array in arrays.values()}) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise InvalidInputError(
                f"give all values with the same leading axis, or all without; got {shapes}"
            )
        columns = [named(name, transform.unconstrain, arrays[name]) for name, transform in self._items]
        theta = np.concatenate(columns, axis=1)
        return theta[0] if single else theta

    def log_jacobian(self, theta: ArrayLike) -> Array:
        """``log |det ∂values/∂θ|`` at the rows of ``theta``, (S, d) -> (S,)."""
        points = as_floats(theta, "theta")
        slices = self._columns(points)
        total = np.zeros(len(points))
        for name, transform in self._items:
            total += transform.log_jacobian(points[:, slices[name]])
        return total

    def prior(self, /, **distributions: Any) -> ConstrainedPrior:
        """A prior on the constrained scale: independent distributions of the named values.

        Parameters
        ----------
        **distributions : object with ``logpdf``, or callable
            One for each name. A frozen distribution of ``scipy.stats`` applies to every entry of the value by
            itself, or, if multivariate (Dirichlet included), to the value. Its support must hold all values
            that the constraint allows. A function of the values (S, *shape) returns the log density (S,).

        Examples
        --------
        >>> import scipy.stats
        >>> from mgvbp.transforms import Interval
        >>> prior = Parameters(rho=Interval(0.0, 1.0)).prior(rho=scipy.stats.uniform())
        >>> float(np.exp(prior.log_density([[0.0]])[0])), float(scipy.stats.logistic.pdf(0.0))
        (0.25, 0.25)
        """
        for name, distribution in self._complete(distributions).items():
            if not callable(getattr(distribution, "logpdf", distribution)):
                raise InvalidTypeError(
                    f"the prior of {name} must have a logpdf, as scipy.stats.norm(0, 5) has, or be a "
                    f"function of its value; got {distribution!r}"
                )
            require_support(name, self.transforms[name], distribution)
        return ConstrainedPrior(self, distributions)

    def spec(self) -> list[list[Any]]:
        """A list of [name, kind, arguments] that JSON can hold; see `from_spec`."""
        return [[name, type(t).__name__, list(t.arguments)] for name, t in self._items]

    @classmethod
    def from_spec(cls, spec: Any) -> Parameters:
        """Build from what `spec` gave; nothing in it is evaluated.

        Raises
        ------
        FileFormatError
            It is anything else.
        """
        transforms: dict[str, Transform] = {}
        try:
            for name, kind, arguments in spec:
                if not isinstance(name, str) or name in transforms or not isinstance(arguments, list):
                    raise FileFormatError(f"cannot use {name!r} with {arguments!r}")
                transforms[name] = TRANSFORMS[one_of(kind, TRANSFORMS, "kind")](*arguments)
            return cls(**transforms)
        except (MgvbpError, TypeError, ValueError) as error:
            raise FileFormatError(f"not a description of parameters: {error}") from None

    def _columns(self, theta: Array) -> dict[str, slice]:
        if theta.ndim != 2 or theta.shape[1] != self.dim:
            raise InvalidInputError(f"theta has shape {theta.shape}; expected (S, {self.dim})")
        return self.slices

    def _complete(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """``given`` if it has all names and no others."""
        if not isinstance(given, Mapping):
            raise InvalidTypeError(f"expected a dict with {', '.join(self.names)}; got {given!r}")
        if set(given) != set(self.names):
            raise InvalidInputError(
                f"expected {', '.join(self.names)}; got {', '.join(map(str, given)) or 'nothing'}"
            )
        return given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"Parameters({', '.join(f'{name}={t!r}' for name, t in self._items)})"


@dataclass(frozen=True)
class ConstrainedPrior:
    """The density of θ whose constrained values have the given distributions; see `Parameters.prior`."""

    parameters: Parameters
    distributions: Mapping[str, Any]

    def log_density(self, theta: ArrayLike) -> Array:
        """Log density of θ at each row of ``theta``, (S, d) -> (S,): distributions and log-Jacobian."""
        total = self.parameters.log_jacobian(theta)
        for name, value in self.parameters.constrain(theta).items():
            distribution, entries = self.distributions[name], tuple(range(1, value.ndim))
            # far out in the tails formulas overflow on the way to a density of 0: nothing to warn of
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                term = np.asarray(log_density_of(distribution, name, value))
            if term.shape == value.shape:
                term = term.sum(axis=entries)
            elif term.size == len(value) == 1:  # scipy's multivariate distributions drop the axis of one draw
                term = term.reshape(1)
            finite = np.isfinite(value).all(axis=entries)
            total += np.where(finite, checked_values(term, value, f"the prior of {name}"), -np.inf)
        return total


def require_support(name: str, transform: Transform, distribution: Any) -> None:
    """Refuse a prior that is zero at some of the values of ``transform``, where both say what theirs are."""
    if not isinstance(transform, Elementwise) or not callable(getattr(distribution, "support", None)):
        return
    try:
        low, high = distribution.support()
    except TypeError:
        raise InvalidTypeError(
            f"the prior of {name} needs arguments, as scipy.stats.gamma(2.0) has them; got {distribution!r}"
        ) from None
    low, high = float(np.max(low)), float(np.min(high))  # each entry may have its own
    lower, upper = transform.bounds
    # uniform(a, b - a) may end a rounding error before b
    near = partial(math.isclose, rel_tol=1e-9, abs_tol=1e-12)
    if not ((low <= lower or near(low, lower)) and (high >= upper or near(high, upper))):
        raise InvalidInputError(
            f"the prior of {name} has the support ({low}, {high}), but {transform!r} goes beyond it: use "
            "Positive, LowerBound, UpperBound or Interval"
        )


def log_density_of(distribution: Any, name: str, value: Array) -> Any:
    """The log density of the values (S, *shape) as the distribution, or the function, returns it."""
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


@dataclass(frozen=True)
class Model:
    """A log-likelihood as a function of named, constrained parameters.

    Parameters
    ----------
    function : callable
        Called with one keyword argument a name, of shape (S, *shape); returns the log-likelihood (S,).
    parameters : Parameters

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from mgvbp.transforms import Positive, Real
    >>> y = np.array([0.3, 1.1, 0.4])
    >>> def log_likelihood(mu, sigma):
    ...     return norm.logpdf(y, mu[:, None], sigma[:, None]).sum(axis=1)
    >>> model = Model(log_likelihood, Parameters(mu=Real(), sigma=Positive()))
    >>> model(np.zeros((2, 2))).round(4)
    array([-3.4868, -3.4868])
    """

    function: Callable[..., Any]
    parameters: Parameters

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidTypeError(f"function must be a function of the parameters; got {self.function!r}")
        if not isinstance(self.parameters, Parameters):
            raise InvalidTypeError(f"parameters must be a mgvbp.Parameters; got {self.parameters!r}")
        if not takes(self.function, self.parameters.names):
            raise InvalidInputError(
                f"function cannot be called with the parameters' names {', '.join(self.parameters.names)}; "
                f"its arguments are {inspect.signature(self.function)}"
            )

    def __call__(self, theta: ArrayLike) -> Any:
        """The log-likelihood at each row of ``theta``, (S, d) -> (S,)."""
        return self.function(**self.parameters.constrain(theta))


def slices_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, slice]:
    """Where the numbers of each name's array lie, if they are put one behind the other."""
    slices, start = {}, 0
    for name, shape in shapes.items():
        slices[name] = slice(start, start + math.prod(shape))
        start = slices[name].stop
    return slices


def indexed(name: str, shape: tuple[int, ...]) -> Iterable[str]:
    """``name`` with each index of an array of this shape; the bare name for a scalar."""
    if not shape:
        return [name]
    return (f"{name}[{','.join(map(str, index))}]" for index in product(*map(range, shape)))


def named(name: str, function: Callable[[Array], Array], value: Array) -> Array:
    """``function(value)``, whose errors then start with the parameter's name."""
    try:
        return function(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from None


def takes(function: Callable[..., Any], names: Iterable[str]) -> bool:
    """Whether the function's signature allows these keyword arguments; True where it has none to look at."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except ValueError:
        return True
    except TypeError:
        return False
    return True
