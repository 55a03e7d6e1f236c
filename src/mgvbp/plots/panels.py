"""Marginal densities, one panel a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from mgvbp._linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.gaussian import Gaussian
from mgvbp.plots.canvas import BAND, GREY, LIGHT, LINE, finished, grid_of_axes, shown
from mgvbp.plots.entries import Entry, chosen
from mgvbp.plots.overlay import Draws, columns
from mgvbp.posterior import Posterior
from mgvbp.priors import ConstrainedPrior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 60
"""Panels that can still be read."""
ABREAST = 4
REACH = 3.5
"""Standard deviations of the unconstrained number to which a density is drawn: all but 5 in 10,000 of it."""
POINTS = 201
BINS = 40
NUM_DRAWS = 20_000
"""Behind the histograms of numbers whose density has no formula."""
LOWEST = 0.004
"""Of its maximum, from which on a density is in sight: long tails would flatten the rest."""


def marginals(
    posterior: Posterior,
    names: str | Iterable[str] | None = None,
    draws: Draws | None = None,
    prior: Gaussian | ConstrainedPrior | None = None,
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """The density of each parameter on its constrained scale, with draws by MCMC and the prior if given.

    Densities are exact; where there is no formula (vector constraints, models from elsewhere) there is a histogram of
    20,000 draws.

    Parameters
    ----------
    posterior : Posterior
    names : str or iterable of str, optional
        Parameters (``"beta"``) or single entries (``"beta[0]"``); by default all.
    draws : dict, array, Chains or DataTree, optional
        Draws to compare with, shown as a grey histogram: a dict of values by name, each (N, *shape) or
        (chains, n, *shape); an array of θ, (N, d) or (chains, n, d); `mgvbp.baselines.Chains`; what ArviZ has.
    prior : Gaussian, or what ``parameters.prior`` returns, optional
        Shown as a dashed line.
    axes : sequence of Axes, optional
        One for each panel.

    Returns
    -------
    list of Axes

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
    panels = grid_of_axes(axes, len(entries), ABREAST, (2.5, 1.9))
    own = draws_without_formula(posterior, entries)
    for ax, entry, other in zip(panels, entries, others, strict=True):
        draw_density(ax, posterior, entry, own, other)
        if prior is not None:
            grid = np.linspace(*ax.get_xlim(), POINTS)
            ax.plot(
                grid,
                prior_density(prior, posterior, entry, grid),
                "--",
                color=GREY,
                linewidth=1.2,
                label="prior",
            )
        first = draws is not None or prior is not None
        legend = {"frameon": False, "handlelength": 1.2} if ax is panels[0] and first else {}
        finished(ax, shown(entry.label), **legend)
    return panels


def draw_density(
    ax: Axes, posterior: Posterior, entry: Entry, own: Mapping[str, Array], other: Array | None
) -> None:
    """The density of one number, over a histogram of other draws; without a formula from draws of our ``own``."""
    exact = entry.column is not None
    if exact:
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
    if other is not None:
        ax.stairs(*histogram(other, low, high), fill=True, color=LIGHT, label="draws")
    if exact:
        if other is None:  # or it would hide the histogram
            ax.fill_between(x, y, color=BAND, alpha=0.35, linewidth=0.0)
        ax.plot(x, y, color=LINE, linewidth=1.4, label="posterior")
    else:
        ax.stairs(*histogram(entry.of(own), low, high), color=LINE, linewidth=1.4, label="posterior")
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0.0)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.locator_params(axis="x", nbins=4)


def draws_without_formula(posterior: Posterior, entries: list[Entry]) -> dict[str, Array]:
    """Draws of all parameters, if there is a number that needs them."""
    needed = any(entry.column is None for entry in entries)
    return posterior.draws(NUM_DRAWS, rng=0) if needed else {}


def density_curve(q: Gaussian, entry: Entry) -> tuple[Array, Array]:
    """Values and the density there, at equal steps of the unconstrained number: fine where the density is high."""
    law = entry.law(q)
    assert law is not None
    with np.errstate(over="ignore"):
        values = law.quantile(ndtr(np.linspace(-REACH, REACH, POINTS)))
    values = np.unique(values[np.isfinite(values)])
    return values, law.density(values)


def histogram(values: Array, low: float, high: float) -> tuple[Array, Array]:
    """Heights and edges between two ends, as a density of all values, also of those beyond."""
    counts, edges = np.histogram(values, BINS, (low, high))
    return counts / (len(values) * np.diff(edges)), edges


def prior_density(prior: Any, posterior: Posterior, entry: Entry, grid: Array) -> Array:
    """The prior's density of one number."""
    if isinstance(prior, Gaussian):
        if prior.dim != posterior.dim:
            raise InvalidInputError(f"the prior has {prior.dim} dimensions, the posterior {posterior.dim}")
        law = entry.law(prior)
        if law is not None:
            return np.asarray(law.density(grid))
    elif isinstance(prior, ConstrainedPrior):
        distribution: Any = prior.distributions.get(entry.name)
        if hasattr(distribution, "pdf") and hasattr(distribution, "support"):
            every = np.broadcast_to(grid.reshape(-1, *[1] * len(entry.shape)), (len(grid), *entry.shape))
            return entry.of({entry.name: np.asarray(distribution.pdf(every))})
    else:
        raise InvalidTypeError(
            f"prior must be a mgvbp.Gaussian, or what parameters.prior(...) returns; got {prior!r}"
        )
    raise InvalidInputError(
        f"the prior has no formula for the density of {entry.label}: leave it out with names=, or leave out prior"
    )
