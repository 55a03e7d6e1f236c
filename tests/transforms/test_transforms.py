"""Transforms: their formulas in many digits, the densities they must give, the ends of the float range."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import beta as beta_function
from scipy.stats import beta, dirichlet, logistic, lognorm, norm

from common import case
from mgvbp import InvalidInputError, InvalidTypeError
from mgvbp.transforms import (
    TRANSFORMS,
    CorrelationCholesky,
    FigarchRegion,
    GarchRegion,
    GarchSumRegion,
    Interval,
    LowerBound,
    Ordered,
    Positive,
    Real,
    Simplex,
    UpperBound,
)
from mgvbp.transforms.base import just_inside

# --- the formulas, in as many digits as they need ------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


def increasing(x):
    return [sum(map(mpmath.exp, x[1 : i + 1]), x[0]) for i in range(len(x))]


def log_ratio(x):
    """The first n − 1 probabilities; the basis vectors are (1, …, 1, −k, 0, …)/√(k(k+1))."""
    n = len(x) + 1
    scaled = [c / mpmath.sqrt((k + 1) * (k + 2)) for k, c in enumerate(x)]
    e = [mpmath.exp(sum(scaled[m:]) - (m * scaled[m - 1] if m else 0)) for m in range(n)]
    return [value / sum(e) for value in e[:-1]]


def partial_correlations(x, n):
    """The entries below the diagonal, as in Stan's manual: L_ij = z_ij √(1 − Σ_{k<j} L_ik²)."""
    numbers, below = iter(x), []
    for i in range(n):
        row = []
        for _ in range(i):
            row.append(mpmath.tanh(next(numbers)) * mpmath.sqrt(1 - sum(v * v for v in row)))
        below += row
    return below


def garch(x, p, o, q):
    """The authors' parametrisation, with their cut at 100 left out."""
    left, out = mpmath.mpf("0.9998"), []
    for c in x[:p]:
        out.append(sigmoid(c) * left)
        left -= out[-1]
    for i, c in enumerate(x[p : p + o]):
        a = out[i] if i < p else 0
        out.append(sigmoid(c) * (2 * left + a) - a)
        left -= out[-1] / 2
    for c in x[p + o :]:
        out.append(sigmoid(c) * left)
        left -= out[-1]
    return out


def garch_by_sum(x, p, o, q):
    """The sum of the β in the place of a single one; each β but the last takes its share of what is left of it."""
    *first, left = garch(x[: p + o + 1], p, o, 1)
    for c in x[p + o + 1 :]:
        first.append(sigmoid(c) * left)
        left -= first[-1]
    return [*first, left]


def figarch(x, p, q):
    """The authors' parametrisation."""
    d = sigmoid(x[p])
    phi = [sigmoid(x[0]) * (1 - d) / 2] if p else []
    beta = [sigmoid(x[-1]) * (sum(phi) + d)] if q else []
    return [*phi, d, *beta]


CASES = {
    Real(2): lambda x: x,
    Positive(3): lambda x: [mpmath.exp(c) for c in x],
    LowerBound(-1.5, 2): lambda x: [-1.5 + mpmath.exp(c) for c in x],
    UpperBound(3.0, 1, 2): lambda x: [3 - mpmath.exp(-c) for c in x],
    Interval(-1.0, 3.0, 2): lambda x: [-1 + 4 * sigmoid(c) for c in x],
    Interval(-2.0, 0.0): lambda x: [-2 * sigmoid(-c) for c in x],
    Ordered(3): increasing,
    Simplex(2): log_ratio,
    Simplex(4): log_ratio,
    CorrelationCholesky(2): lambda x: partial_correlations(x, 2),
    CorrelationCholesky(3): lambda x: partial_correlations(x, 3),
    GarchRegion(1, 0, 1): lambda x: garch(x, 1, 0, 1),
    GarchRegion(1, 1, 1): lambda x: garch(x, 1, 1, 1),
    GarchRegion(0, 1, 1): lambda x: garch(x, 0, 1, 1),
    GarchSumRegion(1, 0, 2): lambda x: garch_by_sum(x, 1, 0, 2),
    GarchSumRegion(0, 1, 2): lambda x: garch_by_sum(x, 0, 1, 2),
    GarchSumRegion(0, 0, 3): lambda x: garch_by_sum(x, 0, 0, 3),
    FigarchRegion(0, 0): lambda x: figarch(x, 0, 0),
    FigarchRegion(0, 1): lambda x: figarch(x, 0, 1),
    FigarchRegion(1, 0): lambda x: figarch(x, 1, 0),
    FigarchRegion(1, 1): lambda x: figarch(x, 1, 1),
}
LARGER = [Real(2, 2), Interval(0.0, 1.0, 2, 3), Ordered(5), Simplex(6), CorrelationCholesky(4)]
LARGER += [GarchRegion(2, 2, 2), GarchRegion(1, 2, 0), GarchRegion(0, 0, 3), GarchSumRegion(2, 2, 2)]
EVERY = [*CASES, *LARGER]


