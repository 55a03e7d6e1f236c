"""Increasing sequences, such as the cut points of an ordinal model."""

from __future__ import annotations

import numpy as np

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.transforms.base import Transform


class Ordered(Transform):
    """``n`` increasing numbers: ``v_0 = x_0``, ``v_i = v_{i−1} + exp(x_i)``.

    The Jacobian is triangular: its log-determinant is ``x_1 + … + x_{n−1}``.

    Examples
    --------
    >>> Ordered(3).constrain([[-1.0, 0.0, 0.0]])
    array([[-1.,  0.,  1.]])
    """

    def __init__(self, n: int) -> None:
        n = positive_integer(n, "n")
        super().__init__((n,), (n,), n)

    def _constrain(self, x: Array) -> Array:
        value = x.copy()
        with np.errstate(over="ignore"):
            steps = np.exp(x)
            for i in range(1, self.size):
                before = value[:, i - 1]
                # a step below the resolution still goes up by one float, so that the order stays strict
                value[:, i] = np.maximum(before + steps[:, i], np.nextafter(before, np.inf))
        return value

    def _unconstrain(self, value: Array) -> Array:
        self._require(value[:, 1:] > value[:, :-1], value, "strictly increasing numbers")
        return np.concatenate([value[:, :1], np.log(np.diff(value, axis=1))], axis=1)

    def _log_jacobian(self, x: Array) -> Array:
        return np.asarray(x[:, 1:].sum(axis=1))
