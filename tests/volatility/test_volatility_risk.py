"""Mixtures over draws: scipy.stats for one component, numerical integrals for several, far tails, gaps."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, t

from mgvbp import InvalidInputError
from mgvbp.volatility.risk import mixture_cdf, mixture_log_density, mixture_quantile, mixture_tail_mean

LEVELS = np.array([1e-12, 1e-6, 0.01, 0.05, 0.5, 0.8, 0.99, 1 - 1e-6])

MIXTURES = {
    "normal": ([-0.3, 0.4], [0.5, 2.0], None),
    "t": ([-0.3, 0.4], [0.5, 2.0], [2.3, 9.0]),
    "bimodal": ([-4.0, 3.0], [0.5, 0.7], None),
    "three t": ([0.0, 0.1, -0.2], [1.0, 3.0, 0.2], [4.0, 30.0, 300.0]),
}


def components(mu, sigma, nu):
    """Frozen distributions of scipy.stats; its t has the variance ν/(ν − 2)."""
    if nu is None:
        return [norm(m, s) for m, s in zip(mu, sigma, strict=True)]
    return [t(n, m, s * math.sqrt((n - 2) / n)) for m, s, n in zip(mu, sigma, nu, strict=True)]


def density(mixture):
    frozen = components(*MIXTURES[mixture])
    return lambda x: sum(c.pdf(x) for c in frozen) / len(frozen)


# --- one component ------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [None, 2.1, 4.0, 50.0, 1e6])
def test_one_component_is_its_distribution(nu):
    freedom = None if nu is None else [nu]
    exact = components([0.7], [1.3], freedom)[0]
    x = np.array([-30.0, -2.0, 0.7, 3.0])
    np.testing.assert_allclose(mixture_cdf(x, [0.7], [1.3], freedom), exact.cdf(x), rtol=1e-11)
    np.testing.assert_allclose(mixture_log_density(x, [0.7], [1.3], freedom), exact.logpdf(x), rtol=1e-9)
    np.testing.assert_allclose(
        mixture_quantile(LEVELS, [0.7], [1.3], freedom), exact.ppf(LEVELS), rtol=1e-10, atol=1e-14
    )


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3, 0.9])
def test_tail_mean_of_one_component(p):
    """The textbook formulas, in the t distribution's own scale."""
    normal = 0.7 - 1.3 * norm.pdf(norm.ppf(p)) / p
    assert mixture_tail_mean(p, [0.7], [1.3]) == pytest.approx(normal, rel=1e-10)
    nu, q = 5.0, t.ppf(p, 5.0)
    student = 0.7 - 1.3 * math.sqrt(3.0 / 5.0) * t.pdf(q, nu) / p * (nu + q**2) / (nu - 1.0)
    assert mixture_tail_mean(p, [0.7], [1.3], [nu]) == pytest.approx(student, rel=1e-10)


def test_equal_components_are_one():
    one = mixture_quantile(LEVELS, [0.2], [0.9], [6.0])
    np.testing.assert_allclose(mixture_quantile(LEVELS, [0.2] * 5, [0.9] * 5, [6.0] * 5), one, rtol=1e-12)


# --- several ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("p", [1e-6, 0.05, 0.6])
def test_quantile_and_tail_mean_by_integration(mixture, p):
    f, arguments = density(mixture), MIXTURES[mixture]
    q = float(mixture_quantile(p, *arguments))
    # quad needs to be told where the peaks are, and takes no such points on infinite ranges
    ends = [-np.inf, *sorted(x for x in {-8.0, *arguments[0]} if x < q), q]

    def integral(g):
        return sum(quad(g, a, b, epsabs=0.0, epsrel=1e-9, limit=200)[0] for a, b in pairwise(ends))

    assert integral(f) == pytest.approx(p, rel=1e-8)
    assert mixture_tail_mean(p, *arguments) == pytest.approx(integral(lambda x: x * f(x)) / p, rel=1e-8)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_cdf_and_log_density_are_means(mixture):
    frozen, x = components(*MIXTURES[mixture]), np.linspace(-9.0, 9.0, 25)
    cdf = np.mean([c.cdf(x) for c in frozen], axis=0)
    np.testing.assert_allclose(mixture_cdf(x, *MIXTURES[mixture]), cdf, rtol=1e-12)
    np.testing.assert_allclose(
        mixture_log_density(x, *MIXTURES[mixture]), np.log(density(mixture)(x)), rtol=1e-9
    )


def test_log_density_does_not_underflow():
    value = mixture_log_density(200.0, [0.0, 1.0], [1.0, 1.0])
    assert value == pytest.approx(norm.logpdf(199.0) - math.log(2.0), rel=1e-14)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_quantile_undoes_the_cdf_far_out(mixture):
    """In relative terms of the smaller tail: the upper one is the lower one of −r."""
    mu, sigma, nu = MIXTURES[mixture]
    np.testing.assert_allclose(
        mixture_cdf(mixture_quantile(LEVELS, mu, sigma, nu), mu, sigma, nu), LEVELS, rtol=1e-10
    )
    p = np.array([2.0**-40, 2.0**-20, 2.0**-5])  # so that 1 − p is exact
    mirrored = -mixture_quantile(p, [-m for m in mu], sigma, nu)
    np.testing.assert_allclose(mixture_quantile(1.0 - p, mu, sigma, nu), mirrored, rtol=1e-10)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_a_gap_between_components_is_crossed(p):
    """The density is 0 to all digits between 0 and 1000, where any median lies."""
    q = mixture_quantile(p, [0.0, 1000.0], [1e-3, 1e-3])
    assert mixture_cdf(q, [0.0, 1000.0], [1e-3, 1e-3]) == pytest.approx(p, rel=1e-9)


