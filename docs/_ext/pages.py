"""Code blocks of pages end with a blank line, for doctest; readers need not see it."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Have pages pass through `strip`."""
    app.connect("doctree-read", strip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def strip(app: Sphinx, doctree: nodes.document) -> None:
    """Take blank lines from the ends of code blocks."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # or else it has markup inside
            code = block.astext().rstrip()
            block.rawsource, block[:] = code, [nodes.Text(code)]
