"""Standard normal draws ε: plain, antithetic and scrambled Sobol."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from mgvbp.core.checks import one_of
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError

SOBOL_MAXDIM = 21201
"""Largest dimension for which SciPy has direction numbers (Joe and Kuo 2008)."""

Sampler = Callable[[np.random.Generator, int, int], Array]


def mc(rng: np.random.Generator, num_draws: int, dim: int) -> Array:
    """Independent draws, (num_draws, dim)."""
    return rng.standard_normal((num_draws, dim))


def antithetic(rng: np.random.Generator, num_draws: int, dim: int) -> Array:
    """Independent draws in the first half, their negatives in the second."""
    half = rng.standard_normal((num_draws // 2, dim))
    return np.concatenate([half, -half])


def sobol(rng: np.random.Generator, num_draws: int, dim: int) -> Array:
    """A freshly scrambled Sobol sequence mapped by the normal quantile (what the authors' code draws)."""
    from scipy.stats import qmc  # imported here because it takes as long as the whole rest of mgvbp

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The balance properties", UserWarning)
        uniforms = qmc.Sobol(dim, scramble=True, rng=rng).random(num_draws)
    # scrambled points are multiples of 2⁻³⁰ (or of a larger step) and can be exactly 0
    return np.asarray(ndtri(np.maximum(uniforms, 2.0**-32)))


SAMPLERS: dict[str, Sampler] = {"mc": mc, "antithetic": antithetic, "sobol": sobol}


def resolve_draws(draws: str, num_draws: int, dim: int) -> Sampler:
    """Return the sampler named ``draws``; ``auto`` is ``mc``."""
    one_of(draws, ["auto", *SAMPLERS], "draws")
    name = "mc" if draws == "auto" else draws
    if name == "antithetic" and num_draws % 2:
        raise InvalidInputError(f"antithetic draws come in pairs: num_draws must be even, got {num_draws}")
    if name == "sobol" and dim > SOBOL_MAXDIM:
        raise InvalidInputError(f"Sobol sequences end at dimension {SOBOL_MAXDIM}; got {dim}")
    return SAMPLERS[name]
