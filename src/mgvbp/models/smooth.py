"""Regressions whose log-likelihood has a gradient in closed form."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.linalg import Array
from mgvbp.models.base import RegressionModel, blocks


class SmoothRegression(RegressionModel):
    """A regression with a gradient.

    ``mgvbp.fit(model, prior, grad=model.gradient)`` uses it. By itself `mgvbp.fit` does so with more than 20
    parameters.
    """

    def gradient(self, theta: ArrayLike) -> Array:
        """The gradient of the log-likelihood at each row of ``theta``, (S, d) -> (S, d).

        Examples
        --------
        >>> import mgvbp
        >>> model = mgvbp.models.LogisticRegression([[1.0], [1.0], [1.0]], [0, 1, 1])
        >>> model.gradient([[0.0]])
        array([[0.5]])
        """
        draws = self._checked_draws(theta)
        total = np.zeros_like(draws)
        with np.errstate(over="ignore", invalid="ignore"):  # where the likelihood is zero there is no slope
            for some, rows in blocks(len(draws), len(self.y)):
                total[some] += self._slopes(draws[some], self._design[rows], self.y[rows])
        return total

    @abstractmethod
    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        """The gradient of the log-likelihood of some rows, (S, d), (n, k) and (n,) -> (S, d)."""
