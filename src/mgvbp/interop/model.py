"""The class that models of other packages become: a log density of θ, with the names and values behind θ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.problem.parameters import indexed, slices_of


@dataclass(frozen=True)
class ForeignParameters:
    """Names and shapes of the parameters of another package's model, with that model's own transforms.

    It has the names, slices and maps of `mgvbp.Parameters`, but no transforms of its own, since a constraint may
    depend on other parameters, as in ``Uniform(0, width)`` with a random width.

    Parameters
    ----------
    shapes : mapping of str to tuple
        The shape of each name's value, in the order of θ.
    unconstrained_shapes : mapping of str to tuple
        The shape of each name's unconstrained numbers, which lie in θ in C order.
    to_values : callable
        (S, d) -> {name: (S, *shape)}; the result may have further names of derived values.
    to_theta : callable
        {name: (S, *shape)} -> (S, d), the inverse of ``to_values``; outside the support it may return anything.
    dims : mapping of str to sequence of str, optional
        What the axes of a value are called, for parameters, derived values and data; for `Posterior.to_arviz`.
    coords : mapping of str to sequence, optional
        What the entries along an axis of ``dims`` are called.
    """

    shapes: Mapping[str, tuple[int, ...]]
    unconstrained_shapes: Mapping[str, tuple[int, ...]]
    to_values: Callable[[Array], dict[str, Array]]
    to_theta: Callable[[dict[str, Array]], Array]
    dims: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coords: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of θ."""
        return tuple(self.shapes)

    @property
    def dim(self) -> int:
        """The length of θ."""
        return sum(map(prod, self.unconstrained_shapes.values()))

    @property
    def slices(self) -> dict[str, slice]:
        """Where each name's numbers lie in θ."""
        return slices_of(self.unconstrained_shapes)

    @property
    def labels(self) -> tuple[str, ...]:
        """A label for each number in θ: the index of the entry it stands for, or a position if the shapes differ."""
        return tuple(
            label
            for name, shape in self.unconstrained_shapes.items()
            for label in indexed(name, shape if shape == self.shapes[name] else (prod(shape),))
        )

    def constrain(self, theta: ArrayLike) -> dict[str, Array]:
        """Values (S, *shape) of the names and of derived quantities of the model, at the rows of ``theta`` (S, d).

        For a single θ (d,) the values have no leading axis.
        """
        points = as_floats(theta, "theta")
        if points.ndim == 1:
            return {name: value[0] for name, value in self.constrain(points[None]).items()}
        values = self.to_values(checked_rows(points, self.dim))
        return {name: values[name] for name in dict.fromkeys([*self.names, *values])}

    def unconstrain(self, values: Mapping[str, ArrayLike]) -> Array:
        """The θ (d,) for one value of each name, or (S, d) for values that all have a leading axis of length S.

        ``values`` may contain derived values, as `constrain` returns them; they are ignored.

        Raises
        ------
        InvalidInputError
            A name is missing, or a value has a wrong shape or is outside the support.
        """
        if missing := [name for name in self.names if name not in values]:
            raise InvalidInputError(f"expected {', '.join(self.names)}; {', '.join(missing)} is missing")
        arrays = {name: as_floats(values[name], name) for name in self.names}
        single = all(arrays[name].shape == shape for name, shape in self.shapes.items())
        if single:
            arrays = {name: array[None] for name, array in arrays.items()}
        rows = {array.shape[:1] for array in arrays.values()}
        if len(rows) > 1 or any(arrays[name].shape[1:] != shape for name, shape in self.shapes.items()):
            shapes = ", ".join(f"{name} {shape}" for name, shape in self.shapes.items())
            raise InvalidInputError(
                f"expected values of shapes {shapes}, all of them with the same leading axis or all without; "
                f"got {', '.join(f'{name} {np.shape(values[name])}' for name in self.names)}"
            )
        theta = self.to_theta(arrays)
        # outside the support the inverses of other packages return nan, an infinity or the θ of another value
        finite = np.isfinite(theta)
        back = self.to_values(np.where(finite, theta, 0.0))
        for name, where in self.slices.items():
            if not finite[:, where].all() or not np.allclose(back[name], arrays[name], rtol=1e-6, atol=1e-9):
                raise InvalidInputError(f"{name}: a value is outside the support of its prior")
        return theta[0] if single else theta

    def part(self, names: Sequence[str], theta: Array) -> ForeignParameters:
        """The parameters with these names alone; where a constraint needs the others, they are those of θ (d,)."""
        place = np.arange(self.dim)
        columns = np.concatenate([place[:0], *(place[self.slices[name]] for name in names)])

        def to_values(some: Array) -> dict[str, Array]:
            points = np.tile(theta, (len(some), 1))
            points[:, columns] = some
            values = self.to_values(points)
            return {name: values[name] for name in names}

        def to_theta(values: dict[str, Array]) -> Array:
            others = self.to_values(np.tile(theta, (len(values[names[0]]), 1)))
            return self.to_theta({name: others[name] for name in self.names} | values)[:, columns]

        return replace(
            self,
            shapes={name: self.shapes[name] for name in names},
            unconstrained_shapes={name: self.unconstrained_shapes[name] for name in names},
            to_values=to_values,
            to_theta=to_theta,
            dims={name: self.dims[name] for name in names if name in self.dims},
        )


