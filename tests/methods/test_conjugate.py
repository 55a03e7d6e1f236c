"""Bayesian linear regression with known noise: posterior, evidence and each family's optimum are known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.stats import multivariate_normal, t
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

import common
import mgvbp
from common import FAST, LogDensity, case, structure
from mgvbp import MGVB, MGVBP, BlockDiagonal, ConvergenceWarning, DivergenceError, Gaussian

D, N, NOISE = 5, 40, 0.5
_rng = np.random.default_rng(7)
X = 0.35 * _rng.standard_normal((N, D)) @ (np.eye(D) + 0.3 * np.eye(D, k=1))
Y = X @ np.array([1.0, -0.5, 0.0, 0.8, -1.2]) + np.sqrt(NOISE) * _rng.standard_normal(N)
R = _rng.standard_normal((D, D))
PRIOR = Gaussian(mean=np.linspace(-0.5, 0.5, D), variance=R @ R.T + np.eye(D))


def log_likelihood(theta, rows=slice(None)):
    residual = Y[rows] - theta @ X[rows].T
    return -0.5 * (np.log(2 * np.pi * NOISE) * residual.shape[1] + (residual**2).sum(axis=1) / NOISE)


def gradient(theta):
    return (Y - theta @ X.T) @ X / NOISE


def closed_form(prior=PRIOR):
    """The posterior N(m, P⁻¹) and the log evidence."""
    P = prior.precision + X.T @ X / NOISE
    m = np.linalg.solve(P, prior.precision @ prior.mean + X.T @ Y / NOISE)
    marginal = multivariate_normal(X @ prior.mean, X @ prior.covariance @ X.T + NOISE * np.eye(N))
    return m, P, marginal.logpdf(Y)


def lower_bound(mean, covariance, prior=PRIOR):
    """The exact bound of N(mean, covariance): log evidence − KL(q ‖ posterior)."""
    m, P, log_evidence = closed_form(prior)
    A, delta = P @ covariance, mean - m
    return log_evidence - 0.5 * (np.trace(A) - D - np.linalg.slogdet(A)[1] + delta @ P @ delta)


def assert_is(posterior, mean, precision, tolerance=1e-8):
    np.testing.assert_allclose(posterior.mean, mean, atol=tolerance)
    np.testing.assert_allclose(posterior.precision, precision, rtol=tolerance, atol=tolerance)


# --- every method × family × estimator ----------------------------------------------------------------

FAMILIES = {"full": "full", "diagonal": "diagonal", "block": BlockDiagonal([[3, 0, 4], [1, 2]])}
MASKS = {"full": np.ones((D, D)), "diagonal": np.eye(D), "block": structure(FAMILIES["block"])}
METHODS = {cls.__name__: cls for cls in common.METHODS}
ESTIMATORS = ("regression", "h", "loglik", "gradient")


def family_optimum(name):
    """Mean m, and the precision P restricted to the family's blocks.

    E_q[log p] = const − ½tr(PΣ) − ½(μ−m)ᵀP(μ−m). A Σ made of blocks meets only the same blocks P_jj of P, so
    that the bound is a sum over blocks of ½log|Σ_j| − ½tr(P_jj Σ_j), largest at Σ_j = P_jj⁻¹; and μ = m.
    """
    m, P, _ = closed_form()
    return m, P * MASKS[name]


def settings(method, estimator):
    """Step sizes for exact gradients and for noisy ones."""
    if estimator in ("regression", "gradient"):
        options = {"step_size": 0.3, "decay_after": None, "momentum": 0.0, "max_iterations": 100}
    else:
        options = {"step_size": 0.02, "decay_after": 200, "momentum": 0.4, "max_iterations": 400}
    return {"method": METHODS[method](precision_scale=2.0, **options)}


TOLERANCE = {"regression": 1e-10, "gradient": 1e-10, "h": 0.01, "loglik": 0.02}
"""Nats. The first two meet the quadratic exactly and converge geometrically. For the others the stationary
noise of a step β is about ½β Σ Var(gradient) / S nats; over 3 seeds 0.006 at most."""


def gap_to_the_optimum(q, family):
    """Nats from the exact bound of ``q`` to that of the family's optimum."""
    mean, precision = family_optimum(family)
    return lower_bound(mean, np.linalg.inv(precision)) - lower_bound(q.mean, q.covariance)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_reaches_the_optimum_of_every_family(method):
    for family, estimator in product(FAMILIES, ESTIMATORS):
        with case(family, estimator):
            posterior = mgvbp.fit(
                log_likelihood,
                PRIOR,
                family=FAMILIES[family],
                estimator=estimator,
                grad=gradient,
                initial_variance=0.3,
                **settings(method, estimator),
            )
            assert -1e-10 < gap_to_the_optimum(posterior, family) < TOLERANCE[estimator]
            assert posterior.estimator == estimator
            assert posterior.gap is posterior.gap_se is None


