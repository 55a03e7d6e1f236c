"""The parts of `auto` against their definitions, written out: weights, surfaces, kriging, leaps and polishing."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from mgvbp import Diagonal, Full, Gaussian
from mgvbp.auto.steps.leap import propose, step
from mgvbp.auto.steps.polish import polish
from mgvbp.estimators.regression import monomials
from mgvbp.surfaces import constants, kriging
from mgvbp.surfaces import surface as surface_module
from mgvbp.surfaces.archive import Archive, equal_view, twins
from mgvbp.surfaces.henderson import Terms
from mgvbp.surfaces.hermite import hermite_polynomials
from mgvbp.surfaces.surface import Regression, Surface, fit_surface, follow_values, higher_degrees

SEEDS = st.integers(0, 2**32 - 1)


def some_gaussian(rng, d, family=Full):
    A = rng.standard_normal((d, d + 2))
    variance = A @ A.T / d if family is Full else rng.uniform(0.5, 2.0, d)
    return Gaussian(rng.standard_normal(d), variance=variance)


def log_density(q):
    """A callable for any number of rows, up to a constant of 3."""
    distribution = multivariate_normal(q.mean, q.covariance)
    return lambda theta: 3.0 + np.atleast_1d(distribution.logpdf(theta))


# --- archive ------------------------------------------------------------------------------------------


def test_shares_have_their_part_of_every_gaussians_draws():
    narrow, wide = (Gaussian(np.zeros(2), variance=v) for v in (1.0, 4.0))
    archive = Archive.empty(2)
    for q, groups in ((narrow, np.arange(8) // 2), (narrow, np.arange(24) // 6), (wide, np.arange(24) // 6)):
        theta = q.sample(len(groups), 1)
        archive = archive.add(q, theta, np.zeros(len(theta)), -theta, groups=groups)
    share = archive.shares(4)
    for k in range(4):  # a pair of the first draws, and a batch of each Gaussian
        assert (
            np.bincount(archive.groups[share == k])[archive.groups[share == k]].tolist() == [2] * 2 + [6] * 12
        )
        assert archive.some(np.flatnonzero(share == k)).groups[[2, 8]].tolist() == [4 + k, 8 + k]
    by_pairs = archive.shares(9)  # there are eight batches
    assert (by_pairs[::2] == by_pairs[1::2]).all()
    assert np.ptp(np.bincount(by_pairs)) <= 2


def test_mirror_images_stand_side_by_side_in_their_group():
    groups = np.array([0, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4])
    assert twins(groups).tolist() == [0, 2, 1, 4, 3, 6, 5, 7, 9, 8, 10]


def test_weights_are_those_of_the_mixture():
    """By SciPy's densities; draws from one Gaussian in two batches count as one batch."""
    rng = np.random.default_rng(0)
    first, second, third, q = (some_gaussian(rng, 3) for _ in range(4))
    archive = Archive.empty(3)
    batches = [(first, 5), (second, 2), (third, 4), (third, 3)]
    for source, count in batches:
        archive = archive.add(source, source.sample(count, rng), np.zeros(count))
    assert archive.proposals == ((first, 5), (second, 2), (third, 7))
    archive.values[2] = -np.inf
    view = archive.view(q)
    every = (first, second, third, q)
    density = {p: multivariate_normal(p.mean, p.covariance).pdf(archive.theta) for p in every}
    raw = density[q] / sum(count * density[source] for source, count in batches)
    raw[2] = 0.0
    np.testing.assert_allclose(view.weights, raw / raw.sum(), rtol=1e-10)
    np.testing.assert_allclose(view.log_q, np.log(density[q]), rtol=1e-10)
    assert view.size == pytest.approx(raw.sum() ** 2 / (raw @ raw))


def test_a_view_of_nothing_finite_has_no_size():
    q = Gaussian(variance=1.0, dim=2)
    archive = Archive.empty(2).add(q, q.sample(4, 0), np.full(4, np.nan))
    assert archive.view(q).size == 0.0