@dataclass(frozen=True)
class Observations:
    """What a model knows of its data, for the groups that `Posterior.to_arviz` adds to the draws.

    Parameters
    ----------
    log_likelihood : callable
        (S, d) -> {name: (S, *shape)}: of each observed variable, the log-likelihood of each observation.
    observed_data, constant_data : mapping of str to ndarray
        What was observed, by the same names, and what else was given to the model.
    """

    log_likelihood: Callable[[Array], dict[str, Array]]
    observed_data: Mapping[str, Any] = field(default_factory=dict)
    constant_data: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, theta: Array) -> dict[str, Array]:
        """The log-likelihood of each observation at the rows of θ (S, d), by observed variable, (S, *shape)."""
        return self.log_likelihood(theta)


@dataclass(frozen=True)
class ForeignModel:
    """A whole log posterior density on the unconstrained scale; give it to `mgvbp.fit` without a prior.

    Parameters
    ----------
    log_density : callable
        (S, d) -> (S,): log prior + log-likelihood + log-Jacobian of the constraints.
    parameters : ForeignParameters
    pointwise : Observations, optional
        The log-likelihood by observation, and the data behind it.
    """

    log_density: Callable[[Array], Array]
    parameters: ForeignParameters
    pointwise: Observations | None = None
    includes_prior: ClassVar[bool] = True
    predicts_by: ClassVar[str] = (
        "PyMC predicts by pm.sample_posterior_predictive(posterior.to_arviz()), NumPyro by "
        "Predictive(model, posterior.draws(n))"
    )
    """What to do in place of ``posterior.predict``."""

    @property
    def traced(self) -> Callable[[Any], Any] | None:
        """The log density of one draw, (d,) -> scalar, for JAX; None where something else computes it."""
        return getattr(self.log_density, "traced", None)

    @property
    def value_and_grad(self) -> Callable[[Array], tuple[Array, Array]]:
        """Log densities (S,) and gradients (S, d), if the density has them."""
        derived: Callable[[Array], tuple[Array, Array]] = self.log_density.value_and_grad  # type: ignore[attr-defined]
        return derived

    def __call__(self, theta: ArrayLike) -> Array:
        """The log density at each row of ``theta``, (S, d) -> (S,)."""
        return self.log_density(checked_rows(np.asarray(theta, np.float64), self.parameters.dim))


def checked_rows(theta: Array, dim: int) -> Array:
    """``theta``, if its shape is (S, dim)."""
    if theta.ndim != 2 or theta.shape[1] != dim:
        raise InvalidInputError(f"theta has shape {theta.shape}; expected (S, {dim})")
    return theta
