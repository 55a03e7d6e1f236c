"""The filters of the ARCH family against plain recursions, the package arch, and the authors' saved runs.

The authors' returns are in the directory that MGVBP_DATA names; all else needs nothing but numba, and arch for
its part. Variances are compared in relative terms: the plain recursions are the formulas as they are written.
"""

from __future__ import annotations

import json
import os
import pickle
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from common import case
from mgvbp import datasets
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.volatility.filters import (
    EgarchFilter,
    FigarchFilter,
    FilterData,
    GarchFilter,
    StartUp,
    arch_startup,
    base,
    paper_startup,
)
from mgvbp.volatility.filters.egarch import exponential
from mgvbp.volatility.filters.lanes import compiled
from mgvbp.volatility.laws import LAWS, Normal, StudentT
from mgvbp.volatility.scores import mse, qlike

RUNS = json.loads(
    (Path(__file__).parents[1] / "data" / "volatility_saved_runs.json").read_text(encoding="utf-8")
)["runs"]
ORDERS = [(1, 0, 0), (2, 0, 0), (1, 0, 1), (1, 1, 1), (0, 1, 1), (1, 1, 2), (2, 2, 2), (0, 2, 1), (2, 1, 0)]
LONG = [(0, 0), (0, 1), (1, 0), (1, 1)]


# --- the formulas, as they are written ------------------------------------------------------------------


def oracle(kind, orders, startup, e, coefficients, truncation=1000):
    """The T + 1 variances of one draw."""
    if kind == "figarch":
        return plain_figarch(orders, startup, e, coefficients, truncation)
    return {"garch": plain_garch, "egarch": plain_egarch}[kind](orders, startup, e, coefficients)


def column(bounds, t):
    return bounds[:, min(t, bounds.shape[1] - 1)]


def clipped(h, bounds, t):
    lower, upper = column(bounds, t)
    if h < lower:
        return lower
    return h if h <= upper else upper + (1000.0 if np.isinf(h) else np.log(h / upper))


def split(orders, coefficients):
    """ω, and the α, γ and β."""
    ends = 1 + np.cumsum(orders[:2])
    return coefficients[0], *np.split(np.asarray(coefficients)[1:], ends - 1)


def plain_garch(orders, startup, e, coefficients):
    omega, alpha, gamma, beta = split(orders, coefficients)
    h = []
    for t in range(len(e) + 1):
        value = omega
        for i, a in enumerate(alpha, 1):
            value += a * (e[t - i] ** 2 if t >= i else startup.square)
        for i, g in enumerate(gamma, 1):
            value += g * (e[t - i] ** 2 * (e[t - i] < 0) if t >= i else startup.negative_square)
        for i, b in enumerate(beta, 1):
            value += b * (h[t - i] if t >= i else startup.variance)
        h.append(clipped(value, startup.bounds, t) if t < len(e) else value)
    return np.array(h)


def plain_egarch(orders, startup, e, coefficients):
    omega, alpha, gamma, beta = split(orders, coefficients)
    logs, h, z = [], [], []
    for t in range(len(e) + 1):
        value = omega
        for i, a in enumerate(alpha, 1):
            value += a * (abs(z[t - i]) - np.sqrt(2.0 / np.pi) if t >= i else startup.surprise)
        for i, g in enumerate(gamma, 1):
            value += g * (z[t - i] if t >= i else 0.0)
        for i, b in enumerate(beta, 1):
            value += b * (logs[t - i] if t >= i else startup.log_variance)
        if t == len(e):
            with np.errstate(over="ignore"):
                h.append(np.exp(value))
            break
        lower, upper, excess = column(startup.log_bounds, t)
        if value > np.log(np.finfo(float).max):
            value = startup.log_overflow
        if value < np.log(lower):
            h.append(lower)
        elif value > np.log(upper):
            h.append(upper + value - excess)
        else:
            h.append(np.exp(value))
        logs.append(value if np.log(lower) <= value <= np.log(upper) else np.log(h[t]))
        z.append(e[t] / np.sqrt(h[t]))
    return np.array(h)