# --- surfaces -----------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 4), st.sampled_from([Full, Diagonal]))
def test_surface_of_a_gaussian(seed, d, family):
    """The bound is 3 − KL; g and G are the whitened gradients of the KL divergence; nothing is uncertain."""
    rng = np.random.default_rng(seed)
    q, target = some_gaussian(rng, d, family), some_gaussian(rng, d)
    theta = q.sample(4 * Full(d).num_monomials, rng)
    surface = fit_surface(equal_view(q, theta), Full(d), log_density(target)(theta), 0.01)
    assume(surface is not None)  # a mean of h that is far from all its values is not believed
    L, P, shift = q.family.dense_factor(q.factor), target.precision, target.mean - q.mean
    inverse = np.linalg.inv(L)
    log_det = np.linalg.slogdet(P)[1] - np.linalg.slogdet(q.precision)[1]
    kl = 0.5 * (np.trace(P @ q.covariance) - d + shift @ P @ shift - log_det)
    G = 0.5 * (inverse @ P @ inverse.T - np.eye(d))
    g = inverse @ P @ shift
    tolerance = {"rtol": 1e-7, "atol": 1e-7 * (1.0 + kl)}
    np.testing.assert_allclose(surface.lower_bound, 3.0 - kl, **tolerance)
    np.testing.assert_allclose(surface.g, g, **tolerance)
    np.testing.assert_allclose(surface.G, G, **tolerance)
    mine = G if family is Full else np.diag(np.diag(G))
    gap = 0.5 * g @ np.linalg.solve(np.eye(d) + 2.0 * G, g) + np.square(mine).sum()
    assert surface.gap == pytest.approx(gap, rel=1e-6, abs=1e-8)
    assert surface.noise < 1e-10 * (1.0 + kl) ** 2


@pytest.mark.parametrize("family", [Full, Diagonal])
def test_noise_is_that_of_least_squares(family):
    """Coefficients by `lstsq`, residuals by leaving a draw out, moments of the gap for errors like these."""
    rng, d = np.random.default_rng(1), 3
    q = Gaussian.from_factor(np.zeros(d), family(d).factor(variance=np.array(1.0)), family(d))
    theta = q.sample(24, rng)  # too few for cubic terms
    values = -0.6 * np.square(theta).sum(axis=1) + 0.3 * theta[:, 0] ** 3 + 0.2 * theta[:, 1]
    view = equal_view(q, theta)
    assert view.size == pytest.approx(24.0)
    surface = fit_surface(view, Full(d), values, math.inf)
    Z, h = monomials(Full(d), theta), values - view.log_q
    c = np.linalg.lstsq(Z, h)[0]
    left_out = np.empty(24)
    for k in range(24):
        others = np.delete(np.arange(24), k)
        left_out[k] = h[k] - Z[k] @ np.linalg.lstsq(Z[others], h[others])[0]
    errors = np.linalg.pinv(Z) * left_out
    C = errors @ errors.T
    np.testing.assert_allclose(surface.lower_bound, c[0])
    np.testing.assert_allclose(surface.lower_bound_se, math.sqrt(C[0, 0]))
    np.testing.assert_allclose(surface.g, c[1:4])
    np.testing.assert_allclose(surface.residual**2, np.mean(left_out**2))
    i, j = np.triu_indices(d)
    M = np.zeros_like(C)
    M[1:4, 1:4] = 0.5 * np.linalg.inv(np.eye(d) + 2.0 * surface.G)
    M[4:, 4:] = np.diag(np.where(i == j, 1.0, 0.5 if family is Full else 0.0))
    np.testing.assert_allclose(surface.gap, c @ M @ c)
    # mean and variance of xᵀMx for x ~ N(0, C)
    np.testing.assert_allclose(surface.noise, np.trace(M @ C))
    np.testing.assert_allclose(surface.noise_sd, math.sqrt(2.0 * np.trace(M @ C @ M @ C)))


