"""The limit-order-book experiment: the paper's table, what the runs share, and a whole run on a few windows."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("emcee", reason="the experiments need their extra: pip install 'mgvbp[experiments]'")
pytest.importorskip("blackjax", reason="networks need their extra: pip install 'mgvbp[jax]'")

from test_paper_tables import of_lob

import mgvbp
from common import write_fi2010
from mgvbp import cli, datasets
from mgvbp.baselines import Chains
from mgvbp.paper import engine, lob
from mgvbp.paper.lob import EXPERIMENT, Plan, experiment, on_files
from mgvbp.paper.lob.results import PRINTED
from mgvbp.paper.lob.runs import BY_VALUES, TRUTH, Schedule, run_mcmc
from mgvbp.paper.spec import reference

PAPER = reference("tabl")["paper"]["tabl"]
TINY = Plan(
    windows=350, passes=30, batches=20, step_size=0.1, bound_draws=20, few_draws=20, checkpoints=2, few_windows=200,
    iterations=3,
)  # fmt: skip
SETTINGS = lob.settings(TINY)
SMALL = experiment(quick=TINY)
SEED = 1


# --- the paper's numbers ------------------------------------------------------------------------------


def test_numbers_of_simulated_data_are_not_judged_and_the_papers_are_shown_apart():
    tables = EXPERIMENT.tables(of_lob(""))
    verdicts = {table.verdict(row) for table in tables for row in table.rows}
    assert {verdict.partition(":")[0] for verdict in verdicts} == {"", "not reproducible"}
    shown = {name: {} for name in PAPER}
    for row in (row for table in tables for row in table.rows if row.paper):
        shown[row.name.removeprefix("FI-2010: ")] |= row.paper
    assert shown == PAPER
    for table in tables[:2]:
        names = [row.name for row in table.rows if row.ours]
        assert [name.removesuffix(", not converged") for name in names] == list(PRINTED)
        assert "MCMC, not converged" in names
    assert "not comparable" in tables[0].note
    assert "2,000 windows only" in tables[0].note
    assert "R-hat up to 1.30" in tables[0].note
    assert "not converged, no reference" in tables[0].note


# --- what the runs share ------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [False, True])
def test_cells_of_other_data_have_names_of_their_own(quick):
    simulated, real = EXPERIMENT.cells(quick), experiment("books").cells(quick)
    assert len({*simulated, *real}) == len(simulated) + len(real)
    longer = set() if quick else {f"{name}, 4,000 iterations" for name in BY_VALUES}
    assert set(simulated) - {"MCMC"} == {*PRINTED, TRUTH, *longer} - {"MCMC"}
    assert ("MCMC" in simulated) is not quick


def test_methods_that_are_compared_take_the_same_steps():
    for pair in (("MGVBP gradient", "QBVI diag, same steps"), ("MGVBP h", "QBVI h diag")):
        first, second = (SETTINGS[name] for name in pair)
        assert (first.num_draws, first.batches) == (second.num_draws, second.batches)
        methods = first.prepared(40), second.prepared(40)
        assert {m.precision_scale for m in methods} == {2.0}
        for t in (1, 7, 40):
            assert methods[0].step_size_at(t) == methods[1].step_size_at(t)


def test_steps_rise_stay_and_fall():
    steps = np.array([Schedule(0.1, 100)(t) for t in range(1, 101)])
    assert steps[0] == pytest.approx(0.1 * 10 ** (-2.5 * 9 / 10))
    assert (np.diff(steps[:10]) > 0.0).all()
    np.testing.assert_array_equal(steps[9:31], 0.1)
    np.testing.assert_allclose(steps[31:], 0.1 * np.arange(69, 0, -1) / 70)


# --- a whole run on a few windows ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("lob")


@pytest.fixture(scope="module")
def outcomes(directory):
    return list(engine.run(SMALL, directory, quick=True, seed=SEED, jobs=1))[-1][2]


@pytest.fixture(scope="module")
def problem():
    return lob.problem(TINY, SEED)


def test_every_cell_has_what_tables_and_figures_show(outcomes):
    assert set(outcomes) == {*SETTINGS, "ADAM", TRUTH, *(f"{name}, 3 iterations" for name in BY_VALUES)}
    tables = SMALL.tables(outcomes)
    assert [table.label for table in tables] == ["tabl", "tabl", "tabl_passes", "tabl_values"]
    assert [row.ours["iterations"] for row in tables[-1].rows] == [3.0, 3.0]
    for table in tables:
        for row in (row for row in table.rows if row.ours):
            missing = {c for c in table.columns if c not in row.ours}
            assert missing <= ({"LB*"} if row.name in ("ADAM", TRUTH) else set())
            assert all(math.isfinite(row.ours[c]) for c in table.columns if c not in missing)
    assert set(SMALL.figures(outcomes)) == {"learning", "reliability"}


def test_all_methods_start_at_one_gaussian_and_end_after_equal_passes(outcomes):
    """To within the passes of an iteration."""
    first = [outcomes[name].curves["bound"][0] for name in SETTINGS]
    np.testing.assert_allclose(first, first[0], rtol=1e-6)
    for name, setting in SETTINGS.items():
        assert TINY.passes - setting.passes < outcomes[name].values["passes"] <= TINY.passes
        assert outcomes[name].n_evaluations == outcomes[name].values["iterations"] * setting.num_draws


def test_vogn_gains_from_the_start(outcomes):
    curve = outcomes["VOGN diag"].curves["bound"]
    assert outcomes["VOGN diag"].values["LB*"] > curve[0] + 50.0


def test_the_start_is_better_than_the_frequencies_of_the_classes(problem):
    shares = np.bincount(problem.y["train"]) / problem.num_windows
    entropy = -problem.num_windows * (shares * np.log(shares)).sum()
    assert problem.all_windows(problem.start[None])[0] > -entropy


def test_the_bound_is_that_of_its_definition(problem):
    """Against the sum over the windows and SciPy's densities, on the same draws."""
    from scipy.stats import multivariate_normal

    d = problem.network.dim
    q = mgvbp.Gaussian(problem.start, variance=1e-3)
    bound, error = problem.bound(q, 20)
    theta = q.sample(20, rng=2**31)
    h = problem.network.pointwise(theta, problem.X["train"], problem.y["train"]).sum(axis=1)
    h += multivariate_normal(np.zeros(d), 5.0 * np.eye(d)).logpdf(theta)
    h -= multivariate_normal(problem.start, 1e-3 * np.eye(d)).logpdf(theta)
    assert bound == pytest.approx(h.mean(), rel=1e-6)
    assert error == pytest.approx(h.std(ddof=1) / np.sqrt(20), rel=1e-3)


