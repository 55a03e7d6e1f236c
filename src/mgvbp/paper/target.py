"""A model of daily data as `volatility` and `har` report it: the columns of the tables at a point, and their spread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

import mgvbp
from mgvbp.baselines import Chains
from mgvbp.paper import mcmc
from mgvbp.paper.common import Array, Path
from mgvbp.paper.spec import Outcome

DRAWS = 500
"""Draws from a posterior that give the spread of the columns. The standard error of this spread is then some 4% of it,
which is small beside the tolerance that it decides."""
EVERY = 10
"""A run is looked at in its first iteration and in every tenth after it: enough for a line in a figure."""


class Target(ABC):
    """A log-likelihood of the training days, its prior, and what the tables say of a point."""

    @property
    @abstractmethod
    def likelihood(self) -> Callable[[Array], Array]:
        """The log-likelihood of the training days, (S, d) -> (S,)."""

    @property
    @abstractmethod
    def prior(self) -> mgvbp.Gaussian:
        """The paper's prior."""

    @abstractmethod
    def report(self, theta: Array) -> dict[str, Array]:
        """All columns of the tables at each of the points, (S, d) -> (S,) each."""

    @abstractmethod
    def exact_bound(self, q: mgvbp.Gaussian) -> float:
        """The lower bound at q without Monte Carlo error."""

    @abstractmethod
    def maximum_likelihood(self) -> tuple[Array, int]:
        """The point (d,) of the largest likelihood, and the number of evaluations that it took."""

    def summary(self, theta: Array, draws: Array | None = None) -> dict[str, float]:
        """The columns at a point (d,); with draws (S, d) also their spread.

        The spread ``sd <column>`` is half the width of the middle 68% of the column over the draws.
        """
        values = {name: float(value[0]) for name, value in self.report(theta[None]).items()}
        if draws is not None:
            spread = {name: np.quantile(value, [0.16, 0.84]) for name, value in self.report(draws).items()}
            values |= {f"sd {name}": float(high - low) / 2.0 for name, (low, high) in spread.items()}
        return values

    def described(self, posterior: mgvbp.Posterior) -> dict[str, float]:
        """The columns at the posterior's mean, the bound that the run reports, and the bound there without noise."""
        values = self.summary(posterior.mean, posterior.sample(DRAWS, 0))
        return values | {"LB*": posterior.lower_bound, "LB at point": self.exact_bound(posterior)}

    def curves(self, path: Path[mgvbp.Gaussian], trace: mgvbp.Trace) -> dict[str, list[float]]:
        """The smoothed bound and the columns of the tables at the iterations that a path has seen."""
        rows = self.report(np.array([q.mean for q in path.seen]))
        bound = trace.smoothed[np.array(path.iterations) - 1]
        named = {"iteration": np.array(path.iterations), "LB": bound, **rows}
        return {name: values.tolist() for name, values in named.items()}


def run_ml(at: Target, optimiser: str) -> Outcome:
    """Maximum likelihood."""
    theta, evaluations = at.maximum_likelihood()
    return Outcome(at.summary(theta), settings={"optimiser": optimiser}, n_evaluations=evaluations)


def run_mcmc(
    at: Target, around: mgvbp.Gaussian, seed: int, steps: int, walkers: int
) -> tuple[Outcome, Chains]:
    """MCMC from draws of an approximation ``around``."""

    def values(chains: Chains) -> dict[str, float]:
        some = np.random.default_rng(seed).integers(len(chains.flat), size=DRAWS)
        return at.summary(chains.flat.mean(axis=0), chains.flat[some])

    return mcmc.run(at.likelihood, at.prior, around, seed, values, steps, walkers)
