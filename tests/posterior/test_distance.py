"""`Posterior.kl`: closed forms, and what cannot be known."""

import warnings

import numpy as np
import pytest
import scipy.stats
from scipy.special import gammaln

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


@pytest.mark.parametrize("gradients", [False, True])
def test_the_draws_of_a_fit_alone_say_about_how_far_it_is(gradients):
    """Logarithms of gamma variables: the evidence is known, and so is the bound of the best Gaussian."""
    d, a = 3, 0.5
    bound = d * (0.5 * np.log(2.0 * np.pi / a) + a * (np.log(a) - 1.0))  # v = 1/a and m = log a − v/2
    exact = d * gammaln(a) - bound
    grad = (lambda theta: a - np.exp(theta)) if gradients else None
    found = [
        mgvbp.fit(lambda theta: (a * theta - np.exp(theta)).sum(axis=1), dim=d, grad=grad, rng=seed)
        for seed in range(3)
    ]
    assert 0.5 < np.mean([posterior.rough_kl for posterior in found]) / exact < 2.0
    assert f"about {found[0].rough_kl:.1g} nats from the posterior itself" in found[0].summary()
    found[0].rough_kl = 1234.6
    assert "about 1,235 nats from the posterior itself" in found[0].summary()


def test_a_rough_distance_is_kept_and_shown_where_it_matters(tmp_path):
    near = mgvbp.fit(lambda theta: -0.5 * np.square(theta).sum(axis=1), dim=2)
    assert near.rough_kl == pytest.approx(0.0, abs=1e-6)
    assert "from the posterior itself" not in near.summary()
    far = mgvbp.fit(lambda theta: -np.abs(theta).sum(axis=1), dim=2)
    far.save(tmp_path / "far.npz")
    assert mgvbp.load(tmp_path / "far.npz").summary() == far.summary()
    for options in ({"noise": 0.1, "max_evaluations": 200}, {"method": "mgvbp", "max_iterations": 5}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            unknown = mgvbp.fit(lambda theta: -0.5 * np.square(theta).sum(axis=1), dim=2, **options)
        assert unknown.rough_kl is None
