"""`Posterior.kl`: closed forms, and what cannot be known."""

import numpy as np
import pytest
import scipy.stats

import mgvbp
from common import posterior_of
from mgvbp.errors import ConvergenceWarning
from mgvbp.posterior.distance import from_weights


def test_the_distance_of_a_diagonal_gaussian_is_the_closed_form():
    rho = 0.3  # which is also the shape of the weights: far from the limit
    target = mgvbp.Gaussian([0.0, 0.0], variance=[[1.0, rho], [rho, 1.0]])
    posterior = mgvbp.fit(target.log_density, dim=2, family="diagonal")
    found = from_weights(posterior, target.log_density, 1000)
    assert abs(found.kl + 0.5 * np.log(1.0 - rho**2)) < 4.0 * found.kl_se
    assert abs(found.log_evidence) < 4.0 * found.log_evidence_se
    assert posterior.components == 1


def test_the_same_density_is_at_no_distance():
    q = mgvbp.Gaussian([1.0], variance=[2.0])
    posterior = posterior_of(q, q.log_density)
    assert posterior.kl == pytest.approx(0.0, abs=1e-12)


def test_what_weights_cannot_tell_is_said():
    narrow = posterior_of(
        mgvbp.Gaussian(np.zeros(15), variance=0.01), lambda t: -8.0 * np.log1p((t**2).sum(axis=1))
    )
    with pytest.warns(ConvergenceWarning, match=r"cannot be known.*family='mixture'"):
        assert np.isnan(narrow.kl)
    assert np.isnan(narrow.log_evidence)


def test_tails_that_draws_of_q_hardly_reach_count():
    """Independent Student-t parameters, normalised, so that the log evidence is 0; over three seeds."""
    student = scipy.stats.t(3)

    def log_density(theta):
        return student.logpdf(theta).sum(axis=1)

    for seed in range(3):
        posterior = mgvbp.fit(log_density, dim=3, rng=seed)
        x = posterior.sample(100_000, rng=1)
        exact = float((posterior.log_density(x) - log_density(x)).mean())
        assert abs(posterior.kl - exact) < 4.0 * posterior.kl_se + 0.02
        assert abs(posterior.log_evidence) < 4.0 * posterior.log_evidence_se + 0.02


def test_known_noise_is_taken_off():
    rng = np.random.default_rng(0)

    def noisy(theta):
        return -0.5 * (theta**2).sum(axis=1) + rng.standard_normal(len(theta))

    posterior = mgvbp.fit(noisy, dim=2, noise=1.0)
    assert posterior.kl < 0.2  # it would be 0.5, half the variance of the noise
