"""The constrained values of one draw of θ as a function that JAX can trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scipy.linalg import helmert

from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError
from mgvbp.problem.parameters import Parameters
from mgvbp.transforms import (
    Interval,
    LowerBound,
    Ordered,
    Positive,
    Real,
    Simplex,
    Transform,
    UpperBound,
)


def traced_constrain(parameters: Parameters) -> Callable[[Any], dict[str, Any]]:
    """`Parameters.constrain` of one draw, (d,) -> values by name, as a JAX function.

    Raises
    ------
    InvalidInputError
        One of the constraints is not written in JAX.
    """
    for name, transform in parameters.transforms.items():
        if type(transform) not in KNOWN:  # a subclass may have another formula
            raise InvalidInputError(
                f"{name} has the constraint {transform!r}, which is not written in JAX; {ADVICE}"
            )
    if parameters.shared:
        raise InvalidInputError(f"{', '.join(parameters.shared)} share a constraint; {ADVICE}")

    def constrain(theta: Any) -> dict[str, Any]:
        return {
            name: traced(transform, theta[parameters.slices[name]]).reshape(transform.shape)
            for name, transform in parameters.transforms.items()
        }

    return constrain


def traced(transform: Transform, x: Any) -> Any:
    """The constrained value of ``x`` (size,) as a flat array, by the formulas in `mgvbp.transforms`."""
    jax, jnp = require("jax", "jax"), require("jax.numpy", "jax")
    match transform:
        case Real():
            return x
        case Positive():
            return jnp.exp(x)
        case LowerBound(bounds=(lower, _)):
            return lower + jnp.exp(x)
        case UpperBound(bounds=(_, upper)):
            return upper - jnp.exp(-x)
        case Interval(bounds=(lower, upper)):
            distance = (upper - lower) * jax.nn.sigmoid(-jnp.abs(x))
            return jnp.where(x < 0.0, lower + distance, upper - distance)
        case Ordered():
            return jnp.cumsum(jnp.concatenate([x[:1], jnp.exp(x[1:])]))
        case Simplex():
            return jax.nn.softmax(x @ helmert(transform.shape[0]))
    raise AssertionError(f"{transform!r} was let through")


KNOWN = (Real, Positive, LowerBound, UpperBound, Interval, Ordered, Simplex)
ADVICE = (
    f"grad='jax' knows {', '.join(kind.__name__ for kind in KNOWN)}: write the function in θ itself for "
    "mgvbp.from_jax, with the prior of the named parameters, or the model for mgvbp.from_numpyro"
)
