"""Probabilities that add up to one."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import helmert
from scipy.special import log_softmax

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.transforms.base import Transform, just_inside

TOLERANCE = 1e-8
"""How far from one the sum of given probabilities may be."""


class Simplex(Transform):
    """``n`` positive numbers with sum one, from n − 1 real numbers: ``p = softmax(x H)``.

    The rows of the Helmert matrix ``H`` (n − 1, n) are an orthonormal basis of the vectors with sum zero:
    ``x`` is the isometric log-ratio of ``p`` (Egozcue et al. 2003), and a Gaussian ``x`` is Aitchison's
    logistic-normal. We prefer it to breaking a stick because another order of the categories is an orthogonal
    map of ``x``: the Gaussian approximation of the full family does not depend on the order. Also, the log
    density of a Dirichlet is concave in ``x``.

    The Jacobian is that of the first n − 1 probabilities, to which the density of a Dirichlet refers as well:
    ``log |J| = Σ log p_i + ½ log n``.

    Examples
    --------
    >>> Simplex(3).constrain([[0.0, 0.0], [1.0, 0.0]]).round(3)
    array([[0.333, 0.333, 0.333],
           [0.576, 0.14 , 0.284]])
    """

    def __init__(self, n: int) -> None:
        n = positive_integer(n, "n", least=2)
        super().__init__((n,), (n,), n - 1)

    def _constrain(self, x: Array) -> Array:
        return just_inside(np.exp(self._log_probabilities(x)), 0.0, 1.0)

    def _unconstrain(self, value: Array) -> Array:
        inside = (value > 0.0).all(axis=1) & (np.abs(value.sum(axis=1) - 1.0) < TOLERANCE)
        self._require(inside, value, "positive numbers with sum one")
        return np.asarray(np.log(value) @ helmert(self.shape[0]).T)

    def _log_jacobian(self, x: Array) -> Array:
        return np.asarray(self._log_probabilities(x).sum(axis=1) + 0.5 * math.log(self.shape[0]))

    def _log_probabilities(self, x: Array) -> Array:
        return np.asarray(log_softmax(x @ helmert(self.shape[0]), axis=1))
