"""Mixtures over draws: scipy.stats for one component, numerical integrals for several, far tails, gaps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, t

from mgvbp.volatility.laws import Normal, StudentT
from mgvbp.volatility.risk import mixture_log_density, mixture_quantile, mixture_tail_mean

LEVELS = np.array([1e-12, 1e-6, 0.01, 0.05, 0.5, 0.8, 0.99, 1 - 1e-6])

MIXTURES = {
    "normal": (np.array([-0.3, 0.4]), np.array([0.5, 2.0]), Normal()),
    "t": (np.array([-0.3, 0.4]), np.array([0.5, 2.0]), StudentT(np.array([2.3, 9.0]))),
    "bimodal": (np.array([-4.0, 3.0]), np.array([0.5, 0.7]), Normal()),
    "three t": (
        np.array([0.0, 0.1, -0.2]),
        np.array([1.0, 3.0, 0.2]),
        StudentT(np.array([4.0, 30.0, 300.0])),
    ),
}


def components(mu, sigma, law=None):
    """Distributions of scipy.stats; its t has the variance ν/(ν − 2)."""
    nu = getattr(law, "nu", None)
    return norm(mu, sigma) if nu is None else t(nu, mu, sigma * np.sqrt((nu - 2) / nu))


def law_of(nu):
    return Normal() if nu is None else StudentT(np.asarray(nu))


def cdf(x, *mixture):
    return components(*mixture).cdf(np.asarray(x)[..., None]).mean(axis=-1)


# --- one component ------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [None, 2.1, 4.0, 50.0, 1e6])
def test_one_component_is_its_distribution(nu):
    one = np.array([0.7]), np.array([1.3]), law_of(nu)
    exact, x = components(0.7, 1.3, law_of(nu)), np.array([-30.0, -2.0, 0.7, 3.0])
    np.testing.assert_allclose(mixture_log_density(x, *one), exact.logpdf(x), rtol=1e-9)
    np.testing.assert_allclose(mixture_quantile(LEVELS, *one), exact.ppf(LEVELS), rtol=1e-10, atol=1e-14)
    five = [np.repeat(part, 5) for part in one[:2]] + [one[2]]  # five that are equal are one
    np.testing.assert_allclose(mixture_quantile(LEVELS, *five), mixture_quantile(LEVELS, *one), rtol=1e-12)


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3, 0.9])
def test_tail_mean_of_one_component(p):
    """The textbook formulas, in the t distribution's own scale."""
    one = np.array([0.7]), np.array([1.3])
    normal = 0.7 - 1.3 * norm.pdf(norm.ppf(p)) / p
    assert mixture_tail_mean(p, *one) == pytest.approx(normal, rel=1e-10)
    nu, q = 5.0, t.ppf(p, 5.0)
    student = 0.7 - 1.3 * np.sqrt(3.0 / 5.0) * t.pdf(q, nu) / p * (nu + q**2) / (nu - 1.0)
    assert mixture_tail_mean(p, *one, StudentT(np.array([nu]))) == pytest.approx(student, rel=1e-10)


# --- several ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
@pytest.mark.parametrize("p", [1e-6, 0.05, 0.6])
def test_quantile_and_tail_mean_by_integration(mixture, p):
    law, q = components(*mixture), float(mixture_quantile(p, *mixture))
    # quad needs to be told where the peaks are, and takes no such points on infinite ranges
    ends = [-np.inf, *sorted(x for x in {-8.0, *mixture[0]} if x < q), q]

    def integral(power):
        def f(x):
            return x**power * law.pdf(x).mean()

        return sum(quad(f, a, b, epsabs=0.0, epsrel=1e-9, limit=200)[0] for a, b in pairwise(ends))

    assert integral(0) == pytest.approx(p, rel=1e-8)
    assert mixture_tail_mean(p, *mixture) == pytest.approx(integral(1) / p, rel=1e-8)