def plain_figarch(orders, startup, e, coefficients, truncation):
    p, q = orders
    omega, d = coefficients[0], coefficients[1 + p]
    phi, beta = coefficients[1] if p else 0.0, coefficients[-1] if q else 0.0
    lam, delta = [phi - beta + d], d
    for k in range(2, truncation + 1):
        after = (k - 1 - d) / k * delta
        lam.append(beta * lam[-1] + after - phi * delta)
        delta = after
    squares = np.concatenate([np.full(truncation, startup.distant_square), e**2])
    h = np.array([omega + lam @ squares[t : t + truncation][::-1] for t in range(len(e) + 1)])
    return np.array([*(clipped(value, startup.bounds, t) for t, value in enumerate(h[:-1])), h[-1]])


def density(e, h, nu):
    if nu is None:
        return stats.norm.logpdf(e, scale=np.sqrt(h))
    return stats.t.logpdf(e, nu, scale=np.sqrt(h * (nu - 2.0) / nu))


# --- samples and draws ----------------------------------------------------------------------------------


@cache
def returns(days):
    """A GARCH(1,1) path with a mean of 0.1."""
    rng = np.random.default_rng(days)
    y, h = np.empty(days), 1.0
    for t in range(days):
        y[t] = np.sqrt(h) * rng.standard_t(6) * np.sqrt(4.0 / 6.0)
        h = 0.05 + 0.1 * y[t] ** 2 + 0.85 * h
    return y + 0.1


@cache
def sample_of(days, m=0, convention="arch"):
    y = returns(days)
    X = np.column_stack([np.ones(days), np.sin(np.arange(days)), np.roll(y, 1)])[:, :m]
    residuals = y - X @ np.linalg.lstsq(X, y)[0] if m else y
    return FilterData(y, X, arch_startup(residuals) if convention == "arch" else paper_startup(y))


def filter_of(kind, orders, **options):
    return {"garch": GarchFilter, "egarch": EgarchFilter, "figarch": FigarchFilter}[kind](*orders, **options)


def draws_of(kind, orders, draws, m=0, seed=0):
    """Coefficients (k, S) of sensible models, coefficients of the mean (m, S), and ν (S,)."""
    rng = np.random.default_rng(seed)
    mean, nu = rng.normal(0.0, 0.1, (m, draws)), rng.uniform(2.5, 30.0, draws)
    omega = rng.uniform(0.02, 0.2, draws)
    if kind == "figarch":
        d = rng.uniform(0.05, 0.95, draws)
        phi = rng.uniform(0.0, 0.5, draws) * (1.0 - d) * orders[0]
        beta = rng.uniform(0.0, 1.0, draws) * (phi + d)
        rows = [omega, *[phi] * orders[0], d, *[beta] * orders[1]]
    elif kind == "garch":
        p, o, q = orders
        shares = rng.dirichlet(np.ones(p + o + q + 1), draws).T[:-1]
        shares[:p] /= 2.0
        rows = [omega, *shares]
    else:
        p, o, q = orders
        beta = rng.dirichlet(np.ones(q + 1), draws).T[:-1] if q else np.empty((0, draws))
        rows = [omega - 0.1, *rng.normal(0.0, 0.15, (p + o, draws)), *beta]
    return np.array(rows), mean, nu


CASES = [(kind, orders) for kind in ("garch", "egarch") for orders in ORDERS] + [("figarch", o) for o in LONG]


# --- against the formulas -------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "orders"), CASES)
def test_plain_recursion(kind, orders):
    for convention, m in product(("arch", "paper"), (0, 1, 3)):
        assert_plain_recursion(kind, orders, sample_of(150, m, convention), m)


def assert_plain_recursion(kind, orders, sample, m):
    options = {"truncation": 40} if kind == "figarch" else {}
    model = filter_of(kind, orders, **options)
    coefficients, mean, nu = draws_of(kind, orders, 5, m)
    h = model.variance(sample, mean, coefficients)
    values = {None: model.log_likelihood(sample, mean, coefficients, Normal(), first=7)}
    values["t"] = model.log_likelihood(sample, mean, coefficients, StudentT(nu))
    assert h.shape == (151, 5)
    for s in range(5):
        e = sample.y - sample.X @ mean[:, s]
        expected = oracle(kind, orders, sample.startup, e, coefficients[:, s], **options)
        np.testing.assert_allclose(h[:, s], expected, rtol=1e-12)
        normal, student = density(e, expected[:-1], None), density(e, expected[:-1], nu[s])
        np.testing.assert_allclose(values[None][s], normal[7:].sum(), rtol=1e-12)
        np.testing.assert_allclose(values["t"][s], student.sum(), rtol=1e-12)


