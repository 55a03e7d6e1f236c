"""Pairs of parameters: regions with half and with 95% of the probability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.mixture import GaussianMixture
from mgvbp.plots.canvas import GREY, LINE, SMALL, checked_axes, finished, new_figure, shown
from mgvbp.plots.entries import Draws, Entry, chosen, columns
from mgvbp.plots.panels import NUM_DRAWS, draw_density, draws_without_formula
from mgvbp.posterior.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

MOST = 12
"""Parameters whose pairs can still be read."""
LEVELS = (0.5, 0.95)
"""Probabilities of the regions."""
MOST_DOTS = 1500
"""Draws shown in a panel; more would run together."""
CELLS = 60
"""Cells in each direction of the histogram that stands in where a region has no formula."""
GRID = 150
"""Points in each direction at which the density of a mixture is computed: modes twenty widths apart stay round."""
MARGIN = 0.05
"""Share of the range that is added around this histogram or grid, so that contours close."""
BLUR = 1.5
"""Standard deviation, in cells, by which this histogram is smoothed: single cells no longer show."""


def corner(
    posterior: Posterior,
    names: str | Iterable[str] | None = None,
    draws: Draws | None = None,
    axes: Any = None,
) -> NDArray[Any]:
    """Marginal densities on the diagonal, and below it, for each pair, regions with 50% and 95% of the probability.

    A region is an ellipse of the Gaussian on the unconstrained scale, mapped by the constraints: it has exactly this
    probability. A region of a mixture is where its density on the unconstrained scale is highest. Where a number
    depends on several entries of θ, its regions are contours of a smoothed histogram of 20,000 draws.

    Parameters
    ----------
    posterior : Posterior
    names : str or iterable of str, optional
        Parameters or single entries; by default all, 12 at most.
    draws : dict, array, Chains or DataTree, optional
        Draws to compare with, shown as grey dots (some of them) and histograms; see `marginals`.
    axes : array of Axes of shape (k, k), optional

    Returns
    -------
    ndarray of shape (k, k)
        The axes; those above the diagonal are switched off.

    Examples
    --------
    >>> import mgvbp
    >>> from mgvbp import plots
    >>> posterior = mgvbp.fit(lambda theta: -(theta[:, 0] ** 2) - (theta[:, 1] - theta[:, 0]) ** 2, dim=2)
    >>> plots.corner(posterior, draws=posterior.sample(500)).shape
    (2, 2)
    """
    entries = chosen(posterior, names, MOST)
    others = None if draws is None else columns(draws, posterior, entries)
    panels = _square(axes, len(entries))
    own = draws_without_formula(posterior, entries)
    for i, up in enumerate(entries):
        draw_density(panels[i, i], posterior, up, own, None if others is None else others[i])
        finished(panels[i, i], shown(up.label))
        for j, right in enumerate(entries[:i]):
            ax: Axes = panels[i, j]
            if others is not None:
                _dots(ax, others[j], others[i])
            _regions(ax, posterior, right, up, own)
            ax.set(xlim=panels[j, j].get_xlim(), ylim=panels[i, i].get_xlim())
            ax.locator_params(nbins=4)
            finished(ax, "")
    _labels(panels, entries)
    return panels


def ellipse(mean: Array, covariance: Array, probability: float, points: int = 200) -> Array:
    """The boundary (points, 2) of the ellipse that has this probability under a bivariate normal distribution.

    The squared radius in the frame is χ² of two degrees of freedom, whose quantile is −2 log(1 − p).
    """
    angle = np.linspace(0.0, 2.0 * np.pi, points)
    circle = np.sqrt(-2.0 * np.log1p(-probability)) * np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(mean + (np.linalg.cholesky(covariance) @ circle).T)


def _regions(ax: Axes, posterior: Posterior, right: Entry, up: Entry, own: Mapping[str, Array]) -> None:
    """The regions of one pair."""
    if right.column is None or up.column is None:
        _contours(ax, right.of(own), up.of(own))
        return
    assert right.transform is not None
    assert up.transform is not None
    where = [right.column, up.column]
    if posterior.mixture is not None:
        x, y, log_density, heights = highest(posterior.mixture.marginal(where))
        x, y = right.transform.constrain(x[:, None]), up.transform.constrain(y[:, None])
        ax.contour(
            x.ravel(), y.ravel(), log_density, levels=heights, colors=LINE, linewidths=1.2, linestyles="solid"
        )
        return
    covariance = posterior.covariance_of(where)
    for probability in LEVELS:
        path = ellipse(posterior.mean[where], covariance, probability)
        x, y = right.transform.constrain(path[:, :1]), up.transform.constrain(path[:, 1:])
        ax.plot(x, y, color=LINE, linewidth=1.2, label=f"{probability:.0%}")


def highest(q: GaussianMixture) -> tuple[Array, Array, Array, Array]:
    """The log density (n, n) of a mixture of two numbers on a grid x (n,), y (n,), and its heights at the `LEVELS`.

    The density is above its own quantile 1 − p with probability p; the quantiles are those of `NUM_DRAWS` draws.
    """
    draws = q.sample(NUM_DRAWS, rng=0)
    heights = np.sort(np.quantile(q.log_density_at(draws), [1.0 - level for level in LEVELS]))
    x, y = (np.linspace(low, high, GRID) for low, high in map(_range, draws.T))
    points = np.stack(np.meshgrid(x, y), axis=2)
    return x, y, q.log_density_at(points.reshape(-1, 2)).reshape(GRID, GRID), heights


def _range(values: Array) -> Array:
    """Nearly all the values and a margin."""
    ends = np.quantile(values, [0.0005, 0.9995])
    return np.asarray(ends + MARGIN * np.ptp(values) * np.array([-1.0, 1.0]))


def _contours(ax: Axes, x: Array, y: Array) -> None:
    """Contours of a smoothed histogram, at the heights above which it has the probabilities `LEVELS`."""
    from scipy.ndimage import gaussian_filter

    counts, x_edges, y_edges = np.histogram2d(x, y, CELLS, [tuple(_range(v)) for v in (x, y)])
    smooth = gaussian_filter(counts, BLUR)
    falling = np.argsort(smooth, axis=None)[::-1]
    # the draws are counted, and not the smoothed cells, which spread beyond them
    share = np.cumsum(counts.ravel()[falling]) / len(x)
    heights = sorted({float(smooth.ravel()[falling[np.searchsorted(share, level)]]) for level in LEVELS})
    centres = [0.5 * (edges[1:] + edges[:-1]) for edges in (x_edges, y_edges)]
    ax.contour(*centres, smooth.T, levels=heights, colors=LINE, linewidths=1.2)


def _dots(ax: Axes, x: Array, y: Array) -> None:
    if len(x) != len(y):
        raise InvalidInputError(f"draws has {len(x)} values of one parameter and {len(y)} of another")
    few = np.linspace(0, len(x) - 1, min(len(x), MOST_DOTS)).astype(np.intp)
    ax.plot(
        x[few],
        y[few],
        "o",
        color=GREY,
        markersize=1.6,
        alpha=0.35,
        markeredgewidth=0.0,
        zorder=0,
        rasterized=True,
    )


def _square(axes: Any, k: int) -> NDArray[Any]:
    if axes is None:
        side = max(2.6, 1.6 * k + 0.5)
        return np.asarray(new_figure(side, side).subplots(k, k, squeeze=False))
    given = np.asarray(axes, dtype=object)
    if k == 1 and given.size == 1:
        given = given.reshape(1, 1)
    if given.shape != (k, k):
        raise InvalidInputError(
            f"axes must have shape ({k}, {k}), as plt.subplots({k}, {k}) makes them; got {given.shape}"
        )
    for ax in given.flat:
        checked_axes(ax, "axes")
    return given


def _labels(panels: NDArray[Any], entries: list[Entry]) -> None:
    """Put names and numbers at the left and at the bottom only."""
    last = len(entries) - 1
    ax: Any
    for (i, j), ax in np.ndenumerate(panels):
        if j > i:
            ax.set_axis_off()
            continue
        if i == last:
            ax.set_xlabel(shown(entries[j].label), fontsize=SMALL, parse_math=False)
        else:
            ax.tick_params(labelbottom=False)
        if j == 0 and i > 0:
            ax.set_ylabel(shown(entries[i].label), fontsize=SMALL, parse_math=False)
        elif i != j:
            ax.tick_params(labelleft=False)
