"""Draws by Markov chains, and whether they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.core import Array
from mgvbp.problem import NamedParameters
from mgvbp.sampling import ess, rhat

if TYPE_CHECKING:
    from xarray import DataTree


@dataclass(frozen=True, eq=False)
class Chains:
    """Draws after warm-up, with their diagnostics by ArviZ.

    Parameters
    ----------
    draws : ndarray of shape (chains, n, d)
    divergences : int
        Transitions of NUTS in which the integrator lost the trajectory.
    parameters : NamedParameters, optional
        What the entries of θ stand for.
    n_gradients : int
        Gradients that were evaluated, those of the warm-up included.

    Examples
    --------
    >>> chains = Chains(np.random.default_rng(0).normal(3.0, 1.0, size=(4, 500, 2)))
    >>> chains.mean.round(1), chains.covariance.round(1)
    (array([3., 3.]), array([[ 1., -0.],
           [-0.,  1.]]))
    >>> bool((chains.rhat < 1.01).all())
    True
    """

    draws: Array
    divergences: int = 0
    parameters: NamedParameters | None = None
    n_gradients: int = 0

    @property
    def flat(self) -> Array:
        """All draws, (N, d)."""
        return self.draws.reshape(-1, self.draws.shape[2])

    @property
    def mean(self) -> Array:
        """Means, (d,)."""
        return np.asarray(self.flat.mean(axis=0))

    @property
    def covariance(self) -> Array:
        """The covariance matrix, (d, d)."""
        return np.atleast_2d(np.cov(self.flat, rowvar=False))

    @property
    def std(self) -> Array:
        """Standard deviations, (d,)."""
        return np.asarray(self.flat.std(axis=0, ddof=1))

    @cached_property
    def rhat(self) -> Array:
        """Rank-normalised split R-hat of each entry, (d,); above 1.01 the chains disagree (Vehtari et al. 2021)."""
        return rhat(self.draws)

    @cached_property
    def ess(self) -> Array:
        """Effective sample sizes in the bulk, (d,)."""
        return ess(self.draws)

    @property
    def mcse(self) -> Array:
        """Monte Carlo standard errors of the means, (d,)."""
        return self.std / np.sqrt(self.ess)

    @property
    def diagnostics(self) -> dict[str, float]:
        """The worst R-hat and effective sample size, for tables."""
        return {"R-hat": float(self.rhat.max()), "ESS": float(self.ess.min())}

    def to_arviz(self) -> DataTree:
        """The draws as an ArviZ DataTree.

        Group ``posterior`` has the named parameters on their constrained scale and ``unconstrained_posterior`` has
        θ; without names ``posterior`` has θ.
        """
        from arviz_base import from_dict

        if self.parameters is None:
            return from_dict({"posterior": {"theta": self.draws}})
        grid, values = self.draws.shape[:2], self.parameters.constrain(self.flat)
        named = {name: v.reshape(grid + v.shape[1:]) for name, v in values.items()}
        return from_dict({"posterior": named, "unconstrained_posterior": {"theta": self.draws}})
