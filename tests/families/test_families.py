"""Families: every operation is its dense formula, one block = full, d blocks = diagonal, and P stays SPD."""

from collections import Counter
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.linalg import inv, norm
from scipy.linalg import expm

from common import METHODS, case, random_spd, structure
from mgvbp import (
    MGVB,
    MGVBP,
    QBVI,
    BlockDiagonal,
    Diagonal,
    Full,
    Gaussian,
    Geodesic,
    Gradient,
    MgvbpError,
    NotPositiveDefiniteError,
    Regression,
    Score,
)
from mgvbp.estimators import Estimate
from mgvbp.estimators.draws import SAMPLERS
from mgvbp.families import parts
from mgvbp.families.stack import Stack
from mgvbp.methods.optimizer import Frame


def stacked(blocks):
    """A block family that works on all blocks of a size together, however few they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "STACK_FROM", 1)
        return BlockDiagonal(blocks)


INTERLEAVED = [[3, 0], [5, 1, 4], [2]]
# two stacks and two blocks of their own (one small, one beyond the largest of a stack), in any order
MIXED = np.split(
    np.random.default_rng(15).permutation(16 * 2 + 3 + 17 + 33), np.cumsum([2] * 16 + [3] + [1] * 17)
)
FAMILIES = [
    Full(1),
    Full(6),
    Full(200),  # above the size at which the full family works by panels, and not a multiple of it
    Diagonal(1),
    Diagonal(6),
    BlockDiagonal([1]),
    BlockDiagonal([2, 3, 1]),
    BlockDiagonal(INTERLEAVED),
    BlockDiagonal([2] * 16),
    BlockDiagonal(MIXED),
    stacked([2, 2, 2]),
    stacked(INTERLEAVED),
]
SIX = [family for family in FAMILIES if family.dim == 6]
SAME = {  # families of six parameters that are the same set of matrices
    "one block is full": [Full(6), BlockDiagonal([6]), BlockDiagonal([list(range(6))]), stacked([6])],
    "blocks of one are diagonal": [Diagonal(6), BlockDiagonal([1] * 6), stacked([1] * 6)],
    "a stack is its blocks": [BlockDiagonal(INTERLEAVED), stacked(INTERLEAVED)],
}
RTOL = 1e-12  # inputs have condition numbers of 10: round-off only


# --- dense matrices and family arrays ------------------------------------------------------------------


def dense(family, A):
    """The (d, d) matrix of a family array."""
    return family.dense_factor(A)


def order_of(family):
    """The parameters block by block: the order in which factors are lower triangular."""
    return np.concatenate(getattr(family, "blocks", [np.arange(family.dim)]))


def lower(family):
    """1 at the entries of a lower-triangular factor, else 0."""
    order, mask = order_of(family), np.zeros((family.dim, family.dim))
    mask[np.ix_(order, order)] = np.tri(family.dim)
    return mask * structure(family)


def symmetric_array(family, A):
    """The family array of the part of A that is in the structure."""
    i, j = family.pairs
    return family.from_pairs(np.where(i == j, 1.0, 2.0) * A[i, j])


def dense_cholesky(x, F):
    K, at = np.zeros_like(F), np.ix_(x.order, x.order)
    K[at] = np.linalg.cholesky(F[at])
    return K


def dense_cholesky_reversed(x, F):
    """W, lower, with Wᵀ W = F."""
    W, at = np.zeros_like(F), np.ix_(x.order, x.order)
    W[at] = np.linalg.cholesky(F[at][::-1, ::-1])[::-1, ::-1].T
    return W


def dense_retraction(A, beta):
    return np.eye(len(A)) + beta * A + beta**2 / 2 * A @ A


def arguments(family, seed=0):
    """Random arguments for every operation: the same as family arrays (a) and as dense matrices (x)."""
    a, x = _arguments(family, seed)
    return SimpleNamespace(**{name: array.copy(order="K") for name, array in a.items()}), SimpleNamespace(**x)


@cache
def _arguments(family, seed):
    rng = np.random.default_rng(seed)
    d = family.dim
    shared = {
        "v": rng.normal(size=d),
        "V": rng.normal(size=(7, d)),
        "weights": rng.normal(size=7),
        "c": rng.normal(size=d),
        "variance": random_spd(rng, d),
        "block": rng.permutation(d)[: (d + 1) // 2],
        "blocks": np.stack([rng.permutation(d)[: (d + 1) // 2] for _ in range(3)]),
        "order": order_of(family),
        "structure": structure(family),
    }
    P, Q = random_spd(rng, d), random_spd(rng, d)
    H = rng.normal(size=(d, d)) / d
    a = {
        "L": family.factor(precision=P),
        "R": family.factor(precision=Q),
        "A": symmetric_array(family, H + H.T),
    }
    x = {name: dense(family, array) for name, array in a.items()}
    F = {sign: dense_retraction(x["A"], sign * 0.7) for sign in (1, -1)}
    x |= {"F": F[1], "K": dense_cholesky(SimpleNamespace(**shared), F[1])}
    x |= {"W": dense_cholesky_reversed(SimpleNamespace(**shared), F[-1])}
    a |= {"F": symmetric_array(family, F[1])}
    a |= {"K": family.factor(precision=F[1]), "W": family.cholesky_reversed(symmetric_array(family, F[-1]))}
    return shared | a, shared | x


# --- the table of operations ---------------------------------------------------------------------------

# name: (the operation on family arrays, its dense formula, which part of the result is defined)
# Vectors are rows, so that the formulas of the docstrings appear transposed.
OPERATIONS = {
    "from_frame": (lambda f, a: f.from_frame(a.L, a.V), lambda x: x.V @ inv(x.L), "plain"),
    "from_frame of one": (lambda f, a: f.from_frame(a.L, a.v), lambda x: inv(x.L).T @ x.v, "plain"),
    "to_frame": (lambda f, a: f.to_frame(a.L, a.V), lambda x: x.V @ x.L, "plain"),
    "to_frame of one": (lambda f, a: f.to_frame(a.L, a.v), lambda x: x.L.T @ x.v, "plain"),
    "solve": (lambda f, a: f.solve(a.L, a.V), lambda x: x.V @ inv(x.L).T, "plain"),
    "solve of one": (lambda f, a: f.solve(a.L, a.v), lambda x: inv(x.L) @ x.v, "plain"),
    "times": (lambda f, a: f.times(a.L, a.V), lambda x: x.V @ x.L.T, "plain"),
    "times of one": (lambda f, a: f.times(a.L, a.v), lambda x: x.L @ x.v, "plain"),
    "moment": (lambda f, a: f.moment(a.V), lambda x: x.V.T @ x.V / len(x.V), "array"),
    "weighted moment": (
        lambda f, a: f.moment(a.V, a.weights),
        lambda x: x.V.T @ np.diag(x.weights) @ x.V / len(x.V),
        "array",
    ),
    "cross_moment": (
        lambda f, a: f.cross_moment(a.V, a.V * a.c),
        lambda x: (x.V.T @ (x.V * x.c) + (x.V * x.c).T @ x.V) / (2 * len(x.V)),
        "array",
    ),
    "from_dense": (lambda f, a: f.from_dense(a.variance), lambda x: x.variance, "array"),
    "mask": (lambda f, a: f.mask.astype(float), lambda x: x.structure, "plain"),
    "shift": (lambda f, a: f.shift(a.A, 0.3), lambda x: x.A + 0.3 * np.eye(len(x.A)), "array"),
    "shift by a vector": (lambda f, a: f.shift(a.A, a.c), lambda x: x.A + np.diag(x.c), "array"),
    "retraction": (lambda f, a: f.retraction(a.A, -0.7), lambda x: dense_retraction(x.A, -0.7), "lower"),
    "exponential": (lambda f, a: f.exponential(a.A, -0.7), lambda x: expm(-0.7 * x.A), "lower"),
    "precision_tangent": (lambda f, a: f.precision_tangent(a.L, a.A), lambda x: x.L @ x.A @ x.L.T, "array"),
    "covariance_tangent": (
        lambda f, a: f.covariance_tangent(a.L, a.A),
        lambda x: inv(x.L).T @ x.A @ inv(x.L),
        "array",
    ),
    "whiten": (lambda f, a: f.whiten(a.L, a.A), lambda x: inv(x.L) @ x.A @ inv(x.L).T, "array"),
    "whitened_precision": (
        lambda f, a: f.whitened_precision(a.L, f, a.R),
        lambda x: inv(x.L) @ x.R @ x.R.T @ inv(x.L).T,
        "array",
    ),
    "factor of a variance": (
        lambda f, a: f.factor(variance=a.variance),
        lambda x: dense_cholesky(x, inv(x.structure * x.variance)),
        "array",
    ),
    "factor of a precision": (
        lambda f, a: f.factor(precision=a.variance),
        lambda x: dense_cholesky(x, x.structure * x.variance),
        "array",
    ),
    "factor of a diagonal variance": (
        lambda f, a: f.factor(variance=a.c**2),
        lambda x: np.diag(1 / np.abs(x.c)),
        "array",
    ),
    "factor of a diagonal precision": (
        lambda f, a: f.factor(precision=a.c**2),
        lambda x: np.diag(np.abs(x.c)),
        "array",
    ),
    "factor of an isotropic variance": (
        lambda f, a: f.factor(variance=np.asarray(4.0)),
        lambda x: np.eye(len(x.L)) / 2,
        "array",
    ),
    "factor of an isotropic precision": (
        lambda f, a: f.factor(precision=np.asarray(4.0)),
        lambda x: np.eye(len(x.L)) * 2,
        "array",
    ),
    "cholesky": (lambda f, a: f.cholesky(a.F.copy(order="K")), lambda x: dense_cholesky(x, x.F), "array"),
    "cholesky_reversed": (
        lambda f, a: f.cholesky_reversed(a.F),
        lambda x: dense_cholesky_reversed(x, x.F),
        "array",
    ),
    "product": (lambda f, a: f.product(a.L, a.K), lambda x: x.L @ x.K, "array"),
    "quotient": (lambda f, a: f.quotient(a.L, a.K), lambda x: x.L @ inv(x.K), "array"),
    "conjugate": (lambda f, a: f.conjugate(a.K, a.A), lambda x: inv(x.K) @ x.A @ x.K, "array"),
    "conjugate_inverse": (
        lambda f, a: f.conjugate_inverse(a.W, a.A),
        lambda x: x.W @ x.A @ inv(x.W),
        "array",
    ),
    "diagonal": (lambda f, a: f.diagonal(a.L), lambda x: x.L.diagonal(), "plain"),
    "precision": (lambda f, a: f.precision(a.L), lambda x: x.L @ x.L.T, "plain"),
    "precision_blocks": (
        lambda f, a: f.precision_blocks(a.L, a.block),
        lambda x: (x.L @ x.L.T)[np.ix_(x.block, x.block)],
        "plain",
    ),
    "precision_blocks of several": (
        lambda f, a: f.precision_blocks(a.L, a.blocks),
        lambda x: np.stack([(x.L @ x.L.T)[np.ix_(block, block)] for block in x.blocks]),
        "plain",
    ),
    "covariance": (lambda f, a: f.covariance(a.L), lambda x: inv(x.L @ x.L.T), "plain"),
    "variances": (lambda f, a: f.variances(a.L), lambda x: inv(x.L @ x.L.T).diagonal(), "plain"),
}


def comparable(family, result, part):
    """A result without the entries that mean nothing."""
    if part == "plain":
        return result
    return dense(family, result) * (lower(family) if part == "lower" else 1.0)


def assert_close(actual, expected, rtol=RTOL):
    assert actual.shape == expected.shape
    assert norm(actual - expected) <= rtol * norm(expected)


def check_operations(family, seed):
    """Every operation is its dense formula and leaves its arguments as they were."""
    for name, (operation, formula, part) in OPERATIONS.items():
        with case(name, family):
            a, x = arguments(family, seed)
            before = {key: value.copy() for key, value in vars(a).items()}
            expected = formula(x)
            if part != "plain":
                expected = expected * (lower(family) if part == "lower" else structure(family))
            assert_close(comparable(family, operation(family, a), part), expected)
            assert [key for key, value in before.items() if not np.array_equal(getattr(a, key), value)] == []


def test_the_table_is_complete():
    named = {name.removeprefix("weighted ").split()[0] for name in OPERATIONS}
    elsewhere = {"from_pairs", "pairs", "dense_factor", "log_root", "num_monomials"}
    elsewhere |= {"name", "dim", "shape"}
    assert named | elsewhere == {name for name in dir(Full(2)) if not name.startswith("_")}


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_log_root_is_half_the_log_determinant_of_the_precision(family):
    a, _ = arguments(family, 1)
    expected = 0.5 * np.linalg.slogdet(family.precision(a.L))[1]
    assert family.log_root(a.L) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_operations_are_their_dense_formulas_and_leave_their_arguments_alone(family):
    check_operations(family, seed=1)


def partitions(d):
    """Blocks of 0, ..., d-1 in any order: a permutation cut at some places."""
    cuts = st.sets(st.integers(1, d - 1)).map(sorted) if d > 1 else st.just([])
    return st.tuples(st.permutations(range(d)), cuts).map(
        lambda pair: [block.tolist() for block in np.split(np.array(pair[0]), pair[1])]
    )


@settings(max_examples=25, derandomize=True, database=None)
@given(blocks=st.integers(1, 7).flatmap(partitions), seed=st.integers(0, 2**32 - 1))
@example(blocks=[[0, 1, 2, 3, 4, 5]], seed=0)
@example(blocks=[[0], [1], [2], [3], [4], [5]], seed=0)
def test_operations_of_any_partition(blocks, seed):
    for family in (BlockDiagonal(blocks), stacked(blocks)):
        check_operations(family, seed)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_arrays_hold_the_structure(family):
    """`from_pairs`, `pairs`, `dense_factor` and `factor`, on which the other tests of this file stand."""
    rng = np.random.default_rng(0)
    (i, j), eps = family.pairs, rng.normal(size=family.dim)
    coefficients, P = rng.normal(size=len(i)), random_spd(rng, family.dim)
    Q, R = dense(family, family.from_pairs(coefficients)), dense(family, family.factor(precision=P))
    np.testing.assert_array_equal(Q, Q.T)
    np.testing.assert_array_equal(Q != 0, structure(family) != 0)
    assert eps @ Q @ eps == pytest.approx(coefficients @ (eps[i] * eps[j]), rel=1e-11)
    np.testing.assert_array_equal(R != 0, lower(family) != 0)
    assert_close(R @ R.T, structure(family) * P)
    assert family.num_monomials == 1 + family.dim + lower(family).sum()
    assert family.shape == family.from_pairs(coefficients).shape == family.factor(precision=P).shape


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_a_product_of_factors_is_lower_triangular(family):
    a, _ = arguments(family)
    assert not dense(family, family.product(a.L, a.K))[lower(family) == 0].any()


@pytest.mark.parametrize("blocks", [[2] * 16, MIXED, [[*range(4)], [*range(4, 52)]]], ids=len)
def test_a_block_array_is_the_blocks_end_to_end(blocks):
    """As files hold it: each block in Fortran order, in the order of the blocks, whatever is worked on together."""
    family = BlockDiagonal(blocks)
    P = random_spd(np.random.default_rng(5), family.dim)
    expected = [Full(len(b)).factor(precision=P[np.ix_(b, b)]).ravel(order="F") for b in family.blocks]
    assert_close(family.factor(precision=P), np.concatenate(expected))


def test_what_is_worked_on_together():
    def kinds(blocks):
        return [(type(part.family), part.family.dim) for part in BlockDiagonal(blocks)._parts]

    assert kinds([2] * 16 + [40] * 20) == [(Stack, 32)] + [(Full, 40)] * 20
    assert kinds([2] * 15) == [(Full, 2)] * 15
    assert kinds(MIXED) == [(Stack, 32), (Full, 3), (Stack, 17), (Full, 33)]


def test_operations_take_any_memory_order():
    family = Full(6)
    a, _ = arguments(family)
    c_ordered = SimpleNamespace(**{key: np.ascontiguousarray(value) for key, value in vars(a).items()})
    for name, (operation, _, part) in OPERATIONS.items():
        with case(name):
            expected, actual = (comparable(family, operation(family, args), part) for args in (a, c_ordered))
            assert_close(actual, expected)


@pytest.mark.parametrize("factorise", ["cholesky", "cholesky_reversed"])
@pytest.mark.parametrize(
    "family", [Full(6), BlockDiagonal([6]), stacked([6])], ids=["full", "block", "stack"]
)
def test_factorisations_read_the_lower_triangle(family, factorise):
    F = random_spd(np.random.default_rng(4), 6)
    half = np.asfortranarray(np.where(np.tri(6), F, np.nan))
    K = dense(family, getattr(family, factorise)(half.reshape(family.shape, order="F")))
    assert_close(K @ K.T if factorise == "cholesky" else K.T @ K, F)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_factorisations_refuse_what_is_not_positive_definite(family):
    i, j = family.pairs
    for factorise, bad in product(["cholesky", "cholesky_reversed"], [0.0, -1.0, np.inf, np.nan]):
        F = family.from_pairs(np.where(i == j, np.where(i == family.dim - 1, bad, 1.0), 0.0))
        with case(factorise, bad), pytest.raises(NotPositiveDefiniteError):
            getattr(family, factorise)(F)


@pytest.mark.parametrize("what", ["variance", "precision"])
@pytest.mark.parametrize("matrix", [[[4.0]], [[4.0, 1.0], [1.0, 3.0]]])
def test_a_users_matrix_is_not_changed(matrix, what):
    given_ = np.array(matrix)
    q = Gaussian(np.zeros(len(matrix)), **{what: given_})
    np.testing.assert_array_equal(given_, matrix)
    assert_close(getattr(q, "covariance" if what == "variance" else what), np.array(matrix))


@pytest.mark.parametrize("family", SIX, ids=repr)
def test_whitened_precision_of_a_prior_of_another_family(family):
    L = arguments(family, seed=2)[0].L
    for other in SIX:
        with case(other):
            R = arguments(other, seed=3)[0].R
            X = inv(dense(family, L)) @ dense(other, R)
            actual = dense(family, family.whitened_precision(L, other, R))
            assert_close(actual, structure(family) * (X @ X.T))


# --- one block = full, d blocks = diagonal -------------------------------------------------------------


ESTIMATORS = {
    "h": (Score("h"), 30),
    "loglik": (Score("loglik"), 30),
    "h, no control variates": (Score("h", control_variates=False), 30),
    "regression on all monomials": (Regression(), 50),  # 1.5 × 28 = 42 draws and more
    "regression on its own": (Regression(), 35),
    "gradient": (Gradient(), 30),
    "gradient, without a regression": (Gradient(), 6),
}
START = np.array([0.4, -0.3, 0.2, 0.6, -0.5, 0.1])
B = np.random.default_rng(12).normal(size=(8, 6)) / 3


def log_likelihood(theta):
    return -np.log(np.cosh(theta @ B.T - 1.0)).sum(axis=1)


def gradient(theta):
    return -np.tanh(theta @ B.T - 1.0) @ B


def run(kind, estimator, family, order=None, draws="mc", back=slice(None)):
    """Six iterations; the lower bounds, the mean and the precision."""
    order = np.arange(6) if order is None else order
    V, V0 = (random_spd(np.random.default_rng(k), 6)[np.ix_(order, order)] for k in (10, 11))
    method = kind(
        step_size=0.05, momentum=0.4, clip_gradient=20.0, clip_natural_gradient=10.0, clip_initial=5.0
    )
    opt = method.start(
        Gaussian(np.linspace(-1, 1, 6)[order], variance=V0),
        family=family,
        estimator=ESTIMATORS[estimator][0],
        num_draws=ESTIMATORS[estimator][1],
        draws=draws,
        initial_mean=START[order],
        initial_variance=V / 10,
        rng=13,
    )

    def evaluate(theta):
        return log_likelihood(theta[:, back]), gradient(theta[:, back])[:, order]

    bounds = [opt.tell(*evaluate(opt.ask())).lower_bound for _ in range(6)]
    return np.array(bounds), opt.gaussian.mean, opt.gaussian.precision


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("claim", SAME)
def test_same_structure_same_run(claim, kind):
    """The operations of both agree by their dense formulas, above; here they do so in whole runs."""
    for estimator in ESTIMATORS:
        expected = run(kind, estimator, SAME[claim][0])
        for family in SAME[claim][1:]:
            with case(family, estimator):
                for a, b in zip(run(kind, estimator, family), expected, strict=True):
                    assert_close(a, b)


@pytest.mark.parametrize("kind", METHODS)
def test_interleaved_blocks_are_permuted_parameters(kind, monkeypatch):
    order = np.concatenate(INTERLEAVED)
    back = np.argsort(order)
    monkeypatch.setitem(SAMPLERS, "permuted", lambda *args: SAMPLERS["mc"](*args)[:, order])
    for make, estimator in product([BlockDiagonal, stacked], ESTIMATORS):
        with case(make.__name__, estimator):
            bounds, mean, precision = run(kind, estimator, make(INTERLEAVED))
            bounds_p, mean_p, precision_p = run(
                kind, estimator, make([2, 3, 1]), order=order, draws="permuted", back=back
            )
            assert_close(bounds_p, bounds)
            assert_close(mean_p[back], mean)
            assert_close(precision_p[np.ix_(back, back)], precision)


# --- positive definite, whatever the step --------------------------------------------------------------


def random_family(rng, d):
    blocks = [1, d - 1] if d > 1 else [1]
    block = (BlockDiagonal if d % 2 else stacked)(blocks)
    return [Full(d), Diagonal(d), block][rng.integers(3)]


def random_direction(rng, d, spectrum):
    """A symmetric matrix of norm 1e-2 to 1e30: its eigenvalues of one magnitude, or of all below its own."""
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = rng.standard_normal(d) if spectrum == "even" else 10.0 ** rng.uniform(-30.0, 0.0, size=d)
    return rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-2.0, 30.0) * (Q * (values / norm(values))) @ Q.T


def step(method, family, L, G):
    """One step along G only; overflow on the way is silenced by the caller, as in `Optimizer.tell`."""
    with np.errstate(over="ignore", invalid="ignore"):
        zero = np.zeros(family.dim)
        return method.step(family, Frame(zero, L), Estimate(zero, G, 0.0), 1).frame


def random_step(rng, method, spectrum):
    d = int(rng.integers(1, 7))
    family = random_family(rng, d)
    L = family.factor(precision=random_spd(rng, d, condition=10.0 ** rng.uniform(0.0, 6.0)))
    G = symmetric_array(family, random_direction(rng, d, spectrum))
    new = step(method, family, L, G)
    return np.isfinite(new.factor).all() and (family.diagonal(new.factor) > 0.0).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", METHODS)
def test_rank_one_steps_stay_positive_definite(kind, sign):
    """I + A + ½A² is singular to working precision from A = 1e8 vvᵀ on, where v has norm 1."""
    family, v = Full(3), np.ones((3, 1)) / np.sqrt(3.0)
    method, failed = kind(step_size=1.0), {}
    for exponent in range(31):
        G = np.asfortranarray(sign * 10.0**exponent * (v @ v.T))
        try:
            L = step(method, family, np.eye(3, order="F"), G).factor
            assert np.isfinite(L).all()
            assert (L.diagonal() > 0.0).all()
        except MgvbpError as error:
            failed[exponent] = repr(error)
    assert failed == {}


@pytest.mark.parametrize("spectrum", ["even", "graded"])
@pytest.mark.parametrize(("kind", "steps"), [(MGVBP, 200), (MGVB, 200), (QBVI, 100), (Geodesic, 100)])
def test_huge_steps_stay_positive_definite(kind, steps, spectrum):
    """1,200 steps in all."""
    rng = np.random.default_rng(14)
    method, outcomes = kind(step_size=1.0), Counter()
    for _ in range(steps):
        try:
            outcomes[bool(random_step(rng, method, spectrum))] += 1
        except (MgvbpError, RuntimeWarning) as error:
            outcomes[f"{type(error).__name__}: {error}"] += 1
    assert outcomes == {True: steps}
