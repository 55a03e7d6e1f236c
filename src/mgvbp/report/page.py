"""A page without scripts and without links to elsewhere; all text that goes into it is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from mgvbp.errors import printable


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


def table(head: Iterable[str], rows: Iterable[Iterable[str]], *, words: bool = False) -> Html:
    """A table that scrolls by itself where it is too wide. With ``words`` its last column has text and not numbers."""
    names = "".join(f"<th>{text(name)}</th>" for name in head)
    lines = [f"<tr>{names}</tr>"] if names else []
    for first, *others in rows:
        cells = "".join(f"<td>{text(other)}</td>" for other in others)
        lines.append(f"<tr><th>{text(first)}</th>{cells}</tr>")
    kind = ' class="words"' if words else ""
    return Html(f'<div class="scroll"><table{kind}>{"".join(lines)}</table></div>')


def code_block(lines: Iterable[str]) -> Html:
    """Lines of code."""
    return Html(f"<pre><code>{text(chr(10).join(lines))}</code></pre>")