def test_draws_that_do_not_determine_a_surface():
    q = Gaussian(variance=1.0, dim=2)
    on_a_line = np.linspace(-1.0, 1.0, 12)[:, None] * np.ones(2)
    assert fit_surface(equal_view(q, on_a_line), Full(2), np.zeros(12), 0.01) is None
    assert fit_surface(equal_view(q, q.sample(6, 0)), Full(2), np.zeros(6), 0.01) is None


# --- kriging ------------------------------------------------------------------------------------------


def test_polynomials_are_those_that_there_is_room_for():
    """Of four numbers: 15 monomials; then 20 cubic polynomials, or 16 of at most two numbers; then 34, or 22."""
    eps = np.random.default_rng(5).standard_normal((80, 4))
    for room, expected in ((30, []), (31, [16]), (34, [16]), (35, [20]), (57, [20, 22])):
        columns = [hermite_polynomials(eps, *term) for term in higher_degrees(Full(4), room)]
        assert [each.shape for each in columns] == [(80, n) for n in expected]


def test_columns_that_are_added_give_the_regression_on_all_of_them():
    rng = np.random.default_rng(3)
    eps, root = rng.standard_normal((300, 3)), np.sqrt(rng.uniform(0.5, 1.5, 300) / 300.0)
    h = np.sin(eps).sum(axis=1) + 0.1 * rng.standard_normal(300)
    X, cubic = root[:, None] * monomials(Full(3), eps), root[:, None] * hermite_polynomials(eps, 3, 3)
    q = Gaussian(np.zeros(3), 1.0)
    fit = Regression.of(X, root * h).extended(cubic).fit(q, Full(3))
    ours = np.concatenate(
        [[fit.intercept], fit.g, -fit.G[Full(3).pairs] * np.where(np.equal(*Full(3).pairs), 1, 2)]
    )
    wanted = np.linalg.lstsq(np.hstack([X, cubic]), root * h)[0]
    np.testing.assert_allclose(ours, wanted[: X.shape[1]], atol=1e-12)
    leave_one_out = [
        root[i] * h[i]
        - np.append(X[i], cubic[i])
        @ np.linalg.lstsq(np.delete(np.hstack([X, cubic]), i, axis=0), np.delete(root * h, i))[0]
        for i in range(300)
    ]
    np.testing.assert_allclose(fit.variance, np.square(leave_one_out).sum(), rtol=1e-9)
    assert Regression.of(X, root * h).extended(X[:, :2]) is None


def test_kernel_is_the_sum_over_degrees():
    """ρ^α He_α(x) He_α(y) / α! for 3 ≤ |α| ≤ 20, written out in one and two dimensions."""
    x, rho = np.random.default_rng(2).standard_normal((6, 2)), np.array([0.1, 0.3])
    tables = [np.polynomial.hermite_e.hermevander(x[:, k], 20) for k in range(2)]
    scale = np.array([1.0 / math.factorial(n) for n in range(21)])
    one, two = (
        t[:, None, :] * t[None] * scale * r ** np.arange(21) for t, r in zip(tables, rho, strict=True)
    )
    total = np.add.outer(np.arange(21), np.arange(21))
    keep = ((total >= 3) & (total <= 20)).astype(float)
    np.testing.assert_allclose(kriging.kernel(x, rho), np.einsum("xym,xyn,mn->xy", one, two, keep), atol=1e-8)
    np.testing.assert_allclose(kriging.kernel(x[:, :1], rho[:1]), one[..., 3:].sum(axis=2), atol=1e-12)


def kriged(noise, seed=3, N=30):
    """Draws, regressors, values and weights of a cubic with noise."""
    rng = np.random.default_rng(seed)
    eps = rng.standard_normal((N, 2))
    Z = monomials(Full(2), eps)
    cubic = hermite_polynomials(eps, 3, 2) @ rng.standard_normal(4)
    weights = rng.uniform(0.2, 1.0, N)
    h = Z @ rng.standard_normal(6) + cubic + noise * rng.standard_normal(N) / np.sqrt(weights)
    return eps, Z, h, weights / weights.sum()


