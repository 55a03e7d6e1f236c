"""MCMC beside the approximations: emcee's affine-invariant ensemble, which needs no gradient and no tuning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.paper.common import Array
from mgvbp.paper.spec import Outcome


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
        The steps of each walker. The first fifth of them is dropped.
    walkers : int
        At least twice the dimension. To the diagnostics each walker is a chain.
    """
    from emcee import EnsembleSampler

    rng = np.random.default_rng(seed)
    sampler = EnsembleSampler(walkers, around.dim, log_density, vectorize=True)
    sampler.random_state = np.random.RandomState(int(rng.integers(2**32))).get_state()
    sampler.run_mcmc(around.sample(walkers, rng), steps, skip_initial_state_check=True)
    return Chains(np.swapaxes(sampler.get_chain(discard=steps // 5), 0, 1))  # (walkers, n, d)


def run(
    likelihood: Callable[[Array], Array],
    prior: mgvbp.Gaussian,
    around: mgvbp.Gaussian,
    seed: int,
    values: Callable[[Chains], dict[str, float]],
    steps: int = 5000,
    walkers: int = 40,
) -> tuple[Outcome, Chains]:
    """`sample` from the posterior of a log-likelihood and a prior; ``values`` says what the tables show of the chains.

    R-hat and the effective sample size join these values.
    """
    chains = sample(lambda x: likelihood(x) + prior.log_density(x), around, seed, steps, walkers)
    settings = {"sampler": "emcee", "walkers": walkers, "steps": steps}
    evaluations = walkers * (steps + 1)  # each walker is evaluated at its start and at every step
    return Outcome(values(chains) | chains.diagnostics, {}, settings, evaluations), chains
