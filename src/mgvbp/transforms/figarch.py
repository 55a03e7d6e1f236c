"""The coefficients of a FIGARCH model whose variances are all positive."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, log_expit

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.transforms.base import Transform, just_inside

TINY = 1e-300


class FigarchRegion(Transform):
    """Coefficients ([φ], d, [β]) of a FIGARCH(p, d, q) variance that is positive for all past values.

    The variance h satisfies ``(1 − β L) h = ω + (1 − β L − (1 − φ L)(1 − L)^d) e²`` with L the lag operator. With
    ``s(x) = 1/(1 + exp(−x))`` and the unconstrained numbers in the same order,

        ``d = s(x_d)``,  ``φ = s(x_φ) (1 − d)/2``,  ``β = s(x_β) (φ + d)``,

    which keeps the weights of all past squares positive: 0 < d < 1, 0 < φ < (1 − d)/2, 0 < β < φ + d.

    Parameters
    ----------
    p, q : {0, 1}
        Whether the model has a φ, and whether it has a β.

    Examples
    --------
    >>> FigarchRegion(1, 1).constrain([[-0.5, 0.6, 0.6]]).round(4)
    array([[0.0669, 0.6457, 0.4601]])
    """

    def __init__(self, p: int, q: int) -> None:
        orders = tuple(positive_integer(n, name, least=0) for n, name in ((p, "p"), (q, "q")))
        if max(orders) > 1:
            raise InvalidInputError(f"FigarchRegion takes p and q of 0 or 1; got {orders}")
        size = 1 + sum(orders)
        super().__init__(orders, (size,), size)

    def _split(self, x: Array) -> tuple[Array | None, Array, Array | None]:
        """The columns of φ, d and β."""
        p, q = (int(n) for n in self.arguments)
        return (x[:, 0] if p else None), x[:, p], (x[:, p + 1] if q else None)

    def _constrain(self, x: Array) -> Array:
        x_phi, x_d, x_beta = self._split(x)
        d = just_inside(expit(x_d), TINY, 1.0)  # at d = 5e-324 there would be no float for β between 0 and d
        columns, room = [d], d
        if x_phi is not None:
            half = (1.0 - d) / 2.0
            phi = just_inside(expit(x_phi) * half, 0.0, half)
            columns, room = [phi, d], phi + d
        if x_beta is not None:
            columns.append(just_inside(expit(x_beta) * room, 0.0, room))
        return np.stack(columns, axis=1)

    def _unconstrain(self, value: Array) -> Array:
        phi, d, beta = self._split(value)
        pairs = [(d, 1.0 - d)]  # distances of each coefficient from the two ends of its range
        room = d
        if phi is not None:
            pairs.insert(0, (phi, (1.0 - d) / 2.0 - phi))
            room = phi + d
        if beta is not None:
            pairs.append((beta, room - beta))
        distances = np.array(pairs)
        inside = np.asarray((distances > 0.0).all(axis=(0, 1)))
        self._require(inside, value, "0 < d < 1, 0 < φ < (1 − d)/2, 0 < β < φ + d")
        return np.asarray((np.log(distances[:, 0]) - np.log(distances[:, 1])).T)

    def _log_jacobian(self, x: Array) -> Array:
        # the Jacobian is triangular in the order d, φ, β; logs are used since 1 − d may round to 0
        x_phi, x_d, x_beta = self._split(x)
        total = np.asarray((log_expit(x) + log_expit(-x)).sum(axis=1))
        log_room = log_expit(x_d)
        if x_phi is not None:
            log_half = log_expit(-x_d) - math.log(2.0)
            total += log_half
            log_room = np.logaddexp(log_room, log_expit(x_phi) + log_half)
        if x_beta is not None:
            total += log_room
        return total
