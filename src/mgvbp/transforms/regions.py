"""The coefficients of GARCH, GJR and FIGARCH models whose variances are positive and stationary."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, log_expit

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.transforms.base import Transform, just_inside

TINY = 1e-300
"""The least d of a FIGARCH, and the least that is left for the last β: at 5e-324 there would be no float between it and
0."""
ROUNDING = 1e-15
"""Share by which a sum of coefficients is less than what it may be, so that it stays below that when it is rounded."""
TOTAL = 0.9998
"""The persistence Σα + Σγ/2 + Σβ stays below this."""
SUPPORT = f"α > 0, γ_i > −α_i and β > 0 whose sum α + γ/2 + β stays below {TOTAL} after every term"


class GarchRegion(Transform):
    """Coefficients (α_1..α_p, γ_1..γ_o, β_1..β_q) of a stationary GJR-GARCH(p, o, q) variance.

    The variance is ``h_t = ω + Σ α_i e²_{t−i} + Σ γ_i e²_{t−i} 1[e_{t−i} < 0] + Σ β_i h_{t−i}``. One
    coefficient after the other takes the share ``s(x) = 1/(1 + exp(−x))`` of what is left of ``c``, which begins
    at 0.9998:

        ``α_i = s(x) c``,  then ``c ← c − α_i``;

        ``γ_i = s(x) (2c + α_i) − α_i``,  then ``c ← c − γ_i/2``  (α_i = 0 for i > p);

        ``β_i = s(x) c``,  then ``c ← c − β_i``.

    So α_i > 0, α_i + γ_i > 0, β_i > 0, and the sum of α, γ/2 and β is below 0.9998 after every term. Stationary
    coefficients with Σα above 0.9998, which need a negative γ, are not reached.

    The authors of the paper cut ``x`` at 100 from above, against overflow. In double precision ``s`` is 1
    from 37 on, so that the cut changes no value. We leave it out, and the log-Jacobian is that of the smooth map.

    Parameters
    ----------
    p, o, q : int
        How many α, γ and β there are.

    Examples
    --------
    >>> GarchRegion(1, 0, 1).constrain([[-1.2, 3.0]]).round(4)
    array([[0.2314, 0.7319]])
    """

    def __init__(self, p: int, o: int, q: int) -> None:
        orders = tuple(positive_integer(n, name, least=0) for n, name in ((p, "p"), (o, "o"), (q, "q")))
        size = sum(orders)
        if size == 0:
            raise InvalidInputError("GarchRegion needs at least one coefficient; got (0, 0, 0)")
        super().__init__(orders, (size,), size)

    def _terms(self) -> Iterator[tuple[int, float, int | None]]:
        """Each coefficient's index, its weight in the persistence and, for a γ, the index of its α (or None)."""
        p, o, q = (int(n) for n in self.arguments)
        for i in range(p):
            yield i, 1.0, None
        for i in range(o):
            yield p + i, 0.5, i if i < p else None
        for i in range(q):
            yield p + o + i, 1.0, None

    def _constrain(self, x: Array) -> Array:
        value, share = np.empty_like(x), expit(x)
        left = np.full(len(x), TOTAL)
        for k, weight, alpha in self._terms():
            lower = np.zeros(len(x)) if alpha is None else -value[:, alpha]
            upper = left / weight
            value[:, k] = just_inside(share[:, k] * (upper - lower) + lower, lower, upper)
            left -= weight * value[:, k]
        return value

    def _unconstrain(self, value: Array) -> Array:
        x = np.empty_like(value)
        left = np.full(len(value), TOTAL)
        for k, weight, alpha in self._terms():
            lower = np.zeros(len(value)) if alpha is None else -value[:, alpha]
            above, below = value[:, k] - lower, left / weight - value[:, k]
            self._require((above > 0.0) & (below > 0.0), value, SUPPORT)
            x[:, k] = np.log(above) - np.log(below)
            left -= weight * value[:, k]
        return x

    def _log_jacobian(self, x: Array) -> Array:
        return self._logs(x)[1]

    def _logs(self, x: Array) -> tuple[Array, Array]:
        """The log of each coefficient's distance from its lower end, which is 0 but for a γ, and the log-Jacobian."""
        # The Jacobian is triangular. Logs are used since what is left may be far below the resolution of TOTAL.
        log_share, log_rest = log_expit(x), log_expit(-x)
        log_above = np.empty_like(x)
        log_left, total = np.full(len(x), math.log(TOTAL)), np.zeros(len(x))
        for k, weight, alpha in self._terms():
            log_range = log_left - math.log(weight)
            if alpha is not None:
                log_range = np.logaddexp(log_range, log_above[:, alpha])
            log_above[:, k] = log_range + log_share[:, k]
            log_left = math.log(weight) + log_range + log_rest[:, k]
            total += log_range + log_share[:, k] + log_rest[:, k]
        return log_above, total


