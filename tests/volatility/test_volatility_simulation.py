"""Simulated volatility paths: `arch`'s paths from the same shocks, closed-form means, series without a past."""

import numpy as np
import pytest

from common import case
from mgvbp import InvalidInputError
from mgvbp.volatility import GARCH as Model
from mgvbp.volatility.laws import StudentT
from mgvbp.volatility.simulation import (
    BURN_IN,
    egarch_series,
    figarch_series,
    figarch_weights,
    garch_series,
    simulate_egarch,
    simulate_figarch,
    simulate_garch,
)

H, S = 12, 7

GARCH = {
    (1, 0, 0): [0.4, 0.3],
    (1, 0, 1): [0.05, 0.1, 0.85],
    (1, 1, 1): [0.05, 0.03, 0.12, 0.85],
    (0, 1, 2): [0.05, 0.2, 0.3, 0.5],
    (2, 2, 1): [0.05, 0.03, 0.04, 0.1, -0.02, 0.8],
    (2, 1, 2): [0.05, 0.03, 0.04, 0.1, 0.5, 0.3],
}
EGARCH = {
    (1, 0, 1): [0.01, 0.2, 0.95],
    (1, 1, 1): [0.01, 0.2, -0.1, 0.95],
    (2, 1, 2): [0.01, 0.2, -0.05, -0.1, 0.6, 0.3],
    (1, 2, 0): [0.1, 0.3, -0.1, 0.05],
}
FIGARCH = {
    (0, 0): [0.1, 0.4],
    (1, 0): [0.1, 0.2, 0.4],
    (0, 1): [0.1, 0.4, 0.3],
    (1, 1): [0.1, 0.2, 0.5, 0.4],
}


def shocks_of(days, paths, seed):
    return np.random.default_rng(seed).standard_normal((days, paths))


def returns(n=300):
    return StudentT(5.0).sample((n, 1), np.random.default_rng(3))[:, 0]


def at(parameters, volatility, **orders):
    """`arch`'s result at given parameters, for a model with mean 0."""
    univariate = pytest.importorskip("arch.univariate")
    process = getattr(univariate, volatility)(**orders)
    return univariate.ZeroMean(returns(), volatility=process, rescale=False).fix(parameters)


def past_of(result):
    """Residuals and variances (300, 1)."""
    return result.resid[:, None], result.conditional_volatility[:, None] ** 2


def their_paths(result, shocks):
    """Variances and residuals (H, S) that `arch` simulates from our shocks."""
    forecast = result.forecast(
        horizon=len(shocks), method="simulation", simulations=shocks.shape[1], rng=lambda size: shocks.T
    )
    simulations = forecast.simulations
    return simulations.residual_variances[-1].T, simulations.residuals[-1].T


def column(coefficients):
    return np.array(coefficients)[:, None]


def figarch_column(orders, coefficients):
    """`arch`'s ω is ours times 1 − β."""
    ours = column(coefficients)
    ours[0] /= 1.0 - (coefficients[-1] if orders[1] else 0.0)
    return ours


# --- the same shocks give the paths of arch -----------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "orders"), [("GARCH", orders) for orders in GARCH] + [("EGARCH", orders) for orders in EGARCH]
)
def test_paths_are_those_of_arch(kind, orders):
    simulate, cases = {"GARCH": (simulate_garch, GARCH), "EGARCH": (simulate_egarch, EGARCH)}[kind]
    result = at(cases[orders], kind, **dict(zip("poq", orders, strict=True)))
    shocks = shocks_of(H, S, 0)
    paths = simulate(orders, column(cases[orders]), *past_of(result), shocks)
    np.testing.assert_allclose(paths, their_paths(result, shocks), rtol=1e-12)


@pytest.mark.parametrize("orders", FIGARCH)
@pytest.mark.parametrize("truncation", [5, 300, 1000])  # below the horizon, all of the past, beyond it
def test_figarch_paths_are_those_of_arch(orders, truncation):
    p, q = orders
    result = at(FIGARCH[orders], "FIGARCH", p=p, q=q, truncation=truncation)
    shocks = shocks_of(H, S, 2)
    presample = result.model.volatility.backcast(result.model._y)
    squares = past_of(result)[0] ** 2
    known = figarch_column(orders, FIGARCH[orders]), squares, presample
    paths = simulate_figarch(orders, *known, shocks, truncation)
    np.testing.assert_allclose(paths, their_paths(result, shocks), rtol=1e-12)


# --- FIGARCH ---------------------------------------------------------------------------------------------


def test_figarch_weights_are_those_of_its_lag_polynomial():
    """λ(L) = 1 − (1 − φL)(1 − L)^d/(1 − βL): the binomial series, multiplied out and divided."""
    phi, d, beta, K = 0.25, 0.45, 0.5, 60
    k = np.arange(1, K + 1)
    fractional = np.concatenate([[1.0], np.cumprod((k - 1 - d) / k)])
    numerator = np.convolve([1.0, -phi], fractional)[: K + 1]
    quotient = np.convolve(beta ** np.arange(K + 1), numerator)[: K + 1]
    weights = np.concatenate(list(figarch_weights((1, 1), column([1.0, phi, d, beta]), K)))
    np.testing.assert_allclose(weights, -quotient[1:], rtol=1e-11)