@pytest.mark.parametrize("d", [0.0, 1e-9, 1e-3, 0.3, 0.7, 1.0 - 1e-9, 1.0])
def test_long_memory_is_exact_at_any_d(d):
    """1,000 lags over 1,500 days: before, across and beyond the truncation; a tiny intercept hides nothing."""
    sample = sample_of(1500, 1, "paper")
    phi = 0.4 * (1.0 - d)
    coefficients, mean = [1e-12, phi, d, 0.9 * (phi + d)], np.array([0.1])
    h = FigarchFilter(1, 1).variance(sample, mean[:, None], np.array(coefficients)[:, None])[:, 0]
    expected = plain_figarch((1, 1), sample.startup, sample.y - sample.X @ mean, coefficients, 1000)
    np.testing.assert_allclose(h, expected, rtol=1e-12)


@pytest.mark.parametrize("truncation", [1, 2, 3, 59, 60, 61, 200])
def test_truncation(truncation):
    sample = sample_of(60, 1)
    coefficients, mean, _ = draws_of("figarch", (1, 1), 2, 1)
    h = FigarchFilter(1, 1, truncation).variance(sample, mean, coefficients)
    for s in range(2):
        e = sample.y - sample.X @ mean[:, s]
        expected = plain_figarch((1, 1), sample.startup, e, coefficients[:, s], truncation)
        np.testing.assert_allclose(h[:, s], expected, rtol=1e-12)


@given(st.floats(-690.0, 690.0))
def test_exponential(x):
    assert exponential(x) == pytest.approx(np.exp(x), rel=5e-16, abs=0.0)


# --- against arch ---------------------------------------------------------------------------------------


@cache
def arch_returns():
    from arch.data import nasdaq, sp500

    series = [100.0 * np.log(data.load()["Adj Close"]).diff().dropna().to_numpy() for data in (sp500, nasdaq)]
    return {"sp500": series[0][:1698], "nasdaq": series[1][-600:]}


@pytest.mark.parametrize("dist", LAWS)
@pytest.mark.parametrize("mean", ["Zero", "Constant", "AR"])
@pytest.mark.parametrize("kind", ["garch", "egarch", "figarch"])
def test_arch(kind, mean, dist):
    arch = pytest.importorskip("arch", reason="the comparison needs the package arch")
    orders = LONG if kind == "figarch" else [orders for orders in ORDERS if kind == "garch" or orders[2]]
    lags = 2 if mean == "AR" else 0
    m = 0 if mean == "Zero" else 1 + lags
    for name, r in arch_returns().items():
        y = r[lags:]
        X = np.column_stack([np.ones(len(y)), *(r[lags - i : len(r) - i] for i in range(1, lags + 1))])[:, :m]
        sample = FilterData(y, X, arch_startup(y - X @ np.linalg.lstsq(X, y)[0] if m else y))
        for order in orders:
            coefficients, b, nu = draws_of(kind, order, 1, m, seed=sum(order))
            shape = {"normal": [], "t": [nu], "skewt": [nu, np.array([-0.3])], "ged": [nu / 3.0]}[dist]
            law = LAWS[dist](*shape)
            theirs = np.concatenate([b[:, 0], coefficients[:, 0], *shape])
            p, o, q = order if kind != "figarch" else (order[0], 0, order[1])
            if kind == "figarch" and q:
                theirs[m] *= 1.0 - coefficients[-1, 0]
            model = arch.arch_model(
                r, mean=mean, lags=lags or None, vol=kind.upper(), p=p, o=o, q=q, dist=dist, rescale=False
            )
            fixed = model.fix(theirs)
            ours = filter_of(kind, order)
            value = ours.log_likelihood(sample, b, coefficients, law)[0]
            assert value == pytest.approx(fixed.loglikelihood, rel=1e-13, abs=1e-8), (name, order)
            h = ours.variance(sample, b, coefficients)[:, 0]
            np.testing.assert_allclose(h[:-1], fixed.conditional_volatility[lags:] ** 2, rtol=1e-9)
            if kind != "figarch" or m == 0:  # for a forecast arch casts back anew, which FIGARCH remembers
                ahead = fixed.forecast(horizon=1, reindex=False).variance.to_numpy()[-1, 0]
                assert h[-1] == pytest.approx(ahead, rel=1e-9)


