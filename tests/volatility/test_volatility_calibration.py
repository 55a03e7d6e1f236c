"""Simulation-based calibration (Talts et al. 2018) of the persistence α + γ/2 + β, whose posterior is skewed.

Where the parameters come from the prior, the rank of the truth among posterior draws is uniform.
"""

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import mgvbp
from mgvbp.volatility import GARCH, GJR

SERIES, DAYS, DRAWS = 12, 800, 99
"""Series of each model, their days, and the posterior draws that the truth is ranked among."""
PRIOR_MOMENTS = {
    "mu": (0.0, 0.1),
    "omega": (-2.5, 0.3),
    "alpha[1]": (-2.2, 0.3),
    "gamma[1]": (-2.0, 0.3),
    "beta[1]": (2.0, 0.5),
}
WEIGHTS = {"alpha[1]": 1.0, "gamma[1]": 0.5, "beta[1]": 1.0}


def persistence(values):
    return sum(weight * values[name] for name, weight in WEIGHTS.items() if name in values)


def ranks(model, seed):
    mean, variance = np.array([PRIOR_MOMENTS[name] for name in model.parameters.names]).T
    prior = mgvbp.Gaussian(mean, variance=variance)
    rng = np.random.default_rng(seed)
    found = []
    for psi in prior.sample(SERIES, rng):
        truth = model.parameters.constrain(psi)
        result = model.fit(model.simulate(truth, DAYS, rng), prior)
        assert result.posterior.converged
        found.append((persistence(result.posterior.draws(DRAWS, rng)) < persistence(truth)).sum())
    return np.array(found)


@pytest.mark.filterwarnings("ignore::mgvbp.ScaleWarning")  # some draws from the prior are small
def test_ranks_of_the_persistence_are_uniform():
    """The ranks of both models together, 24 of them; each of two tests at the level 0.5%: 1% in all."""
    found = np.concatenate([ranks(GARCH(1, 1), seed=1), ranks(GJR(1, 1, 1), seed=2)])
    counts = np.bincount(found // 20, minlength=5)
    assert chisquare(counts).pvalue > 0.005, counts
    assert kstest((found + 0.5) / (DRAWS + 1), "uniform").pvalue > 0.005
