"""Named parameters under constraints, and their place in one unconstrained vector."""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats, as_name, one_of, shown
from mgvbp.core.linalg import Array
from mgvbp.errors import FileFormatError, InvalidInputError, InvalidTypeError, MgvbpError
from mgvbp.problem.priors import ConstrainedPrior, require_support
from mgvbp.transforms import TRANSFORMS, Real, Transform

Key = str | tuple[str, ...]


class Parameters:
    """Names, shapes and constraints of a model's parameters, and their place in one unconstrained vector θ.

    Parameters
    ----------
    transforms : mapping of str or tuple of str to Transform, optional
        The same as the keyword arguments, for names that are not Python identifiers. A tuple names the entries of a
        vector under one constraint: each is then a scalar parameter of its own.
    **named : Transform
        One transform for each name, in the order in which they make up θ.

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

    >>> from mgvbp.transforms import GarchRegion
    >>> Parameters({"omega": Positive(), ("alpha[1]", "beta[1]"): GarchRegion(1, 0, 1)}).names
    ('omega', 'alpha[1]', 'beta[1]')
    """

    def __init__(self, transforms: Mapping[Key, Transform] | None = None, /, **named: Transform) -> None:
        for name in named:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise InvalidInputError(f"a parameter's name must be a Python identifier; got {name!r}")
        if transforms is not None and not isinstance(transforms, Mapping):
            raise InvalidTypeError(f"expected name=transform, or a dict of them; got {shown(transforms)}")
        self._items: tuple[tuple[Key, Transform], ...] = (*(transforms or {}).items(), *named.items())
        if not self._items:
            raise InvalidInputError("give at least one parameter, such as Parameters(beta=Real(3))")
        for key, transform in self._items:
            for name in key if isinstance(key, tuple) else (key,):
                as_name(name, "a parameter's name")
            if not isinstance(transform, Transform):
                raise InvalidTypeError(
                    f"{key} must be a transform, such as Real() or Positive(3); got {shown(transform)}"
                )
            if isinstance(key, tuple) and not (transform.shape == (transform.size,) == (len(key),)):
                raise InvalidInputError(f"{transform!r} cannot be split into {', '.join(key)}")
        if len(set(self.names)) < len(self.names):
            raise InvalidInputError(f"two parameters have the same name: {', '.join(self.names)}")
        wholes = {name.rpartition("[")[0] for name in self.names}
        entries = {
            label
            for name, t in self.transforms.items()
            if name in wholes and t.shape
            for shape in (t.shape, t.shape if t.increasing else (t.size,))
            for label in indexed(name, shape)
        }
        if twice := [name for name in self.names if name in entries]:
            raise InvalidInputError(f"the name {twice[0]} is also that of an entry of another parameter")

    @property
    def transforms(self) -> dict[str, Transform]:
        """The transform of each name that has its own; names in tuples share one."""
        return {key: transform for key, transform in self._items if isinstance(key, str)}

    @property
    def shared(self) -> list[str]:
        """The names that share a constraint with others."""
        return [name for key, _ in self._items if isinstance(key, tuple) for name in key]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of θ."""
        return tuple(name for key, _ in self._items for name in names_in(key))

    @property
    def dim(self) -> int:
        """The length of θ."""
        return sum(transform.size for _, transform in self._items)

    @property
    def slices(self) -> dict[str, slice]:
        """Where each name's numbers lie in θ."""
        each = ((name, key, t) for key, t in self._items for name in names_in(key))
        return slices_of({name: () if isinstance(key, tuple) else (t.size,) for name, key, t in each})

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for each number in θ: the parameter's name and, for arrays, an index."""
        return tuple(
            label
            for key, t in self._items
            for label in (
                key if isinstance(key, tuple) else indexed(key, t.shape if t.increasing else (t.size,))
            )
        )

    def constrain(self, theta: ArrayLike) -> dict[str, Array]:
        """The value of each name, (S, *shape), at the rows of ``theta`` (S, d); for one θ (d,) it is (*shape)."""
        points = as_floats(theta, "theta")
        if points.ndim == 1:
            return {name: value[0] for name, value in self.constrain(points[None]).items()}
        values: dict[str, Array] = {}
        for key, transform, columns in self.blocks(points):
            value = transform.constrain(columns)
            values |= {key: value} if isinstance(key, str) else zip(key, value.T, strict=True)
        return values

    def unconstrain(self, values: Mapping[str, ArrayLike]) -> Array:
        """The θ (d,) for one value of each name, or (S, d) for values that all have a leading axis of length S."""
        arrays = {name: as_floats(value, name) for name, value in self._complete(values, "value").items()}
        own = {name: transform.shape for name, transform in self.transforms.items()}
        single = all(array.shape == own.get(name, ()) for name, array in arrays.items())
        if single:
            arrays = {name: array[None] for name, array in arrays.items()}
        elif len({array.shape[:1] for array in arrays.values()}) > 1:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            raise InvalidInputError(
                f"give all values with the same leading axis, or all without; got {shapes}"
            )
        columns = []
        for key, transform in self._items:
            value = arrays[key] if isinstance(key, str) else np.stack([arrays[name] for name in key], axis=-1)
            columns.append(named(", ".join(names_in(key)), transform.unconstrain, value))
        theta = np.concatenate(columns, axis=1)
        return theta[0] if single else theta

    def log_jacobian(self, theta: ArrayLike) -> Array:
        """``log |det ∂values/∂θ|`` at the rows of ``theta``, (S, d) -> (S,)."""
        blocks = self.blocks(as_floats(theta, "theta"))
        return sum((transform.log_jacobian(columns) for _, transform, columns in blocks), np.zeros(()))

    def blocks(self, theta: Array) -> Iterator[tuple[Key, Transform, Array]]:
        """Each constraint as its name or names, the transform and its columns of ``theta`` (S, d)."""
        if theta.ndim != 2 or theta.shape[1] != self.dim:
            raise InvalidInputError(f"theta has shape {theta.shape}; expected (S, {self.dim})")
        start = 0
        for key, transform in self._items:
            yield key, transform, theta[:, start : start + transform.size]
            start += transform.size

    def prior(self, /, **distributions: Any) -> ConstrainedPrior:
        """A prior on the constrained scale: independent distributions of the named values.

        Parameters
        ----------
        **distributions : object with ``logpdf``, or callable
            One for each name. A univariate frozen distribution of ``scipy.stats`` is that of every entry of the
            value, a multivariate one (Dirichlet included) that of the whole value. Its support must contain all
            values that the constraint allows. A function takes the values (S, *shape) and returns the log density
            (S,).

        Examples
        --------
        >>> import scipy.stats
        >>> from mgvbp.transforms import Interval
        >>> prior = Parameters(rho=Interval(0.0, 1.0)).prior(rho=scipy.stats.uniform())
        >>> float(np.exp(prior.log_density([[0.0]])[0])), float(scipy.stats.logistic.pdf(0.0))
        (0.25, 0.25)
        """
        for name, distribution in self._complete(distributions, "prior").items():
            if not callable(getattr(distribution, "logpdf", distribution)):
                raise InvalidTypeError(
                    f"the prior of {name} must have a logpdf, as scipy.stats.norm(0, 5) has, or be a "
                    f"function of its value; got {shown(distribution)}"
                )
            if name in self.transforms:
                require_support(name, self.transforms[name], distribution)
        return ConstrainedPrior(self, distributions)

    def spec(self) -> list[list[Any]]:
        """A list of [name or list of names, kind, arguments] that JSON can hold; see `from_spec`."""
        return [
            [key if isinstance(key, str) else list(key), type(t).__name__, list(t.arguments)]
            for key, t in self._items
        ]

    @classmethod
    def from_spec(cls, spec: Any) -> Parameters:
        """Build the parameters that `spec` describes; no part of a specification is evaluated as code.

        Raises
        ------
        FileFormatError
            ``spec`` is not such a list.
        """
        transforms: dict[Key, Transform] = {}
        try:
            for name, kind, arguments in spec:
                key = tuple(name) if isinstance(name, list) else name
                if key in transforms or not isinstance(arguments, list):
                    raise FileFormatError(f"cannot use {name!r} with {arguments!r}")
                transforms[key] = TRANSFORMS[one_of(kind, TRANSFORMS, "kind")](*arguments)
            return cls(transforms)
        except (MgvbpError, TypeError, ValueError) as error:
            raise FileFormatError(f"not a description of parameters: {error}") from None

    def _complete(self, given: Mapping[str, Any], what: str) -> Mapping[str, Any]:
        """``given``, which maps each name to a ``what``; raise unless it has all names and no others."""
        if not isinstance(given, Mapping):
            raise InvalidTypeError(f"expected a dict with {', '.join(self.names)}; got {shown(given)}")
        if set(given) != set(self.names):
            missing = ", ".join(name for name in self.names if name not in given)
            raise InvalidInputError(
                (f"no {what} for {missing}: " if missing else "")
                + f"expected {', '.join(self.names)}; got {', '.join(map(str, given)) or 'nothing'}"
            )
        return given

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameters) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        if all(isinstance(key, str) and key.isidentifier() for key, _ in self._items):
            return f"Parameters({', '.join(f'{key}={t!r}' for key, t in self._items)})"
        return f"Parameters({dict(self._items)!r})"


