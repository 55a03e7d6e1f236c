"""Models: log-likelihoods against scipy.stats, blocks, predictions, extremes and bad data."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy import stats
from scipy.special import expit, log_expit, logsumexp, softmax

import mgvbp
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.models import (
    HAR,
    LinearRegression,
    LogisticRegression,
    MultinomialRegression,
    NegativeBinomialRegression,
    PoissonRegression,
    Reconstruction,
    StudentRegression,
    lagged_means,
)
from mgvbp.models import base as base_module
from mgvbp.models.linear import LeastSquares
from mgvbp.models.logistic import sum_log_expit

N, K, S = 60, 3, 7
_rng = np.random.default_rng(3)
X = np.column_stack([np.ones(N), _rng.standard_normal((N, K - 1))])
NEW = np.column_stack([np.ones(5), _rng.standard_normal((5, K - 1))])
REAL = X @ [0.5, 1.0, -0.7] + 0.8 * _rng.standard_normal(N)
BITS = (_rng.random(N) < expit(X @ [0.2, 1.0, -1.0])).astype(float)
LABELS = np.r_[0.0, 1.0, 2.0, 3.0, _rng.integers(4, size=N - 4)]
EXPOSURE = _rng.uniform(0.5, 4.0, N)
COUNTS = _rng.poisson(EXPOSURE * np.exp(X @ [0.3, 0.5, -0.4])).astype(float)
BINARY = _rng.integers(2, size=(N, K)).astype(float)
NEW_BITS = np.array([[0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 0], [1, 1, 0]], dtype=float)


def negative_binomial(theta, X, exposure=1.0):
    mean, size = exposure * np.exp(X @ theta[:K]), np.exp(-theta[K])
    return stats.nbinom(size, size / (size + mean))


def scores(theta, X):
    return np.column_stack([np.zeros(len(X)), X @ theta.reshape(K, 3)])


def reconstructed(beta, X, squared=True):
    """The paper's formula as printed, or with norms instead of squared norms."""
    power = 2 if squared else 1
    far = np.linalg.norm(np.sign(X - 0.5) - beta, axis=1)
    return far**power - np.linalg.norm(np.sign(beta) - beta) ** power


CASES = {
    # model; response of one draw at rows X as a distribution; its mean; new rows and responses
    "normal": (
        LinearRegression(X, REAL),
        lambda t, X: stats.norm(X @ t[:K], np.exp(t[K])),
        (NEW, REAL[:5]),
    ),
    "student": (
        StudentRegression(X, REAL),
        lambda t, X: stats.t(2.0 + np.exp(t[K + 1]), X @ t[:K], np.exp(t[K])),
        (NEW, REAL[:5]),
    ),
    "logistic": (
        LogisticRegression(X, BITS),
        lambda t, X: stats.bernoulli(expit(X @ t)),
        (NEW, np.ones(5)),
    ),
    "poisson": (
        PoissonRegression(X, COUNTS),
        lambda t, X: stats.poisson(np.exp(X @ t)),
        (NEW, COUNTS[:5]),
    ),
    "negative binomial": (NegativeBinomialRegression(X, COUNTS), negative_binomial, (NEW, COUNTS[:5])),
    "squared norms": (
        Reconstruction(BINARY, REAL, sigma=0.7),
        lambda t, X: stats.norm(reconstructed(t, X), 0.7),
        (NEW_BITS, REAL[:5]),
    ),
    "norms": (
        Reconstruction(BINARY, REAL, sigma=0.7, squared=False),
        lambda t, X: stats.norm(reconstructed(t, X, False), 0.7),
        (NEW_BITS, REAL[:5]),
    ),
}
MULTINOMIAL = MultinomialRegression(X, LABELS)
MODELS = {name: case[0] for name, case in CASES.items()} | {
    "multinomial": MULTINOMIAL,
    "HAR": HAR(np.abs(REAL) + 1.0),
    "exposed poisson": PoissonRegression(X, COUNTS, exposure=EXPOSURE),
    "exposed negative binomial": NegativeBinomialRegression(X, COUNTS, exposure=EXPOSURE),
}


def draws(model, n=S, seed=0):
    return np.random.default_rng(seed).standard_normal((n, model.parameters.dim))


