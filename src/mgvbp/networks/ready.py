"""Ready-made networks: dense layers, and TABL, the network of the paper's limit-order-book experiment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from mgvbp.core import one_of, positive_integer, require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.networks.base import Shapes
from mgvbp.networks.likelihoods import Likelihood, softmax
from mgvbp.networks.network import Network
from mgvbp.transforms import Interval

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


def tabl(features: int = 40, steps: int = 10, classes: int = 3, precision: str = "single") -> Network:
    r"""A single TABL layer under a softmax: one projection of the features, and attention to some of the time steps.

    Of a row :math:`X` (features × steps), with :math:`\odot` the product of entries,

    .. math::

        \bar X = W_1 X, \qquad A = \mathrm{softmax}_{\mathrm{time}}(\bar X W), \qquad
        \tilde X = \lambda \bar X + (1 - \lambda)\, \bar X \odot A, \qquad
        P(y) = \mathrm{softmax}(\tilde X w_2 + b)

    (Tran, Iosifidis, Kanniainen and Gabbouj 2019, *IEEE Transactions on Neural Networks and Learning Systems* 30).

    Parameters
    ----------
    features, steps, classes : int
    precision : {"single", "double"}

    Returns
    -------
    Network
        Of rows (n, features, steps), with the weights ``W1``, ``W``, ``w2``, ``b`` and ``lambda``: 234 of them for the
        paper's 40 features, 10 steps and 3 classes.

    Notes
    -----
    As in the reference implementation of the layer, the diagonal of W is fixed at 1/steps: a step's attention is
    not to itself alone. Those ``steps`` entries of θ stay among its entries, so that their number is the paper's, but
    not in the likelihood: their posterior is the prior. Which of the two terms λ weighs is that of the
    implementation too. λ is kept in (0, 1) by a sigmoid of its entry of θ, and not by clipping, which has no gradient
    outside; what the paper did is not known. ``posterior["lambda"]`` is λ.

    Examples
    --------
    >>> tabl()
    Network(dim=234: W1 (3, 40), W (10, 10), w2 (10,), b (3,), lambda ())
    """
    F, T = positive_integer(features, "features"), positive_integer(steps, "steps")
    C = positive_integer(classes, "classes")
    jax = require("jax", "jax")
    xp = jax.numpy

    def forward(weights: dict[str, Any], X: Any) -> Any:
        if X.shape[1:] != (F, T):  # rows of another shape may have as many numbers
            raise InvalidInputError(f"expected ({F}, {T})")
        n, W, mix = len(X), weights["W"], jax.nn.sigmoid(weights["lambda"])
        # The rows come last, where they are contiguous and long: W1 of all draws meets them in a single matrix
        # product, and the softmax over 10 steps works on whole vectors of rows.
        projected = (weights["W1"] @ X.reshape(n, F * T).T.reshape(F, T * n)).reshape(C, T, n)
        # W and w2 are repeated for each class, or else JAX would transpose the large array to have one product a draw
        W = xp.where(xp.eye(T, dtype=bool), 1.0 / T, W)
        attention = jax.nn.softmax(xp.broadcast_to(W.T, (C, T, T)) @ projected, axis=1)
        w2 = xp.broadcast_to(weights["w2"], (C, 1, T))
        # λ X̄ w2 + (1 − λ) (X̄ ⊙ A) w2: λ meets (C, n) numbers, and not (C, T, n)
        scores = mix * (w2 @ projected) + (1.0 - mix) * (w2 @ (projected * attention))
        return scores[:, 0].T + weights["b"]

    shapes: Shapes = {"W1": (C, F), "W": (T, T), "w2": (T,), "b": (C,), "lambda": Interval(0.0, 1.0)}
    return Network(forward, shapes, precision=precision)
