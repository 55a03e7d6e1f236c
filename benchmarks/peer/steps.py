"""Stochastic gradient ascent in JAX, in chunks of compiled steps with looks between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mgvbp.core.optional import require
from peer.record import Array, Budget, Prepared, Snapshot, clock, marks


def stepped(
    init: Callable[[Any], Any],
    update: Callable[[Any], Any],
    gaussian: Callable[[Any], tuple[Array, Array]],
    steps: int,
    draws: int,
    chunk: int,
) -> Prepared:
    """A peer given by its state.

    Parameters
    ----------
    init, update : callable
        From a key of JAX to a state, and from a state to the next.
    gaussian : callable
        Mean and scale of a state.
    steps, draws : int
        The number of steps of a whole run, and gradients a step.
    chunk : int
        Steps between two looks at the clock.
    """
    jax = require("jax", "peers")
    start = clock()
    first = jax.jit(init).lower(jax.random.key(0)).compile()
    state = first(jax.random.key(0))

    def several(state: Any) -> Any:
        return jax.lax.scan(lambda s, _: (update(s), None), state, None, length=chunk)[0]

    onward = jax.jit(several).lower(state).compile()
    compile_seconds = clock() - start

    def run(seed: int, budget: Budget) -> list[Snapshot]:
        state, seconds, path = first(jax.random.key(seed)), 0.0, []
        chunks = max(1, int(budget.share * steps) // chunk)
        looks = marks(chunks)
        for i in range(1, chunks + 1):
            start = clock()
            state = jax.block_until_ready(onward(state))
            seconds += clock() - start
            late = seconds > budget.seconds
            if i in looks or late:
                mean, scale = (np.asarray(array, dtype=np.float64) for array in gaussian(state))
                path.append(Snapshot(0, i * chunk * draws, seconds, mean, scale))
            if late:
                break
        return path

    return Prepared(compile_seconds, run)
