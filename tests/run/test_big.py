"""Very many parameters: blocks do not know of each other, and nothing of size d² is made on the way."""

import math
import tracemalloc

import numpy as np
import pytest

from mgvbp import MGVB, MGVBP, QBVI, BlockDiagonal, Full, Gaussian, Geodesic, fit
from mgvbp.estimators.draws import SAMPLERS

BLOCKS, SIZE, DRAWS = 2000, 10, 8
DIM = BLOCKS * SIZE
ITERATIONS = 3


class SeparableTarget:
    """``−Σ log cosh(C_b θ_b − 1)`` over the blocks b, whose gradient is known: independent blocks of a posterior."""

    def __init__(self, blocks=slice(None)):
        self.C = np.random.default_rng(1).normal(size=(BLOCKS, SIZE, SIZE))[blocks] / 3

    def __call__(self, theta):
        return -np.log(np.cosh(self._predictors(theta))).sum(axis=(0, 2))

    def grad(self, theta):
        rows = -np.tanh(self._predictors(theta)) @ self.C
        return rows.swapaxes(0, 1).reshape(theta.shape)

    def _predictors(self, theta):
        """(blocks, S, k)"""
        rows = theta.reshape(len(theta), -1, SIZE).swapaxes(0, 1)
        return rows @ self.C.swapaxes(1, 2) - 1.0


def run(method, monkeypatch, blocks=slice(None), family=None):
    """The lower bounds and the Gaussian of a few iterations on these blocks, with their part of all draws."""
    target = SeparableTarget(blocks)
    d = SIZE * len(target.C)
    columns = np.arange(DIM).reshape(BLOCKS, SIZE)[blocks].ravel()
    monkeypatch.setitem(SAMPLERS, "of all", lambda rng, S, d: SAMPLERS["mc"](rng, S, DIM)[:, columns])
    opt = method.start(
        Gaussian(mean=0.5, variance=2.0, dim=d),
        family=BlockDiagonal([SIZE] * len(target.C)) if family is None else family,
        estimator="gradient",
        num_draws=DRAWS,
        draws="of all",
        initial_variance=0.5,
        rng=2,
    )
    bounds = []
    for _ in range(ITERATIONS):
        theta = opt.ask()
        bounds.append(opt.tell(target(theta), target.grad(theta)).lower_bound)
    return np.array(bounds), opt.gaussian


@pytest.mark.parametrize("kind", [MGVBP, MGVB, QBVI, Geodesic])
def test_blocks_do_not_know_of_each_other(kind, monkeypatch):
    """A fit is two fits of half the blocks each, and its blocks are fits of their own with a full covariance."""
    method = kind(step_size=0.1, momentum=0.4)
    bounds, q = run(method, monkeypatch)
    factors = q.factor.reshape(BLOCKS, SIZE, SIZE).swapaxes(1, 2)
    cut = BLOCKS // 3
    halves = [run(method, monkeypatch, blocks) for blocks in (slice(cut), slice(cut, None))]
    np.testing.assert_allclose(halves[0][0] + halves[1][0], bounds, rtol=1e-12)
    np.testing.assert_allclose(np.concatenate([h.mean for _, h in halves]), q.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        np.concatenate([h.factor for _, h in halves]), q.factor, rtol=1e-12, atol=1e-12
    )
    for b in (0, 1234, BLOCKS - 1):
        _, alone = run(method, monkeypatch, slice(b, b + 1), Full(SIZE))
        np.testing.assert_allclose(q.mean[b * SIZE : (b + 1) * SIZE], alone.mean, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(factors[b], alone.factor, rtol=1e-11, atol=1e-12)


# --- memory --------------------------------------------------------------------------------------------


def peak(function):
    """Bytes at the worst moment of the call, beyond what there was before it."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# d² numbers are 3.2 GB for the second and 80 GB for the third
LARGE = {
    "full": (400, "full"),
    "block": (DIM, BlockDiagonal([SIZE] * BLOCKS)),
    "diagonal": (10**5, "diagonal"),
}


@pytest.mark.parametrize("estimator", ["h", "loglik", "gradient"])
@pytest.mark.parametrize("name", LARGE)
def test_memory_of_an_iteration(name, estimator):
    """A few family arrays and a few arrays of draws: 12 of both together at the most."""
    d, family = LARGE[name]
    opt = MGVBP().start(Gaussian(variance=1.0, dim=d), family=family, estimator=estimator, num_draws=DRAWS)

    def iterate():
        for _ in range(2):  # the second has momentum and control variates
            theta = opt.ask()
            opt.tell(
                -0.5 * np.einsum("sd,sd->s", theta, theta), *([-theta] if estimator == "gradient" else [])
            )

    unit = 8 * (math.prod(opt.family.shape) + DRAWS * d)
    assert peak(iterate) < 12 * unit


def test_memory_of_a_fit_and_of_its_result():
    """From the family to tomorrow's prior, for all three families: never anything like the 3.2 GB of d² numbers."""

    def log_likelihood(theta):
        return -0.5 * np.einsum("sd,sd->s", theta, theta)

    def use():
        options = {"method": MGVBP(), "num_draws": DRAWS, "max_iterations": 2}
        blocks = BlockDiagonal([SIZE] * BLOCKS)
        posterior = fit(log_likelihood, Gaussian(variance=1.0, dim=DIM), family=blocks, **options)
        assert posterior.std.shape == (DIM,)
        assert posterior.log_density(posterior.sample(DRAWS, rng=0)).shape == (DRAWS,)
        assert f"d = {DIM}" in posterior.summary()
        others = (blocks, BlockDiagonal(np.random.default_rng(3).permutation(DIM).reshape(-1, 5)), "diagonal")
        for family in others:
            assert fit(log_likelihood, posterior, family=family, estimator="loglik", **options).dim == DIM

    assert peak(use) < 40 * 8 * DIM * SIZE
