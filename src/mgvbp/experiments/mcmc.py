"""MCMC beside the approximations: emcee's affine-invariant ensemble, which needs no gradient and no tuning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import mgvbp

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws after burn-in, (chains, n, d), with their diagnostics by ArviZ, (d,) each."""

    draws: Array
    rhat: Array
    ess: Array

    @property
    def flat(self) -> Array:
        """All draws, (N, d)."""
        return self.draws.reshape(-1, self.draws.shape[2])

    @property
    def diagnostics(self) -> dict[str, float]:
        """The worst R-hat and effective sample size, for tables."""
        return {"R-hat": float(self.rhat.max()), "ESS": float(self.ess.min())}

    @property
    def mcse(self) -> Array:
        """Monte Carlo standard errors of the means, (d,)."""
        return np.asarray(self.flat.std(axis=0, ddof=1) / np.sqrt(self.ess))


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
    from arviz_stats.base.array import array_stats
    from emcee import EnsembleSampler

    rng = np.random.default_rng(seed)
    sampler = EnsembleSampler(walkers, around.dim, log_density, vectorize=True)
    sampler.random_state = np.random.RandomState(int(rng.integers(2**32))).get_state()
    sampler.run_mcmc(around.sample(walkers, rng), steps, skip_initial_state_check=True)
    draws = np.swapaxes(sampler.get_chain(discard=steps // 5), 0, 1)  # (walkers, n, d)
    columns = np.moveaxis(draws, 2, 0)
    return Chains(
        draws,
        np.array([float(array_stats.rhat(x)) for x in columns]),  # type: ignore[no-untyped-call]
        np.array([float(array_stats.ess(x)) for x in columns]),  # type: ignore[no-untyped-call]
    )
