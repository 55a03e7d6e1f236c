"""The engine of the experiments: what is stored and resumed, verdicts, and the report."""

import csv
import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser

import pytest
from rich.console import Console

pytest.importorskip("emcee", reason="the experiments need their extra: pip install 'mgvbp[experiments]'")

import mgvbp
from mgvbp import cli, paper
from mgvbp.paper import command, engine, mcmc
from mgvbp.paper.console import formatted, print_tables
from mgvbp.paper.report import Section, write_report
from mgvbp.paper.spec import Cell, Experiment, Outcome, Row, Table


def square(seed, number, log):
    with log.open("a") as file:
        file.write(f"{number}\n")
    if number < 0:
        raise RuntimeError("no")
    return Outcome({"value": number**2 + seed}, {"path": [1.0, 2.0]}, {"number": number}, n_evaluations=7)


class Squares(Experiment):
    name, title = "squares", "Squares & more"

    def __init__(self, log, numbers=(1, 2, 3)):
        self.log, self.numbers = log, numbers

    def cells(self, quick):
        numbers = self.numbers[:1] if quick else self.numbers
        return [Cell(f"the square of {n}", partial(square, number=n, log=self.log)) for n in numbers]

    def tables(self, outcomes):
        rows = [Row(name, o.values, {"value": 4.0}) for name, o in outcomes.items()]
        return [Table("tab:squares", "Squares <of numbers>", {"value": 0.5}, rows)]

    def figures(self, outcomes):
        from matplotlib.figure import Figure

        figure = Figure()
        figure.add_subplot().plot(outcomes["the square of 2"].curves["path"])
        return {"path": figure}


def outcomes_of(experiment, directory, quick=False, seed=0, jobs=1):
    steps = list(engine.run(experiment, directory, quick=quick, seed=seed, jobs=jobs))
    return steps[-1][2], [done for done, _, _ in steps]


# --- store and resume ---------------------------------------------------------------------------------


def test_finished_cells_are_not_run_again(tmp_path):
    log = tmp_path / "log"
    first, _ = outcomes_of(Squares(log), tmp_path)
    assert {name: o.values["value"] for name, o in first.items()} == {
        "the square of 1": 1,
        "the square of 2": 4,
        "the square of 3": 9,
    }
    again, done = outcomes_of(Squares(log), tmp_path)
    assert again == first
    assert done == [3]
    assert log.read_text().split() == ["1", "2", "3"]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match="no"):
        outcomes_of(Squares(log, (1, 2, -3)), tmp_path)
    outcomes, done = outcomes_of(Squares(log, (1, 2, 3)), tmp_path)
    assert done[0] == 2
    assert len(outcomes) == 3
    assert log.read_text().split() == ["1", "2", "-3", "3"]


@pytest.mark.parametrize("packages", [("emcee",), ("emcee", "matplotlib")])
def test_without_the_extra_nothing_is_run(packages, tmp_path, monkeypatch, capsys):
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    assert cli.main(["reproduce", "slr", "--quick", "--out", str(tmp_path / "out")]) == 1
    out, err = capsys.readouterr()
    s = "s" * (len(packages) > 1)
    assert (
        err
        == f"mgvbp: the experiments need the package{s} {', '.join(packages)}: pip install 'mgvbp[experiments]'\n"
    )
    assert not out
    assert not (tmp_path / "out").exists()


def test_seeds_and_quick_runs_are_kept_apart(tmp_path):
    experiment = Squares(tmp_path / "log")
    assert outcomes_of(experiment, tmp_path, seed=5)[0]["the square of 1"].values["value"] == 6
    assert outcomes_of(experiment, tmp_path, seed=6)[0]["the square of 1"].values["value"] == 7
    quick, done = outcomes_of(experiment, tmp_path, quick=True, seed=5)
    assert list(quick) == ["the square of 1"]
    assert done == [0, 1]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"cell": "the square of 1"}'])
def test_damaged_records_are_made_anew(tmp_path, damage):
    experiment = Squares(tmp_path / "log", (1,))
    outcomes_of(experiment, tmp_path)
    (record,) = (tmp_path / "cells" / "squares").glob("*.json")
    record.write_text(damage)
    outcomes, done = outcomes_of(experiment, tmp_path)
    assert outcomes["the square of 1"].values["value"] == 1
    assert done == [0, 1]


def test_records_of_other_versions_are_made_anew(tmp_path, monkeypatch):
    experiment = Squares(tmp_path / "log", (1,))
    outcomes_of(experiment, tmp_path)
    monkeypatch.setattr(engine, "versions", lambda: {"mgvbp": "99"})
    assert outcomes_of(experiment, tmp_path)[1] == [0, 1]


def test_records_say_how_the_numbers_came_about(tmp_path):
    outcomes_of(Squares(tmp_path / "log", (2,)), tmp_path, seed=3)
    (record,) = engine.Store(tmp_path, "squares", 3, False).records()
    assert record["seed"] == 3
    assert record["outcome"]["settings"] == {"number": 2}
    assert record["outcome"]["n_evaluations"] == 7
    assert record["seconds"] >= 0.0
    assert record["versions"]["mgvbp"] == mgvbp.__version__
    here = {name for name in ("jax", "optax", "blackjax") if importlib.util.find_spec(name)}
    assert here <= record["versions"].keys()


