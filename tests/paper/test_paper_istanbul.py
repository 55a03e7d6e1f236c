"""The experiments on the Istanbul data and the non-differentiable model: numbers, tables, verdicts."""

from __future__ import annotations

import os
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import mgvbp
from mgvbp.models import LinearRegression
from mgvbp.paper import istanbul, nondiff
from mgvbp.paper.common import linear_lower_bound
from mgvbp.paper.istanbul import BETAS, COORDINATES, STRUCTURES, Istanbul
from mgvbp.paper.nondiff import NonDifferentiable
from mgvbp.paper.spec import Outcome, reference

needs_data = pytest.mark.skipif(
    "MGVBP_DATA" not in os.environ, reason="MGVBP_DATA does not name a directory with the authors' files"
)

# --- Istanbul: outcomes made up from the reference ----------------------------------------------------


def as_outcome(who, structure):
    """An outcome that is exactly what the paper prints, or the exact optimum."""
    known = reference("istanbul")[who]
    values = dict(known["istanbul_perf"][structure])
    values |= {f"mean {c}": v for c, v in known["istanbul_mu"][structure].items()}
    values |= {f"sd {c}": v for c, v in known["istanbul_cov_2"][structure].items()}
    for part in BETAS:
        row = known["istanbul_cov"].get(f"{structure} {part}", {})
        values |= {f"cov {part} {c}": v for c, v in row.items()}
    return Outcome(values)


@cache
def paper_again():
    """As if every run gave what the paper prints."""
    made = {f"{s} {how}": as_outcome("paper", s) for s in STRUCTURES for how in ("as printed", "as run")}
    return (
        made | {f"{s} auto": as_outcome("exact", s) for s in STRUCTURES} | {"ML": as_outcome("paper", "ML")}
    )


def verdicts(tables):
    return {(t.title, row.name): t.verdict(row) for t in tables for row in t.rows}


def test_every_printed_number_is_in_the_tables():
    """45 means, 24 performances, 97 covariances and 44 standard deviations, each beside a number of ours."""
    counts = {"istanbul_mu": 45, "istanbul_perf": 24, "istanbul_cov": 97, "istanbul_cov_2": 44}
    paper = reference("istanbul")["paper"]
    assert {label: sum(map(len, rows.values())) for label, rows in paper.items()} == counts
    shown = {label: [] for label in [*counts, "istanbul_ml"]}
    for table in Istanbul().tables(paper_again()):
        for row in table.rows:
            if "as printed" in row.name or "auto" in row.name:
                continue  # the same numbers once more
            pairs = [(row.ours.get(c), row.paper.get(c)) for c in table.columns]
            shown[table.label] += [b for a, b in pairs if a is not None and b is not None]
    ml = {"istanbul_mu": 9, "istanbul_cov": 28, "istanbul_cov_2": 8}
    assert len(shown.pop("istanbul_ml")) == sum(ml.values())
    for label, numbers in shown.items():
        rows = paper[label].items()
        printed = [
            x for key, row in rows for x in row.values() if label == "istanbul_perf" or "ML" not in key
        ]
        assert sorted(numbers) == sorted(printed)
        assert len(numbers) == counts[label] - ml.get(label, 0)


def test_verdicts():
    found = verdicts(Istanbul().tables(paper_again()))
    perf = "Istanbul: lower bound and fit"
    assert all(v == "reproduces" for (_, name), v in found.items() if "auto" not in name)
    for structure in ("full", "block 1"):
        assert found[perf, f"{structure}, auto"] == "reproduces"
    for structure in ("diagonal", "block 2"):
        for title in (perf, "Istanbul: posterior means"):
            assert found[title, f"{structure}, auto"] == "better than the paper: it had not converged"


