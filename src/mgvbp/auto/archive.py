r"""Old queries stay useful: all evaluated draws, with the density of the mixture that they came from.

For a Gaussian q the draws have the multiple-importance ("balance heuristic") weights

.. math:: w_i = \frac{q(\theta_i)}{\sum_k n_k\, q_k(\theta_i)},

where :math:`q_k` are the Gaussians that were drawn from and :math:`n_k` how many draws each gave.
"""

from __future__ import annotations

import math

import numpy as np

from mgvbp._linalg import Array
from mgvbp.gaussian import Gaussian


class Archive:
    """Draws (N, d), their values (N,; −inf where not finite) and the log of the mixture's density there."""

    def __init__(self, dim: int) -> None:
        self.theta = np.empty((0, dim))
        self.values = np.empty(0)
        self._log_mixture = np.empty(0)
        self._proposals: list[tuple[Gaussian, int]] = []

    def add(self, q: Gaussian, theta: Array, values: Array) -> None:
        """Take in draws from ``q``."""
        count = len(theta)
        if self._proposals and self._proposals[-1][0] is q:
            self._proposals[-1] = (q, self._proposals[-1][1] + count)
        else:
            self._proposals.append((q, count))
        earlier = np.logaddexp(self._log_mixture, math.log(count) + q.log_density_at(self.theta))
        terms = [math.log(n) + proposal.log_density_at(theta) for proposal, n in self._proposals]
        self._log_mixture = np.concatenate([earlier, np.logaddexp.reduce(terms)])
        self.theta = np.concatenate([self.theta, theta])
        self.values = np.concatenate([self.values, np.where(np.isfinite(values), values, -np.inf)])

    def weights(self, q: Gaussian) -> Array:
        """Normalised importance weights for ``q``, (N,); 0 where the value is not finite."""
        log_weights = q.log_density_at(self.theta) - self._log_mixture
        log_weights[self.values == -np.inf] = -np.inf
        largest = log_weights.max(initial=-np.inf)
        if largest == -np.inf:
            return np.zeros(len(log_weights))
        weights = np.exp(log_weights - largest)
        return np.asarray(weights / weights.sum())


def effective_size(weights: Array) -> float:
    """Kish's effective sample size of normalised weights."""
    squared = float(weights @ weights)
    return 1.0 / squared if squared > 0.0 else 0.0