def log_density(distribution, y):
    return distribution.logpmf(y) if hasattr(distribution, "pmf") else distribution.logpdf(y)


# --- against scipy.stats ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_densities_and_means_are_those_of_scipy(name):
    model, response, (new, y) = CASES[name]
    theta = draws(model)
    expected = [log_density(response(t, model.X), model.y) for t in theta]
    np.testing.assert_allclose(model.pointwise(theta), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model(theta), np.sum(expected, axis=1), rtol=1e-10)
    means = [response(t, new).mean() for t in theta]
    np.testing.assert_allclose(model.predictive(theta, new), means, rtol=1e-12, atol=1e-14)
    at_new = logsumexp([log_density(response(t, new), y) for t in theta], axis=0) - np.log(S)
    np.testing.assert_allclose(model.log_predictive_density(theta, new, y), at_new, rtol=1e-9)


def test_multinomial():
    theta = draws(MULTINOMIAL)
    chosen = np.eye(4)[LABELS.astype(int)]
    expected = [stats.multinomial(1, softmax(scores(t, X), axis=1)).logpmf(chosen) for t in theta]
    np.testing.assert_allclose(MULTINOMIAL.pointwise(theta), expected, rtol=1e-10)
    np.testing.assert_allclose(MULTINOMIAL(theta), np.sum(expected, axis=1), rtol=1e-12)
    probabilities = MULTINOMIAL.predictive(theta, NEW)
    assert probabilities.shape == (S, 5, 4)
    np.testing.assert_allclose(probabilities, [softmax(scores(t, NEW), axis=1) for t in theta], rtol=1e-12)
    for label in range(4):
        density = MULTINOMIAL.log_predictive_density(theta, NEW, np.full(5, label))
        np.testing.assert_allclose(np.exp(density), probabilities[:, :, label].mean(axis=0), rtol=1e-12)


def test_multinomial_with_two_classes_is_logistic():
    two, logistic = MultinomialRegression(X, BITS), CASES["logistic"][0]
    theta = draws(logistic)
    np.testing.assert_allclose(two(theta), logistic(theta), rtol=1e-13)
    np.testing.assert_allclose(
        two.predictive(theta, NEW)[:, :, 1], logistic.predictive(theta, NEW), rtol=1e-13
    )


def test_the_coefficients_of_a_class_are_a_column():
    """θ in C order is ``beta`` (k, K − 1), as `Parameters` has it."""
    theta = draws(MULTINOMIAL, 1)
    beta = MULTINOMIAL.parameters.constrain(theta)["beta"][0]
    odds = np.log(MULTINOMIAL.predictive(theta, NEW)[0])
    np.testing.assert_allclose(odds[:, 1:] - odds[:, :1], NEW @ beta, rtol=1e-10)


