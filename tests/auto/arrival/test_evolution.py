"""Evolution against the formulas of Hansen (2016), "The CMA Evolution Strategy: A Tutorial", as they are printed."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from mgvbp import Gaussian
from mgvbp.auto.arrival.evolution import Evolution, strategy


def printed(n):
    """Table 1: the default parameters in n dimensions."""
    t = SimpleNamespace(size=4 + math.floor(3 * math.log(n)))
    raw = [math.log((t.size + 1) / 2) - math.log(i) for i in range(1, t.size + 1)]
    best, rest = raw[: t.size // 2], raw[t.size // 2 :]
    t.mu_eff, minus = (sum(w) ** 2 / sum(x**2 for x in w) for w in (best, rest))
    t.c_sigma = (t.mu_eff + 2) / (n + t.mu_eff + 5)
    t.damping = 1 + 2 * max(0, math.sqrt((t.mu_eff - 1) / (n + 1)) - 1) + t.c_sigma
    t.c_c = (4 + t.mu_eff / n) / (n + 4 + 2 * t.mu_eff / n)
    t.c1 = 2 / ((n + 1.3) ** 2 + t.mu_eff)
    t.c_mu = min(1 - t.c1, 2 * (t.mu_eff - 2 + 1 / t.mu_eff) / ((n + 2) ** 2 + t.mu_eff))
    least = min(1 + t.c1 / t.c_mu, 1 + 2 * minus / (t.mu_eff + 2), (1 - t.c1 - t.c_mu) / (n * t.c_mu))
    up, down = sum(w for w in raw if w > 0), -sum(w for w in raw if w < 0)
    t.weights = [w / up if w >= 0 else least * w / down for w in raw]
    t.chi = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
    return t


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40])
def test_constants_are_those_of_the_tutorial(n):
    for name, value in vars(printed(n)).items():
        np.testing.assert_allclose(getattr(strategy(n), name), value, rtol=1e-14, err_msg=name)


def follow(state, theta, values):
    """Equations (38) to (47): the next mean, σ, C and paths, with one sum for each Σ of the tutorial."""
    t, n = printed(len(state.mean)), len(state.mean)
    order = sorted(range(t.size), key=lambda k: -values[k])
    y = [(theta[k] - state.mean) / state.sigma for k in order]
    lengths, axes = np.linalg.eigh(state.C)
    root = axes @ np.diag(lengths**-0.5) @ axes.T
    step = sum(w * x for w, x in zip(t.weights[: t.size // 2], y, strict=False))
    p = (1 - t.c_sigma) * state.path_sigma + math.sqrt(t.c_sigma * (2 - t.c_sigma) * t.mu_eff) * root @ step
    length = np.linalg.norm(p)
    h = length / math.sqrt(1 - (1 - t.c_sigma) ** (2 * (state.count + 1))) < (1.4 + 2 / (n + 1)) * t.chi
    p_c = (1 - t.c_c) * state.path_c + h * math.sqrt(t.c_c * (2 - t.c_c) * t.mu_eff) * step
    C = (1 + t.c1 * (1 - h) * t.c_c * (2 - t.c_c) - t.c1 - t.c_mu * sum(t.weights)) * state.C
    C = C + t.c1 * np.outer(p_c, p_c)
    for w, x in zip(t.weights, y, strict=True):
        C = C + t.c_mu * (w if w >= 0 else w * n / np.sum((root @ x) ** 2)) * np.outer(x, x)
    sigma = state.sigma * math.exp(min(1, t.c_sigma / t.damping * (length / t.chi - 1)))
    found = {"mean": state.mean + state.sigma * step, "sigma": sigma, "C": C}
    return SimpleNamespace(**found, path_sigma=p, path_c=p_c, count=state.count + 1), bool(h)


@pytest.mark.parametrize("n", [2, 5])
def test_generations_are_those_of_the_tutorial(n):
    """On the way to a distant optimum, where the path is long and C does not follow it, and about it."""
    evolution = Evolution.start(Gaussian(variance=1.0, dim=n), np.zeros(n), memory=20)
    literal = SimpleNamespace(
        mean=np.zeros(n), sigma=1.0, C=np.eye(n), path_sigma=np.zeros(n), path_c=np.zeros(n), count=0
    )
    scales, moved = np.logspace(0.0, 1.0, n), set()
    for t in range(80):
        theta = evolution.draw(np.random.default_rng((3, t)))
        values = -np.square((theta - 40.0) * scales).sum(axis=1)
        evolution = evolution.tell(theta, values, np.random.default_rng((3, t)))
        literal, h = follow(literal, theta, values)
        moved.add(h)
        for name, value in vars(literal).items():
            np.testing.assert_allclose(getattr(evolution, name), value, rtol=1e-6, atol=1e-9, err_msg=name)
    assert moved == {True, False}
    assert np.abs(evolution.mean - 40.0).max() < 1.0
