"""The frame does what the paper's formulas say: every method against `literal.py`, step by step."""

from itertools import product

import numpy as np
import pytest
from numpy.linalg import inv, norm

import literal
from common import case, random_spd, structure
from mgvbp import MGVB, MGVBP, QBVI, BlockDiagonal, Diagonal, Full, Gaussian, Geodesic, Score
from mgvbp.errors import InvalidInputError
from mgvbp.estimators import Estimate, Sample
from mgvbp.estimators.score import optimal_constants
from mgvbp.methods import resolve_method
from mgvbp.methods.optimizer import Frame

# method -> (the literal step, the same with 60 digits)
METHODS = {
    MGVBP: (literal.mgvbp, literal.exact_mgvbp),
    MGVB: (literal.mgvb, literal.exact_mgvb),
    QBVI: (literal.qbvi, literal.exact_qbvi),
    Geodesic: (literal.geodesic, literal.exact_geodesic),
}
CLIPPING = {  # in units of the norm of the first natural gradient: the thresholds bind often, not always
    "none": {},
    "gradient": {"clip_gradient": 1.0},
    "natural": {"clip_natural_gradient": 0.7, "clip_initial": 0.3},
    "both": {"clip_gradient": 1.0, "clip_natural_gradient": 0.7, "clip_initial": 0.5},
}
OMEGA = 0.4


def test_the_papers_settings_are_the_defaults():
    """Of its first experiments: β, t′, ω, the window, the patience and the number of iterations."""
    names = ("step_size", "decay_after", "momentum", "window", "patience", "max_iterations")
    for kind in METHODS:
        with case(kind.__name__):
            method = kind()
            assert tuple(getattr(method, name) for name in names) == (0.01, 1000, 0.4, 30, 500, 1200)
            assert method.clip_gradient is method.clip_natural_gradient is method.clip_initial is None


def test_auto_takes_no_steps_that_could_be_run():
    with pytest.raises(
        InvalidInputError, match="auto takes no steps that can be run one by one: choose mgvbp, "
    ):
        resolve_method("auto")


def random_symmetric(rng, d):
    """Norm about 1."""
    A = rng.standard_normal((d, d))
    return np.asfortranarray(literal.symmetric(A) / d)


def random_problem(seed, d, condition):
    """A full Gaussian prior, a start and a log-likelihood (S, d) -> (S,) that is not quadratic."""
    rng = np.random.default_rng(seed)
    mu0, V0, mu, V = (
        rng.normal(size=d),
        random_spd(rng, d, 10.0),
        rng.normal(size=d),
        random_spd(rng, d, condition),
    )
    B, b = rng.normal(size=(6, d)) / np.sqrt(d), rng.normal(size=6)
    return mu0, V0, mu, V, lambda theta: -np.log1p((theta @ B.T - b) ** 2).sum(axis=1)


def assert_close(actual, expected, rtol=1e-10):
    assert norm(actual - expected) <= rtol * norm(expected)


def tangent(method, frame):
    """The momentum as the literal step keeps it: of the precision, or of the covariance for MGVB."""
    L, M = frame.factor, frame.factor_momentum
    return -inv(L).T @ M @ inv(L) if isinstance(method, MGVB) else L @ M @ L.T


# --- whole step sequences ------------------------------------------------------------------------------


def start(method, mu0, V0, mu, V, estimator, **options):
    prior = Gaussian(mu0, variance=V0)
    return method.start(prior, estimator=estimator, initial_mean=mu, initial_variance=V, **options)


def scaled_limits(clipping, target, mu0, P0, mu, V, log_lik):
    """The thresholds of ``clipping`` times the norm of a natural gradient at the start."""
    theta = np.random.default_rng(0).multivariate_normal(mu, V, size=2 * len(mu) + 40)
    n_mu, n_P = literal.natural_gradients(target, theta, log_lik(theta), mu, inv(V), mu0, P0)
    return {name: float(x * np.hypot(norm(n_mu), norm(n_P))) for name, x in CLIPPING[clipping].items()}


