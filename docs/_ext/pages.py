"""What pages need for their readers: code without the blank line that doctest wants, pictures and tables for phones."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

LETTERS = 20
"""Letters in a cell, on average, from which on a table is to be read and not to be compared by columns."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Have pages pass through `strip`, `mark` and `label`."""
    app.connect("doctree-read", strip)
    app.connect("doctree-read", mark)
    app.connect("doctree-read", label)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def strip(app: Sphinx, doctree: nodes.document) -> None:
    """Take blank lines from the ends of code blocks."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # or else it has markup inside
            code = block.astext().rstrip()
            block.rawsource, block[:] = code, [nodes.Text(code)]


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Give pictures twice as wide as high the class ``wide``: on a phone they scroll, and stay readable."""
    for image in doctree.findall(nodes.image):
        file = Path(app.srcdir, image["uri"])
        if file.suffix == ".png":
            head = file.read_bytes()[16:24]
            if int.from_bytes(head[:4]) > 2 * int.from_bytes(head[4:]):
                image["classes"].append("wide")


def label(app: Sphinx, doctree: nodes.document) -> None:
    """Give tables of three and more columns of text the class ``wordy``, and their cells the column's title.

    On a phone the cells of a row stand below each other, each under its title, which wider screens hide.
    """
    for table in doctree.findall(nodes.table):
        titles, *rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
        cells = [cell for row in rows for cell in row[1:]]
        letters = sum(len(cell.astext()) for cell in cells)
        if len(titles) >= 3 and letters >= LETTERS * len(cells):
            table["classes"].append("wordy")
            for row in rows:
                for cell, title in zip(row[1:], titles[1:], strict=True):
                    if not cell.astext():
                        continue
                    cell.insert(0, nodes.paragraph("", title.astext(), classes=["column"]))
