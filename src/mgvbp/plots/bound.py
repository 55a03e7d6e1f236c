"""The lower bound over a run: its values, their moving average, and the iteration that the result is from."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mgvbp.core.checks import one_of, positive_integer
from mgvbp.core.linalg import Array
from mgvbp.plots.canvas import CYCLE, GREY, LINE, finished, minus, one_axes, shown
from mgvbp.plots.race import by_name
from mgvbp.posterior.posterior import Posterior
from mgvbp.posterior.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AGAINST = ("iterations", "queries")
PHASES = {
    "ascent": CYCLE[4],
    "approach": CYCLE[4],
    "evolve": CYCLE[4],
    "hessian": GREY,
    "survey": GREY,
    "leap": CYCLE[2],
    "refine": CYCLE[5],
    "verify": CYCLE[3],
    "witness": CYCLE[3],
    "trial": CYCLE[1],
    "lookout": CYCLE[1],
}
"""The colour behind each phase of ``auto``. It says what the phase does: move, look around, leap, refine, verify or try
to refute."""
FAINT = 0.22
"""Opacity of these colours: lines in front of them stay readable."""
START = 0.4
"""The first share of a run. Its values may lie below the picture, as they would otherwise flatten the rest."""
LEAST_ROOM = 0.05
"""Nats above and below what is shown: differences of less than the tolerance of ``auto``, 0.01, should look like it."""
TAKE_THE_LAST = ("auto", "VOGN")
"""Methods whose result is their last iterate, not the best of all."""


class Smooth(NamedTuple):
    """A run's moving average, and the iteration (1, 2, ...) that the result is from with the bound there."""

    average: Array
    best: int
    bound: float


def lower_bound(
    posteriors: Posterior | Mapping[str, Posterior],
    *,
    window: int | None = None,
    against: str = "iterations",
    ax: Axes | None = None,
) -> Axes:
    """The lower bound over a run, its moving average, and t*: the iteration that the result is from.

    A named method returns the iterate with the largest average over a full window; ``auto`` returns the last one. The
    phases of ``auto`` are shaded where a single run is shown. The picture is scaled to the last three fifths of the
    runs, so that the start does not flatten the rest.

    Parameters
    ----------
    posteriors : Posterior, or dict of str to Posterior
    window : int, optional
        Iterations to average over, which also decide t*; by default those of the run, as in ``trace.smoothed``.
    against : {"iterations", "queries"}
        What the horizontal axis counts: iterations or evaluations of the log-likelihood.
    ax : Axes, optional

    Examples
    --------
    >>> import mgvbp
    >>> from mgvbp import plots
    >>> posterior = mgvbp.fit(lambda theta: -0.5 * (theta**2).sum(axis=1), dim=2)
    >>> plots.lower_bound(posterior, against="queries").get_xlabel()
    'log-likelihood queries'
    """
    runs = {name: run for name, (run,) in by_name(posteriors, several=False).items()}
    one_of(against, AGAINST, "against")
    smooth = {name: smoothed(run, window) for name, run in runs.items()}
    ax = one_axes(ax, 7.4, 3.4)
    if len(runs) == 1:
        _shade(ax, next(iter(runs.values())).trace, against)
    for (name, run), colour in zip(runs.items(), cycle((LINE, *CYCLE[1:])), strict=False):
        x = run.trace.n_evaluations if against == "queries" else np.arange(1, len(run.trace) + 1)
        average, best, bound = smooth[name]
        noisy = not np.array_equal(average, run.trace.lower_bound)
        if noisy:
            ax.plot(x, _finite(run.trace.lower_bound), color=colour, linewidth=0.7, alpha=0.35)
        marker = "" if noisy and len(x) > 1 else "o"
        label = f"{shown(name)}: " if name else ""
        ax.plot(
            x,
            _finite(average),
            color=colour,
            linewidth=1.5,
            marker=marker,
            markersize=3.0,
            label=label + ("moving average" if noisy else "lower bound"),
        )
        ax.plot(
            x[best - 1],
            bound,
            color=colour,
            linestyle="none",
            marker="D",
            markersize=6.0,
            markeredgecolor="white",
            label=f"{label}{minus(f'{bound:,.3f}')} at t* = {best:,}",
        )
    ax.set_ylim(
        *_in_sight([s.average for s in smooth.values()], [r.trace.lower_bound for r in runs.values()])
    )
    ax.margins(x=0.02)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set(
        ylabel="lower bound (nats)",
        xlabel="iteration" if against == "iterations" else "log-likelihood queries",
    )
    return finished(ax, "Lower bound", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def smoothed(posterior: Posterior, window: int | None = None) -> Smooth:
    """The moving average of a run and where it is best; by default the average that the run itself had.

    Only full windows count, as in the run. A run that ended before its first window was full has its largest single
    value instead.
    """
    values = posterior.trace.lower_bound
    if window is None:
        return Smooth(posterior.trace.smoothed, _taken(posterior), posterior.lower_bound)
    n = positive_integer(window, "window")
    averages = np.array([values[max(0, t - n) : t].mean() for t in range(1, len(values) + 1)])
    counted = np.where(np.arange(1, len(values) + 1) < n, -np.inf, averages) if len(values) >= n else values
    best = int(np.argmax(counted))
    return Smooth(averages, best + 1, float(counted[best]))


def _taken(posterior: Posterior) -> int:
    """The iteration (1, 2, ...) that the result is from.

    The trace does not say how long the window was. But the bound of the result is one of the averages, or one of the
    values if the run ended before a window was full.
    """
    if posterior.method not in TAKE_THE_LAST:
        for candidates in (posterior.trace.smoothed, posterior.trace.lower_bound):
            (where,) = np.nonzero(candidates == posterior.lower_bound)
            if where.size:
                return int(where[0]) + 1
    return len(posterior.trace)


def _shade(ax: Axes, trace: Trace, against: str) -> None:
    """Shade the phases of ``auto`` behind the lines; each is once in the legend."""
    t, seen = 0, set[str]()
    counts = [0, *trace.n_evaluations]
    for phase, group in groupby(map(str, trace.phase)):
        start, t = t, t + len(list(group))
        if phase not in PHASES:
            continue
        ends = (counts[start], counts[t]) if against == "queries" else (start + 0.5, t + 0.5)
        label = None if phase in seen else phase
        ax.axvspan(*ends, color=PHASES[phase], alpha=FAINT, linewidth=0.0, zorder=0, label=label)
        seen.add(phase)


def _in_sight(averages: list[Array], values: list[Array]) -> tuple[float | None, float | None]:
    """The ends of the vertical axis: it shows all averages but those of the start, and the noise above them."""
    finite = [a[np.isfinite(a)] for a in averages]
    later = [a[int(START * len(a)) :] for a in finite if a.size]
    if not later:
        return None, None
    low = min(float(a.min()) for a in later)
    raw = np.concatenate([v[int(START * len(v)) :] for v in values])
    high = max(float(a.max()) for a in later)
    high = max(high, float(raw[np.isfinite(raw)].max(initial=high)))
    room = max(0.08 * (high - low), LEAST_ROOM)
    return low - room, high + room


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, np.nan)