@pytest.mark.parametrize("kind", [PoissonRegression, NegativeBinomialRegression])
def test_exposure_multiplies_the_mean(kind):
    model = kind(X, COUNTS, exposure=EXPOSURE)
    theta = draws(model)
    responses = [
        stats.poisson(EXPOSURE * np.exp(X @ t))
        if kind is PoissonRegression
        else negative_binomial(t, X, EXPOSURE)
        for t in theta
    ]
    expected = np.array([r.logpmf(COUNTS) for r in responses])
    np.testing.assert_allclose(model(theta), expected.sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(model.pointwise(theta), expected, rtol=1e-8)
    plain = kind(X, COUNTS)
    np.testing.assert_allclose(
        model.predictive(theta, NEW, exposure=3.0), 3.0 * plain.predictive(theta, NEW), rtol=1e-13
    )
    again = model.log_predictive_density(theta, X, COUNTS, exposure=EXPOSURE)
    np.testing.assert_allclose(again, logsumexp(expected, axis=0) - np.log(S), rtol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_unconstrained_scale_is_the_declared_one(name):
    """σ = exp(ψ), ν = 2 + exp(ψ): the models read θ as their `Parameters` do."""
    model = MODELS[name]
    values = model.parameters.constrain(draws(model, 1))
    theta = draws(model, 1)[0]
    assert next(iter(values)) == "beta"
    expected = {
        "sigma": lambda x: np.exp(x),
        "dispersion": lambda x: np.exp(x),
        "nu": lambda x: 2.0 + np.exp(x),
    }
    for name_, value in values.items():
        if name_ != "beta":
            np.testing.assert_allclose(
                value, expected[name_](theta[model.parameters.slices[name_]]), rtol=1e-14
            )


# --- sums, blocks and memory --------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("block", [1, 50, 2**17])
def test_pointwise_adds_up_whatever_the_blocks(name, block, monkeypatch):
    model = MODELS[name]
    theta = draws(model, 11)
    expected = model(theta)
    monkeypatch.setattr(base_module, "BLOCK", block)
    monkeypatch.setattr(base_module, "DRAWS", 4)
    np.testing.assert_allclose(model.pointwise(theta).sum(axis=1), expected, rtol=1e-12)
    np.testing.assert_allclose(model(theta), expected, rtol=1e-12)
    np.testing.assert_allclose([model(t[None])[0] for t in theta], expected, rtol=1e-12)


def test_blocks_cover_every_pair_once(monkeypatch):
    monkeypatch.setattr(base_module, "DRAWS", 3)
    monkeypatch.setattr(base_module, "BLOCK", 20)
    seen = np.zeros((10, 23), dtype=int)
    for some, rows in base_module.blocks(10, 23, 2):
        seen[some, rows] += 1
        assert 2 * seen[some, rows].size <= 20
    assert (seen == 1).all()


@pytest.mark.parametrize(
    "kind", [LogisticRegression, PoissonRegression, MultinomialRegression, StudentRegression]
)
def test_no_array_of_draws_by_rows(kind):
    """200 draws of 20,000 rows are 32 MB; a call stays below 16 MB."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 2))
    model = kind(rows, rng.integers(2, size=20_000))
    theta = 0.1 * draws(model, 200)
    tracemalloc.start()
    model(theta)
    model.log_predictive_density(theta, rows, model.y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 2**20


def test_a_model_keeps_its_own_data():
    rows, labels = X.copy(), BITS.copy()
    model = LogisticRegression(rows, labels)
    before = model(draws(model))
    rows[:], labels[:] = 0.0, 0.0
    np.testing.assert_array_equal(model(draws(model)), before)
    with pytest.raises(ValueError, match="read-only"):
        model.X[0] = 1.0


# --- accuracy -----------------------------------------------------------------------------------------


@given(
    st.floats(-4, 4),
    st.integers(1, 2500),
    st.integers(0, 2**16),
    st.sampled_from(["mixed", "all right", "all wrong"]),
)
@settings(max_examples=40)
def test_sum_of_log_sigmoids(power, rows, seed, kind):
    """Equal to SciPy's, from |z| = 1e-4 to 1e4: also where every label fits and the sum is tiny."""
    rng = np.random.default_rng(seed)
    z = 10.0**power * rng.standard_normal((rows, 4))
    z = z if kind == "mixed" else np.abs(z) if kind == "all right" else -np.abs(z)
    found = sum_log_expit(z, np.eye(4))
    assert np.isfinite(found).all()
    # absolute: one unit in the last place for each factor 1 + exp(−|z|) near one
    np.testing.assert_allclose(found, log_expit(z).sum(axis=0), rtol=1e-12, atol=rows * 2.3e-16)


@given(st.floats(0, 4), st.integers(2, 6), st.integers(0, 2**16))
@settings(max_examples=30)
def test_multinomial_far_away(power, classes, seed):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(classes), rng.integers(classes, size=1200)]
    model = MultinomialRegression(rng.standard_normal((len(y), 2)), y)
    theta = 10.0**power * draws(model, 3, seed)
    np.testing.assert_allclose(model(theta), model.pointwise(theta).sum(axis=1), rtol=1e-12)


def test_least_squares_do_not_cancel():
    """A nearly perfect fit far from zero: the normal equations lose every digit of the sum of squares."""
    rng = np.random.default_rng(0)
    A = 1e4 + rng.standard_normal((200, 3))
    y = A @ [1.0, 2.0, -1.0] + 1e-5 * rng.standard_normal(200)
    best = np.linalg.lstsq(A, y)[0]
    squares = LeastSquares(A, y)
    exact = [
        sum((mp.mpf(v) - mp.fdot(row, best)) ** 2 for row, v in zip(A.tolist(), y.tolist(), strict=True))
    ]
    np.testing.assert_allclose(squares(best[None]), [float(exact[0])], rtol=1e-4)
    naive = y @ y - 2 * best @ (A.T @ y) + best @ (A.T @ A) @ best
    assert abs(naive / float(exact[0]) - 1.0) > 0.1


def test_least_squares_of_a_deficient_design():
    A = np.column_stack([X, X[:, 0], np.zeros(N)])[:4]  # fewer rows than columns, and two columns alike
    c = draws(LinearRegression(A, REAL[:4]))[:, :-1]
    np.testing.assert_allclose(
        LeastSquares(A, REAL[:4])(c), ((REAL[:4] - c @ A.T) ** 2).sum(axis=1), rtol=1e-12
    )


def student_reference(nu, z):
    """The log density of a t variate with 50 digits."""
    with mp.workdps(50):
        nu, z = mp.mpf(nu), mp.mpf(z)
        constant = mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi) / 2
        return float(constant - (nu + 1) / 2 * mp.log1p(z**2 / nu))


