"""Figures as SVG inside a page, in the colours of its text and of its style sheet."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mgvbp.core import require
from mgvbp.plots.canvas import BAND, GREY, LIGHT, LINE
from mgvbp.report.page import Html, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, PAPER = "#010203", "#fefdfc"
"""Two colours that occur nowhere else: they stand for those of the text and of the page."""
COLOURS = {
    INK: "currentColor",
    PAPER: "var(--paper)",
    LINE: "var(--line)",
    BAND: "var(--band)",
    GREY: "var(--grey)",
    LIGHT: "var(--light)",
}
"""What each colour of a figure becomes in the page, which has other colours by day than by night."""
INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
"""Settings of matplotlib that have the colour of the text."""


def picture(draws: Sequence[Callable[[], Figure]], name: str, caption: str) -> Html:
    """The figures that ``draws`` make, as many in a row as there is room for, with one caption.

    The ``name`` keeps their ids apart from those of other figures, and tells the style sheet how wide they may be.
    """
    drawings = "".join(inline_svg(draw, f"{name}-{i}") for i, draw in enumerate(draws))
    return Html(
        f'<figure class="{name}"><div>{drawings}</div><figcaption>{text(caption)}</figcaption></figure>'
    )


def inline_svg(draw: Callable[[], Figure], name: str) -> Html:
    """The figure that ``draw`` makes, as an element of a page; it is the same text at every call."""
    matplotlib, content = require("matplotlib", "plots"), io.StringIO()
    look = {
        **dict.fromkeys(INKED, INK),
        "legend.facecolor": PAPER,
        "svg.fonttype": "none",  # text stays text: it is small and sharp, and the browser has glyphs for all names
        "svg.hashsalt": name,
    }
    with matplotlib.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure = draw()
        figure.savefig(content, format="svg", transparent=True, dpi=150, metadata={"Date": None})
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close(figure)
    svg = content.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg, count=2)  # HTML knows these namespaces
    for colour, in_page in COLOURS.items():
        svg = svg.replace(colour, in_page)
    return Html(svg)