def free_entries(transform, value):
    """The entries of one value that the Jacobian is about."""
    if isinstance(transform, CorrelationCholesky):
        return value[np.tril_indices(len(value), -1)]
    return value[:-1] if isinstance(transform, Simplex) else value.ravel()


def exact(transform, x):
    """The free entries and the log-Jacobian at x (size,), by central differences in 100 digits or more."""
    with mpmath.workdps(100 + int(1.5 * np.abs(x).max() + 0.5 * np.abs(x).sum())):
        h = mpmath.mpf(10) ** (-30 - int(np.abs(x).max()))
        x = [mpmath.mpf(float(c)) for c in x]
        J = mpmath.matrix(len(x))
        for k in range(len(x)):
            up, down = (CASES[transform]([*x[:k], x[k] + step, *x[k + 1 :]]) for step in (h, -h))
            for i in range(len(x)):
                J[i, k] = (up[i] - down[i]) / (2 * h)
        value = np.array([float(v) for v in CASES[transform](x)])
        return value, float(mpmath.log(abs(mpmath.det(J))))


def assert_exact(transform, x):
    value, log_jacobian = exact(transform, x)
    found = free_entries(transform, transform.constrain(x[None])[0])
    np.testing.assert_allclose(found, value, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(transform.log_jacobian(x[None]), [log_jacobian], rtol=1e-13, atol=1e-13)


def points(transform, bound):
    number = st.floats(-bound, bound, allow_nan=False).map(lambda c: c if abs(c) > 1e-100 else 0.0)
    return st.lists(number, min_size=transform.size, max_size=transform.size).map(np.array)


@pytest.mark.parametrize("transform", CASES, ids=repr)
@settings(max_examples=15)
@given(data=st.data())
def test_value_and_log_jacobian_are_those_of_the_formula(transform, data):
    assert_exact(transform, data.draw(points(transform, 10.0)))


def test_value_and_log_jacobian_are_exact_at_700():
    patterns = [(1, 1, 1), (-1, -1, -1), (1, -1, 0.01), (-0.01, 1, -1)]
    for transform, pattern in product(CASES, patterns):
        with case(transform, pattern):
            assert_exact(transform, 700.0 * np.array(pattern[: transform.size]))


# --- there and back -----------------------------------------------------------------------------------


def inside(transform, value):
    """Whether each value (S, *shape) meets the constraint, as its definition has it."""
    rows = value.reshape(len(value), -1)
    if isinstance(transform, Ordered):
        return (rows[:, 1:] > rows[:, :-1]).all(axis=1)
    if isinstance(transform, Simplex):
        return (rows > 0).all(axis=1) & np.isclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    if isinstance(transform, CorrelationCholesky):
        R = value @ value.transpose(0, 2, 1)
        unit = np.isclose(np.diagonal(R, axis1=1, axis2=2), 1.0, rtol=0, atol=1e-14).all(axis=1)
        triangular = (np.triu(value, 1) == 0).all(axis=(1, 2))
        return unit & triangular & (np.diagonal(value, axis1=1, axis2=2) > 0).all(axis=1)
    if isinstance(transform, GarchRegion | GarchSumRegion):
        p, o, _ = transform.arguments
        a, g, b = np.split(rows, [p, p + o], axis=1)
        padded = np.pad(a, ((0, 0), (0, max(o - p, 0))))
        persistence = a.sum(axis=1) + g.sum(axis=1) / 2 + b.sum(axis=1)
        signs = (a > 0).all(axis=1) & (b > 0).all(axis=1) & (padded[:, :o] + g > 0).all(axis=1)
        return signs & (persistence < 0.9998 + 1e-15)
    if isinstance(transform, FigarchRegion):
        p, q = transform.arguments
        d, phi = rows[:, p], rows[:, 0] if p else 0.0
        beta = rows[:, -1] if q else d / 2
        phi_fits = (phi > 0) & (phi < (1 - d) / 2) if p else True
        return (d > 0) & (d < 1) & phi_fits & (beta > 0) & (beta < phi + d)
    lower, upper = transform.bounds
    return ((rows > lower) & (rows < upper)).all(axis=1)


@pytest.mark.parametrize("transform", EVERY, ids=repr)
@settings(max_examples=30)
@given(data=st.data())
def test_unconstrain_inverts_constrain(transform, data):
    x = np.array(data.draw(st.lists(points(transform, 6.0), min_size=1, max_size=3)))
    value = transform.constrain(x)
    assert value.shape == (len(x), *transform.shape)
    assert inside(transform, value).all()
    # a value within e⁻⁶ of a bound, or a step of e⁻⁶ after ones of e⁶, has lost up to e¹² of its digits
    np.testing.assert_allclose(transform.unconstrain(value), x, atol=1e-9)


def wishart_factor(rng):
    A = rng.standard_normal((4, 6))
    return np.linalg.cholesky(np.corrcoef(A))


def stationary(rng):
    a1, a2, g1, g2, b1, b2, _ = 0.9998 * rng.dirichlet(np.ones(7))
    return np.array([a1, a2, 2 * g1 - a1 / 3, 2 * g2 - a2 / 3, b1, b2])


SAMPLERS = [
    (Positive(2), lambda rng: rng.gamma(0.3, size=2)),
    (LowerBound(1.0, 2, 2), lambda rng: 1.0 + rng.exponential(size=(2, 2))),
    (UpperBound(1.0), lambda rng: 1.0 - rng.exponential()),
    (Interval(-1.0, 4.0), lambda rng: rng.uniform(-1.0, 4.0)),
    (Ordered(5), lambda rng: np.sort(rng.standard_normal(5))),
    (Simplex(4), lambda rng: rng.dirichlet(np.full(4, 0.5))),
    (CorrelationCholesky(4), wishart_factor),
    (GarchRegion(2, 2, 2), stationary),
    (GarchSumRegion(2, 2, 2), stationary),
]


def test_every_point_of_the_support_is_reached():
    """Values that do not come from `constrain`."""
    for transform, draw in SAMPLERS:
        with case(transform):
            rng = np.random.default_rng(0)
            value = np.array([draw(rng) for _ in range(200)])
            np.testing.assert_allclose(transform.constrain(transform.unconstrain(value)), value, rtol=1e-11)


# --- the ends of the float range ------------------------------------------------------------------------


def corners(transform, size):
    rng = np.random.default_rng(1)
    signs = np.array(list(product([-1.0, 1.0], repeat=transform.size)))
    return size * np.concatenate([signs, rng.uniform(-1.0, 1.0, (100, transform.size))])


def test_at_700_values_stay_inside_and_can_be_taken_back():
    for transform in EVERY:
        with case(transform):
            x = corners(transform, 700.0)
            value = transform.constrain(x)
            assert np.isfinite(value).all()
            assert inside(transform, value).all()
            assert np.isfinite(transform.unconstrain(value)).all()
            assert np.isfinite(transform.log_jacobian(x)).all()


def test_at_a_million_nothing_is_nan():
    for transform in EVERY:
        with case(transform):
            x = corners(transform, 1e6)
            value = transform.constrain(x)
            assert not np.isnan(value).any()
            finite = np.isfinite(value).reshape(len(x), -1).all(axis=1)
            assert inside(transform, value[finite]).all()
            assert np.isfinite(transform.unconstrain(value[finite])).all()
            assert np.isfinite(transform.log_jacobian(x)).all()


def test_beyond_the_largest_float_is_infinity():
    """Not the largest float: together with a growing Jacobian that would look ever more likely."""
    assert Positive().constrain([[1e3]])[0] == math.inf
    assert LowerBound(1.0).constrain([[1e3]])[0] == math.inf
    assert UpperBound(1.0).constrain([[-1e3]])[0] == -math.inf


def test_just_inside():
    value = just_inside(np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), 0.0, 1.0)
    np.testing.assert_array_equal(value, [5e-324, 5e-324, 0.5, 1.0 - 2.0**-53, 1.0 - 2.0**-53])
    np.testing.assert_array_equal(just_inside(np.array([0.0, np.inf]), 0.0, np.inf), [5e-324, np.inf])


