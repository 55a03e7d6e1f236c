"""What a fit of a volatility model gives: posterior, maximum likelihood, paths, forecasts, risk."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mgvbp.core import Array, as_generator, positive_integer
from mgvbp.errors import printable
from mgvbp.posterior import Posterior, digits
from mgvbp.problem import Prior, Problem, log_prior
from mgvbp.volatility.forecast import PATHS, Forecast, checked_level, checked_probability, forecast, last_days
from mgvbp.volatility.laws import Law
from mgvbp.volatility.likelihood import Likelihood, Paths
from mgvbp.volatility.maximum import MaximumLikelihood, fit_after, fit_from, maximise
from mgvbp.volatility.plots import plot_result, plot_volatility
from mgvbp.volatility.risk import mixture_quantile, mixture_tail_mean
from mgvbp.volatility.series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mgvbp.volatility.model import VolatilityModel

DRAWS = 500
"""Posterior draws behind paths, bands, risk and forecasts."""


class Estimates:
    """A posterior beside the maximum likelihood estimate of all days, those before an update included."""

    posterior: Posterior
    ml: MaximumLikelihood

    @property
    def lower_bound(self) -> float:
        """The lower bound of the log evidence: larger is better, also between models.

        After an update it is that of the new days given the old ones.
        """
        return self.posterior.lower_bound

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of all days, also after an update, at the posterior mean of ψ."""
        return float(self.ml.likelihood.pointwise(self.posterior.mean[None]).sum())

    @property
    def aic(self) -> float:
        """Akaike's information criterion of all days, at the maximum likelihood estimate; smaller is better."""
        return self.ml.aic

    @property
    def bic(self) -> float:
        """Schwarz's information criterion of all days, at the maximum likelihood estimate; smaller is better."""
        return self.ml.bic

    def _summary(self, model: str, series: Series, new: int, unit: str) -> str:
        """A table under a heading on the model, the run and the data: ``new`` days were fitted, called ``unit``."""
        days, span = self.ml.likelihood.n_obs, f", {series.span}" if series.span else ""
        given = "; the lower bound is that of the new ones given the old" if new < days else ""
        count = f"{new:,} new of {days:,}" if given else f"{days:,}"
        posterior, ml = self.posterior, self.ml
        gap = "" if posterior.gap is None else f", expected gap {posterior.gap:.3f} nats"
        state = "converged" if posterior.converged else f"NOT converged: {posterior.stop_reason}"
        where = "at its maximum" if ml.converged else "where the search for its maximum ended"
        names = ("mean", "sd", "2.5%", "97.5%", "ML", "std. err.", "robust")
        lines = [
            model,
            f"{series.name}: {count} {unit}{span}{given}",
            f"lower bound {posterior.lower_bound:.3f}{gap}, {posterior.n_evaluations:,} evaluations, {state}",
            f"log-likelihood {self.log_likelihood:.3f} at the posterior mean, {ml.log_likelihood:.3f} {where}; "
            f"AIC {ml.aic:.2f}, BIC {ml.bic:.2f}",
            "",
            " " * 12 + "".join(f"{name:>11}" for name in names),
        ]
        for name, estimate in ml.params.items():
            entry = posterior[name]
            row = [entry.mean, entry.std, *entry.quantile([0.025, 0.975])]
            row += [estimate, ml.std_errors[name], ml.robust_std_errors[name]]
            lines.append(f"{name:<12}" + "".join(f"{x:>11}" for x in digits(np.array(row))))
        return printable("\n".join(lines))


