"""Estimators and draws against quadrature and closed forms, in the frame."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit, log_expit
from scipy.stats import chi2, norm, qmc

from common import case, structure
from mgvbp import (
    MGVBP,
    BlockDiagonal,
    Diagonal,
    DivergenceError,
    Full,
    Gaussian,
    Gradient,
    InvalidInputError,
    Regression,
    Score,
)
from mgvbp.estimators import Sample
from mgvbp.estimators.draws import SAMPLERS, balanced, resolve_draws, scrambled
from mgvbp.estimators.regression import monomials
from mgvbp.estimators.score import optimal_constants, sample_constants

# --- a logistic model with two parameters, and its truth by quadrature --------------------------------

_rng = np.random.default_rng(2022)
X = np.column_stack([np.ones(30), _rng.standard_normal(30)])
Y = (_rng.random(30) < expit(X @ [0.5, -1.0])).astype(float)
PRIOR = Gaussian(mean=[0.3, -0.2], variance=[[2.0, 0.5], [0.5, 1.0]])
MEAN, COVARIANCE = np.array([-0.4, 0.3]), np.array([[0.5, -0.2], [-0.2, 0.3]])
FAMILIES = {"full": Full(2), "diagonal": Diagonal(2)}


def approximation(family):
    """A q away from the optimum (the posterior's mean is near (0.5, −1), its sds near 0.4)."""
    return Gaussian.from_factor(MEAN.copy(), family.factor(variance=COVARIANCE), family)


def log_likelihood(theta):
    eta = theta @ X.T
    return (Y * log_expit(eta) + (1 - Y) * log_expit(-eta)).sum(axis=1)


def gradient(theta):
    return (Y - expit(theta @ X.T)) @ X


def sample_at(q, eps, prior=PRIOR, function=log_likelihood, slope=gradient):
    theta = q.mean + q.family.from_frame(q.factor, eps)
    log_prior = np.zeros(len(eps)) if prior is None else prior.log_density(theta)
    gradients = None
    if theta.shape[1] == 2 or slope is not gradient:
        gradients = slope(theta) + (0.0 if prior is None else (prior.mean - theta) @ prior.precision)
    return Sample(eps, function(theta), log_prior, q.log_density_in_frame(eps), gradients)


def grid(nodes=60):
    """Tensor Gauss-Hermite nodes (nodes², 2) and weights for two standard normals."""
    x, w = hermegauss(nodes)
    w = w / w.sum()
    return np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2), np.outer(w, w).ravel()


def flat(family, g, G, lower_bound):
    """The distinct coordinates of an estimate as one vector."""
    G = G[np.triu_indices(len(G))] if isinstance(family, Full) else G
    return np.concatenate([g, G, [lower_bound]])


def truth(q):
    """E[ε h], ½E[(I − εεᵀ) h] and E[h], as one vector."""
    eps, w = grid()
    h = sample_at(q, eps).h
    G = 0.5 * (np.eye(2) * (w @ h) - (eps * (w * h)[:, None]).T @ eps)
    return flat(q.family, w @ (eps * h[:, None]), G if isinstance(q.family, Full) else np.diag(G), w @ h)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_truth_is_the_truth(name):
    """The score form of the gradients equals the one by Bonnet and Price, from derivatives of the model."""
    q = approximation(FAMILIES[name])
    eps, w = grid()
    theta = q.mean + q.family.from_frame(q.factor, eps)
    p = expit(theta @ X.T)
    gradient = w @ ((Y - p) @ X) - PRIOR.precision @ (q.mean - PRIOR.mean)
    hessian = -(X.T * (w @ (p * (1 - p)))) @ X - PRIOR.precision
    whitener = np.linalg.inv(q.family.dense_factor(q.factor))
    G = -0.5 * (whitener @ hessian @ whitener.T + np.eye(2))
    expected = np.concatenate([whitener @ gradient, G[np.triu_indices(2)] if name == "full" else np.diag(G)])
    np.testing.assert_allclose(truth(q)[:-1], expected, rtol=1e-9)


def test_how_many_draws_a_gradient_takes():
    """Two for each coefficient of its regression, which is left out in high dimension."""
    assert [Gradient().default_draws(Full(d)) for d in (1, 3, 100, 101)] == [6, 10, 204, 50]