def test_the_largest_terms_give_what_the_kernel_gives():
    """In two dimensions 600 terms are all of the kernel but for rounding, and Henderson's equations are an identity."""
    eps, Z, h, weights = kriged(0.1, N=200)
    rho = np.array([0.1, 0.2])
    for ratio in (1e2, 1e4):
        dense, terms = (
            kernel.of(eps, rho).solved(Z, h, 1.0 / (200 * weights), ratio)
            for kernel in (kriging.Dense, Terms)
        )
        for one, other in zip(dense, terms, strict=True):
            np.testing.assert_allclose(other, one, atol=1e-6 * np.abs(one).max())


def test_the_terms_are_the_largest_and_leave_the_rest():
    """For six directions of one size, 600 terms are all 56 of degree 3, 126 of degree 4, 252 of degree 5, 166 more."""
    x, rho = np.random.default_rng(4).standard_normal((50, 6)), np.full(6, 0.1)
    terms = Terms.of(x, rho)
    K = kriging.kernel(x, rho)
    share = 50 / K.trace()
    cubic = sum(
        np.prod(
            [np.polynomial.hermite_e.hermeval(x[:, k], np.eye(4)[n]) for k, n in enumerate(alpha)], axis=0
        )
        ** 2
        / np.prod([math.factorial(n) for n in alpha])
        for alpha in itertools.product(range(4), repeat=6)
        if sum(alpha) == 3
    )
    np.testing.assert_allclose(np.square(terms.columns[:56]).sum(axis=0), share * 1e-3 * cubic, rtol=1e-9)
    assert terms.columns.shape == (600, 50)
    left = np.trace(share * K - terms.columns.T @ terms.columns) / 50
    np.testing.assert_allclose(terms.left, left, rtol=1e-9)
    steep = Terms.of(x, np.array([0.001, 0.4, 0.001, 0.001, 0.001, 0.001]))
    assert steep.left < 1e-6


def covariance(eps, weights, ratio, rho=constants.RHO):
    K = kriging.kernel(eps, np.broadcast_to(rho, eps.shape[1]))
    return ratio * K * len(K) / np.trace(K) + np.diag(1.0 / (len(K) * weights))


def restricted(Z, h, V):
    """The restricted log-likelihood: of the contrasts that know nothing of Z, the scale profiled out."""
    N, p = Z.shape
    A = np.linalg.svd(Z)[0][:, p:]
    S, y = A.T @ V @ A, A.T @ h
    return -0.5 * (np.linalg.slogdet(S)[1] + (N - p) * math.log(y @ np.linalg.solve(S, y)))


@pytest.mark.parametrize(("noise", "expected"), [(1e-3, 1e4), (0.05, 1e3), (1.0, 1e2)])
def test_kriging_is_generalised_least_squares(noise, expected):
    """At the ratio that the restricted likelihood wants; each residual is that of a fit without its draw."""
    eps, Z, h, weights = kriged(noise)
    rises = [
        restricted(Z, h, covariance(eps, weights, 1.001 * ratio))
        >= restricted(Z, h, covariance(eps, weights, ratio))
        for ratio in kriging.RATIOS
    ]
    ratio = kriging.RATIOS[rises.index(True) if any(rises) else -1]
    assert ratio == expected
    fit = kriging.krige(eps, Z, h, weights)
    V = covariance(eps, weights, ratio)
    influence = np.linalg.solve(Z.T @ np.linalg.solve(V, Z), np.linalg.solve(V, Z).T)
    np.testing.assert_allclose(fit.influence, influence, atol=1e-8)
    np.testing.assert_allclose(fit.coefficients, influence @ h, atol=1e-8)
    inverse = np.linalg.inv(V)
    share = 1.0 - np.einsum("np,pn->n", inverse @ Z, influence) / inverse.diagonal()
    unclamped = np.flatnonzero(share > 0.05)  # others would be divided by next to nothing
    assert len(unclamped) > 0.7 * len(h)
    for k in unclamped:
        o = np.delete(np.arange(len(h)), k)
        solve = np.linalg.inv(V[np.ix_(o, o)])
        beta = np.linalg.solve(Z[o].T @ solve @ Z[o], Z[o].T @ solve @ h[o])
        predicted = Z[k] @ beta + V[k, o] @ solve @ (h[o] - Z[o] @ beta)
        assert fit.residuals[k] == pytest.approx(h[k] - predicted, rel=1e-5, abs=1e-8)


