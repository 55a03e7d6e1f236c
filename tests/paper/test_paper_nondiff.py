"""The non-differentiable model: the paper's table, which form its numbers fit, and runs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import mgvbp
from mgvbp.paper.nondiff import EXPERIMENT, runs
from mgvbp.paper.nondiff.results import SPREAD
from mgvbp.paper.spec import Outcome, reference


def test_the_papers_log_likelihoods_and_mses_are_those_of_2000_and_500_rows():
    """SSE = −2 log-lik − n log 2π, over n − 20, to the printed digit; ours are the same function of each other."""

    def mse(log_likelihood, n):
        return (-2.0 * log_likelihood - n * np.log(2.0 * np.pi)) / (n - 20)

    at = runs.simulated("norms", 0, seed=0)
    ours = at.performance(np.full(runs.DIM, 0.5))
    for prefix, n in (("", 2000), ("test ", 500)):
        assert ours[f"{prefix}MSE"] == pytest.approx(mse(ours[f"{prefix}log-lik"], n), rel=1e-12)
        for row in reference("nondiff")["paper"]["non_diff"].values():
            assert abs(mse(row[f"{prefix}log-lik"], n) - row[f"{prefix}MSE"]) <= 0.000501
            assert mse(row[f"{prefix}log-lik"], 2 * n) < 0.0
    theta = np.full((1, runs.DIM), 0.5)
    assert ours["log-lik"] == pytest.approx(at.model(theta)[0], rel=1e-12)


def test_tolerances_are_those_of_the_errors():
    """Standard deviations of the seven columns at the true β, over 400 data sets: within 15% (4 s.e.)."""
    rng = np.random.default_rng(1)
    train, test = rng.standard_normal((400, runs.TRAIN)), rng.standard_normal((400, runs.TEST))
    for prefix, errors in (("", train), ("test ", test)):
        squares = (errors**2).sum(axis=1)
        assert (0.5 * squares).std() == pytest.approx(SPREAD[f"{prefix}log-lik"], rel=0.15)
        assert squares.std() / errors.shape[1] == pytest.approx(SPREAD[f"{prefix}MSE"], rel=0.15)
        assert np.abs(errors).mean(axis=1).std() == pytest.approx(SPREAD[f"{prefix}MAD"], rel=0.15)


def test_norms_with_2000_rows_are_the_only_form_not_excluded():
    """The paper's bound is closer to its log-likelihood than the optimum's is under the other forms."""
    paper = reference("nondiff")["paper"]["non_diff"]["MGVBP"]
    printed = paper["log-lik"] - paper["LB*"]
    least = {
        (form, rows): min(runs.run_form(form, rows, 0, 10).curves["log-lik − LB*"])
        for form in runs.FORMS
        for rows in (2000, 4000)
    }
    assert [key for key, smallest in least.items() if smallest < printed] == [("norms", 2000)]


def test_the_approximation_of_the_gap_is_that_of_a_fit():
    """For squared norms away from the kinks the posterior is Gaussian: the log evidence is the bound."""
    for number in range(1000, 1010):
        at = runs.simulated("squared norms", number, seed=0)
        evidence = runs.log_evidence(at.model)
        if evidence is not None:
            break
    A = 4.0 * (1.0 - at.model.X)
    P = A.T @ A + np.eye(runs.DIM)
    mean = np.linalg.solve(P, A.T @ at.model.y)
    q = mgvbp.Gaussian(mean, precision=P)
    assert at.bound(q, 1000) == pytest.approx(evidence, abs=1e-6)  # no noise: q is the posterior
    gap = at.performance(mean)["log-lik"] - evidence
    J = runs.slopes(at.model, mean)
    np.testing.assert_allclose(J, A, atol=1e-6)
    trace = np.trace(np.linalg.inv(P))
    assert gap == pytest.approx(0.5 * (np.linalg.slogdet(P)[1] + mean @ mean), abs=1e-6)
    assert trace < 0.01  # what the closed form adds


def test_the_methods_share_start_and_draws():
    """The first bound is the same number, and both use what they are given: 60 iterations of 15 draws."""
    made = {m: runs.run_method("norms", 1, m, "equal steps", 0, max_iterations=60) for m in ("MGVB", "MGVBP")}
    assert made["MGVB"].values["first LB"] == made["MGVBP"].values["first LB"]
    assert all(run.n_evaluations == 900 for run in made.values())


def test_a_broken_run_is_a_dash_with_its_reason():
    values = {"LB": -2900.0, "queries": 1.0, "few": -2900.0}
    along = {"iteration": [1.0], "bound": [-2900.2]}
    made = {"norms 0 auto": Outcome(values), "norms 0 MGVBP other clip": Outcome(values, along)}
    made["norms 0 MGVB other clip"] = Outcome(values | {"LB": -1e22}, {"iteration": [], "bound": []})
    (table,) = (t for t in EXPERIMENT.tables(made) if t.label == "non_diff_race")
    rows = {row.name: row for row in table.rows}
    assert rows["MGVB, other clip"].ours["behind MGVBP"] == np.inf
    assert table.verdict(rows["MGVB, other clip"]).endswith("it breaks down")
    assert rows["MGVBP, other clip"].ours["to 0.5 nats of auto"] == 1.0
    assert table.verdict(rows["MGVBP, other clip"]) == ""  # it is not behind itself


def test_tiny_runs_of_the_model():
    at = runs.simulated("norms", 0, seed=0)
    tiny = {
        "norms 0 ML": at.maximum_likelihood(),
        "norms 0 auto": runs.run_auto(partial(runs.simulated, "norms", 0), 0, max_evaluations=800),
        "form norms 2000": runs.run_form("norms", 2000, 0, 3),
    }
    for method in runs.FAMILIES:
        tiny[f"norms 0 {method} equal steps"] = runs.run_method("norms", 0, method, "equal steps", 0, 5)
    tables = EXPERIMENT.tables(tiny)
    assert [t.label for t in tables] == ["non_diff", "non_diff_forms", "non_diff_race"]
    assert set(EXPERIMENT.figures(tiny)) == {"bounds", "forms"}
    best = tiny["norms 0 ML"].values["log-lik"]
    assert all(run.values["log-lik"] <= best for name, run in tiny.items() if "form" not in name)
