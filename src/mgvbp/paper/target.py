"""A posterior that is approximated, and the runs that the experiments share: a named method, auto, MCMC and ML.

An experiment describes its posterior once, as a `Target`; the runs turn it into outcomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.paper.common import METHODS, Array, quietly
from mgvbp.paper.spec import Outcome

Seen = TypeVar("Seen")


class Target(ABC):
    """A posterior, the family of Gaussians that is to approximate it, and what the tables show of the results."""

    likelihood: Callable[[Array], Array]
    """The log-likelihood of the rows to train, (S, d) -> (S,)."""
    prior: mgvbp.Gaussian
    family: str | mgvbp.BlockDiagonal = "full"

    @abstractmethod
    def fitted(self, q: mgvbp.Posterior) -> Outcome:
        """What tables and figures show of a fit."""

    @abstractmethod
    def sampled(self, chains: Chains) -> Outcome:
        """What they show of MCMC."""

    @abstractmethod
    def maximum_likelihood(self) -> Outcome:
        """What they show of the point of the largest likelihood."""

    def auto(self, seed: int, **options: Any) -> mgvbp.Posterior:
        """``mgvbp.fit`` with no options but these and the family."""
        with quietly():
            return mgvbp.fit(self.likelihood, self.prior, family=self.family, rng=seed, **options)

    def around(self, seed: int) -> mgvbp.Gaussian:
        """The Gaussian from whose draws MCMC starts: the approximation by `auto`."""
        return self.auto(seed)

    def by_method(self, method: str, settings: dict[str, Any], seed: int, **options: Any) -> mgvbp.Posterior:
        """One of the paper's methods; a run that breaks down gives its best iterate."""
        with quietly():
            return mgvbp.fit(
                self.likelihood,
                self.prior,
                method=METHODS[method](**settings),
                family=self.family,
                rng=seed,
                **options,
            )


Make = Callable[[int], Target]
"""Makes a target; simulated data depend on the seed that it takes."""


def run_auto(make: Make, seed: int, **options: Any) -> Outcome:
    """`auto` with these options."""
    at = make(seed)
    q = at.auto(seed, **options)
    numbers = {name: option for name, option in options.items() if isinstance(option, int | float)}
    settings = {"method": "auto", "family": str(at.family), **numbers}
    return replace(at.fitted(q), settings=settings, n_evaluations=q.n_evaluations)


def run_mcmc(make: Make, seed: int, *, steps: int = 5000, walkers: int = 40) -> Outcome:
    """MCMC; R-hat and the effective sample size join what the target shows of the chains."""
    at = make(seed)

    def log_density(x: Array) -> Array:
        return at.likelihood(x) + at.prior.log_density(x)

    chains = sample(log_density, at.around(seed), seed, steps, walkers)
    shown = at.sampled(chains)
    return Outcome(
        shown.values | chains.diagnostics,
        shown.curves,
        {"sampler": "emcee", "walkers": walkers, "steps": steps},
        walkers * (steps + 1),  # each walker is evaluated at its start and at every step
    )


def run_ml(make: Make, seed: int) -> Outcome:
    """Maximum likelihood; nothing in it is random."""
    outcome = make(seed).maximum_likelihood()
    return replace(outcome, settings={"method": "ML", **outcome.settings})


def sample(
    log_density: Callable[[Array], Array],
    around: mgvbp.Gaussian,
    seed: int,
    steps: int = 5000,
    walkers: int = 40,
) -> Chains:
    """Draw from a posterior with emcee's affine-invariant ensemble, which needs no gradient and no tuning.

    The walkers, at least twice the dimension, start at draws from ``around``; to the diagnostics each is a chain. The
    first fifth of their steps is dropped.
    """
    from emcee import EnsembleSampler

    rng = np.random.default_rng(seed)
    sampler = EnsembleSampler(walkers, around.dim, log_density, vectorize=True)
    sampler.random_state = np.random.RandomState(int(rng.integers(2**32))).get_state()
    sampler.run_mcmc(around.sample(walkers, rng), steps, skip_initial_state_check=True)
    return Chains(np.swapaxes(sampler.get_chain(discard=steps // 5), 0, 1))  # (walkers, n, d)


class Path(Generic[Seen]):
    """A callback of ``mgvbp.fit`` that looks at iterations 1, 1 + every, 1 + 2 every and so on.

    ``iterations`` are those that were looked at, and ``seen`` has what ``look`` returned at each of them.
    """

    def __init__(self, look: Callable[[Any], Seen], every: int = 1) -> None:
        self.look, self.every = look, every
        self.iterations: list[float] = []
        self.seen: list[Seen] = []

    def __call__(self, iteration: Any) -> None:
        """Look at an iteration, if it is its turn."""
        if (iteration.iteration - 1) % self.every == 0:
            self.iterations.append(float(iteration.iteration))
            self.seen.append(self.look(iteration))

    def arrival(self, reached: Callable[[Seen], bool], name: str = "arrival") -> dict[str, float]:
        """The first iteration at which ``reached`` is true of what was seen, by ``name``; empty if there is none."""
        pairs = zip(self.iterations, self.seen, strict=True)
        return dict([(name, t) for t, seen in pairs if reached(seen)][:1])