def thresholds(limits, t):
    """The two limits of iteration t; at the first, ``clip_initial`` replaces whichever is set."""
    set_ = {n: limits.get("clip_initial", x) if t == 1 else x for n, x in limits.items()}
    return set_.get("clip_gradient", np.inf), set_.get("clip_natural_gradient", np.inf)


SEQUENCES = [  # dimension, function in the estimator, precision_scale, clipping, momentum
    *product([1, 2, 5, 12], ["h", "loglik"], [1.0, 2.0], CLIPPING, [OMEGA]),
    *product([50], ["h", "loglik"], [1.0, 2.0], ["none", "both"], [OMEGA]),
    (130, "h", 1.0, "both", OMEGA),  # above the size at which the full family works by panels
    (5, "h", 1.0, "none", 0.0),
    (5, "h", 1.0, "none", 0.9),
]


@pytest.mark.parametrize("kind", METHODS)
def test_every_step_is_the_papers(kind):
    for sequence in SEQUENCES:
        with case(*sequence):
            follow_the_paper(kind, *sequence)


def follow_the_paper(kind, d, target, rho, clipping, omega):
    """Take a few steps, and compare each with the literal one from the same draws."""
    mu0, V0, mu, V, log_lik = random_problem(d, d, condition=1e3 if d > 1 else 1.0)
    P0, P, m_mu, m_P = inv(V0), inv(V), None, None
    beta = 0.05 / d**0.75 if d > 1 else 0.3  # ‖βM‖ up to 1 or 2: the second-order term counts
    estimator = Score(target, control_variates=False)
    limits = scaled_limits(clipping, target, mu0, P0, mu, V, log_lik)
    method = kind(step_size=beta, decay_after=2, momentum=omega, precision_scale=rho, **limits)
    opt = start(method, mu0, V0, mu, V, estimator, num_draws=2 * d + 40, rng=d)
    for t in range(1, 6 if d <= 12 else 4):
        theta = opt.ask()
        values = log_lik(theta)
        info = opt.tell(values)
        if kind is QBVI and info.reductions:  # it shortens its step where P would not stay positive definite
            assert info.step_size == literal.learning_rate(beta, 2, t) / 2**info.reductions
        else:
            assert (info.step_size, info.reductions) == (literal.learning_rate(beta, 2, t), 0)
        bound = literal.lower_bound(theta, values, mu, P, mu0, P0)
        gradients = literal.natural_gradients(target, theta, values, mu, P, mu0, P0)
        options = info.step_size, omega, rho, *thresholds(limits, t)
        mu, P, m_mu, m_P = METHODS[kind][0](mu, P, *gradients, m_mu, m_P, *options)
        assert info.lower_bound == pytest.approx(bound, rel=1e-10)
        assert_close(opt.gaussian.mean, mu)
        assert_close(opt.gaussian.precision, P)
        assert_close(opt.state.frame.mean_momentum, m_mu)
        if omega > 0.0:  # else it is not used again, and not transported
            assert_close(tangent(method, opt.state.frame), m_P)


@pytest.mark.parametrize("kind", METHODS)
def test_blocks_are_algorithm_2(kind):
    for blocks, target in product([[[0, 1], [2, 3, 4]], [[3, 0], [1], [4, 2]]], ["h", "loglik"]):
        with case(blocks, target):
            follow_algorithm_2(kind, blocks, target)


