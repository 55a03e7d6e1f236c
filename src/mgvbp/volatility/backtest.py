"""Value at risk and expected shortfall as they would have been forecast day by day, against what came."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgvbp.core import Array, as_key, one_of, positive_integer
from mgvbp.errors import ConvergenceWarning, InvalidInputError, printable, warn_user
from mgvbp.plots.canvas import finished, private_figure
from mgvbp.run import progress_bar
from mgvbp.volatility.comparison import checked_model
from mgvbp.volatility.forecast import checked_losses
from mgvbp.volatility.likelihood import Likelihood
from mgvbp.volatility.model import LEAST, VolatilityModel
from mgvbp.volatility.result import DRAWS, VolatilityResult, fit_volatility
from mgvbp.volatility.risk import mixture_log_density, mixture_quantile, mixture_tail_mean
from mgvbp.volatility.scores import Christoffersen, Kupiec, christoffersen, kupiec
from mgvbp.volatility.series import Series, advise, day_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOL = 0.05
"""The tolerance of each fit in nats. It moves value at risk by less than 1%, no more than other posterior draws do, and
halves the time."""
FIRST = 250
"""The fewest days of the first fit, unless ``start`` says otherwise: a year."""


@dataclass(frozen=True, eq=False)
class Backtest:
    """Forecasts of the days from ``start`` on, and what came.

    Attributes
    ----------
    model : VolatilityModel
    series : Series
        All returns.
    start : int
        The first day that was forecast.
    alpha : tuple of float, of length A
    var, es : ndarray of shape (T − start, A)
        Value at risk and expected shortfall; losses are positive.
    log_scores : ndarray of shape (T − start,)
        Log predictive density of each return.
    fits : int
        How often the posterior was renewed.
    """

    model: VolatilityModel
    series: Series
    start: int
    alpha: tuple[float, ...]
    var: Array
    es: Array
    log_scores: Array
    fits: int

    @property
    def returns(self) -> Array:
        """What came, (T − start,)."""
        return self.series.values[self.start :]

    @property
    def dates(self) -> Any:
        """The days that were forecast: dates if the returns had them, else numbers."""
        return self.series.days(self.start)

    @property
    def exceedances(self) -> NDArray[np.bool_]:
        """Whether the loss was above value at risk, (T − start, A)."""
        return -self.returns[:, None] > self.var

    @cached_property
    def kupiec(self) -> tuple[Kupiec, ...]:
        """For each alpha the test that exceedances are as frequent as they should be."""
        return tuple(kupiec(hits, a) for hits, a in zip(self.exceedances.T, self.alpha, strict=True))

    @cached_property
    def christoffersen(self) -> tuple[Christoffersen, ...]:
        """For each alpha the test that exceedances do not cluster, and of this and the frequency at once."""
        return tuple(christoffersen(hits, a) for hits, a in zip(self.exceedances.T, self.alpha, strict=True))

    @property
    def log_score(self) -> float:
        """The mean log predictive density of a day: larger is better."""
        return float(self.log_scores.mean())

    def summary(self) -> str:
        """A table with a row for each alpha: exceedances, p-values, the mean loss beyond and its forecast."""
        days = len(self.returns)
        lines = [
            repr(self.model),
            f"{days:,} days from {day_name(self.dates[0])} to {day_name(self.dates[-1])}, {self.fits} fits, "
            f"mean log score {self.log_score:.4f}",
            "",
            f"{'':<8}{'exceeded':>10}{'expected':>10}{'Kupiec p':>10}{'independ. p':>13}{'both p':>10}"
            f"{'mean loss':>11}{'mean ES':>10}",
        ]
        for j, alpha in enumerate(self.alpha):
            often, clustered, hits = self.kupiec[j], self.christoffersen[j], self.exceedances[:, j]
            beyond = [f"{x[hits].mean():.3f}" if hits.any() else "" for x in (-self.returns, self.es[:, j])]
            lines.append(
                f"{percent(alpha):>7} {often.exceedances:>10}{often.expected:>10.1f}{often.p_value:>10.3f}"
                f"{clustered.independence_p_value:>13.3f}{clustered.conditional_p_value:>10.3f}"
                f"{beyond[0]:>11}{beyond[1]:>10}"
            )
        return printable("\n".join(lines))

    def to_frame(self) -> Any:
        """A pandas frame with one row a day: return, log score and VaR, ES and exceedance of each alpha."""
        import pandas as pd

        columns: dict[str, Any] = {"return": self.returns, "log_score": self.log_scores}
        for j, level in enumerate(map(percent, self.alpha)):
            columns |= {f"var_{level}": self.var[:, j], f"es_{level}": self.es[:, j]}
            columns[f"exceeded_{level}"] = self.exceedances[:, j]
        return pd.DataFrame(columns, index=pd.Index(self.dates))

    def plot(self) -> Figure:
        """A figure of the returns over minus value at risk, with the exceedances marked."""
        figure = private_figure(9.0, 4.0)
        axes = figure.add_subplot()
        days = self.series.axis[self.start :]
        axes.vlines(days, 0.0, self.returns, color="0.6", linewidth=0.7)
        for j in np.argsort(self.alpha)[::-1]:
            hits = self.exceedances[:, j]
            label = f"{percent(self.alpha[j])} VaR: {hits.sum()} exceedances"
            (line,) = axes.plot(days, -self.var[:, j], linewidth=1.0, label=label)
            axes.plot(days[hits], self.returns[hits], "o", color=line.get_color(), markersize=4.0)
        axes.axhline(0.0, color="0.3", linewidth=0.5)
        axes.set_ylabel(self.series.name)
        axes.margins(x=0.01)
        finished(axes, repr(self.model), frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0))
        return figure

    def __repr__(self) -> str:
        return f"Backtest({self.model!r}, {len(self.returns):,} days)"


def backtest(
    model: VolatilityModel,
    returns: Any,
    *,
    start: int | None = None,
    refit: int = 20,
    window: int | None = None,
    alpha: ArrayLike = (0.01, 0.05),
    mode: str = "refit",
    rng: int | np.random.Generator = 0,
    progress: bool = False,
) -> Backtest:
    """Forecast value at risk and expected shortfall of each day from the days before it.

    Every ``refit`` days the posterior is renewed. Until the next renewal its draws stay the same, while the filter
    goes on from day to day. A forecast is a quantile of the mixture of the draws' predictive densities, or the mean
    below that quantile.

    Parameters
    ----------
    model : VolatilityModel
    returns : array_like of shape (T,), or pandas.Series
    start : int, optional
        The number of days before the first forecast; half of them by default, and at least 250.
    refit : int
        Days between renewals.
    window : int, optional
        How many of the last days a fit sees; all by default.
    alpha : float, or array_like of shape (A,)
        Probabilities of a loss above value at risk.
    mode : {"refit", "update"}
        "refit" starts each time from the model's prior and all the past (or the window), "update" from the
        last posterior and the days since, which is faster and adds up the errors of the approximations.
    rng : int or numpy.random.Generator
    progress : bool
        Show a progress bar over the renewals.

    Examples
    --------
    >>> from mgvbp.volatility import GARCH
    >>> values = {"mu": 0.0, "omega": 0.05, "alpha[1]": 0.1, "beta[1]": 0.85}
    >>> result = backtest(GARCH(1, 1), GARCH(1, 1).simulate(values, 600, rng=1), start=500, refit=50)
    >>> result.var.shape, result.kupiec[1].expected
    ((100, 2), 5.0)
    """
    series = checked_model(model).series(returns)
    first = max(len(series) // 2, FIRST) if start is None else start
    least = LEAST + model.mean.lags
    if positive_integer(first, "start", least=least) >= len(series) - 1:
        raise InvalidInputError(
            f"there are {len(series)} returns; forecasts from day {first} on need two more than that: give "
            "more returns, or a smaller start="
        )
    every = positive_integer(refit, "refit")
    width = len(series) if window is None else positive_integer(window, "window", least=least)
    if one_of(mode, ("refit", "update"), "mode") == "update" and window is not None:
        raise InvalidInputError("window= goes with mode='refit': an update forgets nothing")
    probabilities = checked_losses(alpha)
    if len(set(map(percent, probabilities))) < len(probabilities):
        raise InvalidInputError(f"alpha must be different probabilities; got {alpha!r}")
    advise(series)
    days, seed = range(first, len(series), every), as_key(rng)[0]
    result: VolatilityResult | None = None
    parts, doubtful, evaluations = [], 0, 0
    with warnings.catch_warnings(), progress_bar(progress, len(days)) as report:
        warnings.simplefilter("ignore", ConvergenceWarning)  # one in the end says how many
        for day in days:
            if mode == "update" and result is not None:
                result = result.update(Series(series.values[len(result.returns) : day]), seed)
            else:
                past = model.series(series.values[max(0, day - width) : day])
                result = fit_volatility(Likelihood(model, past), model.prior(past), tol=TOL, rng=seed)
            stretch = series.values[max(0, day - width) : day + every]
            parts.append(forecasts(result, stretch, min(day, width), np.array(probabilities), seed))
            doubtful += not result.posterior.converged
            evaluations += result.posterior.n_evaluations
            report(len(parts), result.lower_bound, evaluations)
    if doubtful:
        warn_user(
            f"{doubtful} of {len(days)} fits did not converge: try a larger start= or window=, or fewer "
            "parameters",
            ConvergenceWarning,
            "backtest-fits",
        )
    var, es, log_scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Backtest(model, series, first, probabilities, var, es, log_scores, len(days))


def percent(alpha: float) -> str:
    """How a probability is called in tables and figures."""
    return f"{100.0 * alpha:g}%"


def forecasts(
    result: VolatilityResult, returns: Array, known: int, alpha: Array, seed: int
) -> tuple[Array, Array, Array]:
    """Value at risk (n, A), expected shortfall (n, A) and log scores (n,) of the n returns not ``known``."""
    likelihood = Likelihood(result.model, Series(returns), known)
    mixture = likelihood.predictive(result.posterior.sample(DRAWS, seed))
    return (
        -mixture_quantile(alpha[:, None], *mixture).T,
        -mixture_tail_mean(alpha[:, None], *mixture).T,
        mixture_log_density(returns[known:], *mixture),
    )
