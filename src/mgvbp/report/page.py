"""A page without scripts and without links to elsewhere: escaped text, and figures in the colours of the page."""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from mgvbp.core import require
from mgvbp.errors import printable
from mgvbp.plots.canvas import BAND, GREY, LIGHT, LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def html_page(title: str, body: Iterable[Html]) -> str:
    """The whole page."""
    style = files("mgvbp.report").joinpath("style.css").read_text(encoding="utf-8")
    content = "\n".join(body)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<h1>{text(title)}</h1>
{content}
</body>
</html>
"""


def text(value: str, kind: str = "") -> Html:
    """Text as HTML, of a ``kind`` that the style sheet knows; characters that cannot be displayed are replaced."""
    if not isinstance(value, Html):
        value = escape(printable(value))
    return Html(f'<span class="{kind}">{value}</span>' if kind else value)


def paragraph(words: str, kind: str = "") -> Html:
    """A paragraph of text."""
    return Html(f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>")


def section(title: str, *parts: Html, name: str = "") -> Html:
    """A heading and the parts below it; a link finds them by the ``name``."""
    start = f'<section id="{text(name)}">' if name else "<section>"
    return Html("\n".join([f"{start}<h2>{text(title)}</h2>", *parts, "</section>"]))


def table(
    head: Iterable[str], rows: Iterable[Iterable[str]], *, words: bool = False, wide: bool = False
) -> Html:
    """A table that scrolls by itself where it is too wide.

    With ``words`` its last column has text and not numbers. With ``wide`` its first column stays in sight on every
    screen, in lines that break.
    """
    names = "".join(f"<th>{text(name)}</th>" for name in head)
    lines = [f"<tr>{names}</tr>"] if names else []
    for first, *others in rows:
        cells = "".join(f"<td>{text(other)}</td>" for other in others)
        lines.append(f"<tr><th>{text(first)}</th>{cells}</tr>")
    kinds = " ".join(name for name, given in (("words", words), ("wide", wide)) if given)
    kind = f' class="{kinds}"' if kinds else ""
    return Html(f'<div class="scroll"><table{kind}>{"".join(lines)}</table></div>')


def code_block(lines: Iterable[str]) -> Html:
    """Lines of code."""
    return Html(f"<pre><code>{text(chr(10).join(lines))}</code></pre>")


def picture(draws: Sequence[Callable[[], Axes]], name: str, caption: str) -> Html:
    """The figures of the axes that ``draws`` make, as many in a row as there is room for, with one caption.

    The ``name`` keeps their ids apart from those of other figures, and tells the style sheet how wide they may be.
    """
    drawings = "".join(inline_svg(draw, f"{name}-{i}") for i, draw in enumerate(draws))
    return Html(
        f'<figure class="{name}"><div>{drawings}</div><figcaption>{text(caption)}</figcaption></figure>'
    )


def inline_svg(draw: Callable[[], Axes], name: str) -> Html:
    """The figure of the axes that ``draw`` makes, as an element of a page; it is the same text at every call."""
    matplotlib, content = require("matplotlib", "plots"), io.StringIO()
    look = {
        **dict.fromkeys(INKED, INK),
        "legend.facecolor": PAPER,
        "svg.fonttype": "none",  # text stays text: it is small and sharp, and the browser has glyphs for all names
        "svg.hashsalt": name,
    }
    with matplotlib.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure = cast("Figure", draw().figure)
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
