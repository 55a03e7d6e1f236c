"""The experiment slr: a posterior that is known, the first step of each update, and a whole run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("emcee", reason="MCMC beside the approximations (experiments extra)")

import mgvbp
from mgvbp.paper import slr


def test_the_posterior_of_the_line_is_exact():
    """log prior + log-likelihood − log posterior is one constant."""
    line = slr.Line(0)
    theta = np.random.default_rng(1).standard_normal((5, 2))
    joint = line.likelihood(theta) + line.prior.log_density(theta)
    assert np.ptp(joint - line.posterior.log_density(theta)) < 1e-9
    assert len(line.y) == 101
    assert line.divergence(line.posterior) == pytest.approx(0.0, abs=1e-12)


def test_the_divergence_is_that_of_sampling():
    """Within 4 standard errors."""
    line = slr.Line(0)
    q = mgvbp.Gaussian(line.posterior.mean + np.array([0.1, -0.05]), 1.7 * line.posterior.covariance)
    theta = q.sample(20_000, 2)
    terms = q.log_density(theta) - line.posterior.log_density(theta)
    assert abs(terms.mean() - line.divergence(q)) < 4 * terms.std() / 20_000**0.5


@pytest.mark.parametrize(("update", "scale"), [("MGVB", 2.0), ("MGVB rev.", 1.0)])
def test_the_first_step_is_the_retraction(update, scale):
    """Σ + ξ + ½ ξ Σ⁻¹ ξ with ξ = β · scale · Σ∇_ΣΣ and ∇_Σ = ½(Σ⁻¹ − P), exactly."""
    curves = slr.follow(update, 0.05, seed=0, iterations=2).curves
    sigma = slr.INITIAL_VARIANCE * np.eye(2)
    xi = 0.05 * scale * sigma @ (0.5 * (np.linalg.inv(sigma) - slr.Line(0).posterior.precision)) @ sigma
    expected = sigma + xi + 0.5 * xi @ np.linalg.inv(sigma) @ xi
    assert [curves[f"var {name}"][0] for name in slr.NAMES] == pytest.approx([slr.INITIAL_VARIANCE] * 2)
    assert [curves[f"var {name}"][1] for name in slr.NAMES] == pytest.approx(
        np.diag(expected).tolist(), rel=1e-9
    )


def test_all_of_slr_but_its_long_chain():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcomes = {name: run(0) for name, run in slr.EXPERIMENT.cells(quick=True).items()}
    ends, speed = slr.EXPERIMENT.tables(outcomes)
    verdicts = {row.name: ends.verdict(row) for row in ends.rows}
    assert len(verdicts) == 9
    assert all(v == "at the exact optimum" for name, v in verdicts.items() if name not in ("ML", "MCMC"))
    for row in speed.rows:
        assert 0 < row.ours["MGVB"] < row.ours["MGVB rev."]  # twice the step in Σ arrives sooner
    assert set(slr.EXPERIMENT.figures(outcomes)) == {"manifold", "path"}
    assert outcomes["auto"].values["slope"] == pytest.approx(outcomes["exact"].values["slope"], abs=1e-6)