def test_kriging_of_draws_that_determine_nothing():
    eps, Z, h, weights = kriged(0.1)
    Z[:, 2] = Z[:, 1]
    assert kriging.krige(eps, Z, h, weights) is None


def test_kriging_certifies_a_smooth_function_sooner():
    """A cubic in five dimensions from two draws a coefficient: less noise, a surface nearer the truth."""
    d, q = 5, Gaussian(variance=1.0, dim=5)
    rng = np.random.default_rng(4)
    theta = q.sample(42, rng)
    values = q.log_density(theta) + 0.02 * (hermite_polynomials(theta, 3, 3) @ rng.standard_normal(35))
    view = equal_view(q, theta)  # q is the optimum: g = 0 and G = 0
    plain, smooth = (fit_surface(view, Full(d), values, tol) for tol in (math.inf, 1e-6))
    assert smooth.noise < plain.noise
    assert smooth.gap < plain.gap


def test_kriging_along_the_axes_of_a_metric():
    """It is kriging of turned draws; the stated likelihoods differ by what the definition says."""
    eps, Z, h, weights = kriged(1e-3)
    angle, rho = 0.7, np.array([0.05, 0.2])
    axes = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    plain, turned = (kriging.krige(eps, Z, h, weights, m) for m in (None, (axes * rho) @ axes.T))
    V = covariance(eps @ axes, weights, kriging.RATIOS[0], rho)
    expected = np.linalg.solve(Z.T @ np.linalg.solve(V, Z), Z.T @ np.linalg.solve(V, h))
    np.testing.assert_allclose(turned.coefficients, expected, atol=1e-7)
    difference = restricted(Z, h, V) - restricted(Z, h, covariance(eps, weights, kriging.RATIOS[0]))
    assert turned.log_likelihood - plain.log_likelihood == pytest.approx(difference, abs=1e-6)


def test_adapted_metric_is_that_of_the_cubic_tensor():
    eps, Z, h, weights = kriged(1e-3)
    metric = np.array([[0.1, 0.03], [0.03, 0.2]])
    dual = kriging.krige(eps, Z, h, weights, metric).dual
    rho, axes = np.linalg.eigh(metric)
    x = eps @ (axes * np.sqrt(rho))
    T = np.einsum("n,ni,nj,nk->ijk", dual, x, x, x)
    shares, U = np.linalg.eigh(np.einsum("ijk,ljk->il", T, T))
    cube_root = (U * np.cbrt(np.maximum(shares / shares.mean(), constants.FLATTEST))) @ U.T
    expected = (axes * np.sqrt(rho)) @ cube_root @ (axes * np.sqrt(rho)).T
    np.testing.assert_allclose(kriging.adapted(metric, eps, dual), expected, rtol=1e-8)


@pytest.mark.parametrize("bends", [True, False])
def test_kriging_learns_the_direction_that_bends(bends):
    """Where there is one; of noise alone it learns nothing that the likelihood would pay for."""
    d, rng = 6, np.random.default_rng(7)
    eps = rng.standard_normal((200, d))
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    t = eps @ direction
    Z, weights = monomials(Full(d), eps), np.full(200, 1.0 / 200)
    h = 0.2 * (t**3 - 3.0 * t) + 0.05 * (t**4 - 6.0 * t**2 + 3.0) if bends else rng.standard_normal(200)
    plain = kriging.krige(eps, Z, h, weights)
    best = kriging.krige_adapted(eps, Z, h, weights, plain)
    if not bends:
        assert best is plain
        return
    assert np.sum(best.coefficients**2) < 0.2 * np.sum(plain.coefficients**2)  # all are 0
    metric = kriging.adapted(constants.RHO * np.eye(d), eps, plain.dual)
    assert abs(np.linalg.eigh(metric)[1][:, -1] @ direction) > 0.95


