"""Walkers in lockstep, the schedule of warm-up and doublings, and what a run returns when it is stopped."""

import numpy as np
import pytest
from scipy import special, stats

from mgvbp import Gaussian
from mgvbp.errors import ConvergenceWarning, DivergenceError, InvalidInputError
from mgvbp.sampling import ess, largest_rhat, rhat, sample, warn_of_chains
from mgvbp.sampling.chains import LONGEST, WALKERS, WARM_UP

MEAN, COVARIANCE = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 0.9, 0.0], [0.9, 1.0, -0.3], [0.0, -0.3, 0.5]])
PRECISION = np.linalg.inv(COVARIANCE)
FIT = Gaussian(MEAN + 0.3, 0.6 * COVARIANCE)
"""A fit that is too narrow and not where it should be."""
LEVEL = 1e-4


class Counted:
    """A correlated Gaussian, or what is given, which remembers the batches it was asked for."""

    def __init__(self, gradients=False, log_density=None):
        self.gradients, self.batches = gradients, []
        self.log_density = log_density or self.gaussian

    def gaussian(self, theta):
        return -0.5 * np.einsum("si,ij,sj->s", theta - MEAN, PRECISION, theta - MEAN)

    def __call__(self, theta):
        self.batches.append(len(theta))
        return self.log_density(theta), (MEAN - theta) @ PRECISION if self.gradients else None


@pytest.mark.parametrize("gradients", [False, True])
def test_moments_of_a_correlated_gaussian(gradients):
    """Means and variances within 4.9 standard errors: a level of 1e-6 each, 1e-4 for all and their correlation."""
    found = sample(FIT, Counted(gradients), gradients, draws=1000, chains=4, key=(3,))
    theta = found.theta
    size, z = ess(theta), (theta - MEAN) / np.sqrt(np.diag(COVARIANCE))
    assert theta.shape == (4, 1000, 3)
    assert (rhat(theta) <= 1.01).all()
    assert (size > 1500).all()
    limit = stats.norm.isf(LEVEL / 20)
    assert (np.abs(z.mean(axis=(0, 1))) * np.sqrt(size) < limit).all()
    squares = z**2
    assert (np.abs(squares.mean(axis=(0, 1)) - 1.0) < limit * np.sqrt(2.0 / ess(squares))).all()
    products = z[:, :, :1] * z[:, :, 1:2]
    error = products.std() / np.sqrt(ess(products)[0])
    assert abs(products.mean() - 0.9 / np.sqrt(2.0)) < limit * error


@pytest.mark.parametrize("gradients", [False, True])
def test_one_batch_serves_all_walkers(gradients):
    evaluate = Counted(gradients)
    found = sample(FIT, evaluate, gradients, draws=40, chains=2, key=(0,))
    assert found.n_evaluations == sum(evaluate.batches)
    assert max(evaluate.batches) == WALKERS
    assert np.mean(evaluate.batches) > 0.6 * WALKERS
    np.testing.assert_allclose(
        found.log_density, evaluate.gaussian(found.theta.reshape(-1, 3)).reshape(2, 40)
    )


@pytest.mark.parametrize(("draws", "chains"), [(1, 1), (7, 3), (50, 1), (3, 30), (101, 4)])
def test_any_number_of_draws_and_chains(draws, chains):
    found = sample(FIT, Counted(), False, draws=draws, chains=chains, key=(1,))
    assert found.theta.shape == (chains, draws, 3)
    assert found.log_density.shape == found.acceptance.shape == found.diverging.shape == (chains, draws)


