"""Verdicts on rows, numbers on a terminal, and the report with its files."""

import csv
import io
import math
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure
from rich.console import Console

pytest.importorskip("emcee", reason="the experiments need their extra: pip install 'mgvbp[experiments]'")

from mgvbp.paper.captions import CAPTIONS
from mgvbp.paper.report import Section, formatted, print_tables, state, write_report
from mgvbp.paper.spec import STATES, Row, Table

# --- verdicts -----------------------------------------------------------------------------------------


def table(**options):
    return Table("t", "T", {"LB": 0.01, "beta": 0.1}, [], bound="LB", **options)


VERDICTS = [
    (Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -5.005, "beta": 1.09}), "reproduces"),
    (Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -5.0, "beta": 1.2}), "differs (beta)"),
    (
        Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -6.0, "beta": 2.0}, reason="why"),
        "differs (all columns): why",
    ),
    (
        Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -6.0, "beta": 2.0}, {"LB": -4.99}),
        "better: the paper's run had not converged",
    ),
    # what an unconverged run says is nothing to agree with
    (
        Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -5.005, "beta": 1.0}, {"LB": -4.98}),
        "better: the paper's run had not converged",
    ),
    # not better: the paper was at the optimum as well
    (Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -5.015, "beta": 2.0}, {"LB": -5.0}), "differs (all columns)"),
    # nor if we are not: numbers on the way are no evidence, even where they agree
    (
        Row("a", {"LB": -5.5, "beta": 1.0}, {"LB": -6.0, "beta": 2.0}, {"LB": -5.0}, "why"),
        "both unconverged (apart in all columns): why",
    ),
    (
        Row("a", {"LB": -5.5, "beta": 1.0}, {"LB": -5.5, "beta": 1.0}, {"LB": -5.0}, "why"),
        "both unconverged (and alike)",
    ),
    (Row("a", {"LB": -5.5, "beta": 1.0}, {"LB": -5.0, "beta": 1.0}, {"LB": -5.0}), "differs (LB)"),
    (Row("a", {}, {"beta": 1.0}, reason="the data are lost"), "not reproducible: the data are lost"),
    (Row("a", {}, {"beta": 1.0}), ""),
    (Row("auto", {"LB": -5.0}, exact={"LB": -4.99}), "at the exact optimum"),
    (Row("auto", {"LB": -5.5}, exact={"LB": -4.99}), ""),
    (Row("a", {"beta": float("nan")}, {"beta": 1.0}), "differs (all columns)"),
]


@pytest.mark.parametrize(("row", "verdict"), VERDICTS)
def test_verdicts(row, verdict):
    assert table().verdict(row) == verdict
    assert not verdict or state(verdict) in STATES


def test_a_noisy_bound_is_not_the_judge_where_there_is_another():
    row = Row("a", {"LB": -5.0, "beta": 1.0, "without noise": -5.5}, {"LB": -6.0, "beta": 1.0}, {"LB": -5.0})
    assert table(judge="without noise").verdict(row).startswith("both unconverged")
    assert table().verdict(row).startswith("better")


def test_tolerances_of_a_row_come_first_and_what_is_not_judged_does_not_count():
    plain = Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -5.0, "beta": 1.2})
    row = replace(plain, tolerances={"beta": 0.3})
    wider = replace(table(), rows=[row])
    assert wider.verdict(row) == "reproduces"
    assert wider.tolerance("beta") == (0.3, 0.3)
    assert not any(map(math.isfinite, replace(wider, rows=[]).tolerance("beta")))
    unjudged = Table("t", "T", {"beta": float("inf")}, [plain])
    assert unjudged.verdict(plain) == ""


def test_numbers_on_the_page():
    assert formatted(None, 3) == formatted(float("nan"), 3) == "–"
    assert formatted(-1234.5678, 2) == "-1,234.57"
    assert formatted(0.0, 3) == "0.000"
    assert formatted(1.2e-7, 3) == "1.2e-07"


