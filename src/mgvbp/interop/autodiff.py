"""`Parameters.constrain` written with the operations of another package, which can differentiate them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mgvbp.errors import InvalidInputError
from mgvbp.problem.parameters import Parameters


def constrain_by(
    parameters: Parameters, package: Any, formulas: Mapping[type, Callable[[Any, Any, Any], Any]], name: str
) -> Callable[[Any], dict[str, Any]]:
    """`Parameters.constrain` of one draw, (d,) -> values by name, by the ``formulas`` of a package such as ``jax``.

    Parameters
    ----------
    parameters : Parameters
    package : module
    formulas : mapping of type to callable
        For a class of transforms, (package, transform, its part of θ) -> the flat value.
    name : str
        What ``grad=`` calls the package.

    Raises
    ------
    InvalidInputError
        There is no formula for one of the constraints.
    """
    advice = (
        f"grad={name!r} knows {', '.join(kind.__name__ for kind in formulas)}: write the function in θ itself for "
        f"mgvbp.from_{name}, with the prior of the named parameters, or the model for mgvbp.from_numpyro"
    )
    for parameter, transform in parameters.transforms.items():
        if type(transform) not in formulas:  # a subclass may have another formula
            raise InvalidInputError(
                f"{parameter} has the constraint {transform!r}, which is not written for {name}; {advice}"
            )
    if parameters.shared:
        raise InvalidInputError(f"{', '.join(parameters.shared)} share a constraint; {advice}")

    def constrain(theta: Any) -> dict[str, Any]:
        return {
            parameter: formulas[type(t)](package, t, theta[parameters.slices[parameter]]).reshape(t.shape)
            for parameter, t in parameters.transforms.items()
        }

    return constrain
