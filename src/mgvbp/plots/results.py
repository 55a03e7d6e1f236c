"""Pictures of volatility models and networks. Their results know how they are drawn; here are the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from mgvbp.errors import InvalidTypeError
from mgvbp.plots.canvas import one_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mgvbp.networks import Prediction
    from mgvbp.volatility import VolatilityResult


def volatility_band(result: VolatilityResult, level: float = 0.9, ax: Axes | None = None) -> Axes:
    """The conditional standard deviation of each day, in the unit of the returns, with its credible band.

    Parameters
    ----------
    result : VolatilityResult
        What ``mgvbp.volatility.GARCH(1, 1).fit(returns)`` returns; ``result.plot()`` shows more of it.
    level : float
        The probability of the band.
    ax : Axes, optional
    """
    if not hasattr(result, "plot_volatility"):
        raise InvalidTypeError(
            "expected a fitted volatility model, as mgvbp.volatility.GARCH(1, 1).fit(returns) returns it; "
            f"got {result!r}"
        )
    return result.plot_volatility(one_axes(ax, 8.0, 3.0), level)


def reliability(prediction: Prediction, y: ArrayLike, bins: int = 10, ax: Axes | None = None) -> Axes:
    """How often the likeliest class was the true one, against how probable it was said to be.

    Parameters
    ----------
    prediction : Prediction
        What ``network.predict(posterior, X)`` returns.
    y : array_like of shape (N,)
        The true labels.
    bins : int
    ax : Axes, optional
    """
    if not hasattr(prediction, "plot_reliability"):
        raise InvalidTypeError(
            f"expected class probabilities, as network.predict(posterior, X) returns them; got {prediction!r}"
        )
    return prediction.plot_reliability(y, one_axes(ax, 4.5, 4.5), bins)
