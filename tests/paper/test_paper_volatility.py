"""The experiments volatility and har: what is reported, the bound without noise, the tables, real cells."""

from __future__ import annotations

import os
from types import SimpleNamespace

import numpy as np
import pytest

from mgvbp import Gaussian
from mgvbp.models import HAR
from mgvbp.paper import har, volatility
from mgvbp.paper.common import ROUNDING, divergence, grid_lower_bound
from mgvbp.paper.daily import noisy_table
from mgvbp.paper.spec import Outcome, Row, reference
from mgvbp.paper.target import Path
from mgvbp.volatility import GARCH

needs_data = pytest.mark.skipif(
    "MGVBP_DATA" not in os.environ, reason="MGVBP_DATA does not name the directory of the authors' files"
)


# --- what is reported ---------------------------------------------------------------------------------


def test_report_against_a_plain_loop():
    """MSE, QLIKE and log-likelihood of a GARCH(1,1), day by day, with the paper's start-up values."""
    rng = np.random.default_rng(0)
    r, rv = rng.standard_normal(60), rng.uniform(0.5, 1.5, 60)
    model = GARCH(1, 1, convention="paper")
    at = volatility.Volatility(model, {"": (model.likelihood(r), {"r": r**2, "rv": rv**2})})
    omega, alpha, beta = 0.1, 0.2, 0.6
    psi = model.parameters.unconstrain({"omega": omega, "alpha[1]": alpha, "beta[1]": beta})
    h = [omega + alpha * np.mean(r**2) + beta * 0.7]
    for x in r[:-1]:
        h.append(omega + alpha * x**2 + beta * h[-1])
    h = np.array(h)
    found = {name: value[0] for name, value in at.report(psi[None]).items()}
    assert found["omega"] == pytest.approx(omega)
    assert found["log-lik"] == pytest.approx(-0.5 * np.sum(np.log(2 * np.pi * h) + r**2 / h))
    for name, x in (("r", r**2), ("rv", rv**2)):
        assert found[f"MSE {name}"] == pytest.approx(np.mean((x - h) ** 2))
        assert found[f"QLIKE {name}"] == pytest.approx(np.mean(x / h - np.log(x / h) - 1))


def simulated_har():
    v = 10.0 + np.random.default_rng(1).standard_normal(90).cumsum() * 0.2
    return har.Regression(HAR(v[:60]), HAR(v[30:]))


def test_har_report():
    at = simulated_har()
    theta = at.estimate()[0]
    fitted = at.test.X @ theta[:4]
    found = {name: value[0] for name, value in at.report(theta[None]).items()}
    assert found["sigma"] ** 2 == pytest.approx(found["MSE rv"])  # both divide by n − 4
    ratio = at.test.y / fitted
    assert found["test QLIKE rv"] == pytest.approx(100 * np.mean(ratio - np.log(ratio) - 1))
    assert found["test log-lik"] == pytest.approx(at.test(theta[None])[0])


def test_the_summary_has_the_spread_over_draws():
    """A normal number's own standard deviation, within 4 standard errors of the range of quantiles."""
    at = simulated_har()
    theta, sd = at.estimate()[0], 0.01
    draws = theta + sd * np.random.default_rng(0).normal(size=(4000, 5))
    values = at.summary(theta, draws)
    assert values["beta[1]"] == theta[1]
    assert values["sd beta[1]"] == pytest.approx(sd, rel=0.08)


# --- bounds without noise -----------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 5])
def test_quadrature_is_exact_for_a_quadratic(dim):
    rng = np.random.default_rng(dim)
    A = rng.normal(size=(dim, dim))
    q = Gaussian(rng.normal(size=dim), variance=A @ A.T + np.eye(dim))
    prior = Gaussian(variance=5.0, dim=dim)
    found = grid_lower_bound(lambda x: -0.5 * (x**2).sum(axis=1), prior, q, order=3)
    expected = -0.5 * (q.mean @ q.mean + np.trace(q.covariance)) - divergence(q, prior)
    assert found == pytest.approx(expected)


def test_har_bound_agrees_with_monte_carlo():
    """Within 4 standard errors of 200,000 draws."""
    at = simulated_har()
    A = np.array([[0.01] * 4 + [0.2]]).T * np.random.default_rng(2).normal(size=(5, 5))
    off = at.estimate()[0] + 0.02  # at the estimate itself the sign of Cov(β, ψ) would not matter
    q = Gaussian(off, variance=A @ A.T + 1e-6 * np.eye(5))
    theta = q.sample(200_000, 0)
    values = at.model(theta) + at.prior.log_density(theta) - q.log_density(theta)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - at.exact_bound(q)) < 4 * error
    assert error < 0.05 * abs(values.mean() - at.model(q.mean[None])[0])  # or the test would show nothing