def test_a_wrong_number_is_seen():
    outcomes = dict(paper_again())
    for name in ("ML", "full as run", "diagonal as run"):
        values = outcomes[name].values
        outcomes[name] = Outcome(values | {"mean EU": values["mean EU"] + 0.02})
    found = verdicts(Istanbul().tables(outcomes))
    assert found["Istanbul: maximum likelihood", "EU"].startswith("differs (estimate)")
    means = "Istanbul: posterior means"
    full, diagonal = (found[means, f"{s}, MGVBP, settings as run"] for s in ("full", "diagonal"))
    assert full == f"differs (EU): {istanbul.NOISE}"
    assert diagonal == f"differs (EU): {istanbul.ON_THE_WAY}"


@pytest.mark.parametrize(
    ("runs", "verdict"), [([1170.0, 1175.0, 1181.0], "reproduces"), ([1180.0] * 3, "differs")]
)
def test_the_spread_is_the_tolerance(runs, verdict):
    made = {"spread diagonal": Outcome({}, {"LB*": runs, "mean EU": [0.1, 0.6, 1.0]})}
    (table,) = Istanbul().tables(made)
    assert table.verdict(table.rows[0]).startswith(verdict)


def test_nothing_run_nothing_shown():
    for experiment in (Istanbul(), NonDifferentiable()):
        assert experiment.tables({}) == []
        assert experiment.figures({}) == {}


@pytest.mark.parametrize("experiment", [Istanbul(), NonDifferentiable()])
def test_cells(experiment):
    names = [cell.name for cell in experiment.cells(quick=False)]
    assert len(set(names)) == len(names)
    assert {cell.name for cell in experiment.cells(quick=True)} < set(names)


