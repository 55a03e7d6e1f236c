"""NUTS of NumPyro, whose moments of the posterior all others are compared with, and of nutpie."""

from __future__ import annotations

import numpy as np

from mgvbp.core.optional import require
from peer.problems import Problem
from peer.record import Budget, Prepared, Snapshot, clock, factor

WARMUP, DRAWS = 500, 2000


def run_nuts(problem: Problem) -> Prepared:
    """One chain from 0; its result is the Gaussian with the moments of the draws, which has no lower bound to beat."""
    jax, jnp, infer = (
        require("jax", "peers"),
        require("jax.numpy", "peers"),
        require("numpyro.infer", "peers"),
    )

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        kernel = infer.NUTS(potential_fn=lambda theta: -problem.traced(theta))
        draws = max(100, int(budget.share * DRAWS))
        chain = infer.MCMC(kernel, num_warmup=WARMUP, num_samples=draws, progress_bar=False)
        at, key = jnp.zeros(problem.dim), jax.random.key(seed)
        start = clock()
        chain.warmup(key, init_params=at, extra_fields=("num_steps",), collect_warmup=True)
        gradients = int(chain.get_extra_fields()["num_steps"].sum())
        chain.run(key, extra_fields=("num_steps",))
        gradients += int(chain.get_extra_fields()["num_steps"].sum())
        theta = np.asarray(chain.get_samples())
        covariance = np.atleast_2d(np.cov(theta.T))
        return [Snapshot(0, gradients, clock() - start, theta.mean(axis=0), factor(covariance))]

    return Prepared(0.0, run)


def run_nutpie(problem: Problem) -> Prepared:
    """One chain of nutpie, at its defaults; it sees the compiled JAX function of one draw."""
    jax, jnp = require("jax", "peers"), require("jax.numpy", "peers")
    nutpie, made = require("nutpie", "peers"), require("nutpie.compiled_pyfunc", "peers")
    start = clock()
    compiled = jax.jit(jax.value_and_grad(problem.traced)).lower(jnp.zeros(problem.dim)).compile()
    compile_seconds = clock() - start

    def log_density(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = compiled(theta)
        return float(value), np.asarray(gradient)

    model = made.from_pyfunc(
        problem.dim,
        lambda: log_density,
        lambda *_: lambda theta: {"theta": theta},
        [np.dtype("float64")],
        [(problem.dim,)],
        ["theta"],
    )

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        start = clock()
        chain = nutpie.sample(
            model, draws=max(100, int(budget.share * DRAWS)), chains=1, cores=1, seed=seed, progress_bar=False
        )
        seconds = clock() - start
        theta = chain.posterior["theta"].to_numpy()[0]
        gradients = int(chain.sample_stats["n_steps"].sum() + chain.warmup_sample_stats["n_steps"].sum())
        return [Snapshot(0, gradients, seconds, theta.mean(axis=0), factor(np.atleast_2d(np.cov(theta.T))))]

    return Prepared(compile_seconds, run)
