"""Log-likelihoods written in JAX: compiled, in float64, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.interop.functions.autodiff import function_of_one, model_in, only
from mgvbp.interop.functions.compiled import Compiled
from mgvbp.problem.model import Model


class JaxLikelihood:
    """A JAX function of θ with its gradient, in the form that `mgvbp.fit` takes; see `from_jax`.

    Attributes
    ----------
    traced : callable
        The function of one draw, (d,) -> scalar, for other JAX code.
    parameters, pointwise, y, flat_prior
        Those of the `Model` that the function computes, if it is one.
    """

    vectorized = True  # it takes all draws at once, whatever its function took

    def __init__(self, traced: Callable[..., Any], model: Model | None = None) -> None:
        self.traced = traced
        if model is not None:
            self.parameters, self.pointwise, self.y = model.parameters, model.pointwise, model.y
            self.flat_prior = model.flat_prior

    @cached_property
    def _values(self) -> Callable[..., Array]:
        return Compiled(self.traced)

    @cached_property
    def value_and_grad(self) -> Callable[..., tuple[Array, Array]]:
        """Values (S,) and gradients (S, d) at the rows of θ (S, d); data follow θ if the function takes them."""
        return Compiled(require("jax", "jax").value_and_grad(self.traced))

    def __call__(self, theta: Array, *data: Any) -> Array:
        """The values at the rows of θ, (S, d) -> (S,); arrays of data follow θ if the function takes them."""
        return self._values(theta, *data)


def from_jax(function: Callable[..., Any], *, vectorized: bool | None = None) -> JaxLikelihood:
    """A log-likelihood written in JAX, compiled, with its gradient, in the form that `mgvbp.fit` takes.

    Parameters
    ----------
    function : callable
        A JAX function of one draw, (d,) -> scalar, or of all draws, (S, d) -> (S,).
        It is compiled for float64, whatever JAX's global switch says, and the switch stays as it is.
        For `mgvbp.Minibatches` it also takes arrays of data, and returns the sum over their rows.
        It can also be a `mgvbp.Model` whose function is written in JAX and takes the values of one draw, or of all;
        its constraints must be `Ordered`, `Simplex` or constraints on single numbers.
    vectorized : bool, optional
        Whether the function takes all draws; by default its shapes show that.

    Examples
    --------
    ::

        import jax.numpy as jnp

        posterior = mgvbp.fit(mgvbp.from_jax(lambda theta: -jnp.cosh(theta).sum()), dim=100)
        posterior = mgvbp.fit(lambda theta: -jnp.cosh(theta).sum(axis=1), dim=100, grad="jax")  # the same

        f = mgvbp.from_jax(lambda theta, X, y: -0.5 * ((y - X @ theta) ** 2).sum())
        posterior = mgvbp.fit(mgvbp.Minibatches(f, X, y, batch_size=100), prior, method="mgvbp")
    """
    jax = require("jax", "jax")
    if model := model_in(function, vectorized, "JAX", "jax"):
        return JaxLikelihood(function_of_one(model, vectorized, jax.numpy, jax.nn, "jax"), model)
    return JaxLikelihood(function if vectorized is False else _of_one(function, vectorized is None))


def _of_one(function: Callable[..., Any], unsure: bool) -> Callable[..., Any]:
    """A function of all draws as a function of one; what is raised here is explained by `Compiled`.

    If it is ``unsure`` whether the function takes all draws, its shapes decide, which costs no evaluation.

    Draws are evaluated one by one, which would hide that their values depend on each other. So when the function is
    compiled it is also called with several draws at once, unless it takes data, which are not known then.
    """

    def of_one(row: Any, *data: Any) -> Any:
        if unsure and not _takes_all(function, row, data):
            return function(row, *data)
        if not data:
            _alone(function, row.shape[0])
        return only(function(row[None], *data))

    return of_one


def _takes_all(function: Callable[..., Any], row: Any, data: tuple[Any, ...]) -> bool:
    """Whether the function gives a value for each row of an array (S, d); what is traced for that is dead code."""
    number = row.shape[0] + 1  # not as many rows as columns: one may be taken for the other
    try:
        return bool(function(row + require("jax", "jax").numpy.zeros((number, 1)), *data).shape == (number,))
    except Exception:
        return False


def _alone(function: Callable[..., Any], dim: int) -> None:
    """Check that the value of a draw is the same beside other draws, where it is finite."""
    jax = require("jax", "jax")
    rows = np.random.default_rng(0).standard_normal((4, dim))
    with jax.ensure_compile_time_eval(), np.errstate(all="ignore"):
        theta = jax.numpy.asarray(rows)
        together, alone = np.asarray(function(theta)), np.asarray(function(theta[2:3]))
    if together.shape != (4,) or alone.shape != (1,):
        return  # which is explained elsewhere
    both = together[2], alone[0]
    if np.isfinite(both).all() and not np.isclose(*both, rtol=1e-4, atol=1e-4):
        raise ValueError(
            f"a draw has the value {alone[0]:.4g} alone and {together[2]:.4g} beside others, but each value must "
            "depend on its own row of the draws only"
        )
