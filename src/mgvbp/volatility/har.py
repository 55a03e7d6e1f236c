"""The heterogeneous autoregression of realised volatility, with the interface of the other models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from mgvbp import models
from mgvbp.core import Array, as_generator, one_of, positive_integer, probabilities
from mgvbp.errors import InvalidInputError
from mgvbp.families import Gaussian
from mgvbp.models import LAGS, NAMES
from mgvbp.plots.canvas import BAND, GREY, LINE, finished, private_figure
from mgvbp.posterior import Posterior
from mgvbp.problem import Parameters, Prior, Problem
from mgvbp.transforms import Positive, Real
from mgvbp.volatility.forecast import (
    PATHS,
    checked_horizon,
    checked_probability,
    frame_of_days,
)
from mgvbp.volatility.maximum import MaximumLikelihood, fit_after, fit_from
from mgvbp.volatility.model import LEAST
from mgvbp.volatility.result import Estimates
from mgvbp.volatility.series import Series
from mgvbp.volatility.simulation import BURN_IN, checked_days

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MONTH = LAGS[-1]
"""How many days the model looks back. The first days of a series, as many as these, are not explained."""
WHAT = "realised volatility"
"""What messages call the series."""


class HARLikelihood(models.HAR):
    """The log-likelihood of realised volatilities after the first month, with a name for each coefficient."""

    def _parameters(self) -> Parameters:
        return HAR.parameters

    @property
    def n_obs(self) -> int:
        """The number of days that the model explains."""
        return len(self.y)

    @property
    def scale(self) -> Array:
        """A typical change of each entry of θ: the volatilities' standard deviation for the intercept, else 1."""
        return np.array([self.y.std(), *np.ones(len(NAMES))])

    def least_squares(self) -> MaximumLikelihood:
        """The maximum, in closed form with its Hessian in (β, log σ)."""
        X, y = self.X, self.y
        beta = np.linalg.lstsq(X, y)[0]
        squares = float(np.sum((y - X @ beta) ** 2))
        if squares == 0.0:
            raise InvalidInputError(
                f"the {WHAT} follows from its past without error: there is nothing to estimate"
            )
        psi = np.append(beta, 0.5 * np.log(squares / len(y)))
        hessian = np.zeros((len(psi), len(psi)))
        hessian[:-1, :-1] = -X.T @ X * len(y) / squares
        hessian[-1, -1] = -2.0 * len(y)
        return MaximumLikelihood(self, psi, float(self(psi[None])[0]), hessian)


@dataclass(frozen=True, eq=False)
class HARForecast:
    """Simulated futures; paths are the last axis.

    Attributes
    ----------
    volatility : ndarray of shape (H, N)
    """

    volatility: Array

    @property
    def mean(self) -> Array:
        """The expected volatility of each day, (H,)."""
        return np.asarray(self.volatility.mean(axis=1))

    def quantile(self, p: ArrayLike) -> Array:
        """Quantiles at levels ``p`` (K,) of each day's volatility, (H, K)."""
        return np.quantile(self.volatility, np.atleast_1d(probabilities(p, "p")), axis=1).T

    def to_frame(self, levels: ArrayLike = (0.05, 0.95)) -> Any:
        """A pandas frame with one row a day ahead: expectation and quantiles."""
        return frame_of_days({"mean": self.mean}, levels, {"": self.quantile(levels)})

    def __repr__(self) -> str:
        return f"HARForecast({self.volatility.shape[0]} days, {self.volatility.shape[1]:,} paths)"


