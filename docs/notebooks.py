"""The tutorials, and the pages on other packages, as notebooks: code without prompts; nothing is run.

Each cell shows what the page shows.

Run:  pip install nbformat && python docs/notebooks.py [folder]   (writes docs/_build/notebooks/*.ipynb)
"""

from __future__ import annotations

import base64
import doctest
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

DOCS = Path(__file__).parent
FOREIGN = ("pymc", "numpyro", "statsmodels", "arch")
"""Pages on models of other packages."""
PAGES = [*sorted((DOCS / "tutorials").glob("*.md")), *(DOCS / f"{name}.md" for name in FOREIGN)]
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}

FENCE = re.compile(r"^```(?P<kind>\S*) ?(?P<what>[^\n]*)\n(?P<body>.*?)^```\n?", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|attachment:|#)([^)\s#]+)(#[^)\s]*)?\)")
DIRECTIVE = re.compile(r"\s*#\s*doctest:.*$", re.MULTILINE)


def notebook(page: Path, folder: Path) -> nbformat.NotebookNode:
    """The page as a notebook that will lie in ``folder``, without outputs."""
    cells = []
    for number, cell in enumerate(cells_of(page, folder)):
        cell.id = f"{page.stem}-{number}"  # and not a random one, so that equal pages give equal files
        cells.append(cell)
    return new_notebook(cells=cells, metadata=KERNEL)


def cells_of(page: Path, folder: Path) -> Iterator[nbformat.NotebookNode]:
    """Its cells: prose between blocks, pictures, and the code of each block."""
    text, end = page.read_text(encoding="utf-8"), 0
    for fence in FENCE.finditer(text):
        yield from prose(text[end : fence.start()], page, folder)
        if fence["kind"] == "python" and ">>> " in fence["body"]:
            yield from code(fence["body"])
        elif fence["kind"] == "{image}":
            yield picture(page.parent / fence["what"], fence["body"])
        else:  # not to be run: a shell, or somebody else's cluster
            yield new_markdown_cell(fence[0].strip())
        end = fence.end()
    yield from prose(text[end:], page, folder)


def prose(text: str, page: Path, folder: Path) -> Iterator[nbformat.NotebookNode]:
    """Markdown as it is, but for links to other pages, which start from another folder now."""

    def moved(link: re.Match[str]) -> str:
        target = os.path.relpath((page.parent / link[1]).resolve(), folder.resolve())
        return f"]({Path(target).as_posix()}{link[2] or ''})"

    if text.strip():
        yield new_markdown_cell(LINK.sub(moved, text.strip()))


def code(block: str) -> Iterator[nbformat.NotebookNode]:
    """A cell for each value that the page shows, since a notebook shows the last one of a cell only."""
    lines: list[str] = []
    examples = doctest.DocTestParser().get_examples(block)
    for example in examples:
        source = DIRECTIVE.sub("", example.source).rstrip()
        if example.exc_msg is not None and lines:  # what fails, on purpose, stands alone
            yield new_code_cell("\n".join(lines))
            lines = []
        lines.append(source)
        if example.want or example is examples[-1]:
            # Jupyter's "run all" goes on after an error in a cell with this tag
            metadata = {"tags": ["raises-exception"]} if example.exc_msg is not None else {}
            yield new_code_cell("\n".join(lines), metadata=metadata)
            lines = []


def picture(path: Path, options: str) -> nbformat.NotebookNode:
    """A picture inside of its cell, so that the notebook can be moved."""
    text = re.search(r"^:alt: (.*)$", options, re.MULTILINE)
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    return new_markdown_cell(
        f"![{text[1] if text else ''}](attachment:{path.name})",
        attachments={path.name: {"image/png": data}},
    )


def main(folder: Path = DOCS / "_build" / "notebooks") -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        made = notebook(page, folder)
        nbformat.validate(made)
        nbformat.write(made, folder / f"{page.stem}.ipynb")
    print(f"{len(PAGES)} notebooks in {folder}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