def test_several_processes_give_the_same(tmp_path):
    one, _ = outcomes_of(Squares(tmp_path / "log"), tmp_path / "one")
    two, _ = outcomes_of(Squares(tmp_path / "log"), tmp_path / "two", jobs=2)
    assert one == two


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
        "better than the paper: it had not converged",
    ),
    # not better: the paper was at the optimum as well, or we are not
    (Row("a", {"LB": -5.0, "beta": 1.0}, {"LB": -5.015, "beta": 2.0}, {"LB": -5.0}), "differs (all columns)"),
    (Row("a", {"LB": -5.5, "beta": 1.0}, {"LB": -6.0, "beta": 2.0}, {"LB": -5.0}), "differs (all columns)"),
    (Row("auto", {"LB": -5.0}, exact={"LB": -4.99}), "at the exact optimum"),
    (Row("auto", {"LB": -5.5}, exact={"LB": -4.99}), ""),
    (Row("a", {"beta": float("nan")}, {"beta": 1.0}), "differs (all columns)"),
]


@pytest.mark.parametrize(("row", "verdict"), VERDICTS)
def test_verdicts(row, verdict):
    assert table().verdict(row) == verdict


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
    experiment = Squares(tmp_path / "log")
    outcomes, _ = outcomes_of(experiment, tmp_path)
    records = list(engine.Store(tmp_path, "squares", 0, False).records())
    section = Section(
        "squares", experiment.title, experiment.tables(outcomes), experiment.figures(outcomes), records
    )
    return write_report(tmp_path / "out", [section], "mgvbp reproduce <squares>")


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


def test_files_beside_the_page(report):
    rows = list(csv.DictReader((report.parent / "squares.csv").read_text().splitlines()))
    assert [row["ours"] for row in rows] == ["1", "4", "9"]
    assert {row["paper"] for row in rows} == {"4.0"}
    assert [row["verdict"] for row in rows] == [
        "differs (all columns)",
        "reproduces",
        "differs (all columns)",
    ]
    assert (report.parent / "figures" / "squares-path.png").stat().st_size > 1000
    assert (report.parent / "figures" / "squares-path.svg").stat().st_size > 1000


def test_the_summary_counts_and_lists_what_differs(report):
    text = (report.parent / "summary.md").read_text()
    assert "| Squares <of numbers> (tab:squares) | 1 |  |  | 2 |" in text
    assert "- the square of 3: differs (all columns)" in text
    assert "the square of 2:" not in text


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_in_a_browser(report, tmp_path, width):
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --enable-logging=stderr --dump-dom"
    )
    run = subprocess.run(
        [
            CHROMIUM,
            *flags.split(),
            f"--window-size={width},900",
            f"--user-data-dir={tmp_path}/profile",
            report.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "<h2>Squares &amp; more</h2>" in run.stdout
    assert "CONSOLE" not in run.stderr


# --- MCMC ---------------------------------------------------------------------------------------------


def test_chains_find_a_gaussian():
    """Means within 4.5 of their standard errors; R-hat near 1; and a number of draws that is not made up."""
    q = mgvbp.Gaussian([1.0, -2.0], variance=[[1.0, 0.9], [0.9, 2.0]])
    chains = mcmc.sample(
        q.log_density, mgvbp.Gaussian([0.5, -1.5], variance=0.3), seed=1, steps=1500, walkers=20
    )
    assert chains.draws.shape == (20, 1200, 2)
    assert (abs(chains.flat.mean(axis=0) - q.mean) < 4.5 * chains.mcse).all()
    assert (chains.rhat < 1.1).all()
    assert ((chains.ess > 100) & (chains.ess < 6000)).all()


# --- the command --------------------------------------------------------------------------------------


def test_every_experiment_that_is_listed_is_there(capsys):
    assert cli.main(["reproduce", "list"]) == 0
    listed = capsys.readouterr().out
    for name, title in paper.EXPERIMENTS.items():
        experiment = command.load(name)
        assert experiment.name == name
        assert re.search(rf"(?m)^{name} +{re.escape(title)}$", listed)
        cells = experiment.cells(quick=False)
        assert len({cell.name for cell in cells}) == len(cells)
        assert experiment.cells(quick=True)


def test_unknown_experiments_are_named(capsys):
    assert cli.main(["reproduce", "labour", "nonsense"]) == 1
    assert "no experiment is called nonsense; there are slr, labour" in capsys.readouterr().err


def test_without_its_data_an_experiment_is_left_out_and_the_rest_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MGVBP_DATA", raising=False)
    monkeypatch.setattr(mgvbp.datasets, "load", missing)
    monkeypatch.setattr(command, "load", {"labour": NeedsData(), "slr": Squares(tmp_path / "log")}.get)
    assert cli.main(["reproduce", "labour", "slr", "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "left out" in out
    assert "fetch it" in out
    assert "Squares <of numbers>" in out
    assert json.loads(next((tmp_path / "out" / "cells").rglob("*.json")).read_text())["seed"] == 0


class NeedsData(Squares):
    name, title, data = "labour", "Labour", ("istanbul",)

    def __init__(self):
        pass


def missing(name):
    raise mgvbp.DataUnavailableError("fetch it")