@dataclass(frozen=True, eq=False)
class HARResult(Estimates):
    """A fitted heterogeneous autoregression.

    Attributes
    ----------
    model : HAR
    realised : Series
        The volatilities, with their dates if they had any.
    likelihood : HARLikelihood
    prior : Prior
    posterior : Posterior
        Gaussian in (β, log σ); ``posterior["daily"]`` is the marginal of a parameter.
    ml : MaximumLikelihood
        Least squares, with σ² the mean squared residual. The robust standard errors are White's (1980).
    """

    model: HAR
    realised: Series
    likelihood: HARLikelihood
    prior: Prior
    posterior: Posterior
    ml: MaximumLikelihood

    @property
    def conditional_volatility(self) -> Any:
        """The posterior mean of E[v_t | past] for each day after the first month; a Series if v was one."""
        return self.realised.labelled(self._design @ self.posterior.mean[:-1], "volatility")

    def volatility_band(self, level: float = 0.9) -> tuple[Any, Any]:
        """The ends of the central interval of E[v_t | past] that has posterior probability ``level``."""
        upper = 0.5 + 0.5 * checked_probability(level, "level")
        X, cov = self._design, self.posterior.covariance[:-1, :-1]
        half = float(ndtri(upper)) * np.sqrt(np.einsum("ti,ij,tj->t", X, cov, X))
        middle = X @ self.posterior.mean[:-1]
        return self.realised.labelled(middle - half, "lower"), self.realised.labelled(middle + half, "upper")

    @property
    def residuals(self) -> Any:
        """Posterior means of σ ε_t."""
        return self.realised.labelled(self._observed - self._design @ self.posterior.mean[:-1], "residual")

    @property
    def standardized_residuals(self) -> Any:
        """Posterior means of ε_t."""
        # E[exp(−ψ) f(β)] = exp(−E ψ + Var ψ/2) f(E β − Cov(β, ψ)) for a linear f of Gaussian (β, ψ)
        mean, cov = self.posterior.mean, self.posterior.covariance
        rest = self._observed - self._design @ (mean[:-1] - cov[:-1, -1])
        return self.realised.labelled(rest * np.exp(-mean[-1] + 0.5 * cov[-1, -1]), "standardized residual")

    def forecast(
        self, horizon: int = 10, draws: int = PATHS, rng: int | np.random.Generator = 0
    ) -> HARForecast:
        """Simulate the next ``horizon`` days: ``draws`` paths, each with parameters from the posterior."""
        generator, days = as_generator(rng), checked_horizon(horizon, draws)
        theta = self.posterior.sample(positive_integer(draws, "draws"), generator)
        past = np.repeat(self.realised.values[-MONTH:, None], len(theta), axis=1)
        return HARForecast(onward(theta, past, generator.standard_normal((days, len(theta)))))

    def update(self, new: Any, rng: int | np.random.Generator = 0) -> HARResult:
        """The result after more days: this posterior is the prior of the likelihood of the new ones.

        The lower bound of the new result is that of the new days given the old ones.
        """
        series = self.realised.then(new, f"the new days of {WHAT}")
        likelihood = HARLikelihood(series.values[len(self.realised) - MONTH :])
        posterior = fit_after(likelihood, self.posterior, rng)
        ml = HARLikelihood(series.values).least_squares()
        return HARResult(self.model, series, likelihood, self.posterior, posterior, ml)

    def summary(self) -> str:
        """A table of the posterior and of least squares under a heading on the data and the run."""
        return self._summary(repr(self.model), self.realised, self.likelihood.n_obs, "days")

    def plot(self, horizon: int = 22, level: float = 0.9) -> Figure:
        """A figure of the volatilities, what was expected of them, and the forecast with its band."""
        figure = private_figure(10.0, 6.0)
        past, future = figure.subplots(2, 1)
        days, recent = self.realised.axis, self.realised.values[-3 * MONTH :]
        past.plot(days, self.realised.values, color=GREY, linewidth=0.8, label=self.realised.name)
        expected = np.asarray(self.conditional_volatility)
        past.plot(days[MONTH:], expected, color=LINE, linewidth=1.0, label="expected the day before")
        past.fill_between(days[MONTH:], *map(np.asarray, self.volatility_band(level)), color=BAND)
        ahead, steps = self.forecast(horizon), np.arange(1, horizon + 1)
        ends = ahead.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level]).T
        future.plot(np.arange(1 - len(recent), 1), recent, color=GREY, linewidth=0.8)
        future.plot(steps, ahead.mean, color=LINE, label="forecast")
        future.fill_between(steps, *ends, color=BAND, label=f"{100 * level:g}% of the paths")
        future.set_xlabel("days ahead")
        for axes in (past, future):
            axes.margins(x=0.01)
            finished(axes, "", frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        return figure

    @property
    def _design(self) -> Array:
        """The regressors of each day after the first month, (T − 22, 4)."""
        return models.lagged_means(self.realised.values)[:-1]

    @property
    def _observed(self) -> Array:
        return self.realised.values[MONTH:]

    def __repr__(self) -> str:
        return f"HARResult({self.model!r}, lower bound {self.lower_bound:.3f})"


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

    parameters = Parameters(**dict.fromkeys(NAMES, Real()), sigma=Positive())

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
        shocks = as_generator(rng).standard_normal((BURN_IN + checked_days(days), 1))
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
        ml = likelihood.least_squares()
        chosen = self.prior(series) if prior is None else cast(Prior, Problem(likelihood, prior).prior)
        options = {"tol": tol, "max_evaluations": max_evaluations, "rng": rng, "progress": progress}
        posterior = fit_from(likelihood, chosen, ml.psi, ml.hessian, **options)
        return HARResult(self, series, likelihood, chosen, posterior, ml)

    def __repr__(self) -> str:
        return f"HAR(convention={self.convention!r})"


def onward(theta: Array, past: Array, shocks: Array) -> Array:
    """The days after ``past`` (22 or more, N), (H, N), for ``shocks`` (H, N) and θ (N, 5)."""
    beta, sigma = theta[:, :-1].T, np.exp(theta[:, -1])
    v = np.concatenate([past, np.empty_like(shocks)])
    for t, shock in enumerate(shocks, start=len(past)):
        means = (v[t - lag : t].mean(axis=0) for lag in LAGS)
        v[t] = beta[0] + sum(b * mean for b, mean in zip(beta[1:], means, strict=True)) + sigma * shock
    return v[len(past) :]