@pytest.mark.parametrize("family", FAMILIES)
def test_auto_reaches_the_optimum_of_every_family(family):
    for variance in (None, 0.3, 100.0):
        with case("initial_variance", variance):
            posterior = mgvbp.fit(log_likelihood, PRIOR, family=FAMILIES[family], initial_variance=variance)
            assert -1e-10 < gap_to_the_optimum(posterior, family) < 1e-10
            assert posterior.converged
            assert (posterior.method, posterior.estimator) == ("auto", "regression")
            assert 0.0 <= posterior.gap < 1e-6
            assert 0.0 <= posterior.gap_se < 1e-6


SUITABLE = {"regression": FAST, "gradient": FAST, "h": MGVBP(), "loglik": MGVBP()}
"""Long steps for exact gradients, the paper's for noisy ones."""


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_other_steps_reach_it_too(estimator):
    options = {"method": SUITABLE[estimator], "estimator": estimator, "grad": gradient}
    for name, family in FAMILIES.items():
        with case(name):
            posterior = mgvbp.fit(
                log_likelihood, PRIOR, family=family, initial_variance=0.3, max_iterations=800, **options
            )
            assert -1e-10 < gap_to_the_optimum(posterior, name) < TOLERANCE[estimator]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_stated_optimum_is_one(family):
    """No random step within the family from the stated optimum raises the bound."""
    mean, precision = family_optimum(family)
    best = lower_bound(mean, np.linalg.inv(precision))
    rng = np.random.default_rng(1)
    for scale in (1e-3, 1e-2, 1e-1):
        W = rng.standard_normal((D, D))
        other = precision + scale * (W @ W.T) * MASKS[family]
        assert lower_bound(mean + scale * rng.standard_normal(D), np.linalg.inv(other)) < best