# --- (a) the score estimators are unbiased ------------------------------------------------------------

REPLICATIONS, S = {"mc": 3000, "antithetic": 1000, "sobol": 400}, 10
LEVEL = 0.01
"""Family-wise level of all z-tests of this section together, by Bonferroni: |z| < 4.0."""


def batches(q, draws, replications, num_draws, rng):
    """Independent samples; the model is evaluated once for all of them."""
    eps = np.concatenate([SAMPLERS[draws](rng, num_draws, 2) for _ in range(replications)])
    parts = (part.reshape(replications, num_draws, *part.shape[1:]) for part in sample_at(q, eps)[:5])
    return [Sample(*rows) for rows in zip(*parts, strict=True)]


def replicate(family, estimator, draws, constants, replications=None, num_draws=S, seed=1):
    """Estimates (replications, coordinates); ``constants`` gives each its control."""
    q, rng = approximation(FAMILIES[family]), np.random.default_rng(seed)
    arguments = q, draws, replications or REPLICATIONS[draws], num_draws, rng
    samples = batches(*arguments)
    controls = constants(estimator, q, samples, lambda: batches(*arguments))
    estimates = (
        estimator.estimate(q, PRIOR, sample, control)
        for sample, control in zip(samples, controls, strict=True)
    )
    return np.array([flat(q.family, *estimate[:3]) for estimate in estimates])


def no_constants(estimator, q, samples, fresh):
    return [None] * len(samples)


def previous_constants(estimator, q, samples, fresh):
    return [estimator.estimate(q, PRIOR, sample, None).control for sample in fresh()]


def same_constants(estimator, q, samples, fresh):
    return [estimator.estimate(q, PRIOR, sample, None).control for sample in samples]


CELLS = list(product(FAMILIES, ("h", "loglik"), (no_constants, previous_constants)))
NUM_TESTS = len(SAMPLERS) * sum(6 if family == "full" else 5 for family, _, _ in CELLS)
LIMIT = norm.isf(LEVEL / (2 * NUM_TESTS))


def z_scores(rows, family):
    error = rows.mean(axis=0) - truth(approximation(FAMILIES[family]))
    return error / (rows.std(axis=0, ddof=1) / np.sqrt(len(rows)))


@pytest.mark.parametrize("draws", SAMPLERS)
def test_score_is_unbiased(draws):
    for family, target, constants in CELLS:
        with case(family, target, constants.__name__):
            rows = replicate(family, Score(target), draws, constants)
            assert np.abs(z_scores(rows, family)).max() < LIMIT


@pytest.mark.parametrize("target", ["h", "loglik"])
@pytest.mark.parametrize("family", FAMILIES)
def test_constants_from_the_same_draws_bias_and_the_test_sees_it(family, target):
    """Errata C16. So the test above has power: with plain draws the same replications and limit reject here.

    Over four seeds the largest |z| was 19 or more for g and 6.4 or more for G.
    """
    rows = replicate(family, Score(target), "mc", same_constants)
    z = np.abs(z_scores(rows, family))[:-1]
    assert z.max() > 2 * LIMIT
    # at least the mean's and the precision's gradients each
    assert z[:2].max() > LIMIT
    assert z[2:].max() > LIMIT


@pytest.mark.parametrize("draws", SAMPLERS)
def test_gradient_without_a_regression_is_unbiased(draws):
    """Two draws do not determine a regression, which takes d + 2."""
    for family, constants in product(FAMILIES, (no_constants, previous_constants)):
        with case(family, constants.__name__):
            rows = replicate(family, Gradient(), draws, constants, num_draws=2)
            assert np.abs(z_scores(rows, family)).max() < LIMIT