def test_numbers_in_a_file_are_whole():
    """Where no terminal says how wide it is: twelve columns of seven digits."""
    columns = {f"column {n}": 1.0 for n in range(12)}
    wide = Table("t", "T", columns, [Row("a name", dict.fromkeys(columns, -1234567.0))], decimals=1)
    file = io.StringIO()
    print_tables(Console(file=file, width=80), [wide])
    assert file.getvalue().count("-1,234,567.0") == 12


# --- the report ---------------------------------------------------------------------------------------


@pytest.fixture
def report(tmp_path):
    """The page of one experiment with three rows, a figure and the record of one cell."""
    rows = [Row(f"the square of {n}", {"value": n**2}, {"value": 4.0}) for n in (1, 2, 3)]
    table = Table("tab:squares", "Squares <of numbers>", {"value": 0.5}, rows)
    figure = Figure()
    figure.add_subplot().plot([1.0, 2.0])
    outcome = {"settings": {"number": 2}, "n_evaluations": 7}
    record = {"cell": "the square of 2", "seed": 0, "seconds": 0.5, "outcome": outcome}
    section = Section("squares", "Squares & more", [table], {"path": figure}, [record], 3)
    return write_report(tmp_path / "out", section, "mgvbp reproduce <squares>", ["squares", "cubes"])


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.sources = [], []

    def handle_starttag(self, tag, attributes):
        self.sources += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_nothing_else(report):
    text = report.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert all(source.startswith(("data:", "#")) for source in tags.sources)
    assert "http" not in text
    assert "Squares &lt;of numbers&gt;" in text
    assert "mgvbp reproduce &lt;squares&gt;" in text
    assert text.count("differs (all columns)") == 2
    assert "±0.5" in text


def test_the_page_has_all_that_the_folder_has(report):
    """A second command adds its experiment to the page and the summary; they stand in their order."""
    rows = [Row("the cube of 2", {"value": 8.0}, {"value": 8.0})]
    cubes = Section(
        "cubes", "Cubes", [Table("tab:cubes", "Cubes of numbers", {"value": 0.5}, rows)], {}, [], 0
    )
    page = write_report(report.parent, cubes, "mgvbp reproduce cubes", ["cubes", "squares"])
    text = page.read_text(encoding="utf-8")
    assert text.index('<section id="cubes">') < text.index('<section id="squares">')
    assert "mgvbp reproduce cubes" in text
    assert "mgvbp reproduce &lt;squares&gt;" in text
    summary = (report.parent / "summary.md").read_text()
    assert "| **all** | **2** |  |  |  | **2** |  |" in summary
    assert summary.startswith("Made by `mgvbp reproduce cubes` (cubes), 20")
    assert "Made by `mgvbp reproduce <squares>` (squares), 20" in summary


def test_every_figure_of_the_paper_has_its_caption_and_label():
    labels = {caption.label for caption in CAPTIONS.values() if caption.label}
    assert labels == {
        "fig:manifold", "fig:SLR_low", "fig:labour_LBmargins", "fig:Labour_Perf", "fig:Labour_PostMeanCov", "fig:tabl",
        "fig:regression", "fig:garch", "fig:gjr", "fig:figarch", "fig:istanbul_elbo",
    }  # fmt: skip


def test_files_beside_the_page(report):
    rows = list(csv.DictReader((report.parent / "squares.csv").read_text().splitlines()))
    assert [row["ours"] for row in rows] == ["1", "4", "9"]
    assert {row["paper"] for row in rows} == {"4.0"}
    assert {(row["title"], row["tolerance"]) for row in rows} == {("Squares <of numbers>", "0.5")}
    assert [row["verdict"] for row in rows] == [
        "differs (all columns)",
        "reproduces",
        "differs (all columns)",
    ]
    assert (report.parent / "figures" / "squares-path.png").stat().st_size > 1000


def test_the_summary_counts_and_lists_what_differs(report):
    text = (report.parent / "summary.md").read_text()
    assert "| Squares <of numbers> (tab:squares) | 1 |  |  |  | 2 |  |" in text
    assert "- the square of 1; the square of 3: differs (all columns)" in text
    assert "the square of 2:" not in text
    assert "| Squares & more | 1 of 3 | 0 s | 7 |" in text
    assert text.startswith("Made by `mgvbp reproduce <squares>`, 20")
