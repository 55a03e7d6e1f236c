"""Mixtures of t distributions: their density, their draws, and their fit."""

import numpy as np
from kernels_common import LEVEL
from scipy import stats

from mgvbp.sampling.tmixture import DEGREES, TMixture, fitted, maximised

WEIGHTS = np.array([0.25, 0.75])
MEANS = np.array([[-3.0, 1.0], [2.0, 0.0]])
SCALES = np.array([[[1.0, 0.4], [0.4, 0.5]], [[0.5, -0.2], [-0.2, 2.0]]])
MIXTURE = TMixture.of(WEIGHTS, MEANS, SCALES)


def test_the_density_is_that_of_scipy():
    x = np.random.default_rng(0).normal(scale=3.0, size=(50, 2))
    parts = [stats.multivariate_t(m, S, df=DEGREES).pdf(x) for m, S in zip(MEANS, SCALES, strict=True)]
    expected = np.log(WEIGHTS @ np.array(parts))
    np.testing.assert_allclose([MIXTURE.log_density(row) for row in x], expected, rtol=1e-12)


def test_draws_have_the_density():
    rng = np.random.default_rng(1)
    draws = np.array([MIXTURE.sample(rng) for _ in range(4000)])
    for entry in range(2):
        marginals = [
            stats.t(DEGREES, m[entry], np.sqrt(S[entry, entry])) for m, S in zip(MEANS, SCALES, strict=True)
        ]

        def distribution(x, marginals=marginals):
            return sum(w * marginal.cdf(x) for w, marginal in zip(WEIGHTS, marginals, strict=True))

        assert stats.kstest(draws[:, entry], distribution).pvalue > LEVEL


def test_a_fit_finds_two_modes():
    rng = np.random.default_rng(2)
    draws = np.array([MIXTURE.sample(rng) for _ in range(3000)])
    found = fitted(draws, rng)
    truth = np.mean([MIXTURE.log_density(row) for row in draws])
    assert len(found.weights) >= 2
    assert abs(np.mean([found.log_density(row) for row in draws]) - truth) < 0.03


def test_rounds_climb_and_a_gaussian_needs_one_component():
    rng = np.random.default_rng(3)
    draws = rng.multivariate_normal([1.0, 2.0, 3.0], np.diag([1.0, 4.0, 9.0]), size=2000)
    found = fitted(draws, rng)
    assert len(found.weights) <= 2  # the tails of a t are not those of a Gaussian
    np.testing.assert_allclose(found.weights @ found.means, [1.0, 2.0, 3.0], atol=0.4)
    one, few = maximised(draws, 1, rng)[1], maximised(draws, 4, rng)[1]
    assert few > one - 1.0


def test_too_few_draws_and_draws_that_stand_still_have_no_mixture():
    rng = np.random.default_rng(4)
    assert fitted(rng.standard_normal((29, 2)), rng) is None
    assert fitted(rng.standard_normal((30, 2)), rng) is not None
    assert fitted(np.ones((100, 2)), rng) is None
