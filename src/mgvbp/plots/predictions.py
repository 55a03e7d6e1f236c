"""What a posterior predicts, as bands around its mean, beside what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.plots.canvas import BAND, LINE, finished, one_axes
from mgvbp.problem.predictive import PredictiveDraws

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INNER = 0.5
"""The probability of the inner, darker band."""


def predictive(
    prediction: PredictiveDraws, y: ArrayLike | None = None, level: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Predictions as bands around their mean; with observations ``y`` a posterior predictive check.

    Parameters
    ----------
    prediction : PredictiveDraws
        What ``posterior.predict(...)`` or ``posterior.forecast(steps)`` returns, of one series.
    y : array_like of shape (n,), optional
        What was observed at the same places; the title then says how many of them the band holds.
    level : float
        The probability of the outer band; the inner one has one half.
    ax : Axes, optional
    """
    if not isinstance(prediction, PredictiveDraws):
        raise InvalidTypeError(
            f"expected what posterior.predict(...) returns, a PredictiveDraws; got {prediction!r}"
        )
    if prediction.draws.ndim != 2:
        raise InvalidInputError(
            "the prediction is of several series: choose one, PredictiveDraws(prediction.draws[:, :, 0])"
        )
    low, high = prediction.interval(level)
    ax = one_axes(ax, 8.0, 3.0)
    places = _places(prediction)
    ax.fill_between(places, low, high, color=BAND, alpha=0.5, linewidth=0.0, label=f"{level:.0%}")
    ax.fill_between(places, *prediction.interval(INNER), color=BAND, linewidth=0.0, label=f"{INNER:.0%}")
    ax.plot(places, prediction.mean, color=LINE, linewidth=1.0, label="mean")
    title = f"{len(prediction.draws):,} draws of the predictive distribution"
    if y is not None:
        observed = as_floats(y, "y", finite=False)
        if observed.shape != low.shape:
            raise InvalidInputError(f"y has shape {observed.shape}; expected {low.shape}, one for each place")
        ax.plot(places, observed, "o", color="black", markersize=2.0, label="observed")
        known = np.isfinite(observed)
        inside = np.mean((low <= observed)[known] & (observed <= high)[known])
        title = f"The {level:.0%} band holds {inside:.0%} of {known.sum():,} observations"
    return finished(ax, title, loc="best", frameon=False, ncols=4)


def _places(prediction: PredictiveDraws) -> Array | Any:
    """Where to draw: numbers and dates as they are, other labels by their position."""
    index: Any = prediction.index
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    places = np.arange(prediction.draws.shape[1]) if index is None else np.asarray(index)
    return places if places.dtype.kind in "fiuM" else np.arange(len(places))
