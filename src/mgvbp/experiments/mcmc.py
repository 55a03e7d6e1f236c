"""MCMC beside the approximations: emcee's affine-invariant ensemble, which needs no gradient and no tuning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import mgvbp
from mgvbp.baselines import Chains

Array = NDArray[np.float64]


def sample(
    log_density: Callable[[Array], Array],
    around: mgvbp.Gaussian,
    seed: int,
    steps: int = 5000,
    walkers: int = 40,
) -> Chains:
    """Draw from a posterior whose approximation ``around`` says where to start.

    Parameters
    ----------
    log_density : callable
        (S, d) -> (S,), up to a constant.
    around : Gaussian
        The walkers start at draws from it.
    seed : int
    steps : int
        Of each walker; the first fifth is dropped.
    walkers : int
        At least twice the dimension. Each is a chain to the diagnostics.
    """
    from emcee import EnsembleSampler

    rng = np.random.default_rng(seed)
    sampler = EnsembleSampler(walkers, around.dim, log_density, vectorize=True)
    sampler.random_state = np.random.RandomState(int(rng.integers(2**32))).get_state()
    sampler.run_mcmc(around.sample(walkers, rng), steps, skip_initial_state_check=True)
    return Chains(np.swapaxes(sampler.get_chain(discard=steps // 5), 0, 1))  # (walkers, n, d)