class GarchSumRegion(Transform):
    """The region of `GarchRegion`, by the sum of the β and the shares of it that the β take.

    The α, the γ and the sum b of the β take their shares of what is left as the coefficients of a
    ``GarchRegion(p, o, 1)`` do. Then

        ``β_i = s(x) b``,  then ``b ← b − β_i``,  but for the last β, which is what is left.

    With two β the data know their sum well, and hardly how they divide it: here these are two coordinates, where those
    of `GarchRegion` bend around each other. Under a Gaussian prior the persistence has the same distribution for any
    number of β.

    Parameters
    ----------
    p, o, q : int
        How many α, γ and β there are; at least one β.

    Examples
    --------
    >>> GarchSumRegion(1, 0, 2).constrain([[-1.2, 3.0, 0.0]]).round(4)
    array([[0.2314, 0.366 , 0.366 ]])
    """

    def __init__(self, p: int, o: int, q: int) -> None:
        first = GarchRegion(p, o, 1).size
        size = first - 1 + positive_integer(q, "q")
        super().__init__((p, o, q), (size,), size)

    @property
    def _parts(self) -> tuple[GarchRegion, int]:
        """The region of the coefficients with the sum in place of the β, and how many there are."""
        p, o, _ = (int(n) for n in self.arguments)
        return GarchRegion(p, o, 1), p + o + 1

    def _constrain(self, x: Array) -> Array:
        region, n = self._parts
        value = np.empty_like(x)
        value[:, :n] = region._constrain(x[:, :n])
        left = np.maximum((1.0 - ROUNDING) * value[:, n - 1], TINY)
        for k in range(n, self.size):
            value[:, k - 1] = share(x[:, k], left)
            left = np.maximum(expit(-x[:, k]) * left, TINY)
        value[:, -1] = left
        return value

    def _unconstrain(self, value: Array) -> Array:
        region, n = self._parts
        self._require(value[:, n - 1 :] > 0.0, value, SUPPORT)
        left = np.cumsum(value[:, n - 1 :][:, ::-1], axis=1)[:, ::-1]  # each β with those after it
        x = np.empty_like(value)
        x[:, :n] = region._unconstrain(np.column_stack([value[:, : n - 1], left[:, :1]]))
        x[:, n:] = np.log(value[:, n - 1 : -1]) - np.log(left[:, 1:])
        return x

    def _log_jacobian(self, x: Array) -> Array:
        region, n = self._parts
        log_above, total = region._logs(x[:, :n])
        log_left = log_above[:, -1]
        for k in range(n, self.size):
            log_rest = log_expit(-x[:, k])
            total += log_left + log_expit(x[:, k]) + log_rest
            log_left = log_left + log_rest
        return total


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

    def _constrain(self, x: Array) -> Array:
        p, q = map(int, self.arguments)
        d = just_inside(expit(x[:, p]), TINY, 1.0)
        phi = share(x[:, 0], (1.0 - d) / 2.0) if p else np.zeros_like(d)
        beta = share(x[:, -1], phi + d) if q else np.zeros_like(d)
        return np.stack([*[phi] * p, d, *[beta] * q], axis=1)

    def _unconstrain(self, value: Array) -> Array:
        p, q = map(int, self.arguments)
        d, beta = value[:, p], value[:, -1]
        phi = value[:, 0] if p else np.zeros_like(d)
        # the distance of each coefficient from the upper end of its range; the lower end is 0
        below = np.stack([*[(1.0 - d) / 2.0 - phi] * p, 1.0 - d, *[phi + d - beta] * q], axis=1)
        inside = (value > 0.0) & (below > 0.0)
        self._require(inside, value, "0 < d < 1, 0 < φ < (1 − d)/2, 0 < β < φ + d")
        return np.asarray(np.log(value) - np.log(below))

    def _log_jacobian(self, x: Array) -> Array:
        # the Jacobian is triangular in the order d, φ, β; logs are used since 1 − d may round to 0
        p, q = map(int, self.arguments)
        total = np.asarray((log_expit(x) + log_expit(-x)).sum(axis=1))
        log_room, log_half = log_expit(x[:, p]), log_expit(-x[:, p]) - math.log(2.0)
        if p:
            total += log_half
            log_room = np.logaddexp(log_room, log_expit(x[:, 0]) + log_half)
        if q:
            total += log_room
        return total


def share(x: Array, room: Array) -> Array:
    """The share s(x) of ``room``, neither none nor all of it."""
    return just_inside(expit(x) * room, 0.0, room)
