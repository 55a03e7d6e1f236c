r"""Old queries stay useful: all evaluated draws, with the density of the mixture that they came from.

For a Gaussian q the draws have the multiple-importance ("balance heuristic") weights

.. math:: w_i = \frac{q(\theta_i)}{\sum_k n_k\, q_k(\theta_i)},

where :math:`q_k` are the Gaussians that were drawn from and :math:`n_k` how many draws each gave.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mgvbp._linalg import Array
from mgvbp.gaussian import Gaussian


class View(NamedTuple):
    """Draws as ``q`` sees them: in its frame (N, d), its log density there (N,) and normalised weights (N,)."""

    q: Gaussian
    eps: Array
    log_q: Array
    weights: Array

    @property
    def size(self) -> float:
        """Kish's effective number of draws."""
        squared = float(self.weights @ self.weights)
        return 1.0 / squared if squared > 0.0 else 0.0


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

    def view(self, q: Gaussian) -> View:
        """All draws, weighted for ``q``; those whose value is not finite have weight 0."""
        eps = q.family.to_frame(q.factor, self.theta - q.mean)
        log_q = q.log_density_in_frame(eps)
        log_weights = np.where(self.values == -np.inf, -np.inf, log_q - self._log_mixture)
        largest = log_weights.max(initial=-np.inf)
        if largest == -np.inf:
            return View(q, eps, log_q, np.zeros(len(eps)))
        weights = np.exp(log_weights - largest)
        return View(q, eps, log_q, weights / weights.sum())


def equal_view(q: Gaussian, theta: Array) -> View:
    """Draws (N, d) with the same weight each."""
    eps = q.family.to_frame(q.factor, theta - q.mean)
    return View(q, eps, q.log_density_in_frame(eps), np.full(len(theta), 1.0 / len(theta)))