def test_constants_are_carried_to_the_next_iteration_only():
    q = approximation(Full(2))
    first, second = (sample_at(q, SAMPLERS["mc"](np.random.default_rng(k), 50, 2)) for k in (0, 1))
    estimate = Score("h").estimate(q, PRIOR, first, None)
    plain = Score("h", control_variates=False).estimate(q, PRIOR, first, None)
    np.testing.assert_array_equal(estimate.g, plain.g)
    np.testing.assert_array_equal(estimate.G, plain.G)
    assert plain.control is None
    corrected = Score("h").estimate(q, PRIOR, second, estimate.control)
    expected = (second.eps * (second.h[:, None] - estimate.control.mean)).mean(axis=0)
    np.testing.assert_allclose(corrected.g, expected, rtol=1e-12)


def test_loglik_refuses_other_priors():
    with pytest.raises(InvalidInputError, match="Gaussian prior"):
        Score("loglik").check_prior(None)
    Score("h").check_prior(None)


# --- (b) control variates reduce the variance ---------------------------------------------------------


@pytest.mark.parametrize("target", ["h", "loglik"])
@pytest.mark.parametrize("family", FAMILIES)
def test_control_variates_reduce_the_variance(family, target):
    """Here to 0.12-0.52 of it in the coordinates of g and G; 0.75 is asserted (400 replications)."""
    arguments = (family, Score(target), "mc")
    plain = replicate(*arguments, no_constants, 400, 50)[:, :-1].var(axis=0)
    controlled = replicate(*arguments, previous_constants, 400, 50)[:, :-1].var(axis=0)
    assert (controlled / plain).max() < 0.75


@pytest.mark.parametrize("name", FAMILIES)
def test_constants_are_the_optimal_ones(name):
    """c* = E[z² f] / E[z²] for every score coordinate z, by quadrature."""
    q = approximation(FAMILIES[name])
    eps, w = grid()
    f = sample_at(q, eps).h
    z_mean, z_precision = eps, 0.5 * (np.eye(2) - eps[:, :, None] * eps[:, None, :])
    best_mean = (w * f) @ z_mean**2 / (w @ z_mean**2)
    best = np.einsum("s,sij->ij", w * f, z_precision**2) / np.einsum("s,sij->ij", w, z_precision**2)
    draws = SAMPLERS["sobol"](np.random.default_rng(0), 2**17, 2)
    constants = optimal_constants(q.family, draws, sample_at(q, draws).h)
    # values near −35 that differ by up to 4; the error with 2¹⁷ Sobol points is about 0.02
    np.testing.assert_allclose(constants.mean, best_mean, atol=0.1)
    np.testing.assert_allclose(constants.precision, best if name == "full" else np.diag(best), atol=0.1)


def test_sample_constants_are_the_printed_formula():
    """Cov(z f, z) / Var(z) of every score coordinate, with NumPy's covariances; the scale of z cancels."""
    eps = SAMPLERS["mc"](np.random.default_rng(0), 30, 3)
    f = np.random.default_rng(1).standard_normal(30) - 35.0
    scores = 0.5 * (np.eye(3) - eps[:, :, None] * eps[:, None, :])

    def printed(z):
        covariance = np.cov(z * f, z)
        return covariance[0, 1] / covariance[1, 1]

    for family in (Full(3), Diagonal(3)):
        found = sample_constants(family, eps, f)
        np.testing.assert_allclose(found.mean, [printed(eps[:, i]) for i in range(3)], rtol=1e-10)
        expected = np.array([[printed(scores[:, i, j]) for j in range(3)] for i in range(3)])
        precision = expected if family.name == "full" else np.diag(expected)
        np.testing.assert_allclose(found.precision, precision, rtol=1e-10)


def test_sample_constants_of_draws_without_spread():
    """Two antithetic draws have the same squares: the diagonal of G has no spread, and its constant the mean of f."""
    found = sample_constants(Diagonal(2), np.array([[1.5, 0.5], [-1.5, -0.5]]), np.array([1.0, 3.0]))
    np.testing.assert_allclose(found.precision, 2.0)


@pytest.mark.parametrize("target", ["h", "loglik"])
def test_sample_constants_reduce_the_variance_too(target):
    """Measured: to 0.1 to 0.5 of it, as with the known denominator."""
    arguments = ("full", Score(target, control_variates="sample"), "mc")
    plain = replicate(*arguments, no_constants, 400, 50)[:, :-1].var(axis=0)
    controlled = replicate(*arguments, previous_constants, 400, 50)[:, :-1].var(axis=0)
    assert (controlled / plain).max() < 0.8