def test_round_trips_without_loss_where_there_need_be_none():
    """Small positive numbers, probabilities and correlations near ±1 keep all their digits."""
    x = np.linspace(-500.0, 500.0, 40)[:, None]
    for transform in (Positive(), Simplex(2), CorrelationCholesky(2)):
        np.testing.assert_allclose(transform.unconstrain(transform.constrain(x)), x, rtol=1e-12)
    below = x[x[:, 0] <= 0.0]  # the end at 0 of an interval
    np.testing.assert_allclose(Interval(0, 1).unconstrain(Interval(0, 1).constrain(below)), below, rtol=1e-12)
    np.testing.assert_allclose(
        Interval(-1, 0).unconstrain(Interval(-1, 0).constrain(-below)), -below, rtol=1e-12
    )


# --- outside the support --------------------------------------------------------------------------------

OUTSIDE = [
    (Positive(), [1.0, 0.0], r"Positive\(\) takes values in \(0, inf\); got 0"),
    (Positive(2), [[1.0, 2.0], [3.0, -4.0]], r"got \[ 3. -4.\]"),
    (LowerBound(2.0), [2.0], r"\(2, inf\)"),
    (UpperBound(2.0), [2.5], r"\(-inf, 2\)"),
    (Interval(0.0, 1.0), [1.0], r"\(0, 1\)"),
    (Interval(0.0, 1.0), [-0.1], r"\(0, 1\)"),
    (Ordered(3), [[1.0, 2.0, 2.0]], "strictly increasing"),
    (Simplex(2), [[0.5, 0.6]], "sum one"),
    (Simplex(2), [[-0.5, 1.5]], "positive"),
    (Simplex(2), [[0.0, 1.0]], "positive"),
    (CorrelationCholesky(2), [[[1.0, 0.0], [0.6, 0.9]]], "rows of norm one"),
    (CorrelationCholesky(2), [[[1.0, 0.0], [0.6, -0.8]]], "positive diagonal"),
    (CorrelationCholesky(2), [[[0.8, 0.6], [0.6, 0.8]]], "lower triangular"),
    (GarchRegion(1, 0, 1), [[0.1, 0.9]], "below 0.9998"),
    (GarchRegion(1, 0, 1), [[-0.1, 0.5]], "α > 0"),
    (GarchRegion(1, 0, 1), [[0.1, 0.0]], "β > 0"),
    (GarchRegion(1, 1, 0), [[0.1, -0.2]], "γ_i > −α_i"),
    (GarchRegion(1, 1, 0), [[0.1, 1.9]], "below 0.9998"),
    (GarchRegion(1, 2, 0), [[0.1, 0.1, -0.05]], "γ_i > −α_i"),
    (GarchSumRegion(0, 0, 2), [[0.5, 0.5]], "below 0.9998"),
    (GarchSumRegion(0, 0, 2), [[0.5, 0.0]], "β > 0"),
    (FigarchRegion(1, 1), [[0.3, 0.5, 0.2]], r"φ < \(1 − d\)/2"),
    (FigarchRegion(1, 1), [[0.1, 0.5, 0.7]], "β < φ \\+ d"),
    (FigarchRegion(0, 0), [[1.0]], "d < 1"),
]


