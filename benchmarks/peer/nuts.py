"""NumPyro's NUTS, for the moments of the posterior itself: the means of all others are compared with these."""

from __future__ import annotations

import time

import numpy as np

from mgvbp.core.optional import require
from peer.problems import Problem
from peer.record import Budget, Prepared, Snapshot, factor

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
        start = time.perf_counter()
        chain.warmup(key, init_params=at, extra_fields=("num_steps",), collect_warmup=True)
        gradients = int(chain.get_extra_fields()["num_steps"].sum())
        chain.run(key, extra_fields=("num_steps",))
        gradients += int(chain.get_extra_fields()["num_steps"].sum())
        theta = np.asarray(chain.get_samples())
        covariance = np.atleast_2d(np.cov(theta.T))
        return [Snapshot(0, gradients, time.perf_counter() - start, theta.mean(axis=0), factor(covariance))]

    return Prepared(0.0, run)