def bending(seed, count=200, d=6):
    """A Gaussian, draws from it, and a log density that bends in one direction of its frame."""
    rng = np.random.default_rng(seed)
    q = some_gaussian(rng, d)
    theta, direction = q.sample(count, rng), rng.standard_normal(d)
    t = q.family.to_frame(q.factor, theta - q.mean) @ direction / np.linalg.norm(direction)
    cubic, fourth = t**3 - 3.0 * t, t**4 - 6.0 * t**2 + 3.0
    return q, theta, q.log_density(theta) + 0.2 * cubic + 0.05 * fourth


@pytest.mark.parametrize(("tol", "dense"), [(math.inf, 0), (1e-6, 1200), (1e-6, 0)])
def test_a_surface_that_is_followed_is_the_same_at_the_same_gaussian(monkeypatch, tol, dense):
    """By polynomials, by all pairs of draws, and by the largest terms of their kernel."""
    monkeypatch.setattr(constants, "DENSE_DRAWS", dense)
    q, theta, values = bending(3)
    smooth = math.isfinite(tol)
    surface = fit_surface(equal_view(q, theta), Full(6), values, tol, polynomials=not smooth)
    assert bool(surface.model.ratio) == smooth != bool(surface.model.polynomials)
    followed = follow_values(equal_view(q, theta), Full(6), values, surface)
    for name in ("lower_bound", "lower_bound_se", "g", "G", "gap", "size"):
        np.testing.assert_allclose(getattr(followed, name), getattr(surface, name), rtol=1e-6, atol=1e-9)


def test_draws_that_determine_no_surface_to_follow():
    q, theta, values = bending(3)
    surface = fit_surface(equal_view(q, theta), Full(6), values, 1e-6)
    assert follow_values(equal_view(q, theta[:28]), Full(6), values[:28], surface) is None
    on_a_line = q.mean + np.linspace(-1.0, 1.0, 200)[:, None] * q.std
    assert follow_values(equal_view(q, on_a_line), Full(6), q.log_density(on_a_line), surface) is None


def test_what_kriging_has_learnt_serves_a_gaussian_nearby():
    """In units of the parameters a metric is the same in all frames."""
    q, theta, values = bending(3)
    learnt = fit_surface(equal_view(q, theta), Full(6), values, 1e-6, polynomials=False)
    nearby = Gaussian(q.mean + 0.2 * q.std, variance=1.2 * q.covariance)
    view = Archive.empty(6).add(q, theta, values).view(nearby)
    surface = fit_surface(view, Full(6), values, 1e-6, polynomials=False, near=learnt)
    inverse = np.linalg.inv(np.linalg.cholesky(nearby.precision))
    wanted = kriging.krige(
        view.eps,
        monomials(Full(6), view.eps),
        values - view.log_q,
        view.weights,
        inverse @ learnt.model.metric @ inverse.T,
    )
    np.testing.assert_allclose(surface.lower_bound, wanted.coefficients[0], atol=1e-6)
    np.testing.assert_allclose(surface.g, wanted.coefficients[1:7], atol=1e-6)


def test_what_did_not_help_is_tried_again_with_more_draws(monkeypatch):
    """Where polynomials did better than kriging, or no direction bends, it is not asked again at once."""
    tried = []
    monkeypatch.setattr(surface_module, "krige", lambda *a: tried.append(len(a[0])))
    q, theta, values = bending(3, 320)
    near = None
    for count in (200, 240, 280, 320):
        near = fit_surface(equal_view(q, theta[:count]), Full(6), values[:count], 1e-6, near=near)
    assert tried == [200, 320]


# --- polishing ----------------------------------------------------------------------------------------


def log_gamma_surface(q, shape):
    """The exact surface of ``shape θ − exp θ``: what a leap needs, in closed form."""
    m, s = float(q.mean[0]), float(q.std[0])
    E = math.exp(m + 0.5 * s * s)
    g, G = s * (shape - E), 0.5 * (s * s * E - 1.0)
    bound = shape * m - E + 0.5 * math.log(2.0 * math.pi * math.e * s * s)
    gap = 0.5 * g * g / (1.0 + 2.0 * G) + G * G
    return Surface(
        q=q, lower_bound=bound, lower_bound_se=0.0, g=np.array([g]), G=np.array([[G]]), num_draws=100, size=100.0,
        residual=1.0, rest=1.0, r2=0.9, gap=gap, noise=0.0, noise_sd=0.0,
    )  # fmt: skip


