"""Log-likelihoods written in JAX: compiled, in float64, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from mgvbp.core.checks import true_or_false
from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.interop.compiled import compiled
from mgvbp.interop.traced_transforms import traced_constrain
from mgvbp.problem.minibatch import Minibatches
from mgvbp.problem.model import Model


class JaxLikelihood:
    """A JAX function of θ with its gradient, in the form that `mgvbp.fit` takes; see `from_jax`.

    Attributes
    ----------
    traced : callable
        The function of one draw, (d,) -> scalar, for other JAX code.
    """

    vectorized = True  # it takes all draws at once, whatever its function took

    def __init__(self, traced: Callable[..., Any]) -> None:
        self.traced = traced

    @cached_property
    def _values(self) -> Callable[..., Array]:
        return compiled(self.traced)

    @cached_property
    def value_and_grad(self) -> Callable[..., tuple[Array, Array]]:
        """Values (S,) and gradients (S, d) at the rows of θ (S, d); data follow θ if the function takes them."""
        return compiled(require("jax", "jax").value_and_grad(self.traced))

    def __call__(self, theta: Array, *data: Any) -> Array:
        """The values at the rows of θ, (S, d) -> (S,); arrays of data follow θ if the function takes them."""
        return self._values(theta, *data)


class JaxModel(JaxLikelihood):
    """A `Model` whose function is written in JAX, as a function of θ with its gradient and its parameters' names.

    Raises
    ------
    InvalidInputError
        One of its constraints is not written in JAX.
    """

    def __init__(self, model: Model, *, vectorized: bool) -> None:
        constrain = traced_constrain(model.parameters)

        def traced(theta: Any) -> Any:
            values = constrain(theta)
            if not vectorized:
                return model.function(**values)
            return model.function(**{name: value[None] for name, value in values.items()})[0]

        super().__init__(traced)
        self.parameters, self.pointwise, self.y = model.parameters, model.pointwise, model.y
        self.flat_prior = model.flat_prior


def from_jax(function: Callable[..., Any], *, vectorized: bool = False) -> JaxLikelihood:
    """A log-likelihood written in JAX, compiled, with its gradient, in the form that `mgvbp.fit` takes.

    Parameters
    ----------
    function : callable
        A JAX function of one draw, (d,) -> scalar; with ``vectorized=True`` of all draws, (S, d) -> (S,).
        It is compiled for float64, whatever JAX's global switch says, and the switch stays as it is.
        For `mgvbp.Minibatches` it also takes arrays of data, and returns the sum over their rows.
        It can also be a `mgvbp.Model` whose function is written in JAX and takes the values of one draw, or of all;
        its constraints must be `Ordered`, `Simplex` or constraints on single numbers.
    vectorized : bool

    Examples
    --------
    ::

        import jax.numpy as jnp

        posterior = mgvbp.fit(mgvbp.from_jax(lambda theta: -jnp.cosh(theta).sum()), dim=100)
        posterior = mgvbp.fit(lambda theta: -jnp.cosh(theta).sum(axis=1), dim=100, grad="jax")  # the same

        f = mgvbp.from_jax(lambda theta, X, y: -0.5 * ((y - X @ theta) ** 2).sum())
        posterior = mgvbp.fit(mgvbp.Minibatches(f, X, y, batch_size=100), prior, method="mgvbp")
    """
    require("jax", "jax")
    true_or_false(vectorized, "vectorized")
    if not callable(function):
        raise InvalidTypeError(f"function must be a JAX function of θ; got {function!r}")
    if isinstance(function, Minibatches):
        raise InvalidInputError(
            "minibatches bring their own gradient: leave grad='jax' out, and write Minibatches(from_jax(f), X, y, ...) "
            "for a JAX function f(theta, X, y) of one draw"
        )
    if isinstance(function, Model) and type(function).__call__ is Model.__call__:
        return JaxModel(function, vectorized=vectorized)
    return JaxLikelihood((lambda row, *data: function(row[None], *data)[0]) if vectorized else function)
