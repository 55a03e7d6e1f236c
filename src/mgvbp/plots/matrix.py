"""The covariance, or correlation, matrix as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mgvbp.core.checks import true_or_false
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.families.gaussian import Gaussian
from mgvbp.plots.canvas import SMALL, finished, minus, one_axes, shown
from mgvbp.problem.parameters import indexed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_MATRIX = 2000
"""Rows of the largest matrix that is drawn. Its cells are smaller than a pixel, and it takes 32 MB."""
MOST_LABELS = 40
"""Rows up to which there is room for their names."""
MOST_NUMBERS = 12
"""Rows up to which there is room for a number in each cell."""
COLOURS = "RdBu_r"
"""Red is positive, blue is negative, white is zero; the colour-blind tell them apart."""


def covariance(posterior: Gaussian, correlation: bool = True, ax: Axes | None = None) -> Axes:
    """A heat map of the correlation matrix of the unconstrained θ, or of its covariance matrix.

    With up to 12 parameters each cell shows its number, with up to 40 each row shows its name.

    Parameters
    ----------
    posterior : Posterior or Gaussian
    correlation : bool
        Divide by the standard deviations.
    ax : Axes, optional
        The colour bar takes a part of its space.

    Examples
    --------
    >>> import mgvbp
    >>> from mgvbp import plots
    >>> q = mgvbp.Gaussian(variance=[[4.0, 1.0], [1.0, 1.0]])
    >>> plots.covariance(q).images[0].get_array().data
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    if not isinstance(posterior, Gaussian):
        raise InvalidTypeError(f"expected a posterior, as mgvbp.fit returns it; got {posterior!r}")
    d = posterior.dim
    if d > LARGEST_MATRIX:
        raise InvalidInputError(
            f"a matrix of {d:,} rows is too large to be drawn; {LARGEST_MATRIX:,} at most"
        )
    matrix = posterior.covariance
    if true_or_false(correlation, "correlation"):
        sd = np.sqrt(np.diag(matrix))
        matrix = matrix / sd / sd[:, None]
    side = float(np.clip(0.42 * d + 1.6, 4.0, 8.0))
    ax = one_axes(ax, side + 0.8, side)
    limit = 1.0 if correlation else float(np.abs(matrix).max())
    image = ax.imshow(matrix, cmap=COLOURS, vmin=-limit, vmax=limit, interpolation="nearest")
    what = "correlation" if correlation else "covariance"
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, label=what)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)
    if d <= MOST_LABELS:
        labels = getattr(posterior, "labels", None) or indexed("theta", (d,))
        texts = [shown(label) for label in labels]
        small = SMALL if d <= 20 else 6
        ax.set_xticks(range(d), texts, rotation=90, parse_math=False)
        ax.set_yticks(range(d), texts, parse_math=False)
    else:
        small = SMALL
        ax.set(xlabel="entry of θ", ylabel="entry of θ")
    if d <= MOST_NUMBERS:
        for (i, j), number in np.ndenumerate(matrix.round(2) + 0.0 if correlation else matrix):
            ink = "white" if abs(number) > 0.6 * limit else "black"
            text = f"{number:.2f}" if correlation else f"{number:.2g}"
            ax.text(j, i, minus(text), ha="center", va="center", fontsize=7, color=ink)
    finished(ax, f"{what.capitalize()} of θ, unconstrained")
    ax.tick_params(labelsize=small, length=0 if d <= MOST_LABELS else 3)
    ax.spines[:].set_visible(False)
    return ax
