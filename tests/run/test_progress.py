"""Progress in a notebook: one line for each run that is updated in place, without widgets or warnings."""

from __future__ import annotations

import warnings

import pytest

import mgvbp
from mgvbp.run.advice import expected

nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install nbformat")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install nbclient")


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own packages
def test_a_notebook_shows_one_line_and_the_posterior():
    cells = [
        "import mgvbp\n"
        "posterior = mgvbp.fit(lambda theta: -(theta**2).sum(axis=1), labels=['a', 'b'], progress=True)\n"
        "posterior",
        "tree = posterior.mcmc(draws=100, progress=True)",
    ]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(made, timeout=120).execute()
    line, shown = made.cells[0].outputs
    assert line.data["text/plain"].startswith("fit: ")
    assert line.data["text/plain"].endswith(" evaluations")
    assert set(shown.data) == {"text/html", "text/plain"}
    assert shown.data["text/plain"].startswith("Posterior(auto, full family, d = 2, converged")
    (chains,) = made.cells[1].outputs
    assert chains.data["text/plain"].startswith("mcmc: 400 of 400 draws, ")


def test_a_search_by_values_says_beforehand_what_it_usually_takes():
    search = mgvbp.Auto().start(3)
    assert expected(search) == " (usually 140 to 360)"
    while not search.stop_reason:
        search.tell(-(search.ask() ** 2).sum(axis=1))
    assert expected(search) == ""
    assert expected(mgvbp.Auto().start(3, gradients=True)) == ""
