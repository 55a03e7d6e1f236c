"""Networks of dense layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from mgvbp.core import one_of, positive_integer, require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.networks.likelihoods import Likelihood, softmax
from mgvbp.networks.network import Network

ACTIVATIONS = ("tanh", "relu", "sigmoid", "gelu", "silu")


def dense(
    widths: Sequence[int],
    activation: str = "tanh",
    likelihood: Likelihood = softmax,
    precision: str = "single",
) -> Network:
    """A network of dense layers, ``h ← activation(h W + b)``, without the activation in the last one.

    Parameters
    ----------
    widths : sequence of int
        Inputs, units of each hidden layer, outputs: ``[64, 20, 10]`` has one hidden layer of 20 units, ``[64, 10]`` is
        softmax regression.
    activation : {"tanh", "relu", "sigmoid", "gelu", "silu"}
    likelihood : Likelihood
        ``networks.softmax``, or ``networks.normal(sigma)`` with one output.
    precision : {"single", "double"}

    Returns
    -------
    Network
        Of rows (n, inputs); its weights are ``W1``, ``b1``, ``W2``, ...

    Examples
    --------
    >>> network = dense([4, 5, 3])
    >>> network
    Network(dim=43: W1 (4, 5), b1 (5,), W2 (5, 3), b2 (3,))
    """
    if not isinstance(widths, Iterable) or isinstance(widths, (str, bytes, set)):
        raise InvalidTypeError(f"widths must be a list, such as [64, 20, 10]; got {widths!r}")
    sizes = [positive_integer(width, "a width") for width in widths]
    if len(sizes) < 2:
        raise InvalidInputError(
            f"widths must have inputs and outputs at least, such as [64, 10]; got {sizes}"
        )
    act = getattr(require("jax", "jax").nn, one_of(activation, ACTIVATIONS, "activation"))
    layers = len(sizes) - 1
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, (inputs, outputs) in enumerate(pairwise(sizes), start=1):
        shapes |= {f"W{layer}": (inputs, outputs), f"b{layer}": (outputs,)}

    def forward(weights: dict[str, Any], X: Any) -> Any:
        if X.ndim != 2:  # JAX would take further axes for more rows
            raise InvalidInputError(f"expected ({sizes[0]},)")
        hidden = X
        for layer in range(1, layers + 1):
            hidden = hidden @ weights[f"W{layer}"] + weights[f"b{layer}"]
            if layer < layers:
                hidden = act(hidden)
        return hidden

    return Network(forward, shapes, likelihood, precision)
