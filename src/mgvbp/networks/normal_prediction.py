"""What draws of a network with normal noise say of new responses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from mgvbp.core import Array, as_floats
from mgvbp.errors import InvalidInputError
from mgvbp.families import LOG_2PI
from mgvbp.networks.arrays import as_array, refuse_nan


@dataclass(frozen=True)
class NormalScores:
    """How far predictions were off.

    Attributes
    ----------
    rmse : float
        The root of the mean squared error of the predictive mean.
    log_predictive_density : float
        The mean over the rows of ``log mean_s p(y | x, θ_s)``.
    """

    rmse: float
    log_predictive_density: float


@dataclass(frozen=True, eq=False)
class NormalPrediction:
    """The predictive distribution of each row: a mixture of normal distributions, one of each draw.

    Parameters
    ----------
    means : ndarray of shape (S, N)
    sigma : ndarray of shape (S,)

    Examples
    --------
    >>> prediction = NormalPrediction(means=np.array([[1.0], [3.0]]), sigma=np.array([0.6, 0.6]))
    >>> prediction.mean, prediction.std, prediction.std_of_mean
    (array([2.]), array([1.16619038]), array([1.]))
    """

    means: Array
    sigma: Array

    @property
    def mean(self) -> Array:
        """The predictive mean of each row, (N,)."""
        return np.asarray(self.means.mean(axis=0))

    @property
    def std(self) -> Array:
        """The standard deviation of a new response, (N,): noise and doubt about the weights."""
        return np.sqrt(self.std_of_mean**2 + np.mean(self.sigma**2))

    @property
    def std_of_mean(self) -> Array:
        """The standard deviation of the network's output over the draws, (N,): doubt about the weights alone."""
        return np.asarray(self.means.std(axis=0))

    def score(self, y: ArrayLike) -> NormalScores:
        """Scores of the predictions where the responses (N,) were ``y``."""
        truth = as_floats(as_array(y, "y"), "y")
        if truth.shape != self.means.shape[1:]:
            raise InvalidInputError(f"y has shape {truth.shape}; expected {self.means.shape[1:]}")
        refuse_nan(self.means, 1, "means")
        errors = (truth - self.means) / self.sigma[:, None]
        densities = -0.5 * errors**2 - np.log(self.sigma)[:, None] - 0.5 * LOG_2PI
        return NormalScores(
            rmse=float(np.sqrt(np.mean((truth - self.mean) ** 2))),
            log_predictive_density=float(np.mean(logsumexp(densities, axis=0)) - np.log(len(self.means))),
        )
