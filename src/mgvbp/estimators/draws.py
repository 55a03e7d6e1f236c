"""Standard normal draws ε: plain, antithetic and scrambled Sobol."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from mgvbp.core.checks import one_of
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError

BITS = 30
"""Binary digits of a point of a Sobol sequence."""
POWERS = 2 ** np.arange(BITS, dtype=np.uint32)
SOBOL_MAXDIM = 21201
"""Largest dimension for which SciPy has direction numbers (Joe and Kuo 2008)."""

BALANCING = 3
"""How often `balanced` makes the second moments exact and then restores the lengths: 1.2 d pairs have a fiftieth of the
noise of independent ones in them then if d is 60, and a fifteenth if d is 18."""

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
    # scrambled points are multiples of 2⁻³⁰ and can be exactly 0
    return np.asarray(ndtri(np.maximum(scrambled(rng, num_draws, dim) * 2.0**-BITS, 2.0**-32)))


def scrambled(rng: np.random.Generator, num_points: int, dim: int) -> NDArray[np.uint32]:
    """Points of a Sobol sequence in units of 2⁻³⁰, (num_points, dim), scrambled as Matoušek (1998) does.

    They are those of ``scipy.stats.qmc.Sobol(dim, rng=rng).random(num_points)``, bit by bit, in a quarter of its
    time for a hundred points: direction numbers are computed once, and only as many are scrambled as the points need.
    """
    (rng,) = rng.spawn(1)
    shift = rng.integers(2, size=(dim, BITS), dtype=np.uint32) @ POWERS
    lower = np.tril(rng.integers(2, size=(dim, BITS, BITS), dtype=np.uint32))
    lower[:, range(BITS), range(BITS)] = 1
    rows = lower @ POWERS[::-1]  # a row of each matrix as one number, its first column as the highest bit
    directions = direction_numbers(dim, (num_points - 1).bit_length())
    parities = np.bitwise_count(rows[:, :, None] & directions[:, None, :]) & 1
    points = shift[None]
    for column in (POWERS[::-1] @ parities.astype(np.uint32)).T:
        points = np.concatenate([points, points[::-1] ^ column])  # the reflected Gray code
    return points[:num_points]


@lru_cache(maxsize=64)
def direction_numbers(dim: int, count: int) -> NDArray[np.uint32]:
    """The first direction numbers of each dimension in units of 2⁻³⁰, (dim, count): what the points 2ʲ − 1 are."""
    from scipy.stats import qmc  # imported here because it takes as long as the whole rest of mgvbp

    points = qmc.Sobol(dim, scramble=False, bits=BITS).random_base2(count)
    return (points[2 ** np.arange(1, count + 1) - 1].T * 2.0**BITS).astype(np.uint32)


def balanced(rng: np.random.Generator, num_pairs: int, dim: int) -> Array:
    """Draws (2 num_pairs, dim) in pairs ±ε, one beside the other, whose second moments together are nearly I.

    Each draw alone is N(0, I) exactly: its direction is uniform, and its length, of a stratified sample, is independent
    of it. Together they show quadratic functions of ε with a small part of the noise of independent draws. Fewer than
    ``dim`` pairs cannot have these moments and are independent.
    """
    half = rng.standard_normal((num_pairs, dim))
    if num_pairs >= dim:
        lengths = np.sqrt(
            2.0 * gammaincinv(0.5 * dim, (rng.permutation(num_pairs) + rng.random(num_pairs)) / num_pairs)
        )
        for _ in range(BALANCING):
            values, U = np.linalg.eigh(half.T @ half / num_pairs)
            half = half @ (U / np.sqrt(values)) @ U.T  # symmetric: a Cholesky factor would prefer directions
            half *= (lengths / np.linalg.norm(half, axis=1))[:, None]
    return np.stack([half, -half], axis=1).reshape(-1, dim)


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