def test_a_wrong_choice_of_control_variates_is_refused():
    with pytest.raises(InvalidInputError, match="control_variates must be True, False or 'sample'"):
        Score("h", control_variates="exact")


def test_a_shift_of_the_function_shifts_the_constants():
    eps = SAMPLERS["mc"](np.random.default_rng(0), 20, 3)
    f = np.random.default_rng(1).standard_normal(20)
    for family in (Full(3), Diagonal(3), BlockDiagonal([[0, 2], [1]])):
        before, after = optimal_constants(family, eps, f), optimal_constants(family, eps, f + 7.0)
        np.testing.assert_allclose(after.mean, before.mean + 7.0, rtol=1e-12)
        np.testing.assert_allclose(after.precision, before.precision + 7.0, rtol=1e-12)


# --- (c) regression: exact for a quadratic ------------------------------------------------------------

DIM = 4
STRUCTURES = {"full": Full(DIM), "diagonal": Diagonal(DIM), "block": BlockDiagonal([[2, 0], [3, 1]])}
MASKS = {name: structure(family) for name, family in STRUCTURES.items()}


class Quadratic:
    """log p(θ) = 3 + bᵀθ − ½θᵀAθ, with A restricted to ``mask``; and its gradients at q."""

    def __init__(self, mask, seed=3):
        rng = np.random.default_rng(seed)
        R = rng.standard_normal((DIM, DIM))
        self.A, self.b = (R @ R.T + np.eye(DIM)) * mask, rng.standard_normal(DIM)

    def __call__(self, theta):
        return 3.0 + theta @ self.b - 0.5 * np.einsum("si,ij,sj->s", theta, self.A, theta)

    def gradient(self, theta):
        return self.b - theta @ self.A

    def exact(self, q):
        """Whitened g, dense G and the lower bound E_q[log p] + entropy."""
        whitener = np.linalg.inv(q.family.dense_factor(q.factor))
        g = whitener @ (self.b - self.A @ q.mean)
        G = 0.5 * (whitener @ self.A @ whitener.T - np.eye(DIM))
        entropy = 0.5 * (DIM * np.log(2 * np.pi * np.e) - np.linalg.slogdet(q.precision)[1])
        return g, G, self(q.mean[None])[0] - 0.5 * np.trace(self.A @ q.covariance) + entropy


def some_gaussian(family, seed=4):
    rng = np.random.default_rng(seed)
    R = rng.standard_normal((DIM, DIM))
    factor = family.factor(precision=R @ R.T + np.eye(DIM))
    return Gaussian.from_factor(rng.standard_normal(DIM), factor, family)


def restricted(family, G):
    """A dense symmetric matrix as an array of the family."""
    if family.name == "block":
        return np.concatenate([G[np.ix_(block, block)].ravel() for block in family.blocks])
    return G if family.name == "full" else np.diag(G)


def assert_exact(estimate, quadratic, q):
    g, G, lower_bound = quadratic.exact(q)
    np.testing.assert_allclose(estimate.g, g, atol=1e-9)
    np.testing.assert_allclose(estimate.G, restricted(q.family, G), atol=1e-9)
    assert estimate.lower_bound == pytest.approx(lower_bound, abs=1e-9)


@pytest.mark.parametrize("name", STRUCTURES)
def test_regression_is_exact_with_the_fewest_draws(name):
    q, quadratic = some_gaussian(STRUCTURES[name]), Quadratic(MASKS[name])
    for draws, sampler in SAMPLERS.items():
        with case(draws):
            num_draws = Regression().minimum_draws(q.family, draws)
            assert num_draws < 2 * Full(DIM).num_monomials or name == "full"
            sample = sample_at(q, sampler(np.random.default_rng(5), num_draws, DIM), None, quadratic)
            assert_exact(Regression().estimate(q, None, sample, None), quadratic, q)


