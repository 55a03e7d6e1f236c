"""The models of the ARCH family: parameters, constraints, and where to start."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain, product
from typing import Any

from mgvbp.core import Array
from mgvbp.problem import Key
from mgvbp.transforms import FigarchRegion, GarchRegion, GarchSumRegion, Positive, Real, Transform
from mgvbp.volatility.filters import MOST_LAGS, EgarchFilter, FigarchFilter, GarchFilter
from mgvbp.volatility.likelihood import Likelihood, Paths
from mgvbp.volatility.model import VolatilityModel
from mgvbp.volatility.simulation import (
    Future,
    egarch_series,
    figarch_series,
    garch_series,
    simulate_egarch,
    simulate_figarch,
    simulate_garch,
)

TRUNCATION = 1000
"""Past days in the sum of FIGARCH: as many as in `arch` and in the authors' programs."""


class LaggedModel(VolatilityModel):
    """What `GJR` and `EGARCH` share: the parameters ω, α, γ and β, with up to two lags of the last three."""

    filter: GarchFilter | EgarchFilter
    _filter: type[GarchFilter | EgarchFilter]
    _simulate: Callable[..., Future]
    """Continues a series for given shocks."""
    _series: Callable[..., Future]
    """Starts a series of its own for given shocks."""

    def __init__(self, p: int = 1, o: int = 1, q: int = 1, **options: Any) -> None:
        self.orders = (p, o, q)
        self.filter = self._filter(p, o, q)
        kinds = zip(("alpha", "gamma", "beta"), self.filter.orders, strict=True)
        self.names = ("omega", *(f"{name}[{i}]" for name, order in kinds for i in range(1, order + 1)))
        super().__init__(**options)

    def _region(self, p: int, o: int, q: int) -> Transform:
        """The region of stationary coefficients; in the paper's convention in the authors' coordinates."""
        return (GarchSumRegion if q > 1 and self.convention == "arch" else GarchRegion)(p, o, q)

    def _guess(self, omega: float, *totals: float) -> dict[str, float]:
        """ω, and the sums of the α, γ and β, each of which is divided equally among the lags."""
        sizes = [[total / max(n, 1)] * n for total, n in zip(totals, self.filter.orders, strict=True)]
        return dict(zip(self.names, [omega, *chain(*sizes)], strict=True))

    def onward(self, likelihood: Likelihood, paths: Paths, shocks: Array) -> Future:
        """See `VolatilityModel.onward`."""
        recent = paths.residuals[-MOST_LAGS:], paths.variance[-1 - MOST_LAGS : -1]
        coefficients = self.coefficients(paths.values)
        return type(self)._simulate(self.filter.orders, coefficients, *recent, shocks)

    def _afresh(self, coefficients: Array, shocks: Array) -> Future:
        return type(self)._series(self.filter.orders, coefficients, shocks)


class GJR(LaggedModel):
    r"""Glosten, Jagannathan and Runkle's asymmetric GARCH.

    .. math:: h_t = \omega + \sum_{i=1}^p \alpha_i e_{t-i}^2
                    + \sum_{i=1}^o \gamma_i e_{t-i}^2 1[e_{t-i} < 0] + \sum_{i=1}^q \beta_i h_{t-i}

    ω is positive and the others lie in `mgvbp.transforms.GarchRegion`: the variance is positive and stationary, with
    a persistence Σα + Σγ/2 + Σβ below 0.9998. Two β are known by their sum and the share of it that the first takes
    (`mgvbp.transforms.GarchSumRegion`), but in the paper's convention.

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

    _filter, _simulate, _series = GarchFilter, simulate_garch, garch_series

    def _dynamics(self) -> dict[Key, Transform]:
        return {"omega": Positive(), self.names[1:]: self._region(*self.filter.orders)}

    def _guesses(self, variance: float) -> list[dict[str, float]]:
        p, o, q = self.filter.orders
        guesses, skews = [], (0.2, 0.7) if o else (0.0,)
        for news, persistence, skew in product((0.03, 0.08, 0.2), (0.7, 0.9, 0.97), skews):
            share = 1.0 if p == 0 else skew  # of the news that only counts after a loss
            alpha, gamma = news * (1.0 - share), 2.0 * news * share
            total = persistence if q else news
            guesses.append(self._guess(variance * (1.0 - total), alpha, gamma, total - news))
        return guesses


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
        super().__init__(p, 0, q, **options)
        self.orders = (p, q)


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
        super().__init__(p, 0, 0, **options)
        self.orders = (p,)


class EGARCH(LaggedModel):
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

    _filter, _simulate, _series = EgarchFilter, simulate_egarch, egarch_series

    def _dynamics(self) -> dict[Key, Transform]:
        q = self.filter.orders[2]
        if self.convention == "paper" or q == 0:
            return dict.fromkeys(self.names, Real())
        return {**dict.fromkeys(self.names[:-q], Real()), self.names[-q:]: self._region(0, 0, q)}

    def _guesses(self, variance: float) -> list[dict[str, float]]:
        betas = (0.9, 0.95, 0.98) if self.filter.orders[2] else (0.0,)
        return [
            self._guess((1.0 - beta) * math.log(variance), alpha, gamma, beta)
            for alpha, gamma, beta in product((0.1, 0.2, 0.35), (-0.1, 0.0), betas)
        ]

    def _prior_moments(self, variance: float) -> dict[str, tuple[float, float]]:
        return {name: (0.0, 1.0) for name in self.names if name.startswith(("alpha", "gamma"))}


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
        self.filter = FigarchFilter(p, q, TRUNCATION)
        self.orders = (p, q)
        self.names = ("omega", *("phi",) * p, "d", *("beta",) * q)
        super().__init__(**options)

    def _dynamics(self) -> dict[Key, Transform]:
        return {"omega": Positive(), self.names[1:]: FigarchRegion(*self.filter.orders)}

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

    def onward(self, likelihood: Likelihood, paths: Paths, shocks: Array) -> Future:
        """See `VolatilityModel.onward`."""
        squares, before = paths.residuals[-TRUNCATION:] ** 2, likelihood.sample.startup.distant_square
        coefficients = self.coefficients(paths.values)
        return simulate_figarch(self.filter.orders, coefficients, squares, before, shocks, TRUNCATION)

    def _afresh(self, coefficients: Array, shocks: Array) -> Future:
        return figarch_series(self.filter.orders, coefficients, shocks, TRUNCATION)
