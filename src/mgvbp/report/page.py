"""A page without scripts and without links to elsewhere; whatever goes in as text is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files


def html_page(title: str, body: Iterable[str]) -> str:
    """The whole page; ``body`` is HTML, ``title`` is text."""
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


def text(value: str) -> str:
    """Text as HTML; what cannot be displayed, or written as UTF-8, is replaced."""
    return escape("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in value))


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of text."""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def section(title: str, *parts: str) -> list[str]:
    """A heading over HTML."""
    return [f"<section><h2>{text(title)}</h2>", *parts, "</section>"]


def table(head: Iterable[str], rows: Iterable[Iterable[str]], *, words: bool = False) -> str:
    """A table of text, which scrolls by itself where it is too wide; ``words`` are not numbers."""
    cell = '<td class="words">' if words else "<td>"
    names = "".join(f"<th>{text(name)}</th>" for name in head)
    lines = [f"<tr>{names}</tr>"] if names else []
    for first, *others in rows:
        cells = "".join(f"{cell}{text(other)}</td>" for other in others)
        lines.append(f"<tr><th>{text(first)}</th>{cells}</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def code_block(lines: Iterable[str]) -> str:
    """Lines of code."""
    return f"<pre><code>{text(chr(10).join(lines))}</code></pre>"