def test_arch_safeguards():
    """Far below and far above the bounds: the variances that arch replaces are replaced in the same way."""
    arch = pytest.importorskip("arch", reason="the comparison needs the package arch")
    r = arch_returns()["nasdaq"][:80]
    sample = FilterData(r, np.empty((80, 0)), arch_startup(r))
    garch = [[1e-12, 0.0, 0.0], [0.1, 50.0, 3.0], [1e3, 0.0, 0.99], [1.0, 1e308, 1e10], [1e-3, 1e-7, 0.5]]
    egarch = [[-40.0, 0.1, 0.5], [3.0, 0.5, 0.99], [2.0, 5.0, 1.5], [0.0, -3.0, -1.2], [1e3, 0.1, 0.3]]
    figarch = [[1e-12, 0.0, 0.0], [1e9, 0.4, 0.2], [1e-3, 0.4, 0.2]]
    for kind, points, order in (
        ("garch", garch, (1, 0, 1)),
        ("egarch", egarch, (1, 0, 1)),
        ("figarch", figarch, (0, 1)),
    ):
        model = arch.arch_model(r, mean="Zero", vol=kind.upper(), p=order[0], q=order[-1], rescale=False)
        process = model.volatility
        coefficients = np.array(points).T
        h = filter_of(kind, order).variance(sample, np.empty((0, len(points))), coefficients)
        for s, point in enumerate(np.array(points)):
            if kind == "figarch":
                point[0] *= 1.0 - point[-1]
            theirs = np.empty(80)
            process.compute_variance(point, r, theirs, process.backcast(r), process.variance_bounds(r))
            np.testing.assert_allclose(h[:-1, s], theirs, rtol=1e-9)
        bounds = sample.startup.bounds
        touched = (h[:-1] == bounds[0][:, None]) | (h[:-1] > bounds[1][:, None])
        assert touched.any(axis=0)[:3].sum() >= 2, "the points no longer reach the bounds"


def test_the_bounds_are_those_of_the_day():
    """Constant variances ω: calm days have a low ceiling, loud ones a high floor, and the last days neither."""
    size = np.repeat([0.1, 10.0, 1.0], [200, 100, 100])
    y = size * np.where(np.arange(400) % 2, 1.0, -1.0)
    sample = FilterData(y, np.empty((400, 0)), arch_startup(y))
    omega, (lower, upper) = np.array([1e-5, 1.0, 1e5]), sample.startup.bounds[:, :, None]
    h = GarchFilter(1, 0, 0).variance(sample, np.empty((0, 3)), np.stack([omega, np.zeros(3)]))
    above = upper + np.log(omega / upper)
    expected = np.where(omega < lower, lower, np.where(omega > upper, above, omega))
    np.testing.assert_allclose(h[:-1], expected, rtol=1e-12)
    np.testing.assert_array_equal((expected != omega).any(axis=0), [True, False, True])
    np.testing.assert_array_equal(expected[-1], omega)


def test_arch_startup():
    arch = pytest.importorskip("arch", reason="the comparison needs the package arch")
    calm = np.append(returns(100), 1e-4 * returns(150))  # where the floor is a share of the whole variance
    for r in (*arch_returns().values(), returns(20), 1e-3 * returns(100), calm):
        startup = arch_startup(r)
        process = arch.univariate.GARCH(1, 0, 1)
        assert startup.variance == pytest.approx(process.backcast(r), rel=1e-14)
        np.testing.assert_allclose(startup.bounds.T, process.variance_bounds(r), rtol=1e-13)
        assert startup.log_variance == pytest.approx(arch.univariate.EGARCH(1, 0, 1).backcast(r), rel=1e-12)


