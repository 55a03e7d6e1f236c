"""What all pictures share: colours, new figures, labels that may hold anything, and the finish."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    Maker = Callable[[float, float], Figure]

LINE, BAND, GREY, LIGHT = "#1b4f72", "#9dbdd6", "#8a8a8a", "#cfcfcf"
"""Colours: of the posterior's line and area, and of the line and area of what it is compared with."""
CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours of several runs, which the colour-blind tell apart (Okabe and Ito 2008)."""
DASHES = ("-", "--", "-.", ":")
"""Dashes of the same runs, so that a print in grey and lines that coincide can be read too."""
SMALL = 8
"""Font size of ticks and legends, in points."""
LONGEST = 28
"""Characters of the longest label, about the width of a panel; the middle of a longer one is left out."""


def private_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches that pyplot knows nothing of: for pages and files."""
    figure: Figure = require("matplotlib.figure", "plots").Figure(
        figsize=(width, height), layout="constrained"
    )
    return figure


def new_figure(width: float, height: float) -> Figure:
    """A figure of this size in inches.

    If pyplot has been imported, the figure is one of pyplot, which ``plt.show()`` and notebooks display. Otherwise
    pyplot and its global state are left alone.
    """
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return private_figure(width, height)
    figure: Figure = pyplot.figure(figsize=(width, height), layout="constrained")
    return figure


def one_axes(ax: Axes | None, width: float, height: float, make: Maker = new_figure) -> Axes:
    """The axes that were given, or new ones."""
    if ax is None:
        return make(width, height).subplots()
    return checked_axes(ax, "ax")


def grid_of_axes(
    axes: Sequence[Axes] | None, n: int, abreast: int, size: tuple[float, float], make: Maker = new_figure
) -> list[Axes]:
    """The ``n`` axes that were given, or new ones in rows, each of ``size`` inches."""
    if axes is not None:
        given = [checked_axes(ax, "axes") for ax in np.ravel(np.asarray(axes, dtype=object))]
        if len(given) != n:
            raise InvalidInputError(f"axes must be {n}, one for each panel; got {len(given)}")
        return given
    rows = -(-n // abreast)
    return in_rows(make(max(-(-n // rows), 2) * size[0], rows * size[1]), n, abreast)


def in_rows(figure: Figure | SubFigure, n: int, abreast: int) -> list[Axes]:
    """``n`` new axes, at most ``abreast`` in a row, of an empty figure."""
    rows = -(-n // abreast)
    panels = figure.subplots(rows, -(-n // rows), squeeze=False)
    for surplus in panels.flat[n:]:
        surplus.remove()
    return list(panels.flat[:n])


def checked_axes(ax: Any, name: str) -> Axes:
    """``ax``, once it is known to be axes of matplotlib."""
    if not isinstance(ax, require("matplotlib.axes", "plots").Axes):
        raise InvalidTypeError(f"{name} must be matplotlib axes, as plt.subplots() makes them; got {ax!r}")
    axes: Axes = ax
    return axes


def shown(label: str) -> str:
    """A label as a picture shows it: it has only characters that can be drawn, and is not too long."""
    text = printable(label).replace("\n", "\N{REPLACEMENT CHARACTER}")
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]}…{text[1 - half :]}"


def minus(number: str) -> str:
    """A number with a true minus sign, as matplotlib's ticks have it."""
    return number.replace("-", "\N{MINUS SIGN}")


def finished(ax: Axes, title: str, **legend: Any) -> Axes:
    """Give axes their title, small ticks and no box; ``legend`` has the options of a legend, if there is to be one."""
    # names are words, not formulas: a dollar sign in one must not be read as TeX
    ax.set_title(title, fontsize=9, loc="left", parse_math=False)
    ax.tick_params(labelsize=SMALL)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.label.set_fontsize(9)
    ax.yaxis.label.set_fontsize(9)
    if legend and ax.get_legend_handles_labels()[1]:
        for text in ax.legend(fontsize=SMALL, **legend).get_texts():
            text.set_parse_math(False)
    return ax
