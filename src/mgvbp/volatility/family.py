"""The models of the ARCH family: parameters, constraints, and where to start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from mgvbp._linalg import Array
from mgvbp.checks import positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.parameters import Key
from mgvbp.transforms import FigarchRegion, GarchRegion, Positive, Real, Transform
from mgvbp.volatility.figarch_simulation import figarch_series, simulate_figarch
from mgvbp.volatility.filters import EgarchFilter, FigarchFilter, GarchFilter, StartUp
from mgvbp.volatility.likelihood import Paths
from mgvbp.volatility.model import Future, VolatilityModel
from mgvbp.volatility.simulation import egarch_series, garch_series, simulate_egarch, simulate_garch

MOST = 2
"""Lags of each kind, at most."""
LAGS = 1000
"""Of FIGARCH."""


class GJR(VolatilityModel):
    r"""Glosten, Jagannathan and Runkle's asymmetric GARCH.

    .. math:: h_t = \omega + \sum_{i=1}^p \alpha_i e_{t-i}^2
                    + \sum_{i=1}^o \gamma_i e_{t-i}^2 1[e_{t-i} < 0] + \sum_{i=1}^q \beta_i h_{t-i}

    ω is positive and the others lie in `mgvbp.transforms.GarchRegion`: the variance is positive and stationary, with
    a persistence Σα + Σγ/2 + Σβ below 0.9998.

    Parameters
    ----------
    p, o, q : int
        How many α, γ and β there are, 0 to 2 each.
    **options
        See `VolatilityModel`.

    Examples
    --------
    >>> GJR(1, 1, 1, dist="t").parameters.names
    ('mu', 'omega', 'alpha[1]', 'gamma[1]', 'beta[1]', 'nu')
    """

    filter: GarchFilter

    def __init__(self, p: int = 1, o: int = 1, q: int = 1, **options: Any) -> None:
        self.orders = checked_orders(p=p, o=o, q=q)
        self._build(p, o, q, options)

    def _build(self, p: int, o: int, q: int, options: dict[str, Any]) -> None:
        if p + o == 0:
            raise InvalidInputError(
                f"{type(self).__name__} needs a term in past returns: of α or γ, 1 or 2 lags"
            )
        self._terms = (p, o, q)
        self.filter = GarchFilter(p, o, q)
        self.names = ("omega", *lag_names(p, o, q))
        super().__init__(**options)

    def _dynamics(self) -> dict[Key, Transform]:
        return {"omega": Positive(), self.names[1:]: GarchRegion(*self._terms)}

    def _guesses(self, variance: float) -> list[dict[str, float]]:
        p, o, q = self._terms
        guesses = []
        for news, persistence, skew in product(
            (0.03, 0.08, 0.2), (0.7, 0.9, 0.97), (0.2, 0.7) if o else (0.0,)
        ):
            share = 1.0 if p == 0 else skew  # of the news that comes with the sign
            alpha, gamma = news * (1.0 - share), 2.0 * news * share
            total = persistence if q else news
            sizes = [alpha / max(p, 1)] * p + [gamma / max(o, 1)] * o + [(total - news) / max(q, 1)] * q
            values = (variance * (1.0 - total), *sizes)
            guesses.append(dict(zip(self.names, values, strict=True)))
        return guesses

    def _prior_moments(self, variance: float) -> dict[str, tuple[float, float]]:
        return {"omega": (math.log(variance / 10.0), 5.0)}

    def _onward(self, coefficients: Array, paths: Paths, startup: StartUp, shocks: Array) -> Future:
        recent = paths.residuals[-MOST:], paths.variance[-1 - MOST : -1]
        return simulate_garch(self._terms, coefficients, *recent, shocks)

    def _afresh(self, coefficients: Array, shocks: Array) -> Future:
        return garch_series(self._terms, coefficients, shocks)


class GARCH(GJR):
    r"""Bollerslev's GARCH: :math:`h_t = \omega + \sum \alpha_i e_{t-i}^2 + \sum \beta_i h_{t-i}`.

    Parameters
    ----------
    p : int
        How many α there are, 1 or 2.
    q : int
        How many β there are, 0 to 2.
    **options
        See `VolatilityModel`.

    Examples
    --------
    >>> GARCH(1, 2).parameters.names
    ('mu', 'omega', 'alpha[1]', 'beta[1]', 'beta[2]')
    """

    def __init__(self, p: int = 1, q: int = 1, **options: Any) -> None:
        self.orders = checked_orders(p=p, q=q)
        self._build(p, 0, q, options)


class ARCH(GJR):
    r"""Engle's ARCH: :math:`h_t = \omega + \sum \alpha_i e_{t-i}^2`.

    Parameters
    ----------
    p : int
        How many α there are, 1 or 2.
    **options
        See `VolatilityModel`.

    Examples
    --------
    >>> ARCH(1, convention="paper").parameters.names
    ('omega', 'alpha[1]')
    """

    def __init__(self, p: int = 1, **options: Any) -> None:
        self.orders = checked_orders(p=p)
        self._build(p, 0, 0, options)


class EGARCH(VolatilityModel):
    r"""Nelson's exponential GARCH.

    .. math:: \log h_t = \omega + \sum_{i=1}^p \alpha_i (|z_{t-i}| - \sqrt{2/\pi})
                         + \sum_{i=1}^o \gamma_i z_{t-i} + \sum_{i=1}^q \beta_i \log h_{t-i}

    In the convention of `arch` the β are positive with a sum below 1; in the paper's nothing is constrained.

    Parameters
    ----------
    p, o, q : int
        How many α, γ and β there are, 0 to 2 each.
    **options
        See `VolatilityModel`.

    Examples
    --------
    >>> EGARCH(1, 1, 1, mean="zero").parameters.names
    ('omega', 'alpha[1]', 'gamma[1]', 'beta[1]')
    """

    filter: EgarchFilter

    def __init__(self, p: int = 1, o: int = 1, q: int = 1, **options: Any) -> None:
        self.orders = checked_orders(p=p, o=o, q=q)
        if p + o == 0:
            raise InvalidInputError("EGARCH needs a term in past returns: p or o of 1 or 2")
        self._terms = (p, o, q)
        self.filter = EgarchFilter(p, o, q)
        self.names = ("omega", *lag_names(p, o, q))
        super().__init__(**options)

    def _dynamics(self) -> dict[Key, Transform]:
        q = self._terms[2]
        if self.convention == "paper" or q == 0:
            return dict.fromkeys(self.names, Real())
        return {**dict.fromkeys(self.names[:-q], Real()), self.names[-q:]: GarchRegion(0, 0, q)}

    def _guesses(self, variance: float) -> list[dict[str, float]]:
        p, o, q = self._terms
        guesses = []
        for alpha, gamma, beta in product((0.1, 0.2, 0.35), (-0.1, 0.0), (0.9, 0.95, 0.98) if q else (0.0,)):
            sizes = [alpha / max(p, 1)] * p + [gamma / max(o, 1)] * o + [beta / max(q, 1)] * q
            values = ((1.0 - beta) * math.log(variance), *sizes)
            guesses.append(dict(zip(self.names, values, strict=True)))
        return guesses

    def _prior_moments(self, variance: float) -> dict[str, tuple[float, float]]:
        return {name: (0.0, 1.0) for name in self.names if name.startswith(("alpha", "gamma"))}

    def _onward(self, coefficients: Array, paths: Paths, startup: StartUp, shocks: Array) -> Future:
        recent = paths.residuals[-MOST:], paths.variance[-1 - MOST : -1]
        return simulate_egarch(self._terms, coefficients, *recent, shocks)

    def _afresh(self, coefficients: Array, shocks: Array) -> Future:
        return egarch_series(self._terms, coefficients, shocks)


class FIGARCH(VolatilityModel):
    r"""Fractionally integrated GARCH of Baillie, Bollerslev and Mikkelsen, order (p, d, q), cut at 1,000 lags.

    .. math:: h_t = \bar\omega + \sum_{k=1}^{1000} \lambda_k e_{t-k}^2, \qquad
              \lambda(L) = 1 - (1 - \beta L)^{-1} (1 - \phi L) (1 - L)^d

    In the convention of `arch` ω is :math:`\bar\omega (1 - \beta)`, in the paper's :math:`\bar\omega` itself. The
    others lie in `mgvbp.transforms.FigarchRegion`.

    Parameters
    ----------
    p, q : {0, 1}
        Whether there is a φ, and a β.
    **options
        See `VolatilityModel`.

    Examples
    --------
    >>> FIGARCH(0, 1).parameters.names
    ('mu', 'omega', 'd', 'beta')
    """

    filter: FigarchFilter

    def __init__(self, p: int = 1, q: int = 1, **options: Any) -> None:
        self.orders = checked_orders(1, p=p, q=q)
        self._terms = (p, q)
        self.filter = FigarchFilter(p, q, LAGS)
        self.names = ("omega", *("phi",) * p, "d", *("beta",) * q)
        super().__init__(**options)

    def _dynamics(self) -> dict[Key, Transform]:
        p, q = self._terms
        return {"omega": Positive(), self.names[1:]: FigarchRegion(p, q)}

    def coefficients(self, values: Mapping[str, Array]) -> Array:
        """What the filter takes: with the intercept of the sum over 1,000 lags for ω."""
        coefficients = super().coefficients(values)
        if self.convention == "arch" and "beta" in values:
            coefficients[0] /= 1.0 - values["beta"]
        return coefficients

    def _guesses(self, variance: float) -> list[dict[str, float]]:
        guesses = []
        for omega, d, share in product((0.02, 0.1), (0.2, 0.4, 0.6, 0.8), (0.2, 0.7)):
            phi = 0.2 * (1.0 - d) if "phi" in self.names else 0.0
            values = {"omega": omega * variance, "phi": phi, "d": d, "beta": share * (phi + d)}
            guesses.append({name: values[name] for name in self.names})
        return guesses

    def _prior_moments(self, variance: float) -> dict[str, tuple[float, float]]:
        return {"omega": (math.log(variance / 10.0), 5.0)}

    def _onward(self, coefficients: Array, paths: Paths, startup: StartUp, shocks: Array) -> Future:
        squares = paths.residuals[-LAGS:] ** 2
        return simulate_figarch(self._terms, coefficients, squares, startup.distant_square, shocks, LAGS)

    def _afresh(self, coefficients: Array, shocks: Array) -> Future:
        return figarch_series(self._terms, coefficients, shocks, truncation=LAGS)


def checked_orders(most: int = MOST, /, **orders: int) -> tuple[int, ...]:
    """Orders of 0 to ``most``."""
    for name, order in orders.items():
        if positive_integer(order, name, least=0) > most:
            raise InvalidInputError(f"{name} must be at most {most}; got {order}")
    return tuple(orders.values())


def lag_names(p: int, o: int, q: int) -> tuple[str, ...]:
    """The names of the coefficients by lag, as `arch` has them."""
    orders = {"alpha": p, "gamma": o, "beta": q}
    return tuple(f"{name}[{i}]" for name, order in orders.items() for i in range(1, order + 1))