def test_the_exact_bound_is_that_of_draws():
    """Within 4 standard errors, at a Gaussian that correlates everything."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(60), rng.standard_normal((60, 2))])
    model = LinearRegression(X, X @ [0.5, 1.0, -1.0] + rng.standard_normal(60))
    prior = mgvbp.Gaussian(mean=0.3, variance=2.0, dim=4)
    q = mgvbp.Gaussian([0.4, 0.8, -0.9, 0.1], 0.02 * (np.eye(4) + 0.5))
    theta = q.sample(40_000, rng=1)
    values = model(theta) + prior.log_density(theta) - q.log_density(theta)
    assert abs(values.mean() - linear_lower_bound(model, prior, q)) < 4.0 * values.std() / 200.0


# --- Istanbul: runs -----------------------------------------------------------------------------------


@needs_data
def test_ml_has_the_printed_digits():
    ml, paper = istanbul.run_ml(0).values, reference("istanbul")["paper"]
    for column, printed in paper["istanbul_perf"]["ML"].items():
        assert abs(ml[column] - printed) <= 0.00501
    for name, printed in paper["istanbul_mu"]["ML"].items():
        assert abs(ml[f"mean {name}"] - printed) <= 0.000501
    for name, printed in paper["istanbul_cov_2"]["ML"].items():
        assert abs(ml[f"sd {name}"] - printed) <= 0.000501
    for a, b in combinations(BETAS, 2):
        assert abs(ml[f"cov {a} {b}"] - paper["istanbul_cov"][f"ML {a}"][b]) <= 0.000501


@needs_data
@pytest.mark.parametrize("structure", STRUCTURES)
def test_auto_is_at_the_exact_optimum(structure):
    exact = reference("istanbul")["exact"]
    values = istanbul.run_auto(0, structure).values
    assert -1e-6 < values["below optimum"] < 0.005
    for column, optimum in exact["istanbul_perf"][structure].items():
        assert values[column] == pytest.approx(optimum, abs=0.02)
    for name in COORDINATES:
        assert values[f"sd {name}"] == pytest.approx(exact["istanbul_cov_2"][structure][name], rel=0.03)


@needs_data
def test_tiny_runs_fill_their_rows():
    outcomes = {
        "ML": istanbul.run_ml(0),
        "MCMC": istanbul.run_mcmc(0, steps=50),
        "full as printed": istanbul.run_mgvbp(0, "full", "as printed", max_iterations=3),
        "block 2 as run": istanbul.run_mgvbp(0, "block 2", "as run", max_iterations=3),
    }
    for panel in istanbul.PANELS:
        for method in istanbul.METHODS:
            race = istanbul.run_race(0, method, "full", panel, max_iterations=12)
            outcomes[f"{panel}: {method} full"] = race
    tables = Istanbul().tables(outcomes)
    assert {t.label for t in tables} == {
        "istanbul_perf", "istanbul_mu", "istanbul_cov", "istanbul_cov_2", "istanbul_ml", "istanbul_race",
    }  # fmt: skip
    assert set(Istanbul().figures(outcomes)) == {"lower-bound", "race"}
    assert outcomes["block 2 as run"].n_evaluations == 150


@needs_data
def test_the_race_is_on_common_draws():
    """At the first iteration all methods are at the same Gaussian, and their gap is the same."""
    gaps = {
        istanbul.run_race(0, m, "full", "no clip", max_iterations=1).curves["gap"][0]
        for m in istanbul.METHODS
    }
    assert len(gaps) == 1


# --- the non-differentiable model ---------------------------------------------------------------------


def test_all_of_the_papers_table():
    """21 numbers, each in the table of both forms."""
    paper = reference("nondiff")["paper"]["non_diff"]
    made = {f"{f} 0 {m} equal steps": Outcome(dict(paper[m])) for f in nondiff.FORMS for m in paper}
    tables = [t for t in NonDifferentiable().tables(made) if t.label == "non_diff"]
    assert len(tables) == 2
    for table in tables:
        pairs = [(row.ours.get(c), row.paper.get(c)) for row in table.rows for c in table.columns]
        assert sum(a is not None and a == b for a, b in pairs) == 21
        assert {table.verdict(row) for row in table.rows} == {"reproduces"}


def test_the_papers_log_likelihoods_and_mses_are_those_of_2000_and_500_rows():
    """SSE = −2 log-lik − n log 2π, over n − 20, to the printed digit; ours are the same function of each other."""

    def mse(log_likelihood, n):
        return (-2.0 * log_likelihood - n * np.log(2.0 * np.pi)) / (n - 20)

    at = nondiff.simulated("norms", 0, 0)
    ours = nondiff.performance(at, np.full(nondiff.DIM, 0.5))
    for prefix, n in (("", 2000), ("test ", 500)):
        assert ours[f"{prefix}MSE"] == pytest.approx(mse(ours[f"{prefix}log-lik"], n), rel=1e-12)
        for row in reference("nondiff")["paper"]["non_diff"].values():
            assert abs(mse(row[f"{prefix}log-lik"], n) - row[f"{prefix}MSE"]) <= 0.000501
            assert mse(row[f"{prefix}log-lik"], 2 * n) < 0.0
    theta = np.full((1, nondiff.DIM), 0.5)
    assert ours["log-lik"] == pytest.approx(at.model(theta)[0], rel=1e-12)


def test_tolerances_are_those_of_the_errors():
    """Standard deviations of the seven columns at the true β, over 400 data sets: within 15% (4 s.e.)."""
    rng = np.random.default_rng(1)
    train, test = rng.standard_normal((400, nondiff.TRAIN)), rng.standard_normal((400, nondiff.TEST))
    for prefix, errors in (("", train), ("test ", test)):
        squares = (errors**2).sum(axis=1)
        assert (0.5 * squares).std() == pytest.approx(nondiff.SPREAD[f"{prefix}log-lik"], rel=0.15)
        assert squares.std() / errors.shape[1] == pytest.approx(nondiff.SPREAD[f"{prefix}MSE"], rel=0.15)
        assert np.abs(errors).mean(axis=1).std() == pytest.approx(nondiff.SPREAD[f"{prefix}MAD"], rel=0.15)


def test_norms_with_2000_rows_are_the_only_form_not_excluded():
    """The paper's bound is closer to its log-likelihood than the optimum's is under the other forms."""
    paper = reference("nondiff")["paper"]["non_diff"]["MGVBP"]
    printed = paper["log-lik"] - paper["LB*"]
    least = {
        (form, rows): min(nondiff.run_form(0, form, rows, 10).curves["log-lik − LB*"])
        for form in nondiff.FORMS
        for rows in (2000, 4000)
    }
    assert [key for key, smallest in least.items() if smallest < printed] == [("norms", 2000)]


def test_the_approximation_of_the_gap_is_that_of_a_fit():
    """For squared norms away from the kinks the posterior is Gaussian: the log evidence is the bound."""
    for number in range(1000, 1010):
        at = nondiff.simulated("squared norms", 0, number)
        evidence = nondiff.log_evidence(at.model)
        if evidence is not None:
            break
    A = 4.0 * (1.0 - at.model.X)
    P = A.T @ A + np.eye(nondiff.DIM)
    mean = np.linalg.solve(P, A.T @ at.model.y)
    q = mgvbp.Gaussian(mean, precision=P)
    assert nondiff.bound(at.model, q, 1000) == pytest.approx(
        evidence, abs=1e-6
    )  # no noise: q is the posterior
    gap = nondiff.performance(at, mean)["log-lik"] - evidence
    J = nondiff.slopes(at.model, mean)
    np.testing.assert_allclose(J, A, atol=1e-6)
    trace = np.trace(np.linalg.inv(P))
    assert gap == pytest.approx(0.5 * (np.linalg.slogdet(P)[1] + mean @ mean), abs=1e-6)
    assert trace < 0.01  # what the closed form adds


def test_the_methods_share_start_and_draws():
    """The first bound is the same number, and both use what they are given: 60 iterations of 15 draws."""
    runs = {
        m: nondiff.run_method(0, "norms", 1, m, "equal steps", max_iterations=60) for m in ("MGVB", "MGVBP")
    }
    assert runs["MGVB"].values["first LB"] == runs["MGVBP"].values["first LB"]
    assert all(run.n_evaluations == 900 for run in runs.values())


def test_a_broken_run_is_a_dash_with_its_reason():
    values = {"LB": -2900.0, "queries": 1.0, "few": -2900.0}
    along = {"iteration": [1.0], "bound": [-2900.2]}
    made = {"norms 0 auto": Outcome(values), "norms 0 MGVBP other clip": Outcome(values, along)}
    made["norms 0 MGVB other clip"] = Outcome(values | {"LB": -1e22}, {"iteration": [], "bound": []})
    (table,) = (t for t in NonDifferentiable().tables(made) if t.label == "non_diff_race")
    rows = {row.name: row for row in table.rows}
    assert rows["MGVB, other clip"].ours["behind MGVBP"] == np.inf
    assert table.verdict(rows["MGVB, other clip"]).endswith("it breaks down")
    assert rows["MGVBP, other clip"].ours["to 0.5 nats of auto"] == 1.0
    assert table.verdict(rows["MGVBP, other clip"]) == "reproduces"


def test_tiny_runs_of_the_model():
    tiny = {
        "norms 0 ML": nondiff.run_ml(0, "norms", 0),
        "norms 0 auto": nondiff.run_auto(0, "norms", 0, max_evaluations=800),
        "form norms 2000": nondiff.run_form(0, "norms", 2000, 3),
    }
    for method in nondiff.METHODS:
        tiny[f"norms 0 {method} equal steps"] = nondiff.run_method(0, "norms", 0, method, "equal steps", 5)
    tables = NonDifferentiable().tables(tiny)
    assert [t.label for t in tables] == ["non_diff", "non_diff_forms", "non_diff_race"]
    assert set(NonDifferentiable().figures(tiny)) == {"bounds", "forms"}
    best = tiny["norms 0 ML"].values["log-lik"]
    assert all(run.values["log-lik"] <= best for name, run in tiny.items() if "form" not in name)