def narrow(theta):
    with np.errstate(over="ignore"):
        return -1e4 * ((theta @ np.array([[1.0, 0.9], [0.9, 1.0]]) - 3.0) ** 2).sum(axis=1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::mgvbp.MgvbpWarning", "ignore::RuntimeWarning")
def test_a_step_far_too_long_ends_in_a_result_or_a_divergence(method):
    """A narrow likelihood, noisy gradients and a step of 0.5: no other exception may come of it."""
    options = {"method": METHODS[method](step_size=0.5), "estimator": "h", "max_iterations": 20}
    for family, seed in product(["full", "diagonal", BlockDiagonal([2])], range(3)):
        with case(family, "seed", seed):
            try:
                posterior = mgvbp.fit(
                    narrow, Gaussian(variance=1.0, dim=2), family=family, rng=seed, **options
                )
            except DivergenceError:
                continue
            assert np.isfinite(posterior.mean).all()


def test_a_run_that_breaks_down_returns_its_best_iterate():
    """As the warning says: here the first, since the bound falls from −2e5 beyond −1e40 at once."""
    options = {"method": MGVB(step_size=0.5), "estimator": "h", "max_iterations": 20}
    with pytest.warns(ConvergenceWarning, match="best iterate"):
        posterior = mgvbp.fit(narrow, Gaussian(variance=1.0, dim=2), **options)
    assert posterior.stop_reason.startswith("broke down")
    assert posterior.lower_bound >= posterior.trace.lower_bound[0]


# --- the default fit of the full family, to many digits -----------------------------------------------


def test_bound_of_the_full_family_is_the_evidence():
    posterior = mgvbp.fit(log_likelihood, PRIOR)
    m, P, log_evidence = closed_form()
    assert_is(posterior, m, P)
    assert posterior.lower_bound == pytest.approx(log_evidence, abs=1e-8)
    assert posterior.trace.lower_bound[-1] == pytest.approx(log_evidence, abs=1e-8)
    assert posterior.trace.gap[-1] < 1e-16
    assert posterior.converged


def test_agrees_with_scikit_learn():
    """The weights' posterior is that of a Gaussian process with kernel τ² x'x' at the unit vectors."""
    kernel = ConstantKernel(3.0, "fixed") * DotProduct(0.0, "fixed")
    process = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None).fit(X, Y)
    mean, covariance = process.predict(np.eye(D), return_cov=True)
    posterior = mgvbp.fit(log_likelihood, Gaussian(variance=3.0, dim=D))
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-8)
    np.testing.assert_allclose(posterior.covariance, covariance, atol=1e-8)
    assert posterior.lower_bound == pytest.approx(process.log_marginal_likelihood_value_, abs=1e-8)


def test_one_draw_at_a_time_is_the_same_fit():
    together = mgvbp.fit(log_likelihood, PRIOR)
    one_by_one = mgvbp.fit(lambda row: log_likelihood(row[None])[0], PRIOR, vectorized=False)
    assert_is(one_by_one, together.mean, together.precision, 1e-10)


# --- priors -------------------------------------------------------------------------------------------

V = np.array([0.5, 1.0, 2.0, 3.0, 1.5])
SAME_PRIORS = {
    "isotropic": [
        *({"variance": scale} for scale in (2.0, np.full(D, 2.0), 2.0 * np.eye(D))),
        *({"precision": scale} for scale in (0.5, np.full(D, 0.5), 0.5 * np.eye(D))),
    ],
    "diagonal": [
        {"variance": V}, {"variance": np.diag(V)}, {"precision": 1 / V}, {"precision": np.diag(1 / V)}
    ],
    "full": [{"variance": PRIOR.covariance}, {"precision": np.linalg.inv(PRIOR.covariance)}],
}  # fmt: skip


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_prior_is_the_same_however_it_is_given(estimator):
    options = {"method": SUITABLE[estimator], "estimator": estimator, "max_iterations": 80, "grad": gradient}
    for name, scales in SAME_PRIORS.items():
        priors = [Gaussian(mean=0.2, dim=D, **scale) for scale in scales]
        fits = [mgvbp.fit(log_likelihood, p, **options) for p in priors]
        for scale, posterior in zip(scales[1:], fits[1:], strict=True):
            with case(name, scale):
                assert_is(posterior, fits[0].mean, fits[0].precision)
        if estimator in ("regression", "gradient"):
            with case(name, "against the closed form"):
                m, P, log_evidence = closed_form(priors[0])
                assert_is(fits[0], m, P)
                assert fits[0].lower_bound == pytest.approx(log_evidence, abs=1e-8)


