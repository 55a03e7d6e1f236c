"""Pieces and helpers that several kinds share."""

from __future__ import annotations

import numpy as np

from .pieces import Piece

normal = Piece(lambda x: -0.5 * x**2, closed=lambda m, c: -0.5 * float(m[0] ** 2 + c[0, 0]))


def bump(x, centre, sd, log_weight=0.0):
    """Log of a weighted normal density, up to the root of 2π."""
    return log_weight - np.log(sd) - 0.5 * ((x - centre) / sd) ** 2


def over(x, edge):
    """How far x is beyond an edge."""
    return np.maximum(x - edge, 0.0)


def gaussian(precision: np.ndarray) -> Piece:
    """A correlated normal, for the diagonal family."""
    P = np.asarray(precision, float)
    return Piece(
        lambda *x: -0.5 * np.einsum("is,ij,js->s", x, P, x),
        len(P),
        closed=lambda m, c: -0.5 * float(m @ P @ m + np.sum(P * c)),
    )


def design(n: int, d: int, seed: int) -> np.ndarray:
    """Covariates with a column of ones."""
    X = np.random.default_rng(seed).standard_normal((n, d))
    X[:, 0] = 1.0
    return X


LINE = np.linspace(-8.0, 8.0, 129)
WEIGHT = np.exp(-0.5 * LINE**2) / np.exp(-0.5 * LINE**2).sum()


def linear_model(X: np.ndarray, link, expected, prior_sd: float) -> Piece:
    """``sum of link(X θ)`` with a normal prior; ``expected(mean, sd)`` is that sum's expectation."""

    def closed(m, c):
        sd = np.sqrt(np.einsum("ni,ij,nj->n", X, c, X))
        return float(expected(X @ m, sd) - 0.5 * (m @ m + np.trace(c)) / prior_sd**2)

    def f(*x):
        theta = np.stack(x)
        return link(X @ theta) - 0.5 * (theta**2).sum(axis=0) / prior_sd**2

    return Piece(f, X.shape[1], closed=closed)


def logistic(n: int, d: int, seed: int, prior_sd: float = 2.0) -> Piece:
    X = design(n, d, seed)
    y = np.random.default_rng(seed + 1).random(n) < 1.0 / (1.0 + np.exp(-X @ np.linspace(1.0, -1.0, d)))

    def link(eta):
        return -np.logaddexp(0.0, -eta).sum(axis=0)

    def expected(mean, sd):
        return link(mean[:, None] + sd[:, None] * LINE) @ WEIGHT

    return linear_model(np.where(y, 1.0, -1.0)[:, None] * X, link, expected, prior_sd)


def poisson(n: int, d: int, seed: int) -> Piece:
    X = design(n, d, seed)
    y = np.random.default_rng(seed + 1).poisson(np.exp(X @ np.linspace(0.8, -0.4, d)))

    def link(eta):
        return y @ eta - np.exp(eta).sum(axis=0)

    return linear_model(X, link, lambda mean, sd: y @ mean - np.exp(mean + 0.5 * sd**2).sum(), 3.0)
