"""Networks written in JAX: any function of named weights and rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core import require
from mgvbp.errors import InvalidTypeError
from mgvbp.networks.base import BaseNetwork, Shapes
from mgvbp.networks.kernels import Function, Library
from mgvbp.networks.likelihoods import Likelihood, softmax


class Network(BaseNetwork):
    """A network that is a JAX function of its weights and of rows; see `BaseNetwork` for its methods.

    Parameters
    ----------
    forward : callable
        ``forward(weights, X) -> outputs``: a dict of the weights of *one* draw and rows (n, ...) -> (n, K), whose rows
        do not depend on each other. It is traced while JAX has 64 bits, so that arrays that it makes itself should
        take their dtype from ``X``: a float64 one turns all that it meets into float64.
    weights : mapping of str to tuple
        The shape of each of the weights, in the order in which they make up θ. In place of a shape, an elementwise
        transform such as ``mgvbp.transforms.Interval(0.0, 1.0)`` says that ``forward`` puts a number of θ, which it
        is given, under this constraint: the posterior then shows the constrained value.
    likelihood : Likelihood
        ``networks.softmax``, or ``networks.normal(sigma)`` for regression.
    precision : {"single", "double"}
        In which the network computes; log-likelihoods are summed over rows in float64 either way.

    Examples
    --------
    >>> import numpy as np
    >>> network = Network(lambda weights, X: X @ weights["W"] + weights["b"], {"W": (2, 3), "b": (3,)})
    >>> network.dim, network.weights.labels[-1]
    (9, 'b[2]')
    >>> network(np.zeros((1, 9)), X=[[1.0, 2.0], [3.0, 4.0]], y=[0, 2]).round(4)  # 2 log(1/3)
    array([-2.1972])
    """

    def __init__(
        self,
        forward: Callable[[dict[str, Any], Any], Any],
        weights: Shapes,
        likelihood: Likelihood = softmax,
        precision: str = "single",
    ) -> None:
        if not callable(forward):
            raise InvalidTypeError(f"forward must be a JAX function of weights and rows; got {forward!r}")
        super().__init__(weights, likelihood, precision, jax_library())
        self.forward = forward

    def _forward(self, weights: dict[str, Any], X: Any) -> Any:
        return self.forward(weights, X)

    def _shape_of_outputs(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        jax = require("jax", "jax")
        with jax.enable_x64(True):
            theta = jax.ShapeDtypeStruct((self.dim,), self._dtype)
            X = jax.ShapeDtypeStruct(shape, self._dtype)
            return tuple(jax.eval_shape(lambda t, x: self.forward(self._by_name(t), x), theta, X).shape)

    def traced(self, X: Any, y: ArrayLike) -> Callable[[Any], Any]:
        """The log-likelihood of all rows as a JAX function of one θ, (d,) -> scalar, for other JAX code.

        It sums in the precision of θ, which is float64 where JAX has 64 bits, and takes all rows at once.
        """
        rows, responses = self._data(X, y)
        # copies: JAX remembers by identity what it made of a NumPy array, and that may have been one of 32 bits
        rows, responses = np.array(rows, self._dtype), responses.copy()

        def log_likelihood(theta: Any) -> Any:
            named = self._by_name(theta.astype(self._dtype))
            outputs, xp = self.forward(named, rows), self._library.xp
            return self.likelihood.log_density(xp, outputs, responses, named).sum(dtype=theta.dtype)

        return log_likelihood


def jax_library() -> Library:
    """JAX; its switch for 64 bits is turned within calls alone."""
    jax = require("jax", "jax")

    def compiled(function: Function) -> Function:
        jitted = jax.jit(function)

        def of_arrays(*arrays: np.ndarray[Any, Any]) -> Any:
            with jax.enable_x64(True):
                return jax.tree.map(np.asarray, jitted(*arrays))

        return of_arrays

    return Library(jax.numpy, jax.vmap, jax.value_and_grad, compiled)