@pytest.mark.parametrize("log_nu", [-30.0, 0.0, 5.0, 15.0, 25.0])
def test_student_density_for_all_degrees_of_freedom(log_nu):
    model = StudentRegression([[1.0], [1.0], [1.0]], [0.0, 1.0, -6.0])
    nu = float(model.parameters.constrain([[0.0, 0.0, log_nu]])["nu"][0])
    expected = [student_reference(nu, z) for z in (0.0, 1.0, 6.0)]
    np.testing.assert_allclose(model.pointwise([[0.0, 0.0, log_nu]])[0], expected, rtol=1e-11)


def negative_binomial_reference(log_phi, log_mean, y):
    with mp.workdps(60):
        r, m = mp.exp(-mp.mpf(log_phi)), mp.exp(mp.mpf(log_mean))
        coefficient = mp.loggamma(y + r) - mp.loggamma(r) - mp.loggamma(y + 1)
        return float(coefficient + y * mp.log(m / (m + r)) + r * mp.log(r / (m + r)))


@pytest.mark.parametrize("log_phi", [-60.0, -30.0, -13.7, -12.0, 0.0, 5.0])
def test_negative_binomial_density_for_all_dispersions(log_phi):
    y = np.array([0, 1, 7, 400])
    model = NegativeBinomialRegression(np.ones((4, 1)), y)
    expected = [negative_binomial_reference(log_phi, 2.0, int(v)) for v in y]
    # SciPy's log beta function is worst just below r = 1e6, from where on it is an asymptotic series
    np.testing.assert_allclose(model.pointwise([[2.0, log_phi]])[0], expected, rtol=1e-11, atol=3e-9)


def test_without_dispersion_negative_binomial_is_poisson():
    theta = draws(PoissonRegression(X, COUNTS))
    almost = np.column_stack([theta, np.full(S, -600.0)])
    np.testing.assert_allclose(
        NegativeBinomialRegression(X, COUNTS)(almost), PoissonRegression(X, COUNTS)(theta), rtol=1e-11
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1e2, 700.0, 1e5])
def test_far_draws_raise_no_warning_and_are_never_good(name, size):
    """Values may be −inf there, but neither NaN nor +inf, which would stop or mislead a fit."""
    model = MODELS[name]
    dim = model.parameters.dim
    corners = size * np.concatenate([np.eye(dim), -np.eye(dim), np.ones((1, dim)), -np.ones((1, dim))])
    values = model(corners)
    assert not np.isnan(values).any()
    assert (values < 100.0).all()


# --- HAR ----------------------------------------------------------------------------------------------


def test_lagged_means_by_hand():
    v = np.random.default_rng(1).gamma(3.0, size=40)
    rows = lagged_means(v)
    assert rows.shape == (19, 4)
    for i, row in enumerate(rows):
        known = v[: i + 22]
        np.testing.assert_allclose(row, [1.0, known[-1], known[-5:].mean(), known[-22:].mean()], rtol=1e-14)


