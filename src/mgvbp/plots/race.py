"""How far runs are from the optimum, against what they have cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from mgvbp.core.checks import LARGEST, positive_number
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.plots.canvas import CYCLE, DASHES, finished, one_axes, shown
from mgvbp.posterior.posterior import Posterior
from mgvbp.posterior.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def convergence(
    posteriors: Posterior | Mapping[str, Posterior | Sequence[Posterior]],
    optimum: float | None = None,
    *,
    floor: float = 1e-3,
    ax: Axes | None = None,
) -> Axes:
    """Nats below the optimum against log-likelihood queries, on logarithmic axes.

    The bound is ``trace.smoothed``. It is an estimate, which may exceed the optimum by its error; it is then drawn on
    the floor. Several runs under one name become a line, their median, in a band from the best to the worst. A run that
    has ended stays where it is.

    Parameters
    ----------
    posteriors : Posterior, or dict of str to Posterior or list of Posterior
        Runs of one model and prior; other bounds cannot be compared.
    optimum : float, optional
        The maximum of the lower bound; by default the largest bound of these results.
    floor : float
        The smallest difference in nats that is shown; the default is a tenth of the tolerance of ``auto``.
    ax : Axes, optional

    Examples
    --------
    >>> import mgvbp
    >>> from mgvbp import plots
    >>> def f(theta):
    ...     return -0.5 * (theta**2).sum(axis=1)
    >>> runs = {"auto": [mgvbp.fit(f, dim=2, rng=seed) for seed in range(3)]}
    >>> ax = plots.convergence(runs, optimum=np.log(2.0 * np.pi))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('log-likelihood queries', 'nats below the optimum')
    """
    groups = by_name(posteriors, several=True)
    lowest = positive_number(floor, "floor")
    best = max(run.lower_bound for runs in groups.values() for run in runs) if optimum is None else optimum
    if not isinstance(best, int | float | np.integer | np.floating) or not abs(best) <= LARGEST:
        raise InvalidTypeError(f"optimum must be a number; got {optimum!r}")
    ax = one_axes(ax, 6.4, 3.8)
    for (name, runs), colour, dashes in zip(groups.items(), cycle(CYCLE), cycle(DASHES), strict=False):
        queries, gaps = gaps_on_one_grid([run.trace for run in runs], float(best))
        seen = np.where(np.isfinite(gaps), np.maximum(gaps, lowest), np.nan)
        middle = np.where(np.isnan(seen).any(axis=0), np.nan, np.median(seen, axis=0))
        label = shown(name) + (f" ({len(runs)} runs)" if len(runs) > 1 else "")
        ax.step(
            queries, middle, where="post", color=colour, linestyle=dashes, linewidth=1.5, label=label or None
        )
        if len(runs) > 1:
            ends = seen.min(axis=0), seen.max(axis=0)
            ax.fill_between(queries, *ends, step="post", color=colour, alpha=0.2, linewidth=0.0)
        ax.plot(queries[-1], middle[-1], "o", color=colour, markersize=4.0)
    known = "the optimum" if optimum is not None else "the best of these runs"
    ax.set(xscale="log", yscale="log", xlabel="log-likelihood queries", ylabel=f"nats below {known}")
    ax.set_ylim(bottom=0.7 * lowest)
    ax.axhline(lowest, color="0.6", linewidth=0.6, linestyle=":", zorder=0)
    return finished(ax, "Convergence", frameon=False)


def gaps_on_one_grid(traces: list[Trace], optimum: float) -> tuple[Array, Array]:
    """Numbers of queries (Q,), and the gap of each run after these, (runs, Q); inf before its first value."""
    grid = np.unique(np.concatenate([trace.n_evaluations for trace in traces]))
    gaps = np.empty((len(traces), len(grid)))
    for row, trace in zip(gaps, traces, strict=True):
        last = np.searchsorted(trace.n_evaluations, grid, side="right")
        row[:] = np.append(np.inf, optimum - trace.smoothed)[last]
    return grid.astype(float), gaps


def by_name(posteriors: object, several: bool) -> dict[str, list[Posterior]]:
    """The runs under each name: one, or a list if ``several`` are allowed. A single posterior has the name ""."""
    if isinstance(posteriors, Posterior):
        return {"": [posteriors]}
    what = "posterior or a list of posteriors" if several else "posterior"
    if not isinstance(posteriors, Mapping):
        raise InvalidTypeError(f"expected a posterior, or a dict of name to {what}; got {posteriors!r}")
    if not posteriors:
        raise InvalidInputError("the dict of posteriors is empty")
    found = {}
    for name, given in posteriors.items():
        runs = list(given) if several and isinstance(given, list | tuple) else [given]
        if not runs:
            raise InvalidInputError(f"there are no posteriors under {name!r}")
        if not all(isinstance(run, Posterior) for run in runs):
            raise InvalidTypeError(f"{name!r} must be a {what}; got {given!r}")
        found[str(name)] = runs
    return found