def test_paper_startup():
    """The values of the paper's programs: those of the first day say what is assumed of the days before."""
    r = np.array([1.0, -3.0, 2.0])
    sample, none = FilterData(r, np.empty((3, 0)), paper_startup(r)), np.empty((0, 1))
    first = [
        (GarchFilter(1, 1, 1), [0.1, 0.2, 0.3, 0.4], 0.1 + 0.2 * 14 / 3 + 0.3 * 7 / 3 + 0.4 * 0.7),
        (EgarchFilter(1, 1, 1), [0.1, 0.2, 0.3, 0.4], np.exp(0.1 - 0.2 * np.sqrt(2 / np.pi) + 0.4 * 0.7)),
        (EgarchFilter(1, 1, 1), [-20.0, 0.2, 0.3, 0.4], np.exp(0.7) / 1e4),
        (EgarchFilter(1, 1, 1), [20.0, 0.0, 0.3, 0.0], 9e4 + 20.0),
        (EgarchFilter(1, 1, 1), [720.0, 0.2, 0.3, 0.4], 9e4 + 800.0),
        (FigarchFilter(0, 0, truncation=2), [0.1, 0.4], 0.1 + 0.5 * (0.4 + 0.4 * 0.6 / 2)),
    ]
    for model, coefficients, expected in first:
        h = model.variance(sample, none, np.array(coefficients)[:, None])
        assert h[0, 0] == pytest.approx(expected, rel=1e-13)


# --- the authors' saved runs ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["garch", "egarch", "figarch"])
def test_saved_runs(kind):
    """Log-likelihood, MSE and QLIKE against squared returns and the realised measure, as the authors saved them."""
    if "MGVBP_DATA" not in os.environ:
        pytest.skip("MGVBP_DATA does not name a directory with the authors' files")
    data, runs = datasets.load("sp500"), [run for run in RUNS if run["model"] == kind]
    assert len(RUNS) == len({(run["model"], tuple(run["orders"]), run["method"]) for run in RUNS}) == 40
    for run, (segment, frame) in product(runs, (("train", data.train), ("test", data.test))):
        orders = [run["orders"][0], run["orders"][2]] if kind == "figarch" else run["orders"]
        model, coefficients = filter_of(kind, orders), np.array(run["coefficients"])[:, None]
        r, none = frame["r"].to_numpy(), np.empty((0, 1))
        sample = FilterData(r, np.empty((len(r), 0)), paper_startup(r))
        with case(orders, run["method"], segment):
            value = model.log_likelihood(sample, none, coefficients, Normal())[0]
            assert value == pytest.approx(run[f"{segment}_loglik"], abs=1e-9)
            h = model.variance(sample, none, coefficients)[:-1, 0]
            for name in ("r", "rv"):
                x = frame[name].to_numpy() ** 2
                assert mse(x, h) == pytest.approx(run[f"{segment}_MSE_{name}"], abs=1e-9)
                assert qlike(x, h) == pytest.approx(run[f"{segment}_QLIKE_{name}"], abs=1e-9)


# --- draws do not meet ----------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [0, 2])
@pytest.mark.parametrize(
    ("kind", "orders"), [("garch", (2, 1, 1)), ("egarch", (1, 1, 2)), ("figarch", (1, 1))]
)
def test_any_number_of_draws(kind, orders, m):
    sample, model = sample_of(150, m), filter_of(kind, orders)
    coefficients, mean, nu = draws_of(kind, orders, 150, m)
    for law in (Normal(), StudentT(nu)):
        whole = model.log_likelihood(sample, mean, coefficients, law)
        for some in (slice(3, 4), slice(30, 37), slice(1, 150), slice(149, None, -1)):
            part = StudentT(nu[some]) if isinstance(law, StudentT) else law
            value = model.log_likelihood(sample, mean[:, some], coefficients[:, some], part)
            np.testing.assert_allclose(value, whole[some], rtol=1e-13)
    whole = model.variance(sample, mean, coefficients)
    np.testing.assert_allclose(
        model.variance(sample, mean[:, 40:47], coefficients[:, 40:47]), whole[:, 40:47], rtol=1e-13
    )