@pytest.mark.parametrize("mixture", MIXTURES.values(), ids=MIXTURES)
def test_densities_are_means_and_quantiles_undo_the_cdf_far_out(mixture):
    """In relative terms of the smaller tail: the upper one is the lower one of −r."""
    x, (mu, *rest) = np.linspace(-9.0, 9.0, 25), mixture
    density = components(*mixture).pdf(x[:, None]).mean(axis=1)
    np.testing.assert_allclose(mixture_log_density(x, *mixture), np.log(density), rtol=1e-9)
    np.testing.assert_allclose(cdf(mixture_quantile(LEVELS, *mixture), *mixture), LEVELS, rtol=1e-10)
    p = np.array([2.0**-40, 2.0**-20, 2.0**-5])  # so that 1 − p is exact
    mirrored = -mixture_quantile(p, -mu, *rest)
    np.testing.assert_allclose(mixture_quantile(1.0 - p, *mixture), mirrored, rtol=1e-10)
    assert mixture_tail_mean(1.0 - 2.0**-50, *mixture) == pytest.approx(mu.mean(), abs=1e-8)


def test_log_density_does_not_underflow():
    value = mixture_log_density(200.0, np.array([0.0, 1.0]), np.ones(2))
    assert value == pytest.approx(norm.logpdf(199.0) - np.log(2.0), rel=1e-14)


def test_gaps_between_components_and_scales_of_all_sizes():
    """Between 0 and 1000, where any median lies, the density is 0 to all digits; or scales differ by 10^14."""
    for mixture in (
        (np.array([0.0, 1000.0]), np.full(2, 1e-3)),
        (np.zeros(7), 10.0 ** np.arange(-6, 8, 2)),
    ):
        p = np.append(LEVELS, [0.1, 0.9])
        np.testing.assert_allclose(cdf(mixture_quantile(p, *mixture), *mixture), p, rtol=1e-9)


@settings(max_examples=60)
@given(data=st.data(), student=st.booleans())
def test_quantile_is_increasing_between_components_and_above_its_tail_mean(data, student):
    number = st.floats(-5.0, 5.0)
    size = data.draw(st.integers(1, 6))
    vector = st.lists(number, min_size=size, max_size=size).map(np.array)
    mu, sigma = data.draw(vector), np.exp(data.draw(vector))
    law = StudentT(2.05 + np.exp(data.draw(vector))) if student else Normal()
    p = np.sort(data.draw(st.lists(st.floats(1e-8, 1.0 - 1e-8), min_size=2, max_size=5, unique=True)))
    q = mixture_quantile(p, mu, sigma, law)
    slack = 1e-11 * sigma.max()
    assert (np.diff(q) >= -slack).all()
    each = components(mu, sigma, law).ppf(p[:, None])
    assert (q >= each.min(axis=1) - 1e-9 * (1 + np.abs(q))).all()
    assert (q <= each.max(axis=1) + 1e-9 * (1 + np.abs(q))).all()
    tail = mixture_tail_mean(p, mu, sigma, law)
    assert (tail <= q + slack).all()
    assert (np.diff(tail) >= -1e-9 * (1 + np.abs(tail[1:]))).all()  # a mean over more of the upper part
    np.testing.assert_allclose(cdf(q, mu, sigma, law), p, rtol=1e-8)


# --- many days, many levels ---------------------------------------------------------------------------


@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("function", [mixture_quantile, mixture_tail_mean, mixture_log_density])
def test_days_and_levels_broadcast(function, student):
    rng = np.random.default_rng(0)
    mu, sigma = 0.1 * rng.standard_normal((5, 40)), np.exp(0.3 * rng.standard_normal((5, 40)))
    law = StudentT(3.0 + rng.gamma(2.0, 3.0, 40)) if student else Normal()
    p = np.array([0.01, 0.05, 0.5])
    each = np.array([[float(function(a, m, s, law)) for m, s in zip(mu, sigma, strict=True)] for a in p])
    own = np.array([0.01, 0.05, 0.5, 0.01, 0.05])  # one for each day
    for found, expected in (
        (function(p[:, None], mu, sigma, law), each),
        (function(0.05, mu, sigma, law), each[1]),
        (function(p, mu[2], sigma[2], law), each[:, 2]),
        (function(own, mu, sigma, law), [each[i % 3, i] for i in range(5)]),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