@dataclass(frozen=True, eq=False)
class VolatilityResult(Estimates):
    """A fitted volatility model.

    Attributes
    ----------
    likelihood : Likelihood
        The model, the returns and the function of ψ that was fitted.
    prior : Prior
    posterior : Posterior
        Gaussian in ψ; ``posterior["alpha[1]"]`` is on the constrained scale.
    ml : MaximumLikelihood
        Estimates, standard errors, log-likelihood and information criteria.
    """

    likelihood: Likelihood
    prior: Prior
    posterior: Posterior
    ml: MaximumLikelihood

    @property
    def model(self) -> VolatilityModel:
        """The model that was fitted."""
        return self.likelihood.model

    @property
    def returns(self) -> Series:
        """The returns, with their dates if they had any."""
        return self.likelihood.series

    @cached_property
    def paths(self) -> Paths:
        """Means, variances and residuals of every day at `DRAWS` draws from the posterior."""
        return self.likelihood.paths(self.posterior.sample(DRAWS, rng=0))

    @property
    def conditional_volatility(self) -> Any:
        """The posterior mean of √h_t for each day; a pandas Series if the returns were one."""
        return self.returns.labelled(np.sqrt(self.paths.variance[:-1]).mean(axis=1), "volatility")

    def volatility_band(self, level: float = 0.9) -> tuple[Any, Any]:
        """The ends of the central interval of √h_t that has posterior probability ``level``, for each day."""
        half = 0.5 * checked_probability(level, "level")
        tails = [0.5 - half, 0.5 + half]
        low, high = np.sqrt(np.quantile(self.paths.variance[:-1], tails, axis=1))
        return self.returns.labelled(low, "lower"), self.returns.labelled(high, "upper")

    @property
    def residuals(self) -> Any:
        """Posterior means of the residuals e_t."""
        return self.returns.labelled(self.paths.residuals.mean(axis=1), "residual")

    @property
    def standardized_residuals(self) -> Any:
        """Posterior means of z_t = e_t/√h_t: what the model leaves unexplained."""
        z = self.paths.residuals / np.sqrt(self.paths.variance[:-1])
        return self.returns.labelled(z.mean(axis=1), "standardized residual")

    def forecast(self, horizon: int = 10, draws: int = PATHS, rng: int | np.random.Generator = 0) -> Forecast:
        """Simulate the next ``horizon`` days: ``draws`` paths, over the posterior and over future shocks.

        The paths share `DRAWS` draws of the parameters; if there are fewer paths, each has a draw of its own.
        """
        generator, number = as_generator(rng), positive_integer(draws, "draws")
        theta = self.posterior.sample(min(number, DRAWS), generator)
        return forecast(self.likelihood, theta, horizon, generator, number)

    def var(self, alpha: float = 0.01, horizon: int = 1, rng: int | np.random.Generator = 0) -> float:
        """Value at risk: the loss over ``horizon`` days that is exceeded with probability ``alpha``.

        Positive numbers are losses, in the unit of the returns. For one day it is exact given the posterior
        draws (a quantile of their mixture of densities), and ``rng`` is not used; beyond it is from simulated sums
        of returns, where a path that explodes is an infinite loss.
        """
        level = checked_level(alpha)
        if positive_integer(horizon, "horizon") == 1:
            return -float(mixture_quantile(level, *self._tomorrow)[()])
        return self.forecast(horizon, rng=rng).var(level)

    def expected_shortfall(
        self, alpha: float = 0.01, horizon: int = 1, rng: int | np.random.Generator = 0
    ) -> float:
        """The expected loss over ``horizon`` days given that it exceeds the value at risk; see `var`."""
        level = checked_level(alpha)
        if positive_integer(horizon, "horizon") == 1:
            return -float(mixture_tail_mean(level, *self._tomorrow)[()])
        return self.forecast(horizon, rng=rng).expected_shortfall(level)

    def update(self, new_returns: Any, rng: int | np.random.Generator = 0) -> VolatilityResult:
        """The result after more returns: this posterior is the prior, and the recursions go on where they were.

        The lower bound of the new result is that of the new returns given the old ones.
        """
        series = self.returns.then(new_returns)
        likelihood = Likelihood(self.model, series, known=len(self.returns))
        posterior = fit_after(likelihood, self.posterior, rng)
        whole = Likelihood(self.model, series)
        return VolatilityResult(likelihood, self.posterior, posterior, estimate(whole, self.ml.psi))

    def summary(self) -> str:
        """A table of the posterior and of maximum likelihood under a heading on the data and the run."""
        return self._summary(repr(self.model), self.returns, self.likelihood.n_obs, "returns")

    def plot_volatility(self, ax: Axes | None = None, level: float = 0.9) -> Axes:
        """Draw the conditional standard deviation of each day with its credible band."""
        return plot_volatility(self, ax, level)

    def plot(self, **options: Any) -> Figure:
        """A figure of the returns, the volatility with its band, the forecast and the residuals."""
        return plot_result(self, **options)

    @cached_property
    def _tomorrow(self) -> tuple[Array, Array, Law]:
        """Location, scale and law of the next return at each draw."""
        end = last_days(self.likelihood, self.posterior.sample(DRAWS, rng=0), days=1)
        return end.mean[-1], np.sqrt(end.variance[-1]), self.model.law.of(end.values)

    def __getstate__(self) -> dict[str, Any]:
        # the cached paths can be had again, and are by far the largest part
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return f"VolatilityResult({self.model!r}, lower bound {self.lower_bound:.3f})"


def fit_volatility(likelihood: Likelihood, prior: Prior, **options: Any) -> VolatilityResult:
    """Search for the mode from the best point of a grid, and for the posterior and the ML estimate from the mode.

    The options are those of `mgvbp.fit`.
    """
    density = cast(Prior, Problem(likelihood, prior).prior)  # this refuses a prior that cannot be one

    def log_posterior(theta: Array) -> Array:
        return likelihood(theta) + log_prior(density, theta)

    grid = likelihood.model.starts(likelihood)
    values = likelihood(grid)
    best, likeliest = int(np.nanargmax(values + log_prior(density, grid))), int(np.nanargmax(values))
    mode = maximise(log_posterior, grid[best], likelihood.scale)
    posterior = fit_from(likelihood, density, mode.point, mode.hessian, **options)
    starts = [mode.point, *grid[[likeliest]]] if likeliest != best else [mode.point]
    return VolatilityResult(likelihood, density, posterior, estimate(likelihood, *starts))


def estimate(likelihood: Likelihood, *starts: Array) -> MaximumLikelihood:
    """The maximum likelihood estimate: the best of those from each start."""
    found = max((maximise(likelihood, start, likelihood.scale) for start in starts), key=lambda m: m.value)
    return MaximumLikelihood(likelihood, found.point, found.value, found.hessian, found.converged)