def test_threads(monkeypatch):
    sample, model = sample_of(150), FigarchFilter(1, 1)
    coefficients, mean, nu = draws_of("figarch", (1, 1), 200)
    alone = (
        model.log_likelihood(sample, mean, coefficients, StudentT(nu)),
        model.variance(sample, mean, coefficients),
    )
    pools = []

    class Pool(base.ThreadPoolExecutor):
        def __init__(self, threads):
            pools.append(threads)
            super().__init__(threads)

    monkeypatch.setattr(base, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(base, "THREADED", 1)
    monkeypatch.setattr(base.numba.config, "NUMBA_NUM_THREADS", 3)
    together = (
        model.log_likelihood(sample, mean, coefficients, StudentT(nu)),
        model.variance(sample, mean, coefficients),
    )
    assert pools == [3, 3]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


WILD = st.one_of(
    st.floats(-1e3, 1e3), st.sampled_from([0.0, 1e-300, 1e300, np.exp(50.0), np.exp(-50.0), np.inf, np.nan])
)


@settings(max_examples=60)
@given(
    st.sampled_from([("garch", (1, 1, 1)), ("garch", (2, 2, 2)), ("egarch", (2, 1, 2)), ("figarch", (1, 1))]),
    st.lists(WILD, min_size=8, max_size=8),
    st.sampled_from(["arch", "paper"]),
    st.booleans(),
)
def test_a_wild_draw_harms_no_other(case, wild, convention, student):
    """No warning, no crash, and the values of its neighbours as they are without it."""
    kind, orders = case
    sample, model = sample_of(150, 1, convention), filter_of(kind, orders)
    coefficients, mean, nu = draws_of(kind, orders, 9, 1)
    law = StudentT(nu) if student else Normal()
    before = model.log_likelihood(sample, mean, coefficients, law)
    coefficients[:, 4] = wild[: len(coefficients)]
    mean[0, 4] = wild[-1]
    after = model.log_likelihood(sample, mean, coefficients, law)
    others = np.arange(9) != 4
    np.testing.assert_array_equal(after[others], before[others])
    assert after[4] != np.inf


EXTREME = {
    "garch": [
        [np.exp(50.0), 0.1, 0.1, 0.8],
        [np.exp(-50.0), 0.4999, 0.0, 0.4999],
        [np.exp(-50.0), 0.0, 0.0, 0.0],
    ],
    "egarch": [
        [5.0, 2.0, -1.0, 1.5],
        [-9.0, 3.0, 2.0, -1.3],
        [900.0, 0.1, 0.1, 0.9],
        [-900.0, 0.1, 0.1, 0.9],
        [
            8192.0 * np.log(2.0),
            0.0,
            0.0,
            0.0,
        ],  # √h = 2^4096, whose exponent is 0 in the bits that a float has
        [-8192.0 * np.log(2.0), 0.0, 0.0, 0.0],
    ],
}


@pytest.mark.parametrize("kind", EXTREME)
def test_extreme_but_meant_seriously(kind):
    """What a search over ψ may propose: finite values, those of the formulas."""
    points, orders = EXTREME[kind], (1, 1, 1)
    for convention in ("arch", "paper"):
        sample = sample_of(150, 0, convention)
        values = filter_of(kind, orders).log_likelihood(
            sample, np.empty((0, len(points))), np.array(points).T, Normal()
        )
        assert np.isfinite(values).all()
        for value, point in zip(values, points, strict=True):
            h = oracle(kind, orders, sample.startup, sample.y, point)[:-1]
            assert value == pytest.approx(density(sample.y, h, None).sum(), rel=1e-9)


def test_variances_and_residuals_of_any_size():
    """h = c at every day, where 16 of them multiplied, or their products with squares, leave the range of a float."""
    sample = sample_of(150, 1, "paper")
    sizes = 10.0 ** np.array([*range(-300, 301, 20), -16, 16])
    h = np.concatenate([sizes, [9e16, 9e16, 1.0]])
    b = np.concatenate([np.zeros_like(sizes), [1e28, 1.0, 1e28]])
    for nu in (None, 5.0):
        law = Normal() if nu is None else StudentT(np.full(len(h), nu))
        values = GarchFilter(1, 0, 0).log_likelihood(sample, b[None], [h, np.zeros_like(h)], law)
        expected = [density(sample.y - mean, size, nu).sum() for mean, size in zip(b, h, strict=True)]
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_many_degrees_of_freedom():
    """log(N/D) of numbers that are almost equal, times ν/2."""
    sample, model = sample_of(150), GarchFilter(1, 0, 1)
    coefficients, mean, _ = draws_of("garch", (1, 0, 1), 1)
    h = model.variance(sample, mean, coefficients)[:-1, 0]
    for nu in (1e3, 1e5, 1e7):
        scaled = sample.y**2 / h / (nu - 2.0)
        constant = np.log1p(-1.0 / (4.0 * nu)) - 0.5 * np.log(2.0 * np.pi) + 0.5 * np.log(nu / (nu - 2.0))
        expected = np.sum(constant - 0.5 * np.log(h) - 0.5 * (nu + 1.0) * np.log1p(scaled))
        value = model.log_likelihood(sample, mean, coefficients, StudentT(np.array([nu])))[0]
        # Γ((ν + 1)/2) / Γ(ν/2) is √(ν/2) (1 − 1/(4ν) + O(1/ν²)); gammaln loses digits as ν grows
        assert value == pytest.approx(expected, abs=150.0 * (0.1 / nu**2 + 1e-15 * nu * np.log(nu)))


def test_first_counts_days():
    sample, model = sample_of(150), EgarchFilter(1, 1, 1)
    coefficients, mean, nu = draws_of("egarch", (1, 1, 1), 3)
    days = [model.log_likelihood(sample, mean, coefficients, StudentT(nu), first) for first in range(150)]
    h = model.variance(sample, mean, coefficients)
    for s in range(3):
        expected = density(sample.y, h[:-1, s], nu[s])
        np.testing.assert_allclose(-np.diff([day[s] for day in days]), expected[:-1], atol=1e-11)


# --- what is not a filter's input -----------------------------------------------------------------------


def test_wrong_orders():
    for wrong in ((0, 0, 1), (3, 0, 1), (1, 0, 3)):
        for kind in (GarchFilter, EgarchFilter):
            with pytest.raises(InvalidInputError, match=r"term in past returns|must be at most 2; got 3"):
                kind(*wrong)
    with pytest.raises(InvalidInputError, match="p must be at most 1; got 2"):
        FigarchFilter(2, 1)
    with pytest.raises(InvalidTypeError, match="p must be an integer"):
        GarchFilter(1.0, 0, 1)
    with pytest.raises(InvalidInputError, match="truncation must be at least 1"):
        FigarchFilter(1, 1, truncation=0)


def test_returns_that_the_mean_explains_leave_nothing_to_start_from():
    with pytest.raises(InvalidInputError, match="residuals are all zero"):
        arch_startup(np.zeros(5))


def test_a_fraction_of_integration_beyond_one_is_nan():
    sample = sample_of(150)
    values = FigarchFilter(0, 0).log_likelihood(
        sample, np.empty((0, 3)), [[0.1] * 3, [-0.1, 0.4, 1.1]], Normal()
    )
    np.testing.assert_array_equal(np.isnan(values), [True, False, True])


def test_samples_and_filters_travel():
    """To another process and back: the filter of a sample that has been used before."""
    sample, model = sample_of(150), FigarchFilter(1, 1)
    coefficients, mean, _ = draws_of("figarch", (1, 1), 3)
    value = model.log_likelihood(sample, mean, coefficients, Normal())
    again, copy = pickle.loads(pickle.dumps((model, sample)))
    assert isinstance(copy.startup, StartUp)
    np.testing.assert_array_equal(again.log_likelihood(copy, mean, coefficients, Normal()), value)


def test_compiles_where_nothing_can_be_kept():
    scope = {}
    exec("def double(x):\n    return 2.0 * x", scope)  # of no file, so that there is no place for a cache
    assert compiled(scope["double"])(1.5) == 3.0
