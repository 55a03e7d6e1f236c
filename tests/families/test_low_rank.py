"""Low-rank precisions: every operation is its dense formula."""

import numpy as np
import pytest
from numpy.linalg import inv, slogdet, solve

from mgvbp import Gaussian, InvalidInputError, LowRank


def factor_of(d, rank, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(0.5, 2.0, d), rng.standard_normal((d, rank))])


@pytest.mark.parametrize(("d", "rank"), [(1, 0), (7, 0), (12, 2), (9, 8)])
def test_vectors_and_matrices_are_their_dense_formulas(d, rank):
    family, L = LowRank.of(d, rank), factor_of(d, rank)
    P = np.diag(L[:, 0] ** 2) + L[:, 1:] @ L[:, 1:].T
    R, v = family.dense_factor(L), np.random.default_rng(1).standard_normal((4, d))
    close = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(R @ R.T, P, **close)
    np.testing.assert_allclose(family.precision(L), P, **close)
    np.testing.assert_allclose(family.times(L, v), v @ R.T, **close)
    np.testing.assert_allclose(family.to_frame(L, v), v @ R, **close)
    np.testing.assert_allclose(family.solve(L, v), solve(R, v.T).T, **close)
    np.testing.assert_allclose(family.from_frame(L, v), solve(R.T, v.T).T, **close)
    np.testing.assert_allclose(family.solve(L, v[0]), solve(R, v[0]), **close)
    np.testing.assert_allclose(family.covariance(L), inv(P), **close)
    np.testing.assert_allclose(family.variances(L), inv(P).diagonal(), **close)
    np.testing.assert_allclose(2.0 * family.log_root(L), slogdet(P)[1], **close)
    np.testing.assert_allclose(family.diagonal(L), R.diagonal(), **close)
    blocks = np.array([[0, d - 1], [d - 1, d // 2]])
    expected = [P[np.ix_(block, block)] for block in blocks]
    if d > 1:
        np.testing.assert_allclose(family.precision_blocks(L, blocks), expected, **close)


def test_a_gaussian_has_density_gradient_and_draws():
    L, mean, d = factor_of(6, 2), np.arange(6.0), 6
    q = Gaussian.from_factor(mean, L, LowRank.of(d, 2))
    dense = Gaussian(mean, precision=LowRank.of(d, 2).precision(L))
    theta = mean + np.random.default_rng(2).standard_normal((5, d))
    np.testing.assert_allclose(q.log_density(theta), dense.log_density(theta), rtol=1e-10)
    np.testing.assert_allclose(
        q.grad_log_density(theta), dense.grad_log_density(theta), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(q.covariance_of([0, 3]), dense.covariance_of([0, 3]), rtol=1e-9)
    whitened = (q.sample(20_000, 1) - mean) @ dense.family.dense_factor(dense.factor)
    np.testing.assert_allclose(whitened.T @ whitened / 20_000, np.eye(d), atol=0.06)


def test_a_large_gaussian_has_moments_but_no_dense_matrices():
    d = 30_000
    q = Gaussian.from_factor(np.zeros(d), factor_of(d, 3), LowRank.of(d, 3))
    assert q.std.shape == (d,)
    assert q.sample(2, 0).shape == (2, d)
    assert q.covariance_of([0, 7]).shape == (2, 2)
    for name in ("covariance", "precision"):
        with pytest.raises(InvalidInputError, match="too large"):
            getattr(q, name)


def test_it_says_what_it_cannot_be():
    with pytest.raises(InvalidInputError, match="rank must be"):
        LowRank(0)
    with pytest.raises(InvalidInputError, match="less than the number of parameters, 5; got 5"):
        LowRank(5).resolved(5)
    family = LowRank(2).resolved(4)
    with pytest.raises(InvalidInputError, match=r"of shape \(\) or \(4,\)"):
        family.factor(variance=np.eye(4))
    assert repr(family) == "LowRank(2)"
    assert repr(LowRank()) == "LowRank()"