@pytest.mark.parametrize("estimator", ["regression", "loglik"])
def test_yesterdays_posterior_is_todays_prior(estimator):
    """Two halves one after the other equal all rows at once; bounds add up: log p(y₁) + log p(y₂|y₁)."""
    # with the exact prior terms of loglik the second fit is noisy: 0.02 nats, as in the table above
    first = mgvbp.fit(lambda theta: log_likelihood(theta, slice(0, 15)), PRIOR)
    second = mgvbp.fit(
        lambda theta: log_likelihood(theta, slice(15, N)),
        first,
        initial_variance=first.covariance,
        estimator=estimator,
        **settings("MGVBP", estimator),
    )
    m, P, log_evidence = closed_form()
    assert log_evidence - lower_bound(second.mean, second.covariance) < TOLERANCE[estimator]
    if estimator == "regression":
        assert_is(second, m, P)
        assert first.lower_bound + second.lower_bound == pytest.approx(log_evidence, abs=1e-8)


@pytest.mark.parametrize("estimator", ["regression", "h"])
def test_a_wrapped_gaussian_prior_or_the_log_joint_give_the_same_fit(estimator):
    options = {"method": SUITABLE[estimator], "estimator": estimator, "max_iterations": 80}
    options["initial_mean"] = PRIOR.mean
    gaussian = mgvbp.fit(log_likelihood, PRIOR, **options)
    wrapped = mgvbp.fit(log_likelihood, LogDensity(PRIOR.log_density), **options)
    joint = mgvbp.fit(lambda theta: log_likelihood(theta) + PRIOR.log_density(theta), **options)
    for other in (wrapped, joint):
        assert_is(other, gaussian.mean, gaussian.precision)
        assert other.lower_bound == pytest.approx(gaussian.lower_bound, abs=1e-9)


def student_gradients(q, df):
    """Whitened g and G of the exact bound with independent Student-t priors: Gauss-Hermite per coordinate."""
    x, w = hermegauss(60)
    theta = q.mean[:, None] + q.std[:, None] * x
    first = (-(df + 1) * theta / (df + theta**2)) @ w / w.sum()
    second = (-(df + 1) * (df - theta**2) / (df + theta**2) ** 2) @ w / w.sum()
    whitener = np.linalg.inv(np.linalg.cholesky(q.precision))
    hessian = -X.T @ X / NOISE + np.diag(second)
    g = whitener @ (X.T @ (Y - X @ q.mean) / NOISE + first)
    return g, -0.5 * (whitener @ hessian @ whitener.T + np.eye(D))


def test_student_prior():
    """A prior that is not Gaussian: the exact gradients vanish at the fit, and both ways to give it agree."""
    prior = LogDensity(lambda theta: t.logpdf(theta, df=3).sum(axis=1))
    options = {"dim": D, "method": FAST, "num_draws": 200}
    posterior = mgvbp.fit(log_likelihood, prior, **options)
    g, G = student_gradients(posterior, 3)
    # predicted distance to the optimum in nats; the residual's noise leaves 3e-5 to 9e-5 over five seeds
    assert 0.5 * g @ g + (G**2).sum() < 5e-4
    joint = mgvbp.fit(lambda theta: log_likelihood(theta) + prior.log_density(theta), **options)
    assert_is(joint, posterior.mean, posterior.precision)


def test_student_prior_of_auto():
    """What is left of the exact gradients is within the certificate."""
    prior = LogDensity(lambda theta: t.logpdf(theta, df=3).sum(axis=1))
    for seed in range(3):
        posterior = mgvbp.fit(log_likelihood, prior, dim=D, rng=seed)
        g, G = student_gradients(posterior, 3)
        gap = 0.5 * g @ g + (G**2).sum()
        assert posterior.converged
        assert gap < 0.01
        assert gap < posterior.gap + 3.0 * posterior.gap_se + 0.001


def test_student_prior_with_many_degrees_of_freedom_is_the_gaussian_one():
    prior = LogDensity(lambda theta: t.logpdf(theta, df=1e8).sum(axis=1))
    posterior = mgvbp.fit(log_likelihood, prior, dim=D)
    m, P, log_evidence = closed_form(Gaussian(variance=1.0, dim=D))
    # the densities differ by O(θ⁴/df)
    assert_is(posterior, m, P, 1e-5)
    assert posterior.lower_bound == pytest.approx(log_evidence, abs=1e-5)
