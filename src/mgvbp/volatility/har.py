"""The heterogeneous autoregression of realised volatility, with the interface of the other models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mgvbp.core import Array, as_generator, one_of, positive_integer
from mgvbp.errors import InvalidInputError
from mgvbp.families import Gaussian
from mgvbp.problem import Prior
from mgvbp.volatility.estimates import fit_from
from mgvbp.volatility.har_likelihood import MONTH, PARAMETERS, WHAT, HARLikelihood, least_squares, onward
from mgvbp.volatility.har_result import HARResult
from mgvbp.volatility.model import LEAST
from mgvbp.volatility.series import Series
from mgvbp.volatility.simulation import BURN_IN


class HAR:
    r"""Corsi's (2009) regression of realised volatility on its means over the last day, week and month.

    .. math:: v_t = \beta_0 + \beta_1 v_{t-1} + \beta_2 \bar v_{t-5:t-1} + \beta_3 \bar v_{t-22:t-1}
                    + \sigma \varepsilon_t, \qquad \varepsilon_t \sim N(0, 1)

    The parameters are ``intercept``, ``daily``, ``weekly``, ``monthly`` and ``sigma``; θ = (β, log σ).
    Nothing keeps v_t positive; logarithms of volatilities can be given as well.

    Parameters
    ----------
    convention : {"arch", "paper"}
        Which prior is the default; see `prior`.

    Examples
    --------
    >>> values = {"intercept": 1.0, "daily": 0.4, "weekly": 0.3, "monthly": 0.2, "sigma": 1.5}
    >>> result = HAR().fit(HAR().simulate(values, days=1000, rng=1))
    >>> result.posterior["daily"].mean.round(1), result.ml.params["sigma"].__round__(1)
    (np.float64(0.4), 1.5)
    >>> result.forecast(horizon=5).mean.shape
    (5,)
    """

    parameters = PARAMETERS

    def __init__(self, *, convention: str = "arch") -> None:
        self.convention = one_of(convention, ("arch", "paper"), "convention")

    def likelihood(self, realised: Any) -> HARLikelihood:
        """The log-likelihood of ``realised`` as a function of draws of θ, ready for `mgvbp.fit`."""
        return HARLikelihood(self.series(realised).values)

    def series(self, realised: Any) -> Series:
        """``realised``, checked."""
        return Series.of(realised, WHAT, least=MONTH + LEAST)

    def prior(self, realised: Any) -> Gaussian:
        """The default prior, Gaussian in θ.

        In the paper's convention N(0, 5 I). In that of `arch` it moves with the scale of the series, so that
        the unit does not matter: with m² the mean square of the volatilities and s² their variance, N(0, m²)
        for the intercept, N(0, 1) for the slopes and N(log s, 5) for log σ.
        """
        if self.convention == "paper":
            return Gaussian(variance=5.0, dim=self.parameters.dim)
        v = self.series(realised).values
        square, log_scale = float(np.mean(v**2)), float(np.log(v.std()))
        return Gaussian([0.0, 0.0, 0.0, 0.0, log_scale], variance=[square, 1.0, 1.0, 1.0, 5.0])

    def simulate(
        self, values: Mapping[str, float], days: int, rng: int | np.random.Generator | None = None
    ) -> Array:
        """A series of ``days`` volatilities from this model, with the parameters by name."""
        theta = self.parameters.unconstrain(values)  # complains of names and ranges
        slope = float(theta[1:4].sum())
        if not slope < 1.0:
            raise InvalidInputError(
                f"daily + weekly + monthly must be below 1 for a stationary series; got {slope}"
            )
        past = np.full((MONTH, 1), theta[0] / (1.0 - slope))
        shocks = as_generator(rng).standard_normal((BURN_IN + positive_integer(days, "days"), 1))
        return onward(theta[None], past, shocks)[BURN_IN:, 0]

    def fit(
        self,
        realised: Any,
        prior: Prior | None = None,
        *,
        tol: float | None = None,
        max_evaluations: int | None = None,
        rng: int | np.random.Generator = 0,
        progress: bool = False,
    ) -> HARResult:
        """Posterior and maximum likelihood of the parameters given realised volatilities.

        Parameters
        ----------
        realised : array_like of shape (T,), or pandas.Series
            Daily, oldest first; the first 22 only serve as the past of the others. Dates are kept.
        prior : Gaussian or other prior on θ, optional
        tol, max_evaluations, rng, progress
            As in `mgvbp.fit`.
        """
        series = self.series(realised)
        likelihood = HARLikelihood(series.values)
        ml = least_squares(likelihood)
        chosen = self.prior(series) if prior is None else prior
        options = {"tol": tol, "max_evaluations": max_evaluations, "rng": rng, "progress": progress}
        posterior = fit_from(likelihood, chosen, ml.psi, ml.hessian, **options)
        return HARResult(self, series, likelihood, chosen, posterior, ml)

    def __repr__(self) -> str:
        return f"HAR(convention={self.convention!r})"