def test_a_path_looks_at_every_tenth_iteration_and_knows_the_first_within_reach():
    path = Path(lambda iteration: 1.0 / iteration.gaussian.mean[0], every=10)
    for t in range(1, 60):
        path(SimpleNamespace(iteration=t, gaussian=Gaussian([float(t)], variance=1.0)))
    assert path.iterations == [1, 11, 21, 31, 41, 51]
    assert path.seen == [1.0 / t for t in path.iterations]
    assert path.arrival(lambda gap: gap <= 0.05) == {"arrival": 21.0}
    assert path.arrival(lambda gap: gap < 0.0) == {}


# --- tables -------------------------------------------------------------------------------------------


def verdict(values, paper, **others):
    outcomes = {"a": Outcome(values), **{name: Outcome(other) for name, other in others.items()}}
    table = noisy_table("t", "T", ["x"], [Row("a", values, paper, reason="why")], outcomes)
    return table.verdict(table.rows[0])


def test_errors_are_those_of_the_row():
    assert verdict({"x": 1.0}, {"x": 1.0005}) == "reproduces"  # rounding
    assert verdict({"x": 1.0}, {"x": 1.002}) == "differs (all columns): why"
    # a row of several seeds: the 99.73% point of Student's t with 7 degrees of freedom is 4.53; times √(1 + 1/8)
    seeds = {"x": 1.0, "sd x": 9.0, "spread x": 0.01, "seeds": 8.0}
    assert verdict(seeds, {"x": 1.0483}) == "reproduces"
    assert verdict(seeds, {"x": 1.0488}).startswith("differs")
    # a row of one seed, beside another model with eight: the same share of its posterior sd, for two single runs
    share = 4.53 * 2.0**0.5 * 0.01 / 9.0
    one = {"x": 1.0, "sd x": 90.0, "seeds": 1.0}
    assert verdict(one, {"x": 1.0 + 89.5 * share}, other=seeds) == "reproduces"
    assert verdict(one, {"x": 1.0 + 91.5 * share}, other=seeds).startswith("differs")
    # 3 √(1/1000 + 1/1000) = 0.134 standard deviations
    assert verdict({"x": 1.0, "sd x": 1.0, "ESS": 1000.0}, {"x": 1.134}) == "reproduces"
    assert verdict({"x": 1.0, "sd x": 1.0, "ESS": 1000.0}, {"x": 1.137}).startswith("differs")


def test_a_verdict_is_of_the_columns_of_its_table():
    values = {"x": 1.0, "sd x": 0.1, "LB*": -5.0, "log-lik": -4.0}
    assert verdict(values, {"x": 1.0, "LB*": -9.0, "log-lik": -9.0}) == "reproduces"


# --- real data ----------------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize("model", ["ARCH", "GARCH(1,0,1)", "EGARCH(1,0,1)"])
def test_auto_arrives_at_the_exact_optimum(model):
    values = volatility.cells_of(model)[f"{model} auto"](0).values
    exact = reference("volatility")["exact"][model]
    assert abs(values["LB at point"] - exact["LB*"]) < 0.02
    for column in ("omega", "alpha[1]", "MSE rv", "test QLIKE rv"):
        assert abs(values[column] - exact[column]) < 0.1 * values[f"sd {column}"]


@needs_data
def test_ml_of_garch_has_the_printed_parameters():
    values = volatility.target("GARCH(1,0,1)").maximum_likelihood().values
    paper = reference("volatility")["paper"]["vol_est"]["GARCH(1,0,1) ML"]
    for column in ("omega", "alpha[1]", "beta[1]", "QLIKE rv", "test QLIKE rv"):
        assert values[column] == pytest.approx(paper[column], abs=ROUNDING)
    assert values["log-lik"] == pytest.approx(-2017.5924, abs=1e-4)


@needs_data
def test_a_short_run_of_a_method():
    outcome = volatility.run_named("ARCH", "MGVB", 0, max_iterations=40)
    assert outcome.curves["iteration"] == [1, 11, 21, 31]
    assert outcome.n_evaluations == 40 * volatility.NUM_DRAWS
    assert outcome.values["LB at point"] < reference("volatility")["exact"]["ARCH"]["LB*"] + 1e-3
    again = volatility.run_named("ARCH", "MGVB", 0, max_iterations=40)
    assert again.values == outcome.values


@needs_data
def test_har_cells():
    cells, exact = har.EXPERIMENT.cells(quick=False), reference("har")["exact"]
    ml = cells["ML"](0).values
    paper = reference("har")["paper"]["vol_est_FIGARCH_HAR"]["ML"]
    assert all(ml[column] == pytest.approx(paper[column], abs=ROUNDING) for column in paper)
    for variant, family in har.FAMILIES.items():
        found = cells[f"auto{variant}"](0).values
        assert 0.0 <= exact[family]["LB*"] - found["LB at point"] + 1e-6 < 0.02