def test_har_is_the_regression_on_its_lags():
    v = np.random.default_rng(1).gamma(3.0, size=80)
    rows = lagged_means(v)[:-1]
    series, columns = HAR(v), HAR.from_columns(v[22:], *rows.T[1:])
    plain = LinearRegression(rows, v[22:])
    theta = draws(plain)
    np.testing.assert_array_equal(series(theta), plain(theta))
    np.testing.assert_array_equal(columns(theta), plain(theta))
    assert isinstance(columns, HAR)
    assert series.names == columns.names == ("intercept", "daily", "weekly", "monthly")
    # the next day needs no more than the series
    np.testing.assert_allclose(
        series.predictive(theta, lagged_means(v)[-1:]), theta[:, :4] @ lagged_means(v)[-1:].T
    )


@pytest.mark.parametrize("make", [HAR, lambda v: HAR.from_columns(v[22:], *lagged_means(v)[:-1].T[1:])])
def test_har_predicts_from_the_lags_alone(make):
    v = np.random.default_rng(1).gamma(3.0, size=80)
    model, rows = make(v), lagged_means(v)[-9:]
    theta = draws(model)
    np.testing.assert_array_equal(model.predictive(theta, rows[:, 1:]), model.predictive(theta, rows))
    np.testing.assert_array_equal(
        model.log_predictive_density(theta, rows[:, 1:], v[-9:]),
        model.log_predictive_density(theta, rows, v[-9:]),
    )
    with pytest.raises(InvalidInputError, match="X has 2 columns; the model was given 4: intercept, daily"):
        model.predictive(theta, rows[:, 2:])


# --- fits ---------------------------------------------------------------------------------------------


