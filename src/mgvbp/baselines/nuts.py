"""NUTS, the posterior itself where it is affordable (Hoffman and Gelman 2014); the sampler is BlackJAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.baselines.chains import Chains
from mgvbp.baselines.target import counted, start, target
from mgvbp.core import as_key, positive_integer, require, require_memory
from mgvbp.errors import DivergenceError, InvalidInputError
from mgvbp.families import Diagonal, Gaussian
from mgvbp.interop import trace
from mgvbp.methods import STREAM
from mgvbp.problem import LogLikelihood, Prior, Problem
from mgvbp.sampling import warn_of_chains

REMEDY = (
    "try a larger num_warmup and num_draws; of a network, whose units can change places, compare predictions, not "
    "weights"
)
"""What to do about chains that disagree."""


def nuts(
    log_likelihood: LogLikelihood,
    prior: Prior | None = None,
    *,
    dim: int | None = None,
    initial: ArrayLike | None = None,
    num_warmup: int = 500,
    num_draws: int = 1000,
    chains: int = 4,
    rng: int | np.random.Generator = 0,
    progress: bool = False,
) -> Chains:
    """Draw from a posterior by the No-U-Turn sampler: no approximation but that of the chains' length.

    Step size and a diagonal mass matrix are adapted during warm-up, as Stan does. The chains run one after the
    other in float64; the first seconds go into compiling.

    Parameters
    ----------
    log_likelihood : callable
        A JAX function of one θ, (d,) -> scalar, or an object that has one as ``traced``, as `mgvbp.from_jax` and the
        networks make it. With ``prior=None`` it is the whole log posterior density, up to a constant.
    prior : Gaussian or None
    dim : int, optional
        The number of parameters, where neither their names, the prior nor ``initial`` shows it.
    initial : array_like of shape (chains, d) or (d,), optional
        Where the chains start, ``posterior.sample(4)`` for one; R-hat says more where they start apart. By default
        at standard normal draws around the prior's mean, or 0.
    num_warmup, num_draws : int
        Of each chain; draws of the warm-up are not kept.
    chains : int
    rng : int or numpy.random.Generator
    progress : bool
        Show a bar that counts chains.

    Warns
    -----
    ConvergenceWarning
        There were divergent transitions, or R-hat is above 1.01.

    Examples
    --------
    ::

        chains = mgvbp.baselines.nuts(lambda theta: -jnp.cosh(theta).sum(), dim=3)
        chains.mean, chains.covariance, chains.rhat, chains.ess
    """
    jax, blackjax = require("jax", "jax"), require("blackjax", "jax")
    number = positive_integer(chains, "chains")
    warmup, length = positive_integer(num_warmup, "num_warmup"), positive_integer(num_draws, "num_draws")
    problem = target(log_likelihood, prior, dim, initial)
    count, d = number * (warmup + length), problem.dim
    require_memory(count * d, f"{count:,} draws of {d:,} parameters", "ask for fewer draws")
    log_density = traced_density(problem)
    generator = np.random.default_rng((*as_key(rng), STREAM))
    starts = start((number, problem.dim), prior, initial, 1.0, generator)

    def chain(key: Any, theta: Any) -> Any:
        for_warmup, for_draws = jax.random.split(key)
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, tuned), warm = adaptation.run(for_warmup, theta, warmup)
        step = blackjax.nuts(log_density, **tuned).step

        def draw(state: Any, key: Any) -> tuple[Any, tuple[Any, Any, Any]]:
            state, info = step(key, state)
            return state, (state.position, info.is_divergent, info.num_integration_steps)

        position, divergent, steps = jax.lax.scan(draw, state, jax.random.split(for_draws, length))[1]
        return position, divergent, steps.sum() + warm.info.num_integration_steps.sum()

    run, derivatives = jax.jit(chain), jax.jit(jax.value_and_grad(log_density))
    draws, divergences, gradients = np.empty((number, length, problem.dim)), 0, 0
    with jax.enable_x64(True):
        for theta in starts:
            if not all(np.isfinite(part).all() for part in derivatives(theta)):
                raise DivergenceError(
                    f"the log density or its gradient is not finite at the start {theta}: give initial=",
                    theta,
                )
        keys = jax.random.split(jax.random.key(int(generator.integers(2**32))), number)
        for k in counted(number, "chains", progress):
            draws[k - 1], divergent, steps = run(keys[k - 1], starts[k - 1])
            divergences, gradients = divergences + int(divergent.sum()), gradients + int(steps)
    found = Chains(draws, divergences, problem.parameters, gradients)
    warn_if_unreliable(found)
    return found


def traced_density(problem: Problem) -> Callable[[Any], Any]:
    """Log-likelihood + log prior, up to a constant, as a JAX function of one θ (d,)."""
    jax, function = require("jax", "jax"), getattr(problem.log_likelihood, "traced", problem.log_likelihood)
    prior, theta = problem.prior, jax.ShapeDtypeStruct((problem.dim,), np.float64)
    if not (prior is None or isinstance(prior, Gaussian)):
        raise InvalidInputError(
            f"NUTS takes a Gaussian prior or none, and this is a {type(prior).__name__}: put it, with the log-Jacobian "
            "of constraints, into a function of θ and leave prior out"
        )
    with jax.enable_x64(True):
        trace(jax.value_and_grad(function), theta)  # its error says what is wrong
    log_prior = traced_prior(prior)
    # BlackJAX wants one dtype throughout, also of a function that computes in single precision
    return lambda theta: jax.numpy.asarray(function(theta), np.float64) + log_prior(theta)


def traced_prior(prior: Gaussian | None) -> Callable[[Any], Any]:
    """``−½(θ − μ₀)ᵀ R Rᵀ (θ − μ₀)``, with R Rᵀ the prior's precision, as a JAX function of one θ (d,)."""
    if prior is None:
        return lambda theta: 0.0
    # copies: JAX remembers by identity what it made of a NumPy array, and that may have been one of 32 bits
    mean, diagonal = prior.mean.copy(), isinstance(prior.family, Diagonal)
    R = prior.factor.copy() if diagonal else prior.family.dense_factor(prior.factor).copy()

    def log_density(theta: Any) -> Any:
        eps = (theta - mean) * R if diagonal else (theta - mean) @ R
        return -0.5 * (eps @ eps)

    return log_density


def warn_if_unreliable(chains: Chains) -> None:
    """Warn of divergent transitions, and of several chains that disagree."""
    worst = float(chains.rhat.max()) if len(chains.draws) > 1 else 1.0
    warn_of_chains(len(chains.flat), chains.divergences, worst, REMEDY)
