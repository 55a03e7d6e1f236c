"""A fitted heterogeneous autoregression: what was expected, what is to come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from mgvbp.core import Array, as_generator, positive_integer
from mgvbp.models import lagged_means
from mgvbp.plots.canvas import private_figure
from mgvbp.posterior import Posterior
from mgvbp.problem import Prior
from mgvbp.volatility.estimates import Estimates, fit_after
from mgvbp.volatility.forecast import checked_levels, checked_probability
from mgvbp.volatility.har_likelihood import MONTH, WHAT, HARLikelihood, least_squares, onward
from mgvbp.volatility.maximum import MaximumLikelihood
from mgvbp.volatility.result import PATHS
from mgvbp.volatility.series import Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mgvbp.volatility.har import HAR


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
        return np.quantile(self.volatility, checked_levels(p), axis=1).T

    def to_frame(self, levels: ArrayLike = (0.05, 0.95)) -> Any:
        """A pandas frame with one row a day ahead: expectation and quantiles."""
        import pandas as pd

        frame = pd.DataFrame({"mean": self.mean}, index=pd.RangeIndex(1, len(self.mean) + 1, name="day"))
        for level, column in zip(np.atleast_1d(levels), self.quantile(levels).T, strict=True):
            frame[f"{100 * level:g}%"] = column
        return frame

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
        return self._labelled(self._design @ self.posterior.mean[:-1], "volatility")

    def volatility_band(self, level: float = 0.9) -> tuple[Any, Any]:
        """The ends of the central interval of E[v_t | past] that has posterior probability ``level``."""
        upper = 0.5 + 0.5 * checked_probability(level, "level")
        X, cov = self._design, self.posterior.covariance[:-1, :-1]
        half = float(ndtri(upper)) * np.sqrt(np.einsum("ti,ij,tj->t", X, cov, X))
        middle = X @ self.posterior.mean[:-1]
        return self._labelled(middle - half, "lower"), self._labelled(middle + half, "upper")

    @property
    def residuals(self) -> Any:
        """Posterior means of σ ε_t."""
        return self._labelled(self._observed - self._design @ self.posterior.mean[:-1], "residual")

    @property
    def standardized_residuals(self) -> Any:
        """Posterior means of ε_t."""
        # E[exp(−ψ) f(β)] = exp(−E ψ + Var ψ/2) f(E β − Cov(β, ψ)) for a linear f of Gaussian (β, ψ)
        mean, cov = self.posterior.mean, self.posterior.covariance
        rest = self._observed - self._design @ (mean[:-1] - cov[:-1, -1])
        return self._labelled(rest * np.exp(-mean[-1] + 0.5 * cov[-1, -1]), "standardized residual")

    def forecast(
        self, horizon: int = 10, draws: int = PATHS, rng: int | np.random.Generator = 0
    ) -> HARForecast:
        """Simulate the next ``horizon`` days: ``draws`` paths, each with parameters from the posterior."""
        generator = as_generator(rng)
        theta = self.posterior.sample(positive_integer(draws, "draws"), generator)
        past = np.repeat(self.realised.values[-MONTH:, None], len(theta), axis=1)
        shocks = generator.standard_normal((positive_integer(horizon, "horizon"), len(theta)))
        return HARForecast(onward(theta, past, shocks))

    def update(self, new: Any, rng: int | np.random.Generator = 0) -> HARResult:
        """The result after more days: this posterior is the prior of the likelihood of the new ones.

        The lower bound of the new result is that of the new days given the old ones.
        """
        series = self.realised.then(new, f"the new days of {WHAT}")
        likelihood = HARLikelihood(series.values[len(self.realised) - MONTH :])
        posterior = fit_after(likelihood, self.posterior, rng)
        ml = least_squares(HARLikelihood(series.values))
        return HARResult(self.model, series, likelihood, self.posterior, posterior, ml)

    def summary(self) -> str:
        """A table of the posterior and of least squares under a heading on the data and the run."""
        return self._summary(repr(self.model), self.realised, self.likelihood.n_obs, "days")

    def plot(self, horizon: int = 22, level: float = 0.9) -> Figure:
        """A figure of the volatilities, what was expected of them, and the forecast with its band."""
        figure = private_figure(10.0, 6.0)
        past, future = figure.subplots(2, 1)
        days = self.realised.axis
        low, high = (np.asarray(end) for end in self.volatility_band(level))
        past.plot(days, self.realised.values, color="0.6", linewidth=0.8, label=self.realised.name)
        expected = np.asarray(self.conditional_volatility)
        past.plot(days[MONTH:], expected, linewidth=1.0, label="expected the day before")
        past.fill_between(days[MONTH:], low, high, alpha=0.4)
        ahead = self.forecast(horizon)
        low, high = ahead.quantile([0.5 - 0.5 * level, 0.5 + 0.5 * level]).T
        steps = np.arange(1, horizon + 1)
        recent = self.realised.values[-3 * MONTH :]
        future.plot(np.arange(1 - len(recent), 1), recent, color="0.6", linewidth=0.8)
        future.plot(steps, ahead.mean, label="forecast")
        future.fill_between(steps, low, high, alpha=0.3, label=f"{100 * level:g}% of the paths")
        future.set_xlabel("days ahead")
        for axes in (past, future):
            axes.margins(x=0.01)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        return figure

    @property
    def _design(self) -> Array:
        """The regressors of each day after the first month, (T − 22, 4)."""
        return lagged_means(self.realised.values)[:-1]

    @property
    def _observed(self) -> Array:
        return self.realised.values[MONTH:]

    def _labelled(self, values: Array, name: str) -> Any:
        return self.realised.labelled(values, MONTH, name)

    def __repr__(self) -> str:
        return f"HARResult({self.model!r}, lower bound {self.lower_bound:.3f})"
