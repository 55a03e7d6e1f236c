"""Backtests of value at risk: ratios of binomial likelihoods, exact and simulated size, power, empty cells."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chi2

from mgvbp import InvalidInputError, InvalidTypeError
from mgvbp.volatility.coverage import christoffersen, kupiec


def binomial_ratio(n, k, p):
    """Twice the log-likelihood of k among n at k/n, less that at p: binomial coefficients cancel."""
    return 2.0 * (binom.logpmf(k, n, k / n) - binom.logpmf(k, n, p)) if n else 0.0


def markov(rng, days, after_no, after_yes):
    """Exceedances with one probability after a day without, and another after a day with one."""
    hits, uniform = np.zeros(days, dtype=bool), rng.random(days)
    for day in range(1, days):
        hits[day] = uniform[day] < (after_yes if hits[day - 1] else after_no)
    return hits


# --- the formulas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 2, 7, 249, 250])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.5])
def test_kupiec_is_a_ratio_of_binomial_likelihoods(k, alpha):
    hits = np.arange(250) < k
    statistic, p_value, exceedances, expected = kupiec(hits, alpha)
    assert statistic == pytest.approx(binomial_ratio(250, k, alpha), rel=1e-9, abs=1e-10)
    assert p_value == pytest.approx(chi2.sf(statistic, 1), rel=1e-10)
    assert (exceedances, expected) == (k, 250 * alpha)


def test_kupiec_by_hand():
    """None in 250 days at 1%: the ratio is 0.99⁻²⁵⁰. As many as expected: no evidence."""
    assert kupiec(np.zeros(250), 0.01).statistic == pytest.approx(-500.0 * math.log(0.99))
    assert kupiec([0, 1, 0, 0], 0.25)[:2] == pytest.approx((0.0, 1.0), abs=1e-12)


@given(st.lists(st.booleans(), min_size=2, max_size=60), st.floats(0.001, 0.999))
def test_christoffersen_is_a_ratio_of_binomial_likelihoods(hits, alpha):
    test = christoffersen(hits, alpha)
    pairs = list(pairwise(hits))
    assert test.transitions == tuple(tuple(pairs.count((i, j)) for j in (False, True)) for i in (False, True))
    (n00, n01), (n10, n11) = test.transitions
    later = kupiec(hits[1:], alpha)
    conditional = binomial_ratio(n00 + n01, n01, alpha) + binomial_ratio(n10 + n11, n11, alpha)
    assert test.conditional == pytest.approx(conditional, rel=1e-8, abs=1e-8)
    assert test.conditional == pytest.approx(test.independence + later.statistic, rel=1e-8, abs=1e-8)
    assert test.independence_p_value == pytest.approx(chi2.sf(test.independence, 1))
    assert test.conditional_p_value == pytest.approx(chi2.sf(test.conditional, 2))


@pytest.mark.parametrize("hits", [[0] * 50, [1] * 50])
def test_a_series_of_one_kind_says_nothing_on_independence(hits):
    test = christoffersen(hits, 0.05)
    assert (test.independence, test.independence_p_value) == (0.0, 1.0)
    assert test.conditional == pytest.approx(kupiec(hits[1:], 0.05).statistic, rel=1e-12)


def test_an_exceedance_on_the_last_day_has_no_successor():
    test = christoffersen([0, 0, 0, 1], 0.05)
    assert test.transitions == ((2, 1), (0, 0))
    assert test.independence == 0.0


def test_equal_shares_give_zero_in_spite_of_rounding():
    """4 of 10 and 2 of 5: the two likelihoods are equal, and their difference rounds to −4e-15."""
    test = christoffersen([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1], 0.5)
    assert test.transitions == ((6, 4), (3, 2))
    assert (test.independence, test.independence_p_value) == (0.0, 1.0)


def test_alternation_is_not_independence():
    test = christoffersen(np.arange(101) % 2, 0.5)
    assert test.transitions == ((0, 50), (50, 0))
    assert test.independence == pytest.approx(200.0 * math.log(2.0))
    assert kupiec(np.arange(100) % 2, 0.5).p_value == 1.0


# --- size and power -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("days", "alpha"), [(1000, 0.05), (2500, 0.01)])
def test_size_of_kupiec_is_near_nominal(days, alpha):
    """The probability of p-values below 5%, summed over all counts: no simulation."""
    k = np.arange(days + 1)
    likely = binom.pmf(k, days, alpha) > 1e-12
    rejected = [kupiec(np.arange(days) < n, alpha).p_value < 0.05 for n in k[likely]]
    assert 0.04 < binom.pmf(k[likely], days, alpha) @ rejected < 0.065


def test_size_of_christoffersen_is_near_nominal():
    """2,000 series of 400 independent days: rejections at 5% are compatible with it at level 0.001."""
    rng = np.random.default_rng(1)
    tests = [christoffersen(rng.random(400) < 0.3, 0.3) for _ in range(2000)]
    for name in ("independence_p_value", "conditional_p_value"):
        rejections = sum(getattr(test, name) < 0.05 for test in tests)
        assert binomtest(rejections, 2000, 0.05).pvalue > 0.001


def test_clusters_are_seen_by_christoffersen_alone():
    """Exceedances at the right rate of 5%, but 40% after another: power above 90% at 1,000 days and level 5%."""
    rng = np.random.default_rng(2)
    after_no = 0.05 * (1.0 - 0.4) / 0.95  # makes 5% the stationary rate
    series = [markov(rng, 1000, after_no, 0.4) for _ in range(100)]
    assert np.mean([christoffersen(hits, 0.05).independence_p_value < 0.05 for hits in series]) > 0.9
    assert np.mean([christoffersen(hits, 0.05).conditional_p_value < 0.05 for hits in series]) > 0.9
    assert np.mean([kupiec(hits, 0.05).p_value < 0.05 for hits in series]) < 0.5


def test_a_wrong_rate_is_seen_by_kupiec():
    rng = np.random.default_rng(3)
    p_values = [kupiec(rng.random(1000) < 0.1, 0.05).p_value for _ in range(100)]
    assert np.mean(np.array(p_values) < 0.05) > 0.95


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", [kupiec, christoffersen])
def test_bad_input_is_told(test):
    with pytest.raises(InvalidInputError, match="True or False"):
        test([0.0, -1.3, 1.0], 0.05)
    with pytest.raises(InvalidInputError, match="series"):
        test(np.zeros((5, 2)), 0.05)
    with pytest.raises(InvalidInputError, match="series"):
        test([], 0.05)
    with pytest.raises(InvalidInputError, match=r"1% is 0\.01"):
        test([0, 1], 1.0)
    with pytest.raises(InvalidInputError, match="positive"):
        test([0, 1], 0.0)
    with pytest.raises(InvalidTypeError, match="exceedances"):
        test(["no", "yes"], 0.05)


def test_christoffersen_needs_a_pair_of_days():
    with pytest.raises(InvalidInputError, match="at least 2 days"):
        christoffersen([1], 0.05)
