"""Log-likelihoods written in PyTorch, in float64, with their gradients by autograd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import EvaluationError
from mgvbp.interop.functions.autodiff import function_of_one, model_in
from mgvbp.problem.model import Model


class TorchLikelihood:
    """A PyTorch function of θ with its gradient, in the form that `mgvbp.fit` takes; see `from_torch`.

    Parameters
    ----------
    function : callable
        A function of one draw, (d,) -> scalar, or with ``over_all`` of all draws, (S, d) -> (S,).
    over_all : bool or None
        None if the first call is to find out.
    model : Model, optional
        What the function computes; its names, observations and prior become attributes.
    """

    vectorized = True  # it takes all draws at once, whatever its function took

    def __init__(
        self, function: Callable[..., Any], *, over_all: bool | None, model: Model | None = None
    ) -> None:
        self._function, self._over_all = function, over_all
        if model is not None:
            self.parameters, self.pointwise, self.y = model.parameters, model.pointwise, model.y
            self.flat_prior = model.flat_prior

    def __call__(self, theta: Array, *data: Any) -> Array:
        """The values at the rows of θ, (S, d) -> (S,); arrays of data follow θ if the function takes them."""
        with require("torch", "torch").no_grad():
            values: Array = self._computed(self._values, theta, data)
        return values

    def value_and_grad(self, theta: Array, *data: Any) -> tuple[Array, Array]:
        """Values (S,) and gradients (S, d) at the rows of θ (S, d); data follow θ if the function takes them."""
        found: tuple[Array, Array] = self._computed(self._derivatives, theta, data)
        return found

    def _computed(self, compute: Callable[..., Any], theta: Array, data: tuple[Any, ...]) -> Any:
        torch = require("torch", "torch")
        try:
            return compute(torch, torch.tensor(theta, dtype=torch.float64), *map(torch.as_tensor, data))
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise EvaluationError(
                f"PyTorch cannot use the function, {type(error).__name__}: {reason}; expected real numbers of "
                f"{'all draws, (S, d) -> (S,)' if self._over_all else 'one draw, (d,) -> scalar'}, by operations on "
                "float64 tensors alone: no .item(), .numpy(), .detach(), and in place of if, torch.where",
                theta,
            ) from error

    def _mapped(self, torch: Any, rows: Any, *data: Any) -> Any:
        function = self._function
        if self._over_all is None:
            self._over_all = _takes_all(torch, function, rows.shape[1], data)
        if not self._over_all:
            function = torch.func.vmap(function, in_dims=(0, *(None for _ in data)))
        values = function(rows, *data)
        if not isinstance(values, torch.Tensor):
            raise TypeError(f"it returned a {type(values).__name__}")
        return values

    def _values(self, torch: Any, rows: Any, *data: Any) -> Array:
        return np.asarray(self._mapped(torch, rows, *data))

    def _derivatives(self, torch: Any, rows: Any, *data: Any) -> tuple[Array, Array]:
        values = self._mapped(torch, rows.requires_grad_(), *data)
        # a row's value depends on that row alone, so that the gradient of the sum has the rows' gradients
        (gradients,) = torch.autograd.grad(values.sum(), rows)
        return np.asarray(values.detach()), np.asarray(gradients)


def _takes_all(torch: Any, function: Callable[..., Any], dim: int, data: tuple[Any, ...]) -> bool:
    """Whether the function gives a value for each row of an array (S, d)."""
    rows = torch.zeros(
        (dim + 1, dim), dtype=torch.float64
    )  # more rows than columns: one may be taken for the other
    try:
        return bool(function(rows, *data).shape == (dim + 1,))
    except Exception:
        return False


def from_torch(function: Callable[..., Any], *, vectorized: bool | None = None) -> TorchLikelihood:
    """A log-likelihood written in PyTorch, with its gradient by autograd, in the form that `mgvbp.fit` takes.

    Parameters
    ----------
    function : callable
        A PyTorch function of one draw, (d,) -> scalar, which ``torch.func.vmap`` maps over the draws, or of all draws,
        (S, d) -> (S,). It gets a float64 tensor, so that its data should be float64
        tensors too. For `mgvbp.Minibatches` it also takes tensors of data, and returns the sum over their rows.
        It can also be a `mgvbp.Model` whose function is written in PyTorch and takes the values of one draw, or of all;
        its constraints must be `Ordered`, `Simplex` or constraints on single numbers.
    vectorized : bool, optional
        Whether the function takes all draws; by default its shapes show that at the first call.

    Examples
    --------
    ::

        posterior = mgvbp.fit(mgvbp.from_torch(lambda theta: -torch.cosh(theta).sum()), dim=100)
        posterior = mgvbp.fit(lambda theta: -torch.cosh(theta).sum(dim=1), dim=100, grad="torch")  # the same
    """
    torch = require("torch", "torch")
    if model := model_in(function, vectorized, "PyTorch", "torch"):
        of_one = function_of_one(model, vectorized, torch, torch, "torch")
        return TorchLikelihood(of_one, over_all=False, model=model)
    return TorchLikelihood(function, over_all=vectorized)
