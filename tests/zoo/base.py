"""What a target is, and the array namespaces its one density runs on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

Density = Callable[[Any, Any], Any]
"""``density(theta, xp)``: θ (S, d) and a `Backend`, to the S log densities."""


class Backend:
    """A module of arrays (NumPy or ``jax.numpy``) with the functions that the two spell differently.

    ``loop(step, carry, series)`` folds ``step(carry, row) -> carry`` over the leading axis of ``series``
    (an array, or a tuple of arrays of one length).
    """

    def __init__(self, module: Any, **extra: Callable[..., Any]) -> None:
        self._module = module
        self.__dict__.update(extra)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def numpy_loop(step: Callable[..., Any], carry: Any, series: Any) -> Any:
    rows = zip(*series, strict=True) if isinstance(series, tuple) else series
    for row in rows:
        carry = step(carry, row)
    return carry


def numpy_cholesky(matrices: np.ndarray) -> np.ndarray:
    """Cholesky factors of a stack of matrices; nan where a matrix is not positive definite."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        factors = np.full_like(matrices, np.nan)
        for i, matrix in enumerate(matrices):
            try:
                factors[i] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                continue
        return factors


def numpy_solve_lower(lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve ``lower x = right`` for stacks: (S, n, n) and (S, n), by forward substitution."""
    x = np.empty_like(right)
    for i in range(right.shape[-1]):
        x[:, i] = (right[:, i] - np.einsum("sj,sj->s", lower[:, i, :i], x[:, :i])) / lower[:, i, i]
    return x


NUMPY = Backend(
    np,
    gammaln=special.gammaln,
    log_ndtr=special.log_ndtr,
    loop=numpy_loop,
    cholesky=numpy_cholesky,
    solve_lower=numpy_solve_lower,
)


@functools.cache
def jax_backend() -> Backend:
    """The same namespace on JAX (needed by ``make_reference`` only)."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.linalg import solve_triangular
    from jax.scipy.special import gammaln, log_ndtr

    def loop(step: Callable[..., Any], carry: Any, series: Any) -> Any:
        return jax.lax.scan(lambda state, row: (step(state, row), None), carry, series)[0]

    def solve_lower(lower: Any, right: Any) -> Any:
        return solve_triangular(lower, right[..., None], lower=True)[..., 0]

    return Backend(
        jnp,
        gammaln=gammaln,
        log_ndtr=log_ndtr,
        loop=loop,
        cholesky=jnp.linalg.cholesky,
        solve_lower=solve_lower,
    )


@dataclass(frozen=True)
class Target:
    """An unnormalised log density on R^d, with its data built at the first use.

    Parameters
    ----------
    name : str
    dim : int
    build : callable
        Returns ``density(theta, xp)``.
    tags : tuple of str
        ``multimodal`` (the lower bound has several optima), ``improper`` (it has none), ``tails`` (strictly
        it is -∞, by events that no sample meets), and what the target is about.
    """

    name: str
    dim: int
    build: Callable[[], Density]
    tags: tuple[str, ...] = ()

    @functools.cached_property
    def density(self) -> Density:
        return self.build()

    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """Log density at each row of ``theta``, (S, d) -> (S,); -inf or nan where it overflows."""
        with np.errstate(all="ignore"):
            return np.asarray(self.density(np.asarray(theta, dtype=np.float64), NUMPY))

    @property
    def is_proper(self) -> bool:
        return "improper" not in self.tags


TARGETS: dict[str, Target] = {}


def target(dim: int, *tags: str) -> Callable[[Callable[[], Density]], Callable[[], Density]]:
    """Register the decorated builder under its own name."""

    def register(build: Callable[[], Density]) -> Callable[[], Density]:
        name = build.__name__
        assert name not in TARGETS, name
        TARGETS[name] = Target(name, dim, build, tags)
        return build

    return register
