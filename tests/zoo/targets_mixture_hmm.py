"""Mixtures and hidden Markov models, ordered by a transform so that the labels cannot switch."""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import Density, target
from .data import columns


def two_normals(y: np.ndarray, centre: np.ndarray, width: np.ndarray) -> Density:
    """Logit weight, first mean, log gap to the second, two log sds; independent normal priors."""

    def density(theta, xp):
        logit, low, gap, sd1, sd2 = (theta[:, i : i + 1] for i in range(5))
        one = logpdf.normal(xp, y, low, sd1) - logpdf.softplus(xp, logit)
        two = logpdf.normal(xp, y, low + xp.exp(gap), sd2) - logpdf.softplus(xp, -logit)
        return logpdf.prior(xp, theta, centre, width) + xp.logaddexp(one, two).sum(-1)

    return density


@target(5, "mixture", "multimodal")
def normal_mixture():
    """Overlapping components: one wide normal with a small gap is a second optimum of the diagonal bound."""
    rng = np.random.default_rng(51)
    y = np.concatenate([rng.normal(-1.0, 0.7, 60), rng.normal(2.0, 1.0, 90)])
    return two_normals(y, np.zeros(5), np.array([1.0, 2.0, 1.0, 0.7, 0.7]))


@target(5, "mixture")
def normal_mixture_apart():
    """Components five apart, of which the prior knows."""
    rng = np.random.default_rng(54)
    y = np.concatenate([rng.normal(-2.0, 0.7, 30), rng.normal(3.0, 1.0, 50)])
    return two_normals(y, np.array([0.0, 0.0, 1.5, 0.0, 0.0]), np.array([1.0, 2.0, 0.4, 0.5, 0.5]))


@target(4, "mixture", "real", "counts")
def poisson_mixture_children():
    """Children per woman as two Poissons and structural zeros: two log rates (ordered) and two logits."""
    (y,) = columns("fertil2", "children", rows=250)
    zero = y == 0

    def density(theta, xp):
        none, split, low, gap = (theta[:, i : i + 1] for i in range(4))
        one = logpdf.poisson(xp, y, low) - logpdf.softplus(xp, split)
        two = logpdf.poisson(xp, y, low + xp.exp(gap)) - logpdf.softplus(xp, -split)
        counts = xp.logaddexp(one, two) - logpdf.softplus(xp, none)
        inflated = xp.logaddexp(counts, none - logpdf.softplus(xp, none))
        return logpdf.prior(xp, theta, np.array([-1.0, 0.0, 0.0, 0.0]), 0.7) + xp.where(
            zero, inflated, counts
        ).sum(-1)

    return density


def forward(xp, emissions, stay1, stay2):
    """Log likelihood by the forward algorithm: ``emissions(value)`` gives the two log densities."""
    keep1, leave1 = -logpdf.softplus(xp, -stay1), -logpdf.softplus(xp, stay1)
    keep2, leave2 = -logpdf.softplus(xp, -stay2), -logpdf.softplus(xp, stay2)

    def step(carry, value):
        a, b = carry
        one, two = emissions(value)
        return xp.logaddexp(a + keep1, b + leave2) + one, xp.logaddexp(a + leave1, b + keep2) + two

    def run(y):
        half = xp.full_like(stay1, np.log(0.5))
        a, b = xp.loop(step, (half, half), y)
        return xp.logaddexp(a, b)

    return run


@target(6, "hmm")
def hmm_normal():
    """Two states: logits of staying, lower mean, log gap, two log sds."""
    rng = np.random.default_rng(52)
    state, y = 0, np.zeros(120)
    for t in range(120):
        state = state if rng.random() < 0.9 else 1 - state
        y[t] = rng.normal([-1.0, 1.5][state], [0.8, 0.6][state])

    def density(theta, xp):
        stay1, stay2, low, gap, sd1, sd2 = (theta[:, i] for i in range(6))

        def emissions(value):
            return logpdf.normal(xp, value, low, sd1), logpdf.normal(xp, value, low + xp.exp(gap), sd2)

        centre = np.array([1.5, 1.5, 0.0, 0.5, 0.0, 0.0])
        return logpdf.prior(xp, theta, centre, np.array([1.0, 1.0, 2.0, 1.0, 0.7, 0.7])) + forward(
            xp, emissions, stay1, stay2
        )(y)

    return density


@target(4, "hmm", "counts")
def hmm_poisson():
    """Counts from a quiet and a busy state."""
    rng = np.random.default_rng(53)
    state, y = 0, np.zeros(100)
    for t in range(100):
        state = state if rng.random() < 0.85 else 1 - state
        y[t] = rng.poisson([2.0, 7.0][state])

    def density(theta, xp):
        stay1, stay2, low, gap = (theta[:, i] for i in range(4))

        def emissions(value):
            return logpdf.poisson(xp, value, low), logpdf.poisson(xp, value, low + xp.exp(gap))

        return logpdf.prior(xp, theta, np.array([1.5, 1.5, 0.5, 0.0]), 1.0) + forward(
            xp, emissions, stay1, stay2
        )(y)

    return density
