"""How much is run, in the whole experiment and in a quick one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Sizes of the runs.

    Attributes
    ----------
    windows : int
        Windows to simulate for training; of FI-2010 all are taken.
    passes : int
        Passes over the data of each method after the start. A pass evaluates all windows for one draw, with or without
        gradients.
    batches : int
        Batches in an epoch of MGVBP with gradients. With few passes it needs small batches and long steps.
    step_size : float
        The largest step of MGVBP with gradients.
    bound_draws, few_draws : int
        Draws for the lower bound at the end; draws along the way and for predictions.
    checkpoints : int
        How often a run is looked at on its way.
    chain_windows, num_warmup, num_draws, chains : int
        The size of MCMC, which is too slow for all windows. Without chains it is left out.
    """

    windows: int
    passes: int
    batches: int
    step_size: float
    bound_draws: int
    few_draws: int
    checkpoints: int
    chain_windows: int = 0
    num_warmup: int = 0
    num_draws: int = 0
    chains: int = 0


FULL = Plan(
    windows=50_000, passes=4000, batches=10, step_size=0.05, bound_draws=250, few_draws=50, checkpoints=12,
    chain_windows=1000, num_warmup=100, num_draws=100, chains=2,
)  # fmt: skip
QUICK = Plan(
    windows=2000, passes=600, batches=20, step_size=0.1, bound_draws=100, few_draws=25, checkpoints=5
)
