"""The experiment settings: both panels of the paper's table, beside the data and what was run."""

import pytest

pytest.importorskip("emcee", reason="the experiments need their extra: pip install 'mgvbp[experiments]'")

from mgvbp.paper import common, settings
from mgvbp.paper.spec import Outcome, reference

PAPER = reference("settings")["paper"]


def test_every_printed_number_is_shown():
    outcomes = {row: Outcome({}) for row in settings.cells(quick=False)}
    data, hyper = settings.EXPERIMENT.tables(outcomes)
    for table, rows in ((data, PAPER["datasets"]), (hyper, PAPER["hyperparameters"])):
        shown = [{c: row.paper[c] for c in table.columns if c in row.paper} for row in table.rows]
        assert shown == list(rows.values())


def test_what_the_data_say_is_judged():
    outcomes = {"S&P 500: ARCH": Outcome({"train": 1698.0, "test": 425.0, "samples": 2123.0})}
    data, _ = settings.EXPERIMENT.tables(outcomes)
    verdicts = {row.name.partition(",")[0]: data.verdict(row) for row in data.rows}
    assert verdicts["S&P 500: ARCH"] == f"differs (train): {settings.DAYS}"
    assert "not reproducible" in {v.partition(":")[0] for v in verdicts.values()}


def test_settings_of_a_row_are_those_that_the_paper_prints():
    found = common.printed("HAR", step_size=0.5)
    assert found == {
        "step_size": 0.5, "clip_natural_gradient": 50_000, "clip_initial": 1000, "momentum": 0.4, "window": 30,
        "max_iterations": 1000, "decay_after": 750, "patience": 100,
    }  # fmt: skip