def follow_algorithm_2(kind, blocks, target):  # alg:mean_field, with the signs of C2 and C4
    """Take five steps, and compare each with the literal one of every block by itself."""
    d, tau, beta = 5, 0.5, 0.03
    _, _, mu, V, log_lik = random_problem(9, d, condition=10.0)
    mu0, P0, P = np.zeros(d), tau * np.eye(d), np.zeros((d, d))
    momenta = [(None, None)] * len(blocks)
    for block in blocks:
        P[np.ix_(block, block)] = inv(V[np.ix_(block, block)])
    opt = kind(step_size=beta, momentum=OMEGA, precision_scale=1.0).start(
        Gaussian(mu0, precision=tau),
        family=BlockDiagonal(blocks),
        estimator=Score(target, control_variates=False),
        num_draws=60,
        initial_mean=mu,
        initial_variance=V,
    )
    for _ in range(5):
        theta = opt.ask()
        values = log_lik(theta)
        assert opt.tell(values).reductions == 0
        f = literal.h_function(theta, values, mu, P, mu0, P0) if target == "h" else values
        mu, P = mu.copy(), P.copy()
        for k, block in enumerate(blocks):
            at = np.ix_(block, block)
            x, mu_j, P_j = theta[:, block], mu[block], P[at]
            c, C = (
                (0, 0) if target == "h" else (-tau * inv(P_j) @ mu_j, -P_j / 2 + tau / 2 * np.eye(len(block)))
            )
            gradients = literal.natgrad_mu(x, f, mu_j, c), literal.natgrad_S(x, f, mu_j, P_j, C)
            mu[block], P[at], *momenta[k] = METHODS[kind][0](
                mu_j, P_j, *gradients, *momenta[k], beta, OMEGA, 1.0, np.inf, np.inf
            )
        assert_close(opt.gaussian.mean, mu)
        assert_close(opt.gaussian.precision, P)


@pytest.mark.parametrize("scale", [0.1, 10.0])
def test_diagonal_retraction(scale):  # C3; MGVB does the same to the variances
    rng = np.random.default_rng(3)
    L, G = rng.uniform(0.1, 10.0, size=7), scale * rng.standard_normal(7)
    on_precision, on_variance = (
        kind(step_size=1.0)
        .step(Diagonal(7), Frame(np.zeros(7), L), Estimate(np.zeros(7), G, 0.0), 1)
        .frame.factor
        for kind in (MGVBP, MGVB)
    )
    # relative to each element, and no cancellation: round-off only
    np.testing.assert_allclose(on_precision**2, literal.diagonal_retraction(L**2, L * G * L), rtol=1e-13)
    np.testing.assert_allclose(on_variance**-2, literal.diagonal_retraction(L**-2, -G / L / L), rtol=1e-13)


# --- ill-conditioned states ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", METHODS)
def test_ill_conditioned_step_has_ten_digits(kind):
    for d, condition in product([2, 4, 6], [1e4, 1e8]):
        with case(d, condition):
            check_ten_digits(kind, d, condition)


def check_ten_digits(kind, d, condition):
    """Compare one step with the same step in 60 digits."""
    rng = np.random.default_rng(d)
    beta, rho = 0.7, 1.5
    L = np.asfortranarray(np.linalg.cholesky(random_spd(rng, d, condition)))
    frame = Frame(rng.normal(size=d), L, rng.normal(size=d), random_symmetric(rng, d))
    estimate = Estimate(rng.normal(size=d), random_symmetric(rng, d), 0.0)
    method = kind(step_size=beta, momentum=OMEGA, precision_scale=rho)
    new, step_size, reductions = method.step(Full(d), frame, estimate, 1)
    assert (step_size, reductions) == (beta, 0)

    # the same floats, from here on with 60 digits
    beta, omega, rho = (literal.mp.mpf(x) for x in (beta, OMEGA, rho))
    mu, L, m_mu, M = map(literal.exact, frame)
    P, g, G = L * L.T, literal.exact(estimate.g), literal.exact(estimate.G)
    grad_mu = L * g if kind is QBVI else P**-1 * (L * g)
    m_mu = omega * m_mu + (1 - omega) * grad_mu
    m_P = L * (omega * M + (1 - omega) * rho * G) * L.T
    P_new, m_P_new = METHODS[kind][1](P, beta * m_P, m_P)
    mu_new = mu + beta * (P_new**-1 * m_mu if kind is QBVI else m_mu)

    mean, L_new, _, M_new = map(literal.exact, new)
    error = literal.exact_error
    assert error(mean, mu_new) < 1e-10
    assert error(L_new * L_new.T, P_new) < 1e-10
    assert error(L_new * M_new * L_new.T, m_P_new) < 1e-10
    assert error((L_new * L_new.T) ** -1, P_new**-1) < 1e-10


