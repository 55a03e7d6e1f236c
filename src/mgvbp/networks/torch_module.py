"""PyTorch modules as networks."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mgvbp.core import Array, require
from mgvbp.errors import InvalidTypeError
from mgvbp.networks.base import BaseNetwork
from mgvbp.networks.data import as_rows
from mgvbp.networks.kernels import Function, Library
from mgvbp.networks.likelihoods import Likelihood, softmax


class TorchNetwork(BaseNetwork):
    """A network that is a PyTorch module; see `from_torch`, and `BaseNetwork` for its methods.

    Attributes
    ----------
    initial : ndarray of shape (d,)
        The θ of the module's own weights: where to start.
    """

    def __init__(self, module: Any, likelihood: Likelihood, precision: str) -> None:
        self._torch = require("torch", "torch")
        if not isinstance(module, self._torch.nn.Module):
            raise InvalidTypeError(f"module must be a torch.nn.Module; got {module!r}")
        learnt = {name: weight for name, weight in module.named_parameters() if weight.requires_grad}
        shapes = {name: tuple(weight.shape) for name, weight in learnt.items()}
        super().__init__(shapes, likelihood, precision, torch_library())
        dtype = self._torch.float64 if precision == "double" else self._torch.float32
        self._module = copy.deepcopy(module).eval().to("cpu", dtype)
        first = {name: weight.detach().cpu().numpy() for name, weight in learnt.items()}
        self.initial: Array = self.weights.unconstrain(first | dict.fromkeys(likelihood.parameters, 1.0))

    def _forward(self, weights: dict[str, Any], X: Any) -> Any:
        own = {name: value for name, value in weights.items() if name not in self.likelihood.parameters}
        return self._torch.func.functional_call(self._module, own, (X,))

    def _shape_of_outputs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        with self._torch.no_grad():
            X = self._torch.zeros(shape, dtype=next(self._module.parameters()).dtype)
            return tuple(self._module(X).shape)


def torch_library() -> Library:
    """PyTorch."""
    torch = require("torch", "torch")

    def value_and_grad(function: Function) -> Function:
        reversed_pair = torch.func.grad_and_value(function)
        return lambda *args: reversed_pair(*args)[::-1]

    def compiled(function: Function) -> Function:
        def of_arrays(*arrays: np.ndarray[Any, Any]) -> Any:
            with torch.no_grad():  # but for the derivatives that the function takes itself
                results = function(*(torch.tensor(array) for array in arrays))
            return tuple(r.numpy() for r in results) if isinstance(results, tuple) else results.numpy()

        return of_arrays

    return Library(torch, torch.vmap, value_and_grad, compiled)


def from_torch(
    module: Any, example: Any, likelihood: Likelihood = softmax, precision: str = "single"
) -> TorchNetwork:
    """A PyTorch module as a network: its forward pass for many draws of its parameters at once.

    Parameters
    ----------
    module : torch.nn.Module
        Of a batch of rows (n, ...) -> outputs (n, K). A copy of it is used, in evaluation mode (no dropout, fixed
        batch statistics) and on the CPU. Parameters that do not require a gradient stay as they are.
    example : array_like or tensor of shape (n, ...)
        Some rows, to see that the module takes them.
    likelihood : Likelihood
        ``networks.softmax``, or ``networks.normal(sigma)`` for regression.
    precision : {"single", "double"}

    Raises
    ------
    MissingDependencyError
        PyTorch is not installed.

    Examples
    --------
    ::

        module = torch.nn.Sequential(torch.nn.Linear(4, 10), torch.nn.Tanh(), torch.nn.Linear(10, 3))
        network = mgvbp.networks.from_torch(module, X[:2])
        posterior = mgvbp.fit(network.on(X, y), prior, initial_mean=network.initial)
    """
    network = TorchNetwork(module, likelihood, precision)
    network._outputs_of(as_rows(example))
    return network