def test_values_outside_the_support_are_refused():
    for transform, value, message in OUTSIDE:
        with case(transform, value), pytest.raises(InvalidInputError, match=message):
            transform.unconstrain(value)


BAD = [
    (lambda: Positive(0), InvalidInputError, "shape of Positive must be at least 1"),
    (lambda: Real(2.0), InvalidTypeError, "shape of Real must be an integer"),
    (lambda: LowerBound("0"), InvalidTypeError, "lower must be a number"),
    (lambda: LowerBound([0.0, 1.0]), InvalidTypeError, r"lower must be a number; got an array"),
    (lambda: UpperBound(math.inf), InvalidInputError, "upper has non-finite"),
    (lambda: Interval(1.0, 1.0), InvalidInputError, "lower < upper"),
    (lambda: Interval(2.0, 1.0), InvalidInputError, "lower < upper"),
    (lambda: Interval(-1e308, 1e308), InvalidInputError, "finite distance"),
    (lambda: Interval(1.0, np.nextafter(1.0, 2.0)), InvalidInputError, "lower < upper"),
    (lambda: Ordered(0), InvalidInputError, "n must be at least 1"),
    (lambda: Simplex(1), InvalidInputError, "n must be at least 2"),
    (lambda: CorrelationCholesky(1), InvalidInputError, "n must be at least 2"),
    (lambda: GarchRegion(0, 0, 0), InvalidInputError, "at least one coefficient"),
    (lambda: GarchRegion(1, -1, 1), InvalidInputError, "o must be at least 0"),
    (lambda: GarchSumRegion(1, 0, 0), InvalidInputError, "q must be at least 1"),
    (lambda: FigarchRegion(2, 1), InvalidInputError, "0 or 1"),
    (lambda: Positive(2).constrain([0.0, 0.0]), InvalidInputError, r"\(2,\); Positive\(2\) expects \(S, 2\)"),
    (lambda: Positive(2).log_jacobian([[0.0]]), InvalidInputError, r"expects \(S, 2\)"),
    (lambda: Simplex(3).unconstrain([0.2, 0.3, 0.5]), InvalidInputError, r"expected \(S, 3\)"),
    (lambda: Positive().unconstrain(1.0), InvalidInputError, r"shape \(\); expected \(S\)"),
    (lambda: Positive().unconstrain([np.nan]), InvalidInputError, "non-finite"),
    (lambda: Positive().unconstrain(["a"]), InvalidTypeError, "number"),
]  # fmt: skip