def test_figarch_without_memory_is_arch():
    """φ = 0, β = 0, d = 1 gives λ = (1, 0, 0, ...): an integrated ARCH(1)."""
    shocks = shocks_of(H, S, 5)
    ours = simulate_figarch((0, 0), column([0.2, 1.0]), np.array([[2.0]]), 9.0, shocks, 50)
    arch1 = simulate_garch((1, 0, 0), column([0.2, 1.0]), np.sqrt([[2.0]]), np.ones((1, 1)), shocks)
    np.testing.assert_allclose(ours, arch1, rtol=1e-12)


# --- draws and axes -----------------------------------------------------------------------------------


def garch_draws(n=S):
    low, high = np.array([[0.01, 0.0, 0.0, 0.5], [0.1, 0.1, 0.1, 0.8]])[..., None]
    return np.random.default_rng(6).uniform(low, high, (4, n))


def simulated(kind, coefficients, e, v, shocks):
    if kind == "figarch":
        return simulate_figarch((1, 1), coefficients, e**2, v[0], shocks, truncation=20)
    return {"garch": simulate_garch, "egarch": simulate_egarch}[kind]((1, 1, 1), coefficients, e, v, shocks)


@pytest.mark.parametrize("kind", ["garch", "egarch", "figarch"])
def test_draws_do_not_meet_and_may_have_many_paths(kind):
    """(H, n, S) shocks, and any subset of draws and paths, give the same numbers as one path at a time."""
    coefficients = garch_draws()
    e, v = shocks_of(3, S, 7), shocks_of(3, S, 8) ** 2
    shocks = shocks_of(H * 4, S, 9).reshape(H, 4, S)
    whole = simulated(kind, coefficients, e, v, shocks)
    assert whole[0].shape == whole[1].shape == (H, 4, S)
    for path, draw in [(0, 0), (3, 2), (1, S - 1)]:
        one = slice(draw, draw + 1)
        alone = simulated(kind, coefficients[:, one], e[:, one], v[:, one], shocks[:, path, one])
        np.testing.assert_allclose(alone, [array[:, path, one] for array in whole], rtol=1e-13)


@pytest.mark.parametrize("kind", ["garch", "egarch", "figarch"])
def test_what_explodes_stays_alone_and_quiet(kind):
    coefficients = garch_draws()
    shocks = shocks_of(400, S, 9)
    e, v = np.ones((3, S)), np.ones((3, S))
    calm = simulated(kind, coefficients, e, v, shocks)
    wild = coefficients.copy()
    wild[:, 0], wild[:, 1] = [1e3, 50.0, 1.0, 60.0], [1.0, -5.0, 0.2, 0.1]
    h, residuals = simulated(kind, wild, e, v, shocks)
    np.testing.assert_array_equal([h[:, 2:], residuals[:, 2:]], [calm[0][:, 2:], calm[1][:, 2:]])
    assert not np.isfinite(h[-1, 0])


# --- whole series -------------------------------------------------------------------------------------


def test_a_series_has_its_unconditional_mean_from_the_first_day():
    """Of the variance, or of its logarithm: 30 days, whose moments are finite; each mean at the level 0.001/30."""
    long = column([0.1, 0.3, 0.1])
    level = 0.1 / (1.0 - np.sum(list(figarch_weights((0, 1), long, 30))))
    cases = {
        "garch": (0.5, 100_000, lambda z: garch_series((1, 1, 1), column([0.1, 0.05, 0.1, 0.7]), z)),
        "figarch": (level, 20_000, lambda z: figarch_series((0, 1), long, z, 30)),
        "egarch": (-0.5, 20_000, lambda z: egarch_series((1, 1, 1), column([-0.05, 0.2, -0.1, 0.9]), z)),
    }
    for kind, (expected, n, series) in cases.items():
        shocks = shocks_of(30, n, 13)
        h, e = series(shocks)
        np.testing.assert_allclose(e, np.sqrt(h) * shocks, rtol=1e-12)
        x = np.log(h) if kind == "egarch" else h
        with case(kind):
            np.testing.assert_allclose(x[0], expected, rtol=1e-12)
            error = x[1:].std(axis=1) / np.sqrt(n)
            assert np.abs((x[1:].mean(axis=1) - expected) / error).max() < 4.15


def test_the_model_drops_the_burn_in():
    values = {"omega": 0.05, "alpha[1]": 0.1, "beta[1]": 0.85}
    _, whole = garch_series((1, 0, 1), column(list(values.values())), shocks_of(BURN_IN + 5, 1, 16))
    found = Model(1, 1, mean="zero").simulate(values, 5, rng=16)
    np.testing.assert_allclose(found, whole[BURN_IN:, 0], rtol=1e-12)


def test_a_series_goes_on_as_the_recursion_does():
    orders, coefficients, shocks = (2, 2, 1), column(GARCH[(2, 2, 1)]), shocks_of(40, S, 17)
    h, e = garch_series(orders, coefficients, shocks)
    later = simulate_garch(orders, coefficients, e[:15], h[:15], shocks[15:])
    np.testing.assert_allclose(later, [h[15:], e[15:]], rtol=1e-13)


def test_a_series_needs_a_mean_variance():
    for series, orders, coefficients in [
        (garch_series, (1, 0, 1), [0.1, 0.3, 0.7]),
        (egarch_series, (1, 0, 1), [0.1, 0.3, 1.0]),
    ]:
        with pytest.raises(InvalidInputError, match="less than 1"):
            series(orders, column(coefficients), np.ones((H, S)))
