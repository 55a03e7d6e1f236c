"""BlackJAX: full-rank VI with its 100 draws a step and Adam(0.01); Pathfinder at its defaults, one path and four."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgvbp.core.optional import require
from peer.problems import Problem
from peer.record import Budget, Prepared, Snapshot, clock, factor
from peer.steps import stepped

DRAWS = 100
"""A step; the default of its interface."""
PATH_DRAWS, PATH_STEPS = 200, 30
"""Pathfinder's defaults: values to judge a point of the path by, and L-BFGS iterations at most."""
PATHS = 4
"""Stan's default."""


def full_rank(problem: Problem) -> Prepared:
    """2,000 steps of the sticking-the-landing gradient, from N(0, I)."""
    jax, jnp, optax = (require(name, "peers") for name in ("jax", "jax.numpy", "optax"))
    module = require("blackjax.vi.fullrank_vi", "peers")
    algorithm = module.as_top_level_api(problem.traced, optax.adam(0.01), num_samples=DRAWS)
    rows, columns = np.tril_indices(problem.dim, k=-1)

    def init(key: Any) -> Any:
        return key, algorithm.init(jnp.zeros(problem.dim))

    def update(state: Any) -> Any:
        key, now = jax.random.split(state[0])
        return key, algorithm.step(now, state[1])[0]

    def gaussian(state: Any) -> Any:
        flat = np.asarray(state[1].chol_params)
        scale = np.diag(np.exp(flat[: problem.dim]))
        scale[rows, columns] = flat[problem.dim :]
        return state[1].mu, scale

    return stepped(init, update, gaussian, steps=2000, draws=DRAWS, chunk=10)


def pathfinder(problem: Problem) -> Prepared:
    """One path, from 0.

    It does not tell how often its line search asks for a gradient: we count the least, one for the search and one
    for the new point of every iteration.
    """
    jax, jnp = require("jax", "peers"), require("jax.numpy", "peers")
    module = require("blackjax.vi.pathfinder", "peers")

    def find(key: Any) -> Any:
        state, info = module.approximate(
            key, problem.traced, jnp.zeros(problem.dim), PATH_DRAWS, maxiter=PATH_STEPS
        )
        return state, jnp.isfinite(info.path.elbo).sum()

    start = clock()
    compiled = jax.jit(find).lower(jax.random.key(0)).compile()
    compile_seconds = clock() - start

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        start = clock()
        state, iterations = jax.block_until_ready(compiled(jax.random.key(seed)))
        seconds = clock() - start
        alpha, beta, gamma = (np.asarray(array) for array in (state.alpha, state.beta, state.gamma))
        covariance = np.diag(alpha) + beta @ gamma @ beta.T  # Zhang et al. 2022, Alg. 4
        mean = np.asarray(state.position) + covariance @ np.asarray(state.grad_position)
        counts = PATH_DRAWS * (PATH_STEPS + 1), 2 * int(iterations) + 1
        return [Snapshot(*counts, seconds, mean, factor(covariance))]

    return Prepared(compile_seconds, run)


def multipath(problem: Problem) -> Prepared:
    """Four paths from U(-2, 2), as Stan's, and the moments of their weighted draws; gradients are counted as above."""
    jax, jnp = require("jax", "peers"), require("jax.numpy", "peers")
    module = require("blackjax.vi.multipathfinder", "peers")

    def find(key: Any) -> Any:
        at, key = jax.random.split(key)
        starts = jax.random.uniform(at, (PATHS, problem.dim), minval=-2.0, maxval=2.0)
        state, info = module.multi_approximate(
            key, problem.traced, starts, num_samples=PATH_DRAWS, maxiter=PATH_STEPS
        )
        draws, weights = state.samples.reshape(-1, problem.dim), jnp.exp(module.psis_weights(state)[0])
        return draws, weights, jnp.isfinite(info.path.elbo).sum()

    start = clock()
    compiled = jax.jit(find).lower(jax.random.key(0)).compile()
    compile_seconds = clock() - start

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        start = clock()
        draws, weights, iterations = jax.block_until_ready(compiled(jax.random.key(seed)))
        seconds = clock() - start
        covariance = np.atleast_2d(np.cov(np.asarray(draws).T, aweights=np.asarray(weights)))
        counts = PATHS * PATH_DRAWS * (PATH_STEPS + 2), 2 * int(iterations) + PATHS
        return [Snapshot(*counts, seconds, np.average(draws, axis=0, weights=weights), factor(covariance))]

    return Prepared(compile_seconds, run)