@pytest.mark.parametrize("name", STRUCTURES)
def test_gradient_is_exact_with_the_fewest_draws(name):
    """For every family, also where the quadratic has more entries than it."""
    q, quadratic = some_gaussian(STRUCTURES[name]), Quadratic(MASKS["full"])

    def estimate(draws, num_draws):
        eps = SAMPLERS[draws](np.random.default_rng(5), num_draws, DIM)
        sample = sample_at(q, eps, None, quadratic, quadratic.gradient)
        return Gradient().estimate(q, None, sample, None)

    for draws, fewest in {"mc": DIM + 2, "antithetic": 2 * DIM, "sobol": DIM + 2}.items():
        with case(draws):
            assert_exact(estimate(draws, fewest), quadratic, q)
            fewer = estimate(draws, fewest - 2)
            assert np.abs(fewer.G - restricted(q.family, quadratic.exact(q)[1])).max() > 1e-3


@pytest.mark.parametrize("name", STRUCTURES)
def test_regression_projects_a_general_quadratic(name):
    """From two draws a monomial on, the cross terms outside the family are fitted too: no noise from them."""
    q, quadratic = some_gaussian(STRUCTURES[name]), Quadratic(MASKS["full"])
    num_draws = 2 * Full(DIM).num_monomials
    for draws, sampler in SAMPLERS.items():
        with case(draws):
            sample = sample_at(q, sampler(np.random.default_rng(6), num_draws, DIM), None, quadratic)
            assert_exact(Regression().estimate(q, None, sample, None), quadratic, q)


@pytest.mark.parametrize("name", STRUCTURES)
def test_regression_takes_the_prior_in(name):
    """A Gaussian prior is part of the quadratic, whatever its structure."""
    q, quadratic = some_gaussian(STRUCTURES[name]), Quadratic(MASKS["full"])
    prior = Gaussian(mean=np.arange(DIM), precision=Quadratic(MASKS["full"], seed=8).A)
    sample = sample_at(q, SAMPLERS["mc"](np.random.default_rng(7), 40, DIM), prior, quadratic)
    estimate = Regression().estimate(q, prior, sample, None)
    joint = Quadratic(MASKS["full"])
    joint.A, joint.b = quadratic.A + prior.precision, quadratic.b + prior.precision @ prior.mean
    g, G, _ = joint.exact(q)
    np.testing.assert_allclose(estimate.g, g, atol=1e-9)
    np.testing.assert_allclose(estimate.G, restricted(q.family, G), atol=1e-9)


# --- the fewest draws ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STRUCTURES)
def test_minimum_draws_determine_the_coefficients_and_fewer_do_not(name):
    family = STRUCTURES[name]

    def rank(draws, num_draws):
        eps = SAMPLERS[draws](np.random.default_rng(9), num_draws, DIM)
        return np.linalg.matrix_rank(monomials(family, eps))

    for draws in SAMPLERS:
        with case(draws):
            least = Regression().minimum_draws(family, draws)
            assert rank(draws, least) == family.num_monomials
            assert rank(draws, least - (2 if draws == "antithetic" else 1)) < family.num_monomials


def test_the_optimizer_asks_for_the_fewest_draws():
    with pytest.raises(InvalidInputError, match="at least 15"):
        MGVBP().start(DIM, estimator="regression", num_draws=14)
    with pytest.raises(InvalidInputError, match="at least 22 antithetic"):
        MGVBP().start(DIM, estimator="regression", draws="antithetic", num_draws=20)
    MGVBP().start(DIM, estimator="regression", draws="antithetic", num_draws=22)


@pytest.mark.parametrize("family", [Diagonal(8), BlockDiagonal([4, 4])], ids=["diagonal", "block"])
def test_allowed_antithetic_draws_always_determine_the_regression(family):
    """Pairs determine the full quadratic from 2 (1 + d(d+1)/2) draws on, less than two a monomial."""
    least = Regression().minimum_draws(family, "antithetic")
    for num_draws in range(least, 100, 2):
        q = Gaussian.from_factor(np.zeros(8), family.factor(variance=np.array(1.0)), family)
        eps = SAMPLERS["antithetic"](np.random.default_rng(num_draws), num_draws, 8)
        sample = sample_at(q, eps, None, lambda theta: -(theta**2).sum(axis=1))
        estimate = Regression().estimate(q, None, sample, None)
        np.testing.assert_allclose(q.family.diagonal(estimate.G), 0.5, atol=1e-8)


