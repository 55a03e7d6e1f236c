"""Time of the logistic log-likelihood against plain NumPy and jitted JAX expressions, and its peak memory.

Run:  python benchmarks/likelihoods.py [--quick]      (pip install jax for its columns)

Target: `LogisticRegression` no slower than the faster of NumPy and JAX, all in float64 on one core of one
process, and no draws × rows array where that would exceed 256 MB. Where it would, the others are timed on a
tenth of the rows and multiplied by ten, so that their arrays fit into memory; `--quick` does so for ours too.

Not met at 75 × 564 against the last line, JAX's formula by hand, on a CPU without AVX-512: NumPy's `exp` alone then
takes about as long as all of XLA's vectorised expression.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tracemalloc
from collections.abc import Callable
from functools import partial

# one core for all: the affinity holds for XLA's threads too, which has no other reliable switch
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_ENABLE_X64"] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit
from threadpoolctl import threadpool_limits

from mgvbp.models import LogisticRegression
from timing import best_time

Array = NDArray[np.float64]
Function = Callable[[Array], Array]

CASES = [(75, 564, 8), (1000, 100_000, 50)]
"""Draws, rows, columns."""
LARGE = 2**28 // 8
"""Numbers in 256 MB."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print(
        f"{'draws':>6}{'rows':>9}{'columns':>9}  {'expression':<26}{'time':>11}{'ours / it':>11}{'error':>10}"
    )
    with threadpool_limits(1):
        for draws, rows, columns in CASES:
            compare(draws, rows, columns, quick)


def compare(draws: int, rows: int, columns: int, quick: bool) -> None:
    """Print one line for each expression."""
    large = draws * rows > LARGE
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    y = (rng.random(rows) < 0.5).astype(np.float64)
    theta = rng.standard_normal((draws, columns)) / np.sqrt(columns)
    part = slice(0, rows // 10 if large else rows)
    scale = rows / part.stop
    model, small = LogisticRegression(X, y), LogisticRegression(X[part], y[part])
    reference = small(theta)
    ours = scale * best_time(lambda: small(theta)) if quick else best_time(lambda: model(theta))
    print(f"{draws:>6}{rows:>9,}{columns:>9}  {'LogisticRegression':<26}{1e3 * ours:>9.3f}ms{'':>11}{'':>10}")
    for name, function in (numpy_expressions(X[part], y[part]) | jax_expressions(X[part], y[part])).items():
        seconds = scale * best_time(partial(function, theta))
        error = np.abs(function(theta) / reference - 1.0).max()
        print(f"{'':>26}{name:<26}{1e3 * seconds:>9.3f}ms{ours / seconds:>11.2f}{error:>10.0e}")
    tracemalloc.start()
    model(theta)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = draws * rows * 8 / 2**20
    print(f"{'':>26}{'peak memory':<26}{peak / 2**20:>9.1f}MB; draws × rows would be {whole:,.1f} MB")


def numpy_expressions(X: Array, y: Array) -> dict[str, Function]:
    """What one writes with NumPy and SciPy."""
    signed = np.ascontiguousarray(((2.0 * y - 1.0)[:, None] * X).T)

    def with_logaddexp(theta: Array) -> Array:
        z = theta @ X.T
        return np.asarray(z @ y - np.logaddexp(0.0, z).sum(axis=1))

    return {
        "scipy log_expit": lambda theta: np.asarray(log_expit(theta @ signed).sum(axis=1)),
        "numpy logaddexp": with_logaddexp,
    }


def jax_expressions(X: Array, y: Array) -> dict[str, Function]:
    """What one writes with JAX, and by hand the formula that XLA compiles best."""
    if importlib.util.find_spec("jax") is None:
        return {}
    import jax
    import jax.numpy as jnp

    A, b = jnp.asarray(np.ascontiguousarray(X.T)), jnp.asarray(y)
    signed = (2.0 * b - 1.0) * A

    def by_hand(theta: jax.Array) -> jax.Array:
        z = theta @ A
        return z @ b - (jnp.maximum(z, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(z)))).sum(axis=1)

    expressions = {
        "jax log_sigmoid": lambda theta: jax.nn.log_sigmoid(theta @ signed).sum(axis=1),
        "jax softplus": lambda theta: theta @ (A @ b) - jax.nn.softplus(theta @ A).sum(axis=1),
        "jax log1p(exp(-|z|))": by_hand,
    }

    def compiled(function: Callable[[jax.Array], jax.Array]) -> Function:
        jitted = jax.jit(function)
        return lambda theta: np.asarray(jitted(theta))

    return {name: compiled(function) for name, function in expressions.items()}


if __name__ == "__main__":
    main()