def test_bad_arguments():
    for row, (call, error, message) in enumerate(BAD):
        with case(f"row {row} of BAD", message), pytest.raises(error, match=message):
            call()


def test_no_draws_are_fine():
    for transform in EVERY:
        with case(transform):
            nothing = np.empty((0, transform.size))
            assert transform.constrain(nothing).shape == (0, *transform.shape)
            assert transform.log_jacobian(nothing).shape == (0,)
            assert transform.unconstrain(np.empty((0, *transform.shape))).shape == (0, transform.size)


# --- moments, quantiles and densities of single numbers -------------------------------------------------

MU, SD = np.array([-1.0, 0.0, 0.7]), np.array([0.1, 1.0, 2.5])
MOMENTS = [
    (Real(3), norm(MU, SD)),
    (Positive(3), lognorm(SD, scale=np.exp(MU))),
    (LowerBound(-2.0, 3), lognorm(SD, loc=-2.0, scale=np.exp(MU))),
]


@pytest.mark.parametrize(("transform", "distribution"), MOMENTS, ids=[repr(t) for t, _ in MOMENTS])
def test_moments_quantiles_and_densities_are_those_of_scipy(transform, distribution):
    np.testing.assert_allclose(transform.mean(MU, SD), distribution.mean(), rtol=1e-12)
    np.testing.assert_allclose(transform.std(MU, SD), distribution.std(), rtol=1e-12)
    for level in (0.025, 0.5, 0.9):
        x = norm(MU, SD).ppf(level)
        quantiles = transform.constrain(x[None])[0]
        np.testing.assert_allclose(quantiles, distribution.ppf(level), rtol=1e-12)
        np.testing.assert_allclose(
            norm(MU, SD).logpdf(x) - transform.log_derivative(x), distribution.logpdf(quantiles), rtol=1e-9
        )


def test_an_upper_bound_is_a_lower_bound_reflected():
    np.testing.assert_allclose(UpperBound(2.0).mean(MU, SD), -LowerBound(-2.0).mean(-MU, SD), rtol=1e-14)
    np.testing.assert_array_equal(UpperBound(2.0).std(MU, SD), LowerBound(-2.0).std(-MU, SD))
    x = np.linspace(-5.0, 5.0, 11)[:, None]
    np.testing.assert_array_equal(UpperBound(2.0).constrain(x), -LowerBound(-2.0).constrain(-x))