def test_sixty_digits_agree_with_the_literal_formulas():
    rng = np.random.default_rng(0)
    P, xi, m = random_spd(rng, 4, 10.0), random_symmetric(rng, 4), random_symmetric(rng, 4)
    P2 = literal.retraction(P, xi)
    exact = [literal.exact(A) for A in (P, xi, m, P2)]
    pairs = [
        (P2, literal.exact_retraction(*exact[:2])),
        (literal.transport(P, P2, m), literal.exact_transport(exact[0], exact[3], exact[2])),
        (literal.exponential(P, xi), literal.exact_exponential(*exact[:2])),
        # parallel transport along a geodesic is the paper's transport between its ends
        (literal.parallel_transport(P, xi, m), literal.exact_geodesic(*exact[:3])[1]),
    ]
    for plain, precise in pairs:
        assert literal.exact_error(literal.exact(plain), precise) < 1e-13


# --- control variates ----------------------------------------------------------------------------------

FAMILIES = [Full(5), Diagonal(5), BlockDiagonal([2, 3]), BlockDiagonal([[3, 0], [1], [4, 2]])]


@pytest.mark.parametrize("target", ["h", "loglik"])
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_control_variates_come_from_the_previous_iteration(family, target):
    rng = np.random.default_rng(5)
    d, S, inside = family.dim, 30, structure(family)
    prior = Gaussian(rng.normal(size=d), precision=random_spd(rng, d, 10.0))
    q = Gaussian.from_factor(rng.normal(size=d), family.factor(precision=random_spd(rng, d, 10.0)), family)
    R = family.dense_factor(q.factor)
    c_g, C_G = (
        -inv(R) @ prior.precision @ (q.mean - prior.mean),
        (inv(R) @ prior.precision @ inv(R).T - np.eye(d)) / 2,
    )
    control, constants = None, (np.zeros(d), np.zeros((d, d)))  # c = 0 at first
    for _ in range(3):
        eps, log_lik, log_prior, log_q = rng.normal(size=(S, d)), *(7.0 + rng.normal(size=(3, S)))
        f = log_lik if target == "loglik" else log_lik + log_prior - log_q
        estimate = Score(target).estimate(q, prior, Sample(eps, log_lik, log_prior, log_q), control)
        g, G, constants = literal.controlled_gradients(eps, f, constants)
        control = estimate.control
        assert_close(estimate.g, g + (c_g if target == "loglik" else 0.0), 1e-12)
        assert_close(
            family.dense_factor(estimate.G)[inside], (G + (C_G if target == "loglik" else 0.0))[inside], 1e-12
        )
        assert_close(control.mean, constants[0], 1e-12)
        assert_close(family.dense_factor(control.precision)[inside], constants[1][inside], 1e-12)


@pytest.mark.parametrize("target", ["h", "loglik"])
@pytest.mark.parametrize("kind", METHODS)
def test_steps_with_control_variates(kind, target):
    d, beta = 4, 0.05
    mu0, V0, mu, V, log_lik = random_problem(4, d, condition=10.0)
    P0, P, m_mu, m_P = inv(V0), inv(V), None, None
    constants = np.zeros(d), np.zeros((d, d))
    opt = start(kind(step_size=beta, precision_scale=1.0), mu0, V0, mu, V, Score(target), num_draws=40)
    for _ in range(5):
        theta = opt.ask()
        values = log_lik(theta)
        assert opt.tell(values).reductions == 0
        f = literal.h_function(theta, values, mu, P, mu0, P0) if target == "h" else values
        L = np.linalg.cholesky(P)
        g, G, constants = literal.controlled_gradients((theta - mu) @ L, f, constants)
        # the score part in the frame, the prior part of eq:estim_gaussian as it stands
        c, C = (0, 0) if target == "h" else (-inv(P) @ P0 @ (mu - mu0), -P / 2 + P0 / 2)
        gradients = c + inv(L).T @ g, C + L @ G @ L.T
        mu, P, m_mu, m_P = METHODS[kind][0](mu, P, *gradients, m_mu, m_P, beta, OMEGA, 1.0, np.inf, np.inf)
        assert_close(opt.gaussian.mean, mu)
        assert_close(opt.gaussian.precision, P)


