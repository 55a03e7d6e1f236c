"""The engine of the experiments: what is stored and resumed, MCMC beside them, and the command."""

import importlib.util
import json
import pickle
import re
import sys
from functools import partial

import pytest

pytest.importorskip("emcee", reason="the experiments need their extra: pip install 'mgvbp[experiments]'")

import mgvbp
from mgvbp import cli, paper
from mgvbp.paper import command, engine
from mgvbp.paper.spec import Experiment, Outcome, Table, finite, rows_of
from mgvbp.paper.target import sample


def square(seed, number, log):
    with log.open("a") as file:
        file.write(f"{number}\n")
    if number < 0:
        raise RuntimeError("no")
    return Outcome({"value": number**2 + seed}, {"path": [1.0, 2.0]}, {"number": number}, n_evaluations=7)


def squares(log, numbers=(1, 2, 3), data=()):
    def cells(quick):
        return {
            f"the square of {n}": partial(square, number=n, log=log) for n in numbers[: 1 if quick else None]
        }

    def tables(outcomes):
        rows = rows_of(outcomes, list(outcomes), paper={name: {"value": 4.0} for name in outcomes})
        return [Table("tab:squares", "Squares <of numbers>", {"value": 0.5}, rows)]

    return Experiment("squares", cells, tables, data=data)


def outcomes_of(experiment, directory, quick=False, seed=0, jobs=1):
    steps = list(engine.run(experiment, directory, quick=quick, seed=seed, jobs=jobs))
    return steps[-1][2], [done for done, _, _ in steps]


# --- store and resume ---------------------------------------------------------------------------------


def test_finished_cells_are_not_run_again(tmp_path):
    log = tmp_path / "log"
    first, _ = outcomes_of(squares(log), tmp_path)
    assert {name: o.values["value"] for name, o in first.items()} == {
        "the square of 1": 1,
        "the square of 2": 4,
        "the square of 3": 9,
    }
    again, done = outcomes_of(squares(log), tmp_path)
    assert again == first
    assert done == [3]
    assert log.read_text().split() == ["1", "2", "3"]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(RuntimeError, match="no"):
        outcomes_of(squares(log, (1, 2, -3)), tmp_path)
    outcomes, done = outcomes_of(squares(log, (1, 2, 3)), tmp_path)
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
    experiment = squares(tmp_path / "log")
    assert outcomes_of(experiment, tmp_path, seed=5)[0]["the square of 1"].values["value"] == 6
    assert outcomes_of(experiment, tmp_path, seed=6)[0]["the square of 1"].values["value"] == 7
    quick, done = outcomes_of(experiment, tmp_path, quick=True, seed=5)
    assert list(quick) == ["the square of 1"]
    assert done == [0, 1]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"cell": "the square of 1"}'])
def test_damaged_records_are_made_anew(tmp_path, damage):
    experiment = squares(tmp_path / "log", (1,))
    outcomes_of(experiment, tmp_path)
    (record,) = (tmp_path / "cells" / "squares").glob("*.json")
    record.write_text(damage)
    outcomes, done = outcomes_of(experiment, tmp_path)
    assert outcomes["the square of 1"].values["value"] == 1
    assert done == [0, 1]


def test_records_of_other_versions_are_made_anew(tmp_path, monkeypatch):
    experiment = squares(tmp_path / "log", (1,))
    outcomes_of(experiment, tmp_path)
    monkeypatch.setattr(engine, "versions", lambda: {"mgvbp": "99"})
    assert outcomes_of(experiment, tmp_path)[1] == [0, 1]


def test_records_say_how_the_numbers_came_about(tmp_path):
    outcomes_of(squares(tmp_path / "log", (2,)), tmp_path, seed=3)
    (record,) = engine.Store(tmp_path, "squares", 3, False).records(["the square of 2"])
    assert record["seed"] == 3
    assert record["outcome"]["settings"] == {"number": 2}
    assert record["outcome"]["n_evaluations"] == 7
    assert record["seconds"] >= 0.0
    assert record["versions"]["mgvbp"] == mgvbp.__version__
    here = {name for name in ("jax", "optax", "blackjax") if importlib.util.find_spec(name)}
    assert here <= record["versions"].keys()


def test_what_has_finished_is_shown_and_nothing_is_run(tmp_path):
    log = tmp_path / "log"
    outcomes_of(squares(log, (1,)), tmp_path)
    found = command.finished(squares(log, (1, 2)), tmp_path, False, 0, 1, only=True)
    assert list(found) == ["the square of 1"]


def test_several_processes_give_the_same(tmp_path):
    one, _ = outcomes_of(squares(tmp_path / "log"), tmp_path / "one")
    two, _ = outcomes_of(squares(tmp_path / "log"), tmp_path / "two", jobs=2)
    assert one == two


# --- MCMC ---------------------------------------------------------------------------------------------


def test_chains_find_a_gaussian():
    """Means within 4.5 of their standard errors; R-hat near 1; and a number of draws that is not made up."""
    q = mgvbp.Gaussian([1.0, -2.0], variance=[[1.0, 0.9], [0.9, 2.0]])
    chains = sample(q.log_density, mgvbp.Gaussian([0.5, -1.5], variance=0.3), seed=1, steps=1500, walkers=20)
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


def test_cells_can_be_sent_to_other_processes():
    for name in paper.EXPERIMENTS:
        full, quick = (command.load(name).cells(quick) for quick in (False, True))
        assert quick
        assert quick.keys() <= full.keys()
        assert pickle.loads(pickle.dumps(full)).keys() == full.keys()


def test_what_has_not_run_is_not_shown():
    for name in paper.EXPERIMENTS:
        experiment = command.load(name)
        rows = [row for table in experiment.tables({}) for row in table.rows]
        assert not any(finite(value) for row in rows for value in row.ours.values())
        assert experiment.figures({}) == {}


def test_unknown_experiments_are_named(capsys):
    assert cli.main(["reproduce", "labour", "nonsense"]) == 1
    assert "no experiment is called nonsense; there are slr, labour" in capsys.readouterr().err


def test_without_its_data_an_experiment_is_left_out_and_the_rest_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MGVBP_DATA", raising=False)
    monkeypatch.setattr(mgvbp.datasets, "load", missing)
    log = tmp_path / "log"
    found = {"labour": squares(log, data=("istanbul",)), "slr": squares(log)}
    monkeypatch.setattr(command, "load", lambda name, data, runs: found[name])
    assert cli.main(["reproduce", "labour", "slr", "--out", str(tmp_path / "out")]) == 1
    out = capsys.readouterr().out
    assert "left out" in out
    assert "fetch it" in out
    assert "Squares <of numbers>" in out
    assert json.loads(next((tmp_path / "out" / "cells").rglob("*.json")).read_text())["seed"] == 0


def missing(name):
    raise mgvbp.DataUnavailableError("fetch it")