def test_moments_where_factors_over_and_underflow():
    """exp(−1000) is 0 and exp(1600) is inf, but the standard deviation is exp(600)."""
    assert Positive().std(-1000.0, 40.0) == pytest.approx(math.exp(600.0), rel=1e-12)
    assert Positive().mean(0.0, 100.0) == Positive().std(0.0, 100.0) == math.inf
    assert Positive().std(1.0, 0.0) == 0.0
    assert Positive().std(0.0, 1e-9) == pytest.approx(1e-9, rel=1e-9)


def test_no_formula_no_moments():
    for transform in (
        Interval(0.0, 1.0),
        Ordered(2),
        Simplex(2),
        CorrelationCholesky(2),
        GarchRegion(1, 0, 1),
        GarchSumRegion(1, 0, 2),
    ):
        assert transform.mean(0.0, 1.0) is None
        assert transform.std(0.0, 1.0) is None


def test_increasing_says_what_it_promises():
    """Entry i moves up with number i, and with no other."""
    for transform in EVERY:
        units = np.eye(transform.size)
        at_zero = transform.constrain(np.zeros((1, transform.size)))
        moved = (transform.constrain(units) - at_zero).reshape(transform.size, -1)
        one_to_one = moved.shape == units.shape and (np.sign(moved) == units).all()
        with case(transform):
            assert transform.increasing or transform.size == 1 or not one_to_one
            assert one_to_one or not transform.increasing


# --- densities ------------------------------------------------------------------------------------------


def test_uniform_on_an_interval_is_a_logistic():
    x = np.linspace(-700.0, 700.0, 57)[:, None]
    log_density = Interval(-3.0, 5.0).log_jacobian(x) - math.log(8.0)
    np.testing.assert_allclose(log_density, logistic.logpdf(x[:, 0]), rtol=1e-14)


def grid(size, half_width, step):
    """Points of the trapezoidal rule, exponentially accurate for analytic densities, and its weight."""
    axis = np.arange(-half_width, half_width + step / 2, step)
    return np.stack(np.meshgrid(*[axis] * size), axis=-1).reshape(-1, size), step**size


@pytest.mark.parametrize("a", [(1.0, 1.0), (2.0, 0.7), (1.0, 1.0, 1.0), (0.6, 2.0, 3.5)])
def test_a_dirichlet_density_integrates_to_one_over_the_simplex(a):
    x, weight = grid(len(a) - 1, 60.0, 0.4)
    p = Simplex(len(a)).constrain(x)
    density = np.exp(Simplex(len(a)).log_jacobian(x) + dirichlet(a).logpdf((p / p.sum(1, keepdims=True)).T))
    assert weight * density.sum() == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(weight * density @ p, dirichlet(a).mean(), atol=1e-9)


@given(p=st.permutations(range(5)), seed=st.integers(0, 1000))
@settings(max_examples=20)
def test_another_order_of_the_categories_is_a_rotation(p, seed):
    """So that full Gaussians remain full Gaussians; and the Jacobian does not notice."""
    x = np.random.default_rng(seed).standard_normal((6, 4))
    rotated = Simplex(5).unconstrain(Simplex(5).constrain(x)[:, p])
    np.testing.assert_allclose(rotated @ rotated.T, x @ x.T, atol=1e-12)
    np.testing.assert_allclose(Simplex(5).log_jacobian(rotated), Simplex(5).log_jacobian(x), atol=1e-12)


@pytest.mark.parametrize("eta", [1.0, 2.5])
@pytest.mark.parametrize("n", [2, 3])
def test_the_lkj_density_has_its_normalising_constant(n, eta):
    """Lewandowski, Kurowicka and Joe (2009), eq. (16); for n = 3, η = 1 the volume π²/2 of the elliptope."""
    x, weight = grid(CorrelationCholesky(n).size, 10.0, 0.32)
    L = CorrelationCholesky(n).constrain(x)
    power = n - np.arange(1, n + 1) + 2.0 * eta - 2.0
    density = CorrelationCholesky(n).log_jacobian(x) + np.log(np.diagonal(L, axis1=1, axis2=2)) @ power
    constant = 1.0
    for k in range(1, n):
        b = eta + (n - k - 1) / 2
        constant *= 2.0 ** ((2 * eta - 2 + n - k) * (n - k)) * beta_function(b, b) ** (n - k)
    assert weight * np.exp(density).sum() == pytest.approx(constant, rel=1e-7)
    if n == 3 and eta == 1.0:
        assert constant == pytest.approx(math.pi**2 / 2)
        # every correlation of a uniform 3×3 matrix is 2 Beta(3/2, 3/2) − 1
        for i, j in ((1, 0), (2, 0), (2, 1)):
            rho = np.einsum("sk,sk->s", L[:, i], L[:, j])
            moment = weight * np.exp(density) @ rho**4 / constant
            assert moment == pytest.approx(beta(1.5, 1.5, loc=-1.0, scale=2.0).moment(4), rel=1e-7)