def real(labels: Iterable[str]) -> Parameters:
    """Parameters without constraints, one for each entry of θ, under these ``labels`` of a user."""
    names = [] if isinstance(labels, str) or not isinstance(labels, Iterable) else list(labels)
    texts = [str(name) for name in names if isinstance(name, str)]  # numpy's strings too
    if not names or len(texts) < len(names) or len(set(texts)) < len(names):
        raise InvalidInputError(
            f"labels must be a list of different strings, one for each entry of θ; got {shown(labels)}"
        )
    return Parameters({name: Real() for name in texts})


def names_in(key: Key) -> tuple[str, ...]:
    """The names in a key of one constraint."""
    return (key,) if isinstance(key, str) else key


def slices_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, slice]:
    """The slice of each name's array in a vector in which all arrays stand one behind the other."""
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


def entry_labels(parameters: object, name: str, shape: tuple[int, ...]) -> list[str]:
    """`indexed`, with what the entries are called in the place of numbers, where ``dims`` and ``coords`` say so.

    Whole numbers are not taken: a coordinate 1 could be mistaken for the entry with this number.
    """
    coords, dims = getattr(parameters, "coords", {}), getattr(parameters, "dims", {}).get(name, ())
    axes: list[list[str]] = []
    for axis, n in enumerate(shape):
        called = [str(entry) for entry in coords.get(dims[axis], ())] if axis < len(dims) else []
        words = len(set(called)) == n and not any(
            word.isdecimal() or set(word) & set(",[]") for word in called
        )
        axes.append(called if words else [str(i) for i in range(n)])
    return [f"{name}[{','.join(index)}]" for index in product(*axes)] if shape else [name]


def named(name: str, function: Callable[[Array], Array], value: Array) -> Array:
    """``function(value)``; the message of an error starts with the parameter's name."""
    try:
        return function(value)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from None