def test_constants_estimate_c_star():
    """eq:c_star with its sample covariance and variance, on 200,000 draws."""
    rng = np.random.default_rng(6)
    eps = rng.standard_normal((200_000, 3))
    f = 2.0 + eps[:, 0] - eps[:, 1] * eps[:, 2] + 0.5 * eps[:, 2] ** 2
    control = optimal_constants(Full(3), eps, f)
    for z, c in zip(literal.score_coordinates(eps), control, strict=True):
        z = z[0].reshape(len(f), -1)
        c_star = [np.cov(zk * f, zk)[0, 1] / np.var(zk, ddof=1) for zk in z.T]
        # both have a standard error of at most sd(z² f / E[z²]) / √S < 0.05
        np.testing.assert_allclose(c.ravel(), c_star, atol=0.15)


# --- how the methods differ ----------------------------------------------------------------------------


def step_from(kind, beta, family=None, scale=1.0):
    """A state and what one step of size β with whole natural gradients makes of it; the same each time."""
    rng = np.random.default_rng(8)
    d = 4
    family = family or Full(d)
    frame = Frame(rng.normal(size=d), family.factor(precision=random_spd(rng, d, 10.0)))
    g, G = scale * rng.normal(size=d), scale * family.from_pairs(rng.normal(size=len(family.pairs[0])) / d)
    method = kind(step_size=beta, precision_scale=2.0)
    new, _, reductions = method.step(family, frame, Estimate(g, G, 0.0), 1)
    assert reductions == 0
    return frame, new, family


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        (MGVBP, Geodesic, 3),
        (MGVB, Geodesic, 3),
        (MGVB, MGVBP, 4),  # F(−A)⁻¹ = F(A) (I + A⁴/4)⁻¹
        (QBVI, MGVBP, 2),
        (QBVI, Geodesic, 2),
    ],
)
def test_order_in_the_step_size_at_which_precisions_differ(first, second, order):
    betas = 2.0 ** -np.arange(4, 9)
    difference = []
    for beta in betas:
        P1, P2 = (
            family.precision(new.factor) for _, new, family in (step_from(k, beta) for k in (first, second))
        )
        difference.append(norm(P1 - P2))
    slope = np.polyfit(np.log(betas), np.log(difference), 1)[0]
    assert slope == pytest.approx(order, abs=0.1)  # the next order adds about ‖M‖β ≤ 0.1 to the slope


def test_order_in_the_step_size_at_which_means_differ():
    betas = 2.0 ** -np.arange(4, 9)
    means = {kind: np.array([step_from(kind, beta)[1].mean for beta in betas]) for kind in METHODS}
    np.testing.assert_array_equal(means[MGVB], means[MGVBP])
    np.testing.assert_array_equal(means[Geodesic], means[MGVBP])
    difference = norm(means[QBVI] - means[MGVBP], axis=1)
    assert np.polyfit(np.log(betas), np.log(difference), 1)[0] == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("kind", METHODS)
def test_zero_gradient_stays(kind):
    for family in (Full(4), Diagonal(4), BlockDiagonal([[2, 0], [1, 3]])):
        with case(family):
            old, new, _ = step_from(kind, 0.5, family, scale=0.0)
            np.testing.assert_array_equal(new.mean, old.mean)
            np.testing.assert_array_equal(new.factor, old.factor)


def test_retraction_at_zero_is_the_identity():
    P = random_spd(np.random.default_rng(2), 4, 100.0)
    np.testing.assert_array_equal(literal.retraction(P, np.zeros((4, 4))), P)
    np.testing.assert_array_equal(Full(4).retraction(np.zeros((4, 4), order="F"), 0.3), np.eye(4))
    np.testing.assert_array_equal(Diagonal(4).retraction(np.zeros(4), 0.3), np.ones(4))
