"""Notebooks made of the tutorials and of pages on other packages: valid, without outputs, with all their code."""

import ast
import doctest
import importlib.util
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install nbformat")

DOCS = Path(__file__).parents[1] / "docs"
spec = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notebooks)

EVERY = pytest.mark.parametrize("page", notebooks.PAGES, ids=lambda page: page.stem)


def examples_of(page):
    return doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8").replace("```\n", "\n"))


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@EVERY
def test_it_is_valid_and_has_no_outputs(page, tmp_path):
    made = notebooks.notebook(page, tmp_path)
    nbformat.validate(made)
    assert made.cells[0].cell_type == "markdown"
    assert made.cells[0].source.startswith("# ")
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code_of(made))


@EVERY
def test_its_code_is_that_of_the_page(page, tmp_path):
    """Parsed, so that layout and comments do not matter; ast also says that every cell compiles."""
    cells = [ast.parse(cell.source) for cell in code_of(notebooks.notebook(page, tmp_path))]
    theirs = [ast.parse(example.source) for example in examples_of(page)]
    assert len(theirs) > 5
    flat = [ast.dump(statement) for tree in cells for statement in tree.body]
    assert flat == [ast.dump(statement) for tree in theirs for statement in tree.body]


@EVERY
def test_what_the_page_shows_ends_its_cell(page, tmp_path):
    """A notebook shows the value of the last expression of a cell, and no other."""
    ends = [ast.dump(ast.parse(cell.source).body[-1]) for cell in code_of(notebooks.notebook(page, tmp_path))]
    for example in examples_of(page):
        if example.want:
            assert ast.dump(ast.parse(example.source).body[-1]) in ends


@EVERY
def test_its_links_and_pictures_are_there(page, tmp_path):
    folder = tmp_path / "elsewhere"
    made = notebooks.notebook(page, folder)
    prose = [cell for cell in made.cells if cell.cell_type == "markdown"]
    assert not any("```{" in cell.source or ">>> " in cell.source for cell in prose)
    for cell in prose:
        for target, _ in notebooks.LINK.findall(cell.source):
            assert (folder / target).resolve().is_file()
        for name, data in cell.get("attachments", {}).items():
            assert f"(attachment:{name})" in cell.source
            assert data["image/png"].startswith("iVBORw0KGgo")  # base64 of how a PNG begins


def test_code_that_fails_on_purpose_stands_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n```python\n>>> x = 1\n>>> 1 / 0  # doctest: +ELLIPSIS\n"
        "Traceback (most recent call last):\n    ...\nZeroDivisionError: division by zero\n"
        ">>> x\n1\n\n```\n\n```sh\npip install x\n```\n",
        encoding="utf-8",
    )
    cells = notebooks.notebook(page, tmp_path).cells
    assert [cell.source for cell in cells] == ["# Title", "x = 1", "1 / 0", "x", "```sh\npip install x\n```"]
    assert [cell.metadata.get("tags") for cell in cells] == [None, None, ["raises-exception"], None, None]


PACKAGES = ("arch", "numpyro", "pymc", "statsmodels")
"""Packages with a page, and so a notebook, of their own."""


def test_notebooks_run_in_a_kernel_and_one_shows_what_its_page_shows(tmp_path):
    """One after the other in the same kernel, which imports once what they share."""
    nbclient = pytest.importorskip(
        "nbclient", reason="needs nbclient and ipykernel: pip install nbclient ipykernel"
    )
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install ipykernel")
    pytest.importorskip("sklearn", reason="needs mgvbp[sklearn]")
    tutorial = DOCS / "tutorials" / "constrained.md"
    pages = [tutorial, *(DOCS / f"{name}.md" for name in PACKAGES if importlib.util.find_spec(name))]
    made = [notebooks.notebook(page, tmp_path) for page in pages]
    forget = "%reset -f"  # so that every page imports what it uses
    cells = [[*notebook.cells, nbformat.v4.new_code_cell(forget)] for notebook in made]
    whole = nbformat.v4.new_notebook(cells=[cell for page in cells for cell in page])
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(whole, timeout=300, kernel_name="python3", resources=where).execute()
    for notebook in made:
        shown = [cell.outputs[-1] for cell in code_of(notebook) if cell.outputs]
        assert shown
        assert all(output.output_type != "error" for output in shown)
    outputs = [output for cell in code_of(made[0]) for output in cell.outputs]
    shown = [
        output.text if output.output_type == "stream" else output.data["text/plain"] for output in outputs
    ]
    wanted = [example.want for example in examples_of(tutorial) if example.want]
    assert ["".join(text.split()) for text in shown] == ["".join(want.split()) for want in wanted]