def test_the_truth_is_as_good_as_can_be(outcomes, problem):
    """Its accuracy has the known expectation, at 4.5 standard errors; nobody beats its density in expectation."""
    for part, books in problem.parts.items():
        p = books.probabilities.max(axis=1)
        error = np.sqrt((p * (1.0 - p)).sum()) / len(p)
        assert abs(outcomes[TRUTH].values[f"{part} acc"] - books.bayes_accuracy) < 4.5 * error
    assert max(outcomes[n].values["test lpd"] for n in SETTINGS) < outcomes[TRUTH].values["test lpd"]


def test_reliability_is_that_of_the_test_windows(outcomes, problem):
    for outcome in outcomes.values():
        shares, off = (np.array(outcome.curves[c]) for c in ("share", "confidence"))
        assert shares.sum() == pytest.approx(1.0)
        off = np.abs(off - outcome.curves["accuracy"])
        assert shares @ off == pytest.approx(outcome.values["test ECE"])


def test_mcmc_is_of_the_windows_that_it_says(monkeypatch, problem):
    """With draws made up: all at the start, so that the measures are those of the start."""
    seen = {}

    def chains(likelihood, prior, initial, num_warmup, num_draws, chains, rng):
        seen.update(rows=likelihood.num_rows, apart=np.abs(initial - problem.start).max(), prior=prior)
        draws = np.broadcast_to(problem.start, (chains, num_draws, problem.network.dim))
        return Chains(draws + 1e-9 * np.random.default_rng(0).standard_normal(draws.shape), 3)

    monkeypatch.setattr(mgvbp.baselines, "nuts", chains)
    plan = replace(TINY, chain_windows=100, num_warmup=5, num_draws=20, chains=2)
    outcome = run_mcmc(plan, SEED)
    assert seen["rows"] == outcome.values["windows"] == 100
    assert 0.0 < seen["apart"] < 0.1
    assert outcome.values["divergences"] == 3
    assert outcome.values["kept"] == 40
    point = problem.measures(problem.predictions(problem.start, 1))
    assert outcome.values["test lpd"] == pytest.approx(point["test lpd"], abs=1e-5)


# --- the files of FI-2010 -----------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("MGVBP_DATA", str(tmp_path / "cache"))
    (tmp_path / "books").mkdir()
    data = datasets.simulate_lob(2000, rng=3)
    write_fi2010(data, tmp_path / "books")
    return tmp_path / "books", data


def test_the_files_are_what_is_fitted(files):
    directory, data = files
    found = lob.problem(replace(TINY, directory=str(directory)), 0)
    np.testing.assert_array_equal(found.y["train"], data.train.y)
    np.testing.assert_allclose(found.X["test"], np.asarray(data.test.X), atol=1e-5)
    assert found.true_predictions() == {}
    assert not any(TRUTH in name for name in on_files(directory).cells(True))


def test_the_command_hands_the_directory_on(files, tmp_path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(lob.runs, "cells", lambda plan: seen.append(plan.directory) or {})
    assert cli.main(["reproduce", "lob", "--data", str(files[0]), "--out", str(tmp_path / "out")]) == 0
    assert set(seen) == {str(files[0].resolve())}


def test_a_directory_without_files_is_named(tmp_path, capsys):
    assert cli.main(["reproduce", "lob", "--data", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_data_of_an_experiment_that_takes_none(capsys):
    assert cli.main(["reproduce", "slr", "--data", "books"]) == 1
    assert "--data is for the experiment lob" in capsys.readouterr().err


def test_without_jax_the_experiment_is_left_out_and_says_how_to_get_it(tmp_path, monkeypatch, capsys):
    def missing(*args):
        raise mgvbp.MissingDependencyError("pip install 'mgvbp[jax]'")

    monkeypatch.setattr(mgvbp.networks, "tabl", missing)
    assert cli.main(["reproduce", "lob", "--quick", "--seed", "77", "--out", str(tmp_path)]) == 1
    assert "left out. pip install 'mgvbp[jax]'" in capsys.readouterr().out