def test_the_key_decides_the_draws():
    first, again, other = (
        sample(FIT, Counted(True), True, draws=20, chains=2, key=key).theta for key in ((5,), (5,), (6,))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any(axis=2).any()


def test_draws_that_resemble_each_other_are_thinned():
    """A narrow ring: chains creep along it, so that one draw a transition is not enough."""

    def ring(theta):
        return -0.5 * ((np.hypot(theta[:, 0], theta[:, 1]) - 10.0) / 0.1) ** 2

    found = sample(
        Gaussian(np.zeros(2), 60.0), Counted(log_density=ring), False, draws=50, chains=4, key=(2,)
    )
    assert 1 < found.thinning <= LONGEST
    assert not found.ended
    radius = np.hypot(*np.moveaxis(found.theta, 2, 0))
    assert abs(radius.mean() - 10.0) < 0.05


def test_a_second_mode_is_weighed_by_proposals_of_the_fit():
    """Modes 16 standard deviations apart with weights 0.8 and 0.2, and a fit that has both, but half and half."""

    def log_density(theta):
        x = theta[:, 0]
        return np.logaddexp(np.log(0.8) - 0.5 * x**2, np.log(0.2) - 0.5 * (x - 16.0) ** 2)

    def with_gradient(theta):
        right = special.expit(np.log(0.25) - 0.5 * (theta - 16.0) ** 2 + 0.5 * theta**2)
        return log_density(theta), -theta + 16.0 * right

    class Both(Gaussian):
        def sample(self, n, rng=None):
            return 16.0 * (rng.random((n, 1)) < 0.5) + rng.standard_normal((n, 1))

        def log_density(self, theta):
            return np.logaddexp(-0.5 * theta[:, 0] ** 2, -0.5 * (theta[:, 0] - 16.0) ** 2)

    q = Both(np.full(1, 8.0), np.full(1, 65.0))
    for gradients in (False, True):
        evaluate = with_gradient if gradients else Counted(log_density=log_density)
        found = sample(q, evaluate, gradients, draws=500, chains=4, key=(4,))
        right = (found.theta > 8.0).astype(float)
        error = 0.4 / np.sqrt(ess(found.theta).min())
        assert abs(right.mean() - 0.2) < stats.norm.isf(LEVEL / 2) * error


# --- stopped --------------------------------------------------------------------------------------------


def test_a_limit_is_kept():
    full = sample(FIT, Counted(), False, draws=100, chains=2, key=(0,))
    warm = WALKERS * (2 + 2 * sum(WARM_UP))
    for limit in (20 * WALKERS, warm, full.n_evaluations - 1):
        evaluate = Counted()
        found = sample(FIT, evaluate, False, draws=100, chains=2, key=(0,), limit=limit)
        assert limit - WALKERS < found.n_evaluations == sum(evaluate.batches) <= limit
        assert found.ended == f"reached max_evaluations = {limit}"
        assert 1 <= found.theta.shape[1] <= 100
        assert found.theta.shape[::2] == (2, 3)
    assert found.theta.shape[1] >= 80
    with pytest.raises(InvalidInputError, match="max_evaluations = 30 is too few for 20 walkers"):
        sample(FIT, Counted(), False, draws=100, chains=2, key=(0,), limit=30)


@pytest.mark.parametrize("error", [KeyboardInterrupt, DivergenceError("too many draws failed")])
def test_an_interrupt_keeps_what_is_there(error):
    def stopping(after):
        calls = Counted()

        def evaluate(theta):
            if len(calls.batches) == after:
                raise error
            return calls(theta)

        return sample(FIT, evaluate, False, draws=2000, chains=2, key=(0,))

    found = stopping(200)
    assert found.ended
    assert 1 <= found.theta.shape[1] < 2000
    assert np.isfinite(found.theta).all()
    with pytest.raises(type(error) if isinstance(error, Exception) else error):
        stopping(1)


# --- targets that are not as they should be ---------------------------------------------------------------


def test_draws_stay_where_there_is_density():
    """Half a normal: 0 below 1, and not a number above 2.5."""

    def log_density(theta):
        x = theta[:, 0]
        with np.errstate(invalid="ignore"):
            return -0.5 * x**2 + np.where(x < 1.0, -np.inf, 0.0) + np.where(x > 2.5, np.nan, 0.0)

    q = Gaussian(np.full(1, 1.5), np.full(1, 0.3))
    found = sample(q, Counted(log_density=log_density), False, draws=500, chains=4, key=(0,))
    x = found.theta[::, ::10].ravel()
    assert x.min() > 1.0
    assert x.max() < 2.5
    assert found.rejected > 0
    assert stats.kstest(x, stats.truncnorm(1.0, 2.5).cdf).pvalue > LEVEL


def test_no_place_to_start_is_an_error():
    with pytest.raises(DivergenceError, match="not finite at 20 draws of the fit"):
        sample(FIT, lambda theta: (np.full(len(theta), np.nan), None), False, draws=5, chains=1, key=(0,))


def test_noise_is_an_error():
    rng = np.random.default_rng(0)

    def noisy(theta):
        return Counted().gaussian(theta) + rng.normal(size=len(theta))

    with pytest.raises(InvalidInputError, match="the log density is noisy"):
        sample(FIT, Counted(log_density=noisy), False, draws=5, chains=1, key=(0,))


def test_short_chains_may_differ_by_chance():
    """Of independent draws R-hat is above its limit in fewer than one run of a hundred, whatever the length."""
    rng = np.random.default_rng(1)
    for length in (20, 50, 200):
        above = [rhat(draws)[0] > largest_rhat(draws) for draws in rng.standard_normal((300, 4, length, 1))]
        assert np.sum(above) <= stats.binom.isf(LEVEL, 300, 0.01)


def test_one_chain_is_compared_with_itself():
    """ArviZ has no R-hat of one chain: its halves agree if it stands still, and disagree if it wanders."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((1, 2000, 2))
    assert (rhat(draws) < 1.01).all()
    assert (rhat(np.cumsum(draws, axis=1)) > 1.1).all()


@pytest.mark.parametrize("shape", [(1, 7, 1), (4, 3, 1)])
def test_chains_too_short_for_rhat_are_said_to_be(shape):
    worst = float(rhat(np.random.default_rng(2).standard_normal(shape)).max())
    with pytest.warns(ConvergenceWarning, match="not known: they have fewer than eight draws"):
        warn_of_chains(1, 0, worst, "draw more")
