"""The experiment on the Istanbul data: the paper's numbers, tables, verdicts and runs."""

from __future__ import annotations

import os
from functools import cache, partial
from itertools import combinations

import numpy as np
import pytest

import mgvbp
from mgvbp.models import LinearRegression
from mgvbp.paper.bounds import linear_lower_bound
from mgvbp.paper.common import METHODS
from mgvbp.paper.istanbul import EXPERIMENT
from mgvbp.paper.istanbul.results import NOISE, ON_THE_WAY
from mgvbp.paper.istanbul.runs import BETAS, COORDINATES, RACES, STRUCTURES, run_mgvbp, run_race, target
from mgvbp.paper.spec import Outcome, reference
from mgvbp.paper.target import run_mcmc, run_ml

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
    for table in EXPERIMENT.tables(paper_again()):
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
    found = verdicts(EXPERIMENT.tables(paper_again()))
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
    found = verdicts(EXPERIMENT.tables(outcomes))
    assert found["Istanbul: maximum likelihood", "EU"].startswith("differs (estimate)")
    means = "Istanbul: posterior means"
    full, diagonal = (found[means, f"{s}, MGVBP, settings as run"] for s in ("full", "diagonal"))
    assert full == f"differs (EU): {NOISE}"
    assert diagonal == f"differs (EU): {ON_THE_WAY}"


@pytest.mark.parametrize(
    ("runs", "verdict"), [([1170.0, 1175.0, 1181.0], "reproduces"), ([1180.0] * 3, "differs")]
)
def test_the_spread_is_the_tolerance(runs, verdict):
    made = {"spread diagonal": Outcome({}, {"LB*": runs, "mean EU": [0.1, 0.6, 1.0]})}
    (table,) = EXPERIMENT.tables(made)
    assert table.verdict(table.rows[0]).startswith(verdict)


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
    ml, paper = target("full").maximum_likelihood().values, reference("istanbul")["paper"]
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
    values = EXPERIMENT.cells(True)[f"{structure} auto"](0).values
    assert -1e-6 < values["below optimum"] < 0.005
    for column, optimum in exact["istanbul_perf"][structure].items():
        assert values[column] == pytest.approx(optimum, abs=0.02)
    for name in COORDINATES:
        assert values[f"sd {name}"] == pytest.approx(exact["istanbul_cov_2"][structure][name], rel=0.03)


@needs_data
def test_tiny_runs_fill_their_rows():
    outcomes = {
        "ML": run_ml(partial(target, "full"), 0),
        "MCMC": run_mcmc(partial(target, "full"), 0, steps=50),
        "full as printed": run_mgvbp("full", "as printed", 0, max_iterations=3),
        "block 2 as run": run_mgvbp("block 2", "as run", 0, max_iterations=3),
    }
    for name, race in RACES.items():
        if race[2] == "full":
            outcomes[name] = run_race(*race, 0, max_iterations=12)
    tables = EXPERIMENT.tables(outcomes)
    assert {t.label for t in tables} == {
        "istanbul_perf", "istanbul_mu", "istanbul_cov", "istanbul_cov_2", "istanbul_ml", "istanbul_race",
    }  # fmt: skip
    assert set(EXPERIMENT.figures(outcomes)) == {"lower-bound", "race"}
    assert outcomes["block 2 as run"].n_evaluations == 150


@needs_data
def test_the_race_is_on_common_draws():
    """At the first iteration all methods are at the same Gaussian, and their gap is the same."""
    gaps = {run_race("no clip", m, "full", 0, max_iterations=1).curves["gap"][0] for m in METHODS}
    assert len(gaps) == 1
