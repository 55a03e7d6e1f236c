"""What functions of JAX and PyTorch have in common: checks, and the constraints of a `Model` in their operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import helmert

from mgvbp.core.checks import true_or_false
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.problem.minibatch import Minibatches
from mgvbp.problem.model import Model
from mgvbp.problem.parameters import Parameters
from mgvbp.transforms import Interval, LowerBound, Ordered, Positive, Real, Simplex, UpperBound


def model_in(function: Any, vectorized: bool | None, package: str, name: str) -> Model | None:
    """``function`` if it is a `Model`, whose constraints are to be written in the package, else None.

    What cannot be differentiated raises. ``name`` is what ``grad=`` calls the package.
    """
    if vectorized is not None:
        true_or_false(vectorized, "vectorized")
    if not callable(function):
        raise InvalidTypeError(f"function must be a {package} function of θ; got {function!r}")
    if isinstance(function, Minibatches):
        raise InvalidInputError(
            f"minibatches bring their own gradient: leave grad={name!r} out, and write Minibatches(from_{name}(f), X, "
            f"y, ...) for a {package} function f(theta, X, y) of one draw"
        )
    plain = isinstance(function, Model) and type(function).__call__ is Model.__call__
    return function if plain else None


def function_of_one(
    model: Model, vectorized: bool | None, numbers: Any, functions: Any, name: str
) -> Callable[[Any], Any]:
    """The function of a `Model` as one of a single θ, (d,) -> scalar, which a package can differentiate.

    Parameters
    ----------
    model : Model
    vectorized : bool or None
        Whether the model's function takes the values of all draws; None if it is to be tried.
    numbers, functions : modules
        Where the package has its ``exp`` and its ``softmax``: ``jax.numpy`` and ``jax.nn``, or ``torch`` twice.
    name : str
        What ``grad=`` calls the package.

    Raises
    ------
    InvalidInputError
        There is no formula for one of the constraints.
    """
    require_formulas(model.parameters, name)
    transforms, slices = model.parameters.transforms, model.parameters.slices

    def of_one(theta: Any) -> Any:
        values = {
            key: FORMULAS[type(t)](numbers, functions, t, theta[slices[key]]).reshape(t.shape)
            for key, t in transforms.items()
        }
        if vectorized is not False:
            try:
                return only(model.function(**{key: value[None] for key, value in values.items()}))
            except Exception:
                if vectorized:
                    raise
        return model.function(**values)

    return of_one


def require_formulas(parameters: Parameters, name: str) -> None:
    """Raise if there is no formula for one of the constraints."""
    advice = (
        f"grad={name!r} knows {', '.join(kind.__name__ for kind in FORMULAS)}: write the function in θ itself for "
        f"mgvbp.from_{name}, with the prior of the named parameters, or the model for mgvbp.from_numpyro"
    )
    for parameter, transform in parameters.transforms.items():
        if type(transform) not in FORMULAS:  # a subclass may have another formula
            raise InvalidInputError(
                f"{parameter} has the constraint {transform!r}, which is not written for {name}; {advice}"
            )
    if parameters.shared:
        raise InvalidInputError(f"{', '.join(parameters.shared)} share a constraint; {advice}")


def only(values: Any) -> Any:
    """The value of a function of all draws, called with one of them; the caller explains what is raised here."""
    if np.shape(values) != (1,):
        raise ValueError(f"it returned shape {np.shape(values)} for draws of shape (1, d), not (1,)")
    return values[0]


def _interval(np: Any, nn: Any, transform: Interval, x: Any) -> Any:
    lower, upper = transform.bounds
    distance = (upper - lower) * nn.sigmoid(-np.abs(x))
    return np.where(x < 0.0, lower + distance, upper - distance)


FORMULAS: dict[type, Callable[[Any, Any, Any, Any], Any]] = {
    Real: lambda np, nn, _, x: x,
    Positive: lambda np, nn, _, x: np.exp(x),
    LowerBound: lambda np, nn, transform, x: transform.bounds[0] + np.exp(x),
    UpperBound: lambda np, nn, transform, x: transform.bounds[1] - np.exp(-x),
    Interval: _interval,
    Ordered: lambda np, nn, _, x: np.cumsum(np.concatenate([x[:1], np.exp(x[1:])]), 0),
    Simplex: lambda np, nn, transform, x: nn.softmax(x @ np.asarray(helmert(transform.shape[0])), 0),
}
"""The constrained value of ``x`` (size,) as a flat array, by the formulas in `mgvbp.transforms`, in a package."""