def test_draws_that_do_not_determine_the_regression_are_refused():
    """Half the draws repeat the other half: rank 14 of 15, whatever round-off makes of it."""
    q = some_gaussian(Full(DIM))
    for seed in range(200):
        eps = np.tile(SAMPLERS["mc"](np.random.default_rng(seed), 14, DIM), (2, 1))
        sample = sample_at(q, eps, None, lambda theta: -(theta**4).sum(axis=1))
        with pytest.raises(DivergenceError, match="do not determine"):
            Regression().estimate(q, None, sample, None)


@pytest.mark.parametrize("draws", ["mc", "antithetic"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_draws_that_come_twice_determine_no_gradient_regression(name, draws):
    """DIM draws, or DIM − 1 pairs, are too few for a regression, and no more if each comes twice: averages both times.

    The coordinates are orthogonal but for the last (or the constant, without pairs), which is a combination of them:
    what is left of it by a QR factorisation is round-off alone.
    """
    q = some_gaussian(STRUCTURES[name])

    def estimate(eps):
        sample = sample_at(q, eps, None, lambda theta: -(theta**4).sum(axis=1), lambda theta: -4.0 * theta**3)
        return Gradient().estimate(q, None, sample, None)

    for seed in range(20):
        rng = np.random.default_rng(seed)
        if draws == "mc":
            once = 2.0 * np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
            twice = np.concatenate([once, once])
        else:
            others = 2.0 * np.linalg.qr(rng.standard_normal((DIM - 1, DIM - 1)))[0]
            half = np.column_stack([others, others.mean(axis=1)])
            once, twice = np.concatenate([half, -half]), np.concatenate([half, half, -half, -half])
        expected, found = estimate(once), estimate(twice)
        np.testing.assert_allclose(found.g, expected.g, atol=1e-9 * np.abs(expected.g).max())
        np.testing.assert_allclose(found.G, expected.G, atol=1e-9 * np.abs(expected.G).max())
        assert found.lower_bound == pytest.approx(expected.lower_bound, rel=1e-9)


# --- (d) regression converges to the truth where the log density is not quadratic ---------------------


@pytest.mark.parametrize("estimator", [Regression(), Gradient()], ids=["regression", "gradient"])
@pytest.mark.parametrize("name", FAMILIES)
def test_regression_converges_to_the_truth(name, estimator):
    """Root mean square errors at S, 16 S, 256 S fall by 4 each (S^-½); 2.5 is asserted (20 replications)."""
    expected = truth(approximation(FAMILIES[name]))
    errors = []
    for num_draws in (50, 800, 12_800):
        rows = replicate(name, estimator, "mc", no_constants, 20, num_draws)
        errors.append(np.sqrt(np.mean((rows - expected) ** 2)))
    assert errors[0] > 2.5 * errors[1] > 2.5**2 * errors[2]
    assert errors[2] < 0.01


# --- (e) noise at the optimum -------------------------------------------------------------------------


def test_noise_on_h_vanishes_at_a_gaussian_posterior_and_on_the_log_likelihood_does_not():
    quadratic = Quadratic(MASKS["full"])
    prior = Gaussian(mean=np.ones(DIM), variance=2.0)
    precision = quadratic.A + prior.precision
    mean = np.linalg.solve(precision, quadratic.b + prior.precision @ prior.mean)
    q = Gaussian(mean=mean, precision=precision)
    rng = np.random.default_rng(11)

    def noise(estimator, num_draws=40):
        control, rows = None, []
        for iteration in range(200):
            eps = SAMPLERS["mc"](rng, num_draws, DIM)
            sample = sample_at(q, eps, prior, quadratic, quadratic.gradient)
            estimate = estimator.estimate(q, prior, sample, control)
            control = estimate.control
            if iteration:
                rows.append(flat(q.family, estimate.g, estimate.G, 0.0)[:-1])
        return np.abs(rows).max(axis=0)

    assert noise(Score("h")).max() < 1e-11
    assert noise(Regression()).max() < 1e-11
    assert noise(Gradient()).max() < 1e-11
    assert noise(Gradient(), num_draws=3).max() < 1e-11
    assert noise(Score("loglik")).min() > 0.1
    # without its constant h is noisy too: c · mean(ε) is left
    assert noise(Score("h", control_variates=False)).min() > 0.1


# --- (f) draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", SAMPLERS)
def test_moments_of_the_draws(draws):
    """Mean, variance, fourth moment and cross moment: |z| < 4.5, 13 statistics a sampler (level 1e-4)."""
    n, d = 40_000, 3
    eps = SAMPLERS[draws](np.random.default_rng(12), n, d)
    assert eps.shape == (n, d)
    assert np.isfinite(eps).all()
    effective = n / 2 if draws == "antithetic" else n  # pairs share their even moments
    i, j = np.triu_indices(d, 1)
    for value, mean, variance in (
        (eps, 0.0, 1.0),
        (eps**2, 1.0, 2.0),
        (eps**4, 3.0, 96.0),
        (eps[:, i] * eps[:, j], 0.0, 1.0),
    ):
        assert np.abs((value.mean(axis=0) - mean) / np.sqrt(variance / effective)).max() < 4.5


@pytest.mark.parametrize("draws", SAMPLERS)
def test_draws_are_marginally_normal(draws):
    """Each sampler's first draw, over 2000 seeds, has 20 equally filled normal bins (χ², level 1e-3)."""
    first = np.array([SAMPLERS[draws](np.random.default_rng(k), 4, 2)[1] for k in range(2000)])
    counts = np.apply_along_axis(np.bincount, 0, (norm.cdf(first) * 20).astype(int), minlength=20)
    statistic = ((counts - 100.0) ** 2 / 100.0).sum(axis=0)
    assert statistic.max() < chi2.isf(1e-3 / 2, df=19)


def test_antithetic_draws_are_symmetric():
    eps = SAMPLERS["antithetic"](np.random.default_rng(13), 10, 3)
    np.testing.assert_array_equal(eps[:5], -eps[5:])
    with pytest.raises(InvalidInputError, match="even"):
        resolve_draws("antithetic", 9, 3)


def test_sobol_draws_integrate_better():
    """E[exp(a'ε)] = exp(½‖a‖²): root mean square errors over 100 scrambles, 256 points each."""
    a = np.array([0.5, -0.3, 0.2])

    def error(draws):
        means = [np.exp(SAMPLERS[draws](np.random.default_rng(k), 256, 3) @ a).mean() for k in range(100)]
        return np.sqrt(np.mean((np.array(means) - np.exp(0.5 * a @ a)) ** 2))

    assert error("sobol") < 0.2 * error("mc")


@pytest.mark.filterwarnings("ignore:The balance properties")
def test_scrambled_points_are_scipys():
    for dim, number in [(1, 1), (1, 2), (3, 150), (8, 75), (40, 512), (300, 5)]:
        theirs = qmc.Sobol(dim, rng=np.random.default_rng(dim)).random(number)
        ours = scrambled(np.random.default_rng(dim), number, dim) / 2.0**30
        np.testing.assert_array_equal(ours, theirs, str((dim, number)))


def test_sobol_draws_fill_the_bins_evenly():
    """128 scrambled points put exactly one point in each of 128 equal intervals of every coordinate."""
    eps = SAMPLERS["sobol"](np.random.default_rng(14), 128, 5)
    bins = np.sort((norm.cdf(eps) * 128).astype(int), axis=0)
    np.testing.assert_array_equal(bins, np.tile(np.arange(128)[:, None], (1, 5)))


@pytest.mark.parametrize("draws", SAMPLERS)
def test_draws_are_fresh_each_iteration_and_reproducible(draws):
    def asked(rng):
        optimizer = MGVBP(step_size=1e-12).start(2, draws=draws, num_draws=20, rng=rng)
        batches = []
        for _ in range(3):
            theta = optimizer.ask()
            np.testing.assert_array_equal(theta, optimizer.ask())
            batches.append(theta)
            optimizer.tell(-(theta**2).sum(axis=1))
        return np.array(batches)

    first = asked(5)
    assert np.unique(first.round(6), axis=0).size == first.size
    np.testing.assert_array_equal(first, asked(5))
    np.testing.assert_array_equal(asked(np.random.default_rng(5)), asked(np.random.default_rng(5)))
    assert not np.isclose(first, asked(6)).any()
    for one, two in ((0, 1), (1, 2), (0, 2)):
        assert not np.isclose(first[one], first[two]).any()


def test_resolve_draws():
    assert resolve_draws("auto", 5, 2) is SAMPLERS["mc"]
    with pytest.raises(InvalidInputError, match="one of"):
        resolve_draws("halton", 5, 2)
    with pytest.raises(InvalidInputError, match="dimension"):
        resolve_draws("sobol", 8, 30_000)


# --- (f) the lower bound of the gradient estimator ----------------------------------------------------


@pytest.mark.parametrize("draws", ["mc", "antithetic"])
@pytest.mark.parametrize(("d", "num_draws"), [(5, 14), (5, 40), (20, 44)])
def test_the_bound_of_the_gradient_estimator_is_unbiased(d, num_draws, draws):
    """−Σ cosh θ, whose mean is known: |z| < 3.9 (1e-4), and less noise than in the mean of h.

    With coefficients that each draw had a part in, z was 20 and more.
    """
    q = Gaussian(np.full(d, 0.3), variance=0.8)
    exact = -d * np.cosh(0.3) * np.exp(0.4) + 0.5 * d * np.log(2.0 * np.pi * np.e * 0.8)
    bounds, means = [], []
    for seed in range(1000):
        eps = SAMPLERS[draws](np.random.default_rng(seed), num_draws, d)
        theta = q.mean + q.family.from_frame(q.factor, eps)
        log_q = q.log_density_in_frame(eps)
        sample = Sample(eps, -np.cosh(theta).sum(axis=1), np.zeros(num_draws), log_q, -np.sinh(theta))
        bounds.append(Gradient().estimate(q, None, sample, None).lower_bound)
        means.append(sample.h.mean())
    assert abs(np.mean(bounds) - exact) < 3.9 * np.std(bounds) / 1000**0.5
    if draws == "mc":
        assert np.std(bounds) < 0.95 * np.std(means)


# --- balanced draws -----------------------------------------------------------------------------------


def test_each_balanced_draw_is_standard_normal_in_every_coordinate():
    """Fourth and mixed moments, to five standard errors: a root that prefers a direction is 70% off in the first."""
    d, batches = 6, 3000
    eps = np.stack([balanced(np.random.default_rng(seed), 8, d)[::2] for seed in range(batches)])
    fourth, mixed = np.power(eps, 4), np.square(eps[..., 0] * eps[..., 1])
    means = fourth.mean(axis=1)  # the draws of a batch are not independent of each other
    assert (np.abs(means.mean(axis=0) - 3.0) < 5.0 * means.std(axis=0) / np.sqrt(batches)).all()
    assert abs(mixed.mean() - 1.0) < 5.0 * mixed.mean(axis=1).std() / np.sqrt(batches)
    lengths = np.square(eps).sum(axis=2)
    np.testing.assert_allclose(np.quantile(lengths, [0.1, 0.5, 0.9]), chi2(d).ppf([0.1, 0.5, 0.9]), rtol=0.03)


@pytest.mark.parametrize(("pairs", "dim", "part"), [(24, 20, 0.1), (72, 60, 0.04), (80, 20, 0.02)])
def test_second_moments_of_balanced_draws_have_a_small_part_of_the_noise(pairs, dim, part):
    eps = balanced(np.random.default_rng(1), pairs, dim)
    assert eps.shape == (2 * pairs, dim)
    np.testing.assert_array_equal(eps[1::2], -eps[::2])
    error = np.square(eps.T @ eps / len(eps) - np.eye(dim)).sum()
    assert error < part * dim * (dim + 1) / pairs  # the mean of independent pairs, without the factor


def test_too_few_draws_to_balance_are_independent_pairs():
    eps = balanced(np.random.default_rng(1), 5, 6)
    np.testing.assert_array_equal(eps[::2], np.random.default_rng(1).standard_normal((5, 6)))
    np.testing.assert_array_equal(eps[1::2], -eps[::2])
