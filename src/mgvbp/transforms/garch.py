"""The coefficients of a stationary GJR-GARCH model."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, log_expit

from mgvbp.core.checks import positive_integer
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.transforms.base import Transform, just_inside

TOTAL = 0.9998
"""The persistence Σα + Σγ/2 + Σβ stays below this."""


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
        # The Jacobian is triangular. Logs are used since what is left may be far below the resolution of TOTAL.
        # log_above is the log of a coefficient's distance from its lower end; for an α this end is 0.
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
        return total


SUPPORT = f"α > 0, γ_i > −α_i and β > 0 whose sum α + γ/2 + β stays below {TOTAL} after every term"
