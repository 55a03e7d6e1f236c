"""Formulas as SVG, drawn when the site is built: no script, no font and no network to read them."""

from __future__ import annotations

from functools import cache
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from sphinx.application import Sphinx
from ziamath import Latex, config

PIXELS = 17.0
"""Size of the letters; widths are then given in em, so that formulas grow with the text around them."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer that ``html_math_renderer = "svg"`` chooses."""
    config.svg2 = False  # one path a glyph: without ids, which would have to be unique on a page
    app.add_html_math_renderer("svg", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    writer.body.append(drawn(node.astext(), True))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    r"""A displayed formula: what is between ``\qquad`` can go to the next line, or scroll, on a phone."""
    tex = node.astext().strip()
    if "\\\\" in tex and "\\begin{" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    parts = [tex] if "\\begin{" in tex else tex.split(r"\qquad")
    formulas = " ".join(drawn(part.strip(), False) for part in parts)
    writer.body.append(f"{writer.starttag(node, 'div', CLASS='math')}{formulas}</div>\n")
    raise nodes.SkipNode


@cache
def drawn(tex: str, is_inline: bool) -> str:
    """An ``<svg>`` in the colour of the text, its baseline on that of the text."""
    formula = Latex(tex, size=PIXELS, color="currentColor", inline=is_inline)
    picture = formula.svgxml()
    for side in ("width", "height"):
        picture.set(side, f"{float(picture.get(side)) / PIXELS:.3f}em")
    _, top, _, height = map(float, picture.get("viewBox").split())
    picture.set("style", f"vertical-align: {-(top + height) / PIXELS:.3f}em")
    picture.set("role", "img")
    picture.set("aria-label", tex)
    return ElementTree.tostring(picture, encoding="unicode")
