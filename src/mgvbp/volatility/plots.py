"""Pictures of a fitted volatility model, on axes of yours or on new ones; pyplot and its state stay untouched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from mgvbp.core import Array, require
from mgvbp.plots.canvas import (
    BAND,
    CYCLE,
    GREY,
    LINE,
    finished,
    grid_of_axes,
    in_rows,
    one_axes,
    private_figure,
)
from mgvbp.volatility.forecast import checked_probability
from mgvbp.volatility.series import day_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from mgvbp.volatility.forecast import Forecast
    from mgvbp.volatility.result import VolatilityResult

FAINT = 0.5
"""Opacity of the wider of two bands."""
UNIT = "volatility, unit of returns"
"""The label of an axis: returns are often in per cent, but may be in any unit."""
BESIDE: dict[str, Any] = {
    "loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2, "ncols": 3, "frameon": False,
    "handlelength": 1.5, "columnspacing": 1.0,
}  # fmt: skip
"""Where legends go: beside the title, where they hide nothing."""
WIDTH = 10.0
"""The width of a page in inches."""
DRAWS = 50_000
"""Posterior draws for the histograms of the parameters: enough for smooth outlines."""
PAST = 60
"""The most past days that a forecast is shown with: about three months."""
ABREAST = 6
"""The most histograms in a row."""


def plot_result(
    result: VolatilityResult,
    horizon: int = 20,
    level: float = 0.9,
    rng: int | np.random.Generator = 0,
    forecast: Forecast | None = None,
) -> Figure:
    """One page: returns, volatility, forecast, residuals and parameters; ``figure.savefig(path)`` writes it.

    ``level`` is the probability of the bands. A ``forecast`` that is given is shown instead of one that is simulated
    for ``horizon`` days with ``rng``.

    Examples
    --------
    >>> from mgvbp.volatility import ARCH
    >>> model = ARCH(1, mean="zero")
    >>> result = model.fit(model.simulate({"omega": 0.5, "alpha[1]": 0.5}, days=300, rng=0))
    >>> [ax.get_title(loc="left") for ax in plot_result(result).axes[-2:]]
    ['omega', 'alpha[1]']
    """
    names = result.model.parameters.names
    height = 1.7 * -(-len(names) // ABREAST)
    figure = private_figure(WIDTH, 8.0 + height)
    top, bottom = figure.subfigures(2, 1, squeeze=False, height_ratios=[8.0, height]).ravel()
    panels = top.subplot_mosaic("RR;VV;FQ", height_ratios=[1.0, 1.0, 1.3])
    panels["V"].sharex(panels["R"])
    plot_returns(result, panels["R"]).tick_params(labelbottom=False)
    plot_volatility(result, panels["V"], level)
    plot_forecast(result, panels["F"], horizon, level, rng, forecast)
    plot_residuals(result, panels["Q"], level)
    plot_parameters(result, in_rows(bottom, len(names), ABREAST))
    figure.suptitle(f"{result.returns.name}: {result.model!r}", fontsize=11)
    return figure


def plot_returns(result: VolatilityResult, ax: Axes | None = None) -> Axes:
    """The returns between two conditional standard deviations to either side of their conditional mean."""
    ax, days = one_axes(ax, WIDTH, 2.8, private_figure), result.returns.axis[result.likelihood.offset :]
    mean, sd = result.paths.mean[:-1].mean(axis=1), np.asarray(result.conditional_volatility)
    label = "conditional mean ± 2 standard deviations"
    ax.fill_between(days, mean - 2.0 * sd, mean + 2.0 * sd, color=BAND, linewidth=0.0, label=label)
    ax.plot(days, result.returns.values[result.likelihood.offset :], color=LINE, linewidth=0.4)
    return _finished(ax, "Returns", days)


def plot_volatility(result: VolatilityResult, ax: Axes | None = None, level: float = 0.9) -> Axes:
    """The conditional standard deviation of each day, in the unit of the returns, with its credible band.

    On a logarithmic scale: the uncertainty is relative, and a crash does not flatten all other days.
    """
    ax, days = one_axes(ax, WIDTH, 3.0, private_figure), result.returns.axis[result.likelihood.offset :]
    low, high = map(np.asarray, result.volatility_band(level))
    ax.fill_between(days, low, high, color=BAND, linewidth=0.0, label=f"{level:.0%} credible band")
    volatility = np.asarray(result.conditional_volatility)
    ax.plot(days, volatility, color=LINE, linewidth=0.5, label="posterior mean")
    ticker = require("matplotlib.ticker", "plots")
    few = high.max() < 5.0 * low.min()  # ticks at 1, 2, 5, 10, ... would be too far apart
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(ticker.MaxNLocator(5) if few else ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
    ax.minorticks_off()
    ax.set_ylabel(UNIT)
    return _finished(ax, "Conditional volatility", days)


def plot_forecast(
    result: VolatilityResult,
    ax: Axes | None = None,
    horizon: int = 20,
    level: float = 0.9,
    rng: int | np.random.Generator = 0,
    forecast: Forecast | None = None,
) -> Axes:
    """The volatility of the last days, and the fan of the days to come: over parameters and future shocks.

    A ``forecast`` that is given is shown instead of one that is simulated with ``horizon`` and ``rng``.
    """
    future = result.forecast(horizon, rng=rng) if forecast is None else forecast
    ax, n = one_axes(ax, 0.6 * WIDTH, 4.0, private_figure), min(PAST, len(result.paths.residuals))
    past, ahead = np.arange(1 - n, 1), np.arange(1, len(future.returns) + 1)
    low, high = (np.asarray(end)[-n:] for end in result.volatility_band(level))
    ax.fill_between(past, low, high, color=BAND, alpha=FAINT, linewidth=0.0)
    ax.plot(past, np.asarray(result.conditional_volatility)[-n:], color=LINE, linewidth=1.0)
    for probability, shade in ((level, FAINT), (0.5, 1.0)):
        ends = future.quantile([0.5 - 0.5 * probability, 0.5 + 0.5 * probability], of="volatility").T
        ax.fill_between(ahead, *ends, color=BAND, alpha=shade, linewidth=0.0, label=f"{probability:.0%}")
    label = "root of the expected variance"
    ax.plot(ahead, future.volatility, color=LINE, linewidth=1.2, linestyle="--", label=label)
    ax.axvline(0.5, color=GREY, linewidth=0.6)
    ax.set_ylim(bottom=0.0)
    index = result.returns.index
    last = "the last return" if index is None else day_name(index[-1])
    ax.set(xlabel=f"days after {last}", ylabel=UNIT)
    return _finished(ax, "Volatility forecast")


def plot_residuals(result: VolatilityResult, ax: Axes | None = None, level: float = 0.9) -> Axes:
    """Standardised residuals against the quantiles of the fitted distribution.

    If the model is right, the band holds each ordered residual with probability ``level``: the k-th smallest of n
    uniform numbers has the Beta(k, n + 1 − k) distribution.
    """
    half = 0.5 * checked_probability(level, "level")
    ax = one_axes(ax, 0.45 * WIDTH, 4.0, private_figure)
    z = np.sort(np.asarray(result.standardized_residuals))
    n, k = len(z), np.arange(1, len(z) + 1)
    shape = result.model.law.transforms
    law = result.model.law.of({name: float(result.posterior[name].mean) for name in shape})
    x = law.quantile((k - 0.5) / n)
    low, high = (law.quantile(np.asarray(betaincinv(k, n + 1 - k, p))) for p in (0.5 - half, 0.5 + half))
    ax.fill_between(x, low, high, color=BAND, linewidth=0.0, label=f"{level:.0%} band")
    ax.plot(x, x, color=GREY, linewidth=0.8)
    ax.plot(x, z, color=LINE, linestyle="none", marker="o", markersize=2.0, rasterized=True)
    ax.set_ylim(1.1 * min(x[0], z[0]), 1.1 * max(x[-1], z[-1]))  # the band of the extremes may be far wider
    ax.set_xlabel(f"quantiles: {law.title}")
    return _finished(ax, "Standardised residuals")


def plot_parameters(result: VolatilityResult, axes: Sequence[Axes] | None = None) -> list[Axes]:
    """The posterior of each parameter, one on each of the axes, over its ML estimate and standard error."""
    names = result.model.parameters.names
    panels = grid_of_axes(axes, len(names), ABREAST, (WIDTH / ABREAST, 1.9), private_figure)
    draws = result.posterior.draws(DRAWS, rng=0)
    for ax, name in zip(panels, names, strict=True):
        low, high = np.quantile(draws[name], [0.001, 0.999])
        heights, edges = np.histogram(draws[name], 40, (float(low), float(high)))
        ax.stairs(heights / heights.max(), edges, fill=True, color=BAND)
        estimate, error = result.ml.params[name], result.ml.std_errors[name]
        label = "ML ± std. err." if name == names[0] else None
        style: dict[str, Any] = {"color": CYCLE[1], "marker": "o", "markersize": 3.0, "linewidth": 1.0}
        ax.errorbar(estimate, -0.09, xerr=error if np.isfinite(error) else None, label=label, **style)
        ax.set_xlim(low - 0.15 * (high - low), high + 0.15 * (high - low))  # a standard error may be huge
        ax.set_ylim(-0.18, 1.05)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.locator_params(axis="x", nbins=3)
        _finished(ax, name)
    return panels


def _finished(ax: Axes, title: str, days: Array | None = None) -> Axes:
    if days is not None:
        ax.margins(x=0.01)
        if days.dtype.kind == "M":
            dates = require("matplotlib.dates", "plots")
            locator = dates.AutoDateLocator()
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    return finished(ax, title, **BESIDE)
