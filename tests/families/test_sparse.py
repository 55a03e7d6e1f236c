"""Sparse precisions: every operation is its dense formula; patterns are what their words say."""

import numpy as np
import pytest
from numpy.linalg import inv, slogdet, solve
from scipy.sparse import coo_array, random_array

from common import installed
from mgvbp import Gaussian, InvalidInputError, NotPositiveDefiniteError, SparsePrecision

PATTERNS = {
    "none": SparsePrecision.banded(7, 0),
    "band": SparsePrecision.banded(12, 2),
    "arrow": SparsePrecision.arrow(30, 3, order=1),
    "blocks": SparsePrecision.block_arrow([2, 3, 1, 2], 2),
    "random": SparsePrecision(random_array((40, 40), density=0.06, rng=np.random.default_rng(3))),
    "dense": SparsePrecision(np.ones((9, 9))),
}


@pytest.fixture(params=PATTERNS, ids=str)
def family(request):
    return PATTERNS[request.param]


def factor_of(family, seed=0):
    """A random factor on the pattern."""
    values = 0.4 * np.random.default_rng(seed).standard_normal(family.shape)
    return family.shift(values - family.shift(0.0 * values, 1.0) * values, 2.0)


def test_vectors_and_matrices_are_their_dense_formulas(family):
    L, v = factor_of(family), np.random.default_rng(1).standard_normal((4, family.dim))
    R = family.dense_factor(L)
    P = R @ R.T
    close = {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(family.times(L, v), v @ R.T, **close)
    np.testing.assert_allclose(family.to_frame(L, v), v @ R, **close)
    np.testing.assert_allclose(family.solve(L, v), solve(R, v.T).T, **close)
    np.testing.assert_allclose(family.from_frame(L, v), solve(R.T, v.T).T, **close)
    np.testing.assert_allclose(family.solve(L, v[0]), solve(R, v[0]), **close)
    np.testing.assert_allclose(family.precision(L), P, **close)
    np.testing.assert_allclose(family.covariance(L), inv(P), **close)
    np.testing.assert_allclose(family.variances(L), inv(P).diagonal(), **close)
    np.testing.assert_allclose(2.0 * np.log(family.diagonal(L)).sum(), slogdet(P)[1], **close)
    np.testing.assert_allclose(
        family.precision_blocks(L, np.array([[0, 2], [3, 1]]))[1], P[[3, 1]][:, [3, 1]], **close
    )


def test_selected_inversion_gives_all_covariances_on_the_pattern(family):
    L = factor_of(family)
    np.testing.assert_allclose(family.covariances(L), family.from_dense(inv(family.precision(L))), rtol=1e-9)


def test_the_factor_comes_back_from_precision_and_from_covariance(family):
    L = factor_of(family)
    P = family.precision(L)
    np.testing.assert_allclose(family.factor(precision=P), L, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(family.factor(variance=inv(P)), L, rtol=1e-6, atol=1e-8)
    with pytest.raises(NotPositiveDefiniteError):
        family.cholesky(-family.entries(L))


def test_the_precision_is_zero_off_the_closed_pattern():
    family = PATTERNS["random"]
    i, j = family.edges
    allowed = np.eye(40, dtype=bool)
    allowed[i, j] = allowed[j, i] = True
    order = family.order
    for k in range(40):  # elimination connects the later neighbours of each entry
        later = [order[m] for m in range(k + 1, 40) if allowed[order[k], order[m]]]
        allowed[np.ix_(later, later)] = True
    assert np.array_equal(family.precision(factor_of(family)) != 0.0, allowed)


def test_curvature_of_a_quadratic_is_exact(family):
    rng = np.random.default_rng(2)
    A = np.zeros((family.dim, family.dim))
    A[family.edges] = rng.standard_normal(len(family.edges[0]))
    A += A.T + np.diag(rng.standard_normal(family.dim))
    delta = rng.standard_normal((3 * family.neighbours.hubs[1] + 3, family.dim))
    np.testing.assert_allclose(family.curvature(delta, delta @ A), family.from_dense(A), rtol=1e-7, atol=1e-8)
    assert (
        family.curvature(delta[: family.neighbours.hubs[1] - 1], delta[: family.neighbours.hubs[1] - 1] @ A)
        is None
    )


def test_an_arrow_needs_few_draws_however_many_entries_depend_on_its_hubs():
    assert SparsePrecision.arrow(5000, 3, order=1).neighbours.hubs[1] == 6


def test_the_whitened_gradient_is_that_of_the_bound(family):
    """For a Gaussian target the gradient by L is known, and its whitened square is twice the KL divergence nearby."""
    rng = np.random.default_rng(4)
    L = factor_of(family)
    change = 1e-4 * rng.standard_normal(family.shape)
    P, Q = family.precision(L), family.precision(L + change)
    kl = 0.5 * (np.trace(P @ inv(Q)) - family.dim + slogdet(Q)[1] - slogdet(P)[1])
    white = family.whitened(L, change)
    assert 0.5 * white @ white == pytest.approx(kl, rel=0.02)
    # with δ at ±√d times the columns of Σ^½ averages over draws are expectations; the target has precision Q
    R = family.dense_factor(L)
    delta = np.sqrt(family.dim) * inv(R)
    v = family.solve(L, delta @ (P - Q))
    np.testing.assert_allclose(family.gradient(L, delta, v)[0], white, rtol=0.05, atol=1e-6)
    moved = family.moved(L, family.gradient(L, delta, v)[0], 1.0)
    np.testing.assert_allclose(moved, L + change, atol=1e-6)


def test_patterns_by_words():
    assert PATTERNS["band"].precision(factor_of(PATTERNS["band"]))[0].nonzero()[0].max() == 2
    arrow = PATTERNS["arrow"].edges
    assert {(i, j) for i, j in zip(*arrow, strict=True) if i < 27} == {(k + 1, k) for k in range(26)}
    assert len(arrow[0]) == 26 + 27 * 3 + 3
    blocks = set(zip(*PATTERNS["blocks"].edges, strict=True))
    assert (1, 0) in blocks
    assert (2, 1) not in blocks
    assert all((9, k) in blocks for k in range(9))
    same = SparsePrecision(coo_array((np.ones(2), ([0, 2], [1, 1])), shape=(3, 3)))
    assert list(zip(*same.edges, strict=True)) == [(1, 0), (2, 1)]


def test_named_parameters_that_are_independent_given_the_rest():
    labels = ["mu", "a[0]", "a[1]", "a[2]", "b[0,0]", "b[0,1]", "b[1,0]", "b[1,1]", "b[2,0]", "b[2,1]"]
    pairs = set(zip(*SparsePrecision.local("a", "b").resolved(labels).edges, strict=True))
    assert (4, 1) in pairs
    assert (5, 4) in pairs
    assert (2, 1) not in pairs
    assert (6, 1) not in pairs
    chain = set(zip(*SparsePrecision.local("a", order=1).resolved(labels[:4]).edges, strict=True))
    assert chain == {(1, 0), (2, 0), (3, 0), (2, 1), (3, 2)}
    with pytest.raises(InvalidInputError, match="no vector called 'c'"):
        SparsePrecision.local("c").resolved(labels)


def test_the_pattern_of_a_jax_function():
    jnp = installed("jax.numpy")

    def log_density(x):
        return -(jnp.diff(x[:-1]) ** 2).sum() * jnp.exp(x[-1]) - jnp.cosh(x).sum()

    found = SparsePrecision.of_hessian(log_density, np.zeros(9))
    expected = SparsePrecision.arrow(9, 1, order=1)
    assert np.array_equal(found.edges, expected.edges)


def test_graphs_and_bad_patterns():
    class Graph:
        nodes = ("a", "b", "c")
        edges = (("a", "c"), ("b", "b"))

    assert list(zip(*SparsePrecision(Graph()).edges, strict=True)) == [(2, 0)]
    for wrong in (np.ones((2, 3)), np.ones(4), "band"):
        with pytest.raises((InvalidInputError, TypeError)):
            SparsePrecision(wrong)


def test_a_large_gaussian_has_moments_but_no_dense_matrices():
    family = SparsePrecision.arrow(30_000, 2, order=1)
    q = Gaussian.from_factor(np.zeros(family.dim), family.factor(precision=np.full(family.dim, 4.0)), family)
    assert np.allclose(q.std, 0.5)
    assert q.sample(2, 0).shape == (2, 30_000)
    np.testing.assert_allclose(q.covariance_of([0, 7]), 0.25 * np.eye(2))
    for name in ("covariance", "precision"):
        with pytest.raises(InvalidInputError, match="too large"):
            getattr(q, name)


def test_hubs_and_what_is_left_given_them():
    family = SparsePrecision.block_arrow([2] * 20, hubs=3, order=1)
    np.testing.assert_array_equal(family.hubs, [40, 41, 42])
    assert not len(SparsePrecision.banded(30, 2).hubs)
    given = np.array([3, 40, 42])
    kept = np.setdiff1d(np.arange(43), given)
    dense = np.zeros((43, 43))
    dense[family.edges] = 1.0
    smaller = np.zeros((40, 40))
    smaller[family.without(given).edges] = 1.0
    np.testing.assert_array_equal(smaller, dense[np.ix_(kept, kept)])