def test_polishing_ends_what_leaps_never_would():
    """Full leaps swing further and further: linearised, with E = shape, λ² + λ/(2E) = 1/(2E), so that λ = −1.6."""
    shape, q = 0.5, Gaussian(np.array([-1.6]), variance=1.8)
    start = log_gamma_surface(q, shape)
    plain = start
    for _ in range(12):
        plain = log_gamma_surface(step(plain, 1.0), shape)
    polished, arrived, gained = polish(start, lambda q: log_gamma_surface(q, shape), 1e-10, 0.01)
    assert arrived
    assert polished.gap < 1e-10 < 1e-5 < plain.gap
    assert gained == pytest.approx(polished.lower_bound - start.lower_bound)
    variance = float(polished.q.std[0]) ** 2
    assert variance == pytest.approx(1.0 / shape, rel=1e-4)
    assert float(polished.q.mean[0]) + 0.5 * variance == pytest.approx(math.log(shape), abs=1e-4)


def test_polishing_looks_twice_at_very_many_draws():
    looks = []

    def look(q):
        looks.append(q)
        return replace(log_gamma_surface(q, 5.0), num_draws=50_000)

    start = replace(log_gamma_surface(Gaussian(np.array([1.5]), variance=0.3), 5.0), num_draws=50_000)
    polish(start, look, 0.0, 0.01)
    assert len(looks) == 2


def test_polishing_keeps_what_is_best():
    """Where nothing can be seen, or too little, it stays."""
    start = log_gamma_surface(Gaussian(np.array([1.5]), variance=0.3), 5.0)
    assert polish(start, lambda q: None, 1e-10, 0.01).surface is start
    lost = polish(start, lambda q: replace(log_gamma_surface(q, 5.0), size=40.0), 1e-10, 0.01)
    assert lost.surface is start
    lower = polish(start, lambda q: replace(start, q=q, lower_bound=start.lower_bound - 1.0), 1e-10, 0.01)
    assert lower.surface is start


# --- leaps --------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 4), st.floats(1e-3, 2.0))
def test_leap_to_a_gaussian(seed, d, radius):
    """The whole step is the target itself; a shorter one has the divergence and the gain that it states."""
    rng = np.random.default_rng(seed)
    q, target = Gaussian(rng.standard_normal(d), variance=np.eye(d)), some_gaussian(rng, d)
    theta, f = q.sample(4 * Full(d).num_monomials, rng), log_density(target)
    surface = fit_surface(equal_view(q, theta), Full(d), f(theta), math.inf)
    assume(surface is not None)  # the draws may lie so close together that they determine none
    whole = propose(surface, math.inf, extrapolate=False)
    assert whole.beta == 1.0
    np.testing.assert_allclose(whole.q.mean, target.mean, atol=1e-6 * (1.0 + whole.kl))
    np.testing.assert_allclose(whole.q.precision, target.precision, rtol=1e-6, atol=1e-6 * (1.0 + whole.kl))
    short = propose(surface, radius, extrapolate=False)
    assert short.kl <= radius

    def divergence(a, b):
        shift = a.mean - b.mean
        log_det = np.linalg.slogdet(a.precision)[1] - np.linalg.slogdet(b.precision)[1]
        return 0.5 * (np.trace(b.precision @ a.covariance) - d + shift @ b.precision @ shift + log_det)

    assert short.kl == pytest.approx(divergence(short.q, q), rel=1e-6, abs=1e-9)
    gain = divergence(q, target) - divergence(short.q, target)
    assert short.gain == pytest.approx(gain, rel=1e-5, abs=1e-7 * (1.0 + divergence(q, target)))
    assert short.gain <= whole.gain + 1e-7 * (1.0 + whole.gain)