def test_scales_that_differ_by_orders_of_magnitude():
    mu, sigma = np.zeros(7), 10.0 ** np.arange(-6, 8, 2)
    q = mixture_quantile(LEVELS, mu, sigma)
    np.testing.assert_allclose(mixture_cdf(q, mu, sigma), LEVELS, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), student=st.booleans())
def test_quantile_is_increasing_between_components_and_above_its_tail_mean(data, student):
    number = st.floats(-5.0, 5.0)
    size = data.draw(st.integers(1, 6))
    vector = st.lists(number, min_size=size, max_size=size).map(np.array)
    mu, sigma = data.draw(vector), np.exp(data.draw(vector))
    nu = 2.05 + np.exp(data.draw(vector)) if student else None
    p = np.sort(data.draw(st.lists(st.floats(1e-8, 1.0 - 1e-8), min_size=2, max_size=5, unique=True)))
    q = mixture_quantile(p, mu, sigma, nu)
    slack = 1e-11 * sigma.max()
    assert (np.diff(q) >= -slack).all()
    each = np.array([c.ppf(p) for c in components(mu, sigma, nu)])
    assert (q >= each.min(axis=0) - 1e-9 * (1 + np.abs(q))).all()
    assert (q <= each.max(axis=0) + 1e-9 * (1 + np.abs(q))).all()
    tail = mixture_tail_mean(p, mu, sigma, nu)
    assert (tail <= q + slack).all()
    assert (np.diff(tail) >= -1e-9 * (1 + np.abs(tail[1:]))).all()  # a mean over more of the upper part
    np.testing.assert_allclose(mixture_cdf(q, mu, sigma, nu), p, rtol=1e-8)


def test_the_whole_mean_is_that_of_the_components():
    mu, sigma, nu = MIXTURES["three t"]
    p = 1.0 - 2.0**-50
    assert mixture_tail_mean(p, mu, sigma, nu) == pytest.approx(np.mean(mu), abs=1e-8)


# --- many days, many levels ---------------------------------------------------------------------------


def days(T=5, S=40):
    rng = np.random.default_rng(0)
    return (
        0.1 * rng.standard_normal((T, S)),
        np.exp(0.3 * rng.standard_normal((T, S))),
        3.0 + rng.gamma(2.0, 3.0, S),
    )


@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("function", [mixture_quantile, mixture_tail_mean, mixture_cdf, mixture_log_density])
def test_days_and_levels_broadcast(function, student):
    mu, sigma, nu = days()
    freedom = nu if student else None
    p = np.array([0.01, 0.05, 0.5])
    each = np.array([[float(function(a, m, s, freedom)) for m, s in zip(mu, sigma, strict=True)] for a in p])
    np.testing.assert_allclose(function(p[:, None], mu, sigma, freedom), each, rtol=1e-10)
    np.testing.assert_allclose(function(0.05, mu, sigma, freedom), each[1], rtol=1e-10)
    np.testing.assert_allclose(function(p, mu[2], sigma[2], freedom), each[:, 2], rtol=1e-10)
    own = np.array([0.01, 0.05, 0.5, 0.01, 0.05])  # one for each day
    np.testing.assert_allclose(
        function(own, mu, sigma, freedom), [each[i % 3, i] for i in range(5)], rtol=1e-10
    )


def test_returns_of_their_own_mixture_have_uniform_probabilities():
    """10,000 days; χ² over ten bins at level 0.001 (9 degrees of freedom: 27.9)."""
    rng = np.random.default_rng(5)
    mu, sigma, nu = (np.tile(row, (10_000, 1)) for row in (np.array(v) for v in MIXTURES["t"]))
    pick = rng.integers(0, 2, 10_000)[:, None]
    chosen = [np.take_along_axis(a, pick, axis=1)[:, 0] for a in (mu, sigma, nu)]
    r = chosen[0] + chosen[1] * rng.standard_t(chosen[2]) * np.sqrt((chosen[2] - 2) / chosen[2])
    counts = np.histogram(mixture_cdf(r, mu, sigma, nu), bins=10, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 27.9


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, [0.5, 1.2]])
def test_levels_are_probabilities(p):
    for function in (mixture_quantile, mixture_tail_mean):
        with pytest.raises(InvalidInputError, match="between 0 and 1"):
            function(p, [0.0], [1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, [0.0, 0.0], [1.0, 0.0]), "sigma must be positive"),
        ((0.0, [0.0], [1.0], [2.0]), "nu must be above 2"),
        ((0.0, [0.0, 1.0], [1.0, 1.0, 1.0]), "draws last"),
        ((0.0, 0.0, 1.0), "draws last"),
        (([0.0, 1.0, 2.0], np.zeros((2, 4)), np.ones((2, 4))), "draws last"),
        ((0.0, [0.0], [1.0, 1.0]), "draws last"),
        ((np.nan, [0.0], [1.0]), "x has non-finite"),
    ],
)
def test_bad_input_is_told(arguments, message):
    for function in (mixture_cdf, mixture_log_density):
        with pytest.raises(InvalidInputError, match=message):
            function(*arguments)