def test_uniform_ordered_pairs():
    """Two sorted standard normals have density 2 φ(v_0) φ(v_1)."""
    x, weight = grid(2, 12.0, 0.1)
    v = Ordered(2).constrain(x)
    density = np.exp(Ordered(2).log_jacobian(x) + norm.logpdf(v).sum(axis=1))
    assert weight * 2.0 * density.sum() == pytest.approx(
        1.0, abs=1e-4
    )  # the lower end of log(v_1 − v_0) is cut


@pytest.mark.parametrize(
    "region", [GarchRegion(2, 0, 1), GarchRegion(1, 1, 1), GarchSumRegion(1, 0, 2)], ids=repr
)
def test_the_volume_of_the_stationarity_region(region):
    """0.9998³/3! for a simplex; with γ, ∫ dα ½ (0.9998 − α/2)² 2 over α < 0.9998."""
    x, weight = grid(3, 30.0, 0.6)
    volume = weight * np.exp(region.log_jacobian(x)).sum()
    u = 0.9998
    exact_volume = u**3 / 6 if region.arguments[1] == 0 else (u**3 - (u / 2) ** 3) * 2 / 3
    assert volume == pytest.approx(exact_volume, rel=1e-6)


# --- the stationarity region in the literature ----------------------------------------------------------


def test_garch_values_of_the_authors():
    """Their GARCH(1,0,1) fit of the S&P 500: the coefficients printed, and those their ψ really stands for.

    They turn estimates into ψ with a total of 0.999998 + 10⁻⁸(p + o + q), and back with 0.9998.
    """
    a, b, total = 0.22569, 0.73919, 0.999998 + 2e-8
    psi = [math.log(a / (total - a)), math.log(b / (total - a - b))]
    np.testing.assert_allclose(GarchRegion(1, 0, 1).constrain([psi]), [[0.22565, 0.73904]], atol=5e-6)


@given(data=st.data(), orders=st.sampled_from([(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 3, 0)]))
@settings(max_examples=50)
def test_the_cut_at_100_changes_nothing(data, orders):
    x = data.draw(points(GarchRegion(*orders), 1000.0))
    region = GarchRegion(*orders)
    assert inside(region, region.constrain(x[None])).all()
    np.testing.assert_array_equal(region.constrain(x[None]), region.constrain(np.minimum(x, 100.0)[None]))


# --- as objects -----------------------------------------------------------------------------------------


def test_transforms_are_values():
    for transform in EVERY:
        with case(transform):
            again = type(transform)(*transform.arguments)
            assert hash(again) == hash(transform)
            others = eval(repr(transform)), pickle.loads(pickle.dumps(transform)), copy.deepcopy(transform)
            assert [other == transform for other in (again, *others)] == [True] * 4
            assert TRANSFORMS[type(transform).__name__] is type(transform)
            assert len({transform, again, Real(7)}) == 2
            with pytest.raises(FrozenInstanceError):
                transform.size = 3


def test_different_constraints_differ():
    assert Positive() != Real()
    assert Positive(2) != Positive(3)
    assert LowerBound(1.0) != LowerBound(2.0)
    assert LowerBound(1.0) != UpperBound(1.0)
    assert LowerBound(0) == LowerBound(0.0)


def test_constrain_leaves_its_argument_alone():
    for transform in EVERY:
        x = np.ones((2, transform.size))
        transform.constrain(x)[...] = 5.0
        transform.log_jacobian(x)
        np.testing.assert_array_equal(x, 1.0, err_msg=repr(transform))
