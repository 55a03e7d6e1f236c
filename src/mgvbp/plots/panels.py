"""Marginal densities, one panel for each number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.plots.canvas import BAND, GREY, LIGHT, LINE, finished, grid_of_axes, shown
from mgvbp.plots.entries import Draws, Entry, Prior, chosen, columns, has_formula, prior_density, prior_draws
from mgvbp.posterior.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 201
"""Points of a curve."""
MOST = 60
"""Panels that can still be read."""
ABREAST = 4
"""Panels in a row."""
REACH = 3.5
"""Standard deviations of the unconstrained number to which a density is drawn: all but 5 in 10,000 of it."""
BINS = 40
"""Bins of the histogram of other draws."""
NUM_DRAWS = 20_000
"""Draws behind the curve of a number whose density has no formula: its error is then some 2% of the maximum."""
LOWEST = 0.004
"""Share of its maximum above which a density is in sight; with longer tails the rest would look flat."""


def marginals(
    posterior: Posterior,
    names: str | Iterable[str] | None = None,
    draws: Draws | None = None,
    prior: Prior | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """The density of each parameter on its constrained scale, with draws by MCMC and the prior if given.

    Densities are exact where there is a formula. Elsewhere (vector constraints, models of other packages) they are
    kernel estimates from 20,000 draws, and so is the prior.

    Parameters
    ----------
    posterior : Posterior
    names : str or iterable of str, optional
        Parameters (``"beta"``) or single entries (``"beta[0]"``); by default all.
    draws : dict, array, Chains or DataTree, optional
        Draws to compare with, shown as a grey histogram: a dict of values by name, each (N, *shape) or
        (chains, n, *shape); an array of θ, (N, d) or (chains, n, d); `mgvbp.baselines.Chains`; what ArviZ has.
    prior : Gaussian, or what ``parameters.prior`` returns, optional
        Shown as a dashed line. For a value under a vector constraint, such as a `Simplex`, the prior must be a
        distribution with draws, such as ``scipy.stats.dirichlet``; otherwise the line is left out, with a warning.
    axes : sequence of Axes, optional
        One for each panel.

    Examples
    --------
    >>> import mgvbp
    >>> from mgvbp import plots
    >>> from mgvbp.transforms import Positive
    >>> model = mgvbp.Model(lambda sigma: -10 * np.log(sigma) - 20 / sigma**2, mgvbp.Parameters(sigma=Positive()))
    >>> posterior = mgvbp.fit(model, mgvbp.Gaussian(variance=5.0, dim=1))
    >>> (panel,) = plots.marginals(posterior)
    >>> panel.get_title(loc="left")
    'sigma'
    """
    entries = chosen(posterior, names, MOST)
    others = [None] * len(entries) if draws is None else columns(draws, posterior, entries)
    of_prior = {} if prior is None else prior_draws(prior, posterior, entries, NUM_DRAWS)
    panels = grid_of_axes(axes, len(entries), ABREAST, (2.5, 1.9))
    own = draws_without_formula(posterior, entries)
    for ax, entry, other in zip(panels, entries, others, strict=True):
        draw_density(ax, posterior, entry, own, other)
        if prior is not None:
            _draw_prior(ax, prior, entry, of_prior)
    # the legend is in the first panel that has all kinds of lines
    most = max(panels, key=lambda ax: len(ax.get_legend_handles_labels()[1]))
    for ax, entry in zip(panels, entries, strict=True):
        needed = ax is most and (draws is not None or prior is not None)
        finished(ax, shown(entry.label), **({"frameon": False, "handlelength": 1.2} if needed else {}))
    return panels


def draw_density(
    ax: Axes, posterior: Posterior, entry: Entry, own: Mapping[str, Array], other: Array | None
) -> None:
    """Draw the density of one number over a histogram of ``other`` draws; ``own`` draws stand in for a formula."""
    if entry.column is not None:
        x, y = density_curve(posterior, entry)
        seen = x[y > LOWEST * y.max()]
        low, high = float(seen.min()), float(seen.max())
    else:
        low, high = map(float, np.quantile(entry.of(own), [0.001, 0.999]))
    if other is not None:
        ends = np.quantile(other, [0.005, 0.995])
        low, high = min(low, float(ends[0])), max(high, float(ends[1]))
    if not low < high:
        low, high = low - 0.5, low + 0.5  # all draws are the same number
    if entry.column is None:
        x, y = smooth_density(entry.of(own), low, high)
    if other is not None:
        ax.stairs(*histogram(other, low, high), fill=True, color=LIGHT, label="draws")
    else:  # an area would hide the histogram
        ax.fill_between(x, y, color=BAND, alpha=0.35, linewidth=0.0)
    ax.plot(x, y, color=LINE, linewidth=1.4, label="posterior")
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0.0)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=4)


def draws_without_formula(posterior: Posterior, entries: list[Entry]) -> dict[str, Array]:
    """Draws of all parameters, if there is an entry without a formula; otherwise none."""
    needed = any(entry.column is None for entry in entries)
    return posterior.draws(NUM_DRAWS, rng=0) if needed else {}


def _draw_prior(ax: Axes, prior: Prior, entry: Entry, draws: Mapping[str, Array]) -> None:
    """Draw the prior as a dashed line over the range of the panel, if it has a formula or draws."""
    low, high = ax.get_xlim()
    style: dict[str, Any] = {"color": GREY, "linewidth": 1.2, "linestyle": "--", "label": "prior"}
    if has_formula(prior, entry):
        grid = np.linspace(low, high, POINTS)
        ax.plot(grid, prior_density(prior, entry, grid), **style)
    elif entry.name in draws:
        ax.plot(*smooth_density(entry.of(draws), low, high), **style)


def density_curve(q: Gaussian, entry: Entry) -> tuple[Array, Array]:
    """Values and the density at them: quantiles, at equal steps of the unconstrained number if that is Gaussian.

    Between two modes of a mixture there are hardly any quantiles, so that values at equal steps are added.
    """
    law = entry.law(q)
    assert law is not None
    with np.errstate(over="ignore"):
        values = law.quantile(ndtr(np.linspace(-REACH, REACH, POINTS)))
    values = np.unique(values[np.isfinite(values)])
    if isinstance(q, Posterior) and q.mixture is not None:
        values = np.union1d(values, np.linspace(values[0], values[-1], POINTS))
    return values, law.density(values)


def smooth_density(values: Array, low: float, high: float) -> tuple[Array, Array]:
    """Points between two ends and the density of ``values`` (N,) there: ArviZ's kernel estimate.

    It is corrected where the range of the values ends, so that the density of a weight does not fall off there.
    """
    from arviz_stats.base.array import array_stats  # slow to import

    near = values[
        np.abs(values - 0.5 * (low + high)) < high - low
    ]  # a grid for the others too would be coarse
    if len(np.unique(near)) < 2:
        return np.linspace(low, high, POINTS), np.histogram(near, POINTS, (low, high))[0].astype(float)
    grid, heights, _ = array_stats.kde(near, bw="silverman")  # type: ignore[no-untyped-call]
    start, end = np.clip([low, high], grid[0], grid[-1])
    x = np.linspace(start, end, POINTS)
    return x, np.interp(x, grid, heights) * len(near) / len(values)


def histogram(values: Array, low: float, high: float) -> tuple[Array, Array]:
    """Heights and edges of a histogram between two ends, as a density of all values, those beyond the ends included."""
    counts, edges = np.histogram(values, BINS, (low, high))
    return counts / (len(values) * np.diff(edges)), edges
