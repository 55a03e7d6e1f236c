"""ADAM, the baseline without a posterior (Kingma and Ba 2015, Algorithm 1); the update is Optax's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.baselines.target import counted, start, target
from mgvbp.core import Array, as_key, positive_integer, positive_number, require
from mgvbp.errors import DivergenceError, InvalidInputError, InvalidTypeError
from mgvbp.families import frozen
from mgvbp.methods import STREAM
from mgvbp.problem import LogLikelihood, Prior, grad_log_prior, log_prior

SPREAD = 0.1
"""Standard deviation of the start. At exactly 0 the hidden units of a network are all alike, and would stay so."""


class PointEstimate(NamedTuple):
    """Where ADAM arrived."""

    theta: Array
    """The last iterate, (d,)."""
    log_posterior: Array
    """Log-likelihood + log prior wherever the gradient was taken; of minibatches an unbiased estimate."""
    n_evaluations: int
    """Evaluations of the log-likelihood and its gradient."""


class AdamIteration(NamedTuple):
    """What a callback sees of an iteration."""

    iteration: int
    theta: Array
    """Where the gradient was taken, (d,)."""
    log_posterior: float


def adam(
    log_likelihood: LogLikelihood,
    prior: Prior | None = None,
    *,
    dim: int | None = None,
    initial: ArrayLike | None = None,
    step_size: float = 0.01,
    max_iterations: int = 1000,
    rng: int | np.random.Generator = 0,
    progress: bool = False,
    callback: Callable[[AdamIteration], object] | None = None,
) -> PointEstimate:
    r"""Maximise log-likelihood + log prior by ADAM; without a prior, the log-likelihood.

    .. math::
        m &\leftarrow 0.9\, m + 0.1\, g, \qquad v \leftarrow 0.999\, v + 0.001\, g^2, \\
        \theta &\leftarrow \theta + \alpha\, \frac{m / (1 - 0.9^t)}{\sqrt{v / (1 - 0.999^t)} + 10^{-8}} .

    Parameters
    ----------
    log_likelihood : object with ``value_and_grad((S, d)) -> (S,), (S, d)``
        As `mgvbp.from_jax` and the networks make it; of `mgvbp.Minibatches` iteration t sees batch t.
    prior : Gaussian, object with ``log_density`` and ``grad_log_density``, or None
    dim : int, optional
        The number of parameters, where neither their names, the prior nor ``initial`` shows it.
    initial : array_like of shape (d,), optional
        Where to start; by default near the prior's mean, or near 0, at a random point (`SPREAD`).
    step_size : float
        α.
    max_iterations : int
        How many steps to take; there is no other end.
    rng : int or numpy.random.Generator
        Seed of the start.
    progress : bool
        Show a progress bar.
    callback : callable, optional
        Called with an `AdamIteration` before each step; a true return value stops the run there.

    Examples
    --------
    ::

        network = mgvbp.networks.dense([4, 10, 3])
        start = mgvbp.baselines.adam(network.on(X, y), prior, max_iterations=30)
        posterior = mgvbp.fit(network.on(X, y), prior, initial_mean=start.theta)
    """
    jax, optax = require("jax", "jax"), require("optax", "jax")
    if callback is not None and not callable(callback):
        raise InvalidTypeError(f"callback must be a function of an AdamIteration; got {callback!r}")
    problem = target(log_likelihood, prior, dim, initial)
    prior = None if prior is None else problem.prior  # without one it is the likelihood that is climbed
    if not problem.has_gradient:
        raise InvalidInputError(
            f"ADAM needs a gradient, and {type(log_likelihood).__name__} has no value_and_grad: mgvbp.from_jax makes "
            "one of a JAX function"
        )
    problem.require("gradients")
    number = positive_integer(max_iterations, "max_iterations")
    method = optax.adam(positive_number(step_size, "step_size"))
    generator = np.random.default_rng((*as_key(rng), STREAM))
    theta = frozen(np.array(start((problem.dim,), prior, initial, SPREAD, generator)))
    trace: list[float] = []

    def update(gradient: Any, state: Any, theta: Any) -> tuple[Any, Any]:
        change, state = method.update(-gradient, state)  # Optax goes downhill
        return theta + change, state

    step = jax.jit(update)
    with jax.enable_x64(True):
        state = method.init(theta)
    for t in counted(number, "ADAM", progress):
        rows = theta[None]
        values, gradients = problem.evaluate_at(t, rows, "gradients")
        value = float(values[0] + log_prior(prior, rows)[0])
        gradient = gradients[0] + grad_log_prior(prior, rows)[0]
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            raise DivergenceError(
                f"the log density or its gradient is not finite at iteration {t}: try a smaller step_size, or "
                "another start (initial=); the point is this exception's .theta",
                theta,
            )
        trace.append(value)
        if callback is not None and callback(AdamIteration(t, theta, value)):
            break
        with jax.enable_x64(True):  # the user's function runs outside: it may want JAX's 32 bits
            found, state = step(gradient, state, theta)
        theta = frozen(np.array(found))
    return PointEstimate(theta, frozen(np.array(trace)), len(trace))