def test_counts_recover_the_simulated_coefficients():
    """The truth lies in the 99.9% ellipsoid of the posterior, for both count models."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([np.ones(400), rng.standard_normal((400, 2))])
    truth = np.array([0.5, 0.4, -0.3])
    mean = np.exp(rows @ truth)
    for kind, y, full in (
        (PoissonRegression, rng.poisson(mean), truth),
        (NegativeBinomialRegression, rng.negative_binomial(2.0, 2.0 / (2.0 + mean)), [*truth, np.log(0.5)]),
    ):
        model = kind(rows, y)
        posterior = mgvbp.fit(model, mgvbp.Gaussian(variance=5.0, dim=model.parameters.dim))
        deviation = posterior.mean - full
        assert deviation @ posterior.precision @ deviation < stats.chi2(len(full)).ppf(0.999)


# --- bad input ----------------------------------------------------------------------------------------

NAN = np.where(np.arange(N) == 3, np.nan, REAL)
logistic = partial(LogisticRegression, X)
multinomial = partial(MultinomialRegression, X)
poisson = partial(PoissonRegression, X)
fitted = CASES["logistic"][0]
theta3 = draws(fitted)

BAD = {
    "one column as a vector": (lambda: LinearRegression(X[:, 1], REAL), r"X\[:, None\]"),
    "no rows": (lambda: LinearRegression(X[:0], REAL[:0]), r"empty: shape \(0, 3\)"),
    "no columns": (lambda: LinearRegression(X[:, :0], REAL), "empty"),
    "nan in X": (lambda: LinearRegression(np.where(X > 1, np.nan, X), REAL), "X has non-finite"),
    "nan in y": (lambda: LinearRegression(X, NAN), "y has non-finite"),
    "y too short": (lambda: LinearRegression(X, REAL[1:]), r"y has shape \(59,\); expected \(60,\)"),
    "y a column": (lambda: StudentRegression(X, REAL[:, None]), r"y has shape \(60, 1\)"),
    "names too few": (lambda: logistic(BITS, names=["a"]), "names must be 3 different strings"),
    "names twice": (lambda: logistic(BITS, names=["a", "a", "b"]), "3 different strings"),
    "names a string": (lambda: logistic(BITS, names="abc"), "3 different strings.*'abc'"),
    "labels ±1": (lambda: logistic(2 * BITS - 1), "y must be 0 or 1; got -1 in row"),
    "one label": (lambda: logistic(np.ones(N)), "one class only: all 60 labels are 1"),
    "one class": (lambda: multinomial(np.zeros(N)), "one class only"),
    "half a class": (lambda: multinomial(LABELS + 0.5), "got 0.5 in row 0"),
    "classes from 1": (lambda: multinomial(LABELS + 1), "4 different labels, the largest 4"),
    "new class": (
        lambda: MULTINOMIAL.log_predictive_density(draws(MULTINOMIAL), X, LABELS + 1),
        "0, 1, ..., 3; got 4",
    ),
    "negative count": (lambda: poisson(COUNTS - 100), "counts 0, 1, 2"),
    "half a count": (lambda: poisson(COUNTS + 0.5), r"got \d+\.5 in row 0"),
    "no exposure": (lambda: poisson(COUNTS, exposure=np.zeros(N)), "exposure must be positive"),
    "exposures": (lambda: poisson(COUNTS, exposure=np.ones(3)), r"exposure has shape \(3,\)"),
    "not bits": (lambda: Reconstruction(X, REAL), "X must be 0 or 1"),
    "no noise": (lambda: Reconstruction(BINARY, REAL, sigma=0.0), "sigma must be positive"),
    "short series": (lambda: HAR(np.ones(22)), "more than 22 days"),
    "series of rows": (lambda: HAR(X), r"shape \(60, 3\)"),
    "columns of two lengths": (
        lambda: HAR.from_columns(REAL, REAL, REAL, REAL[1:]),
        r"one length; got daily \(60,\), weekly \(60,\), monthly \(59,\)",
    ),
    "one draw": (lambda: fitted(theta3[0]), r"theta has shape \(3,\); expected \(S, 3\).*theta\[None\]"),
    "draw by draw": (
        lambda: mgvbp.fit(fitted, mgvbp.Gaussian(variance=1.0, dim=3), vectorized=False),
        "all draws at once: leave vectorized=False out",
    ),
    "no draws": (lambda: fitted(theta3[:0]), r"theta has shape \(0, 3\)"),
    "other draws": (lambda: fitted.pointwise(theta3[:, :2]), r"beta\[0\], beta\[1\]"),
    "new columns": (lambda: fitted.predictive(theta3, NEW[:, 1:]), "2 columns; .* 3: x0, x1, x2"),
    "new labels": (
        lambda: fitted.log_predictive_density(theta3, NEW, np.full(5, 2.0)),
        "y must be 0 or 1; got 2",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_say_what_is_wrong(name):
    call, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_text_is_not_data():
    with pytest.raises(InvalidTypeError, match="X must be"):
        LinearRegression([["a"]], [1.0])


def test_draws_by_name_are_not_rows_of_theta():
    posterior = mgvbp.fit(fitted, mgvbp.Gaussian(variance=5.0, dim=3))
    for call in (fitted, fitted.pointwise, partial(fitted.predictive, X=NEW)):
        with pytest.raises(
            InvalidTypeError, match=r"theta must be rows .* posterior.sample\(n\), not the dict"
        ):
            call(posterior.draws(10))


def test_a_frame_of_numbers_and_dummies():
    """`pandas.get_dummies` gives columns of bools: with others the array is one of objects."""
    frame = pd.get_dummies(pd.DataFrame({"x": REAL, "place": np.where(BITS == 1.0, "town", "country")}))
    assert frame.to_numpy().dtype == object
    model = LinearRegression(frame, REAL)
    np.testing.assert_array_equal(model.X, np.column_stack([REAL, 1.0 - BITS, BITS]))


def test_the_message_does_not_show_the_whole_frame():
    frame = pd.DataFrame({"x": REAL, "place": ["town"] * N})
    with pytest.raises(InvalidTypeError, match="X must be a number or an array of numbers; got") as error:
        LinearRegression(frame, REAL)
    assert str(error.value).endswith("dtype object")
    assert len(str(error.value)) < 120


def test_one_class_can_be_predicted():
    assert fitted.log_predictive_density(theta3, NEW, np.ones(5)).shape == (5,)


def test_coefficients_have_the_names_of_a_frame():
    """Where they are words, none twice; ArviZ shows them."""
    frame = pd.DataFrame(X, columns=["one", "age", "income (€)"])
    model = LinearRegression(frame, REAL)
    assert model.names == ("one", "age", "income (€)")
    assert LinearRegression(frame, REAL, names=list("abc")).names == ("a", "b", "c")
    tree = mgvbp.fit(model).to_arviz(num_draws=10)
    assert list(tree["posterior"]["beta_dim_0"].values) == list(frame.columns)
    for odd in ([0, 1, 2], ["a", "a", "b"], ["a", "b\n", "c"]):
        assert LinearRegression(frame.set_axis(odd, axis=1), REAL).names == ("x0", "x1", "x2")
