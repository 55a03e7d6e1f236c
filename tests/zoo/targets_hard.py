"""Posteriors on which a search by gradients has failed: pooled basins, local modes, long ridges, many parameters.

The priors are vague, as in models that people write first. The start at mean 0 and variance 1 is far from the
posterior, and the highest density is no place for a Gaussian.
"""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import NUMPY, Density, target
from .targets_gp_ode import runge_kutta

VAGUE = 100.0
"""Standard deviation of the vague priors of means and slopes."""


def half_cauchy_log_scale(xp, log_scale, scale=1.0):
    """A half-Cauchy prior of the scale with its log-Jacobian; nothing is summed."""
    return log_scale - logpdf.softplus(xp, 2.0 * (log_scale - np.log(scale)))


def varying_intercepts(groups: int, rows: tuple[int, int], spread: float, seed: int) -> Density:
    """Normal responses in groups of unequal sizes, centred; a slope and, for each group, a predictor of its mean.

    θ = mean, slope, the predictor's slope, log τ, log σ, and the groups' intercepts. Where τ is small the intercepts
    lie in the neck of a funnel: a Gaussian there pools all groups.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(*rows, groups)
    group = np.repeat(np.arange(groups), sizes)
    x, u = (rng.random(len(group)) < 0.4) * 1.0, rng.standard_normal(groups)
    intercepts = 1.4 + 0.5 * spread * u + spread * rng.standard_normal(groups)
    y = intercepts[group] - 0.6 * x + 0.75 * rng.standard_normal(len(group))
    # sufficient statistics of the groups: one row of data each
    count = sizes.astype(float)
    sums = [np.bincount(group, weights) for weights in (y, x, y * y, x * y, x * x)]

    def density(theta, xp):
        mean, slope, of_group, log_tau, log_sd = (theta[:, i : i + 1] for i in range(5))
        a = theta[:, 5:]
        y1, x1, yy, xy, xx = sums
        squares = yy - 2.0 * (a * y1 + slope * xy) + count * a**2 + 2.0 * slope * a * x1 + slope**2 * xx
        fit = (-0.5 * squares * xp.exp(-2.0 * log_sd) - count * log_sd).sum(-1)
        scales = half_cauchy_log_scale(xp, theta[:, 3:5], 25.0).sum(-1)
        groups_ = logpdf.normal(xp, a, mean + of_group * u, log_tau).sum(-1)
        return logpdf.prior(xp, theta[:, :3], 0.0, VAGUE) + scales + groups_ + fit

    return density


@target(10, "hierarchical", "centred", "hard")
def hierarchy_vague_5():
    """Five groups say little of τ."""
    return varying_intercepts(5, (4, 10), 0.5, 81)


@target(25, "hierarchical", "centred", "hard", "medium")
def hierarchy_vague_20():
    return varying_intercepts(20, (2, 9), 0.4, 82)


@target(65, "hierarchical", "centred", "hard", "large")
def hierarchy_vague_60():
    return varying_intercepts(60, (1, 14), 0.3, 83)


@target(8, "ode", "tails", "hard")
def lynx_hare():
    """Predator and prey over twenty years: log rates, log initial values, log sds; other cycles fit in part.

    The priors are those of the textbook on the natural scale, with their Jacobians.
    """
    rng = np.random.default_rng(85)
    step_size, substeps = 0.125, 8
    truth = np.log([0.55, 0.028, 0.80, 0.024, 34.0, 6.0])

    def path(xp, theta, collect, carry, data):
        growth, loss, death, gain = (xp.exp(theta[:, i]) for i in range(4))

        def slope(u, v):
            return growth - loss * xp.exp(v), gain * xp.exp(u) - death

        def step(carry, row):
            u, v, extra = carry
            for _ in range(substeps):
                u, v = runge_kutta(xp, slope, (u, v), step_size)
            return u, v, collect(extra, row, u, v)

        return xp.loop(step, (theta[:, 4], theta[:, 5], carry), data)[2]

    seen = path(NUMPY, truth[None], lambda e, _, u, v: [*e, (u[0], v[0])], [], np.zeros(20))
    data = np.array(seen) + 0.25 * rng.standard_normal((20, 2))
    first = truth[4:] + 0.25 * rng.standard_normal(2)
    centre, width = np.array([1.0, 0.05, 1.0, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])

    def density(theta, xp):
        rates, log_sd = theta[:, :4], theta[:, 6:]

        def collect(total, row, u, v):
            return (
                total
                + logpdf.normal(xp, row[0], u, log_sd[:, 0])
                + logpdf.normal(xp, row[1], v, log_sd[:, 1])
            )

        prior = logpdf.prior(xp, xp.exp(rates), centre, width) + rates.sum(-1)
        prior = (
            prior + logpdf.prior(xp, theta[:, 4:6], np.log(10.0), 1.0) + logpdf.prior(xp, log_sd, -1.0, 1.0)
        )
        start = logpdf.normal(xp, first, theta[:, 4:6], log_sd).sum(-1)
        return path(xp, theta, collect, prior + start, data)

    return density


@target(12, "hmm", "hard")
def hmm_three_states():
    """Means in order, log sds, and logits of the transitions from each state; two of the states may share a mean."""
    rng = np.random.default_rng(86)
    means, sds, stay = [-2.0, 0.5, 6.0], [0.6, 0.8, 1.0], 0.85
    state, y = 0, np.zeros(150)
    for t in range(150):
        state = state if rng.random() < stay else int((state + rng.integers(1, 3)) % 3)
        y[t] = rng.normal(means[state], sds[state])

    def density(theta, xp):
        low, gaps, log_sd, logits = theta[:, :1], xp.exp(theta[:, 1:3]), theta[:, 3:6], theta[:, 6:]
        mean = xp.concatenate([low, low + gaps[:, :1], low + gaps.sum(-1)[:, None]], axis=1)
        zero = xp.zeros_like(log_sd)[:, :, None]
        rows = xp.concatenate([zero, logits.reshape(-1, 3, 2)], axis=2)
        moves = rows - logpdf.logsumexp(xp, rows)[:, :, None]

        def step(carry, value):
            arrived = logpdf.logsumexp(xp, xp.swapaxes(carry[:, :, None] + moves, 1, 2))
            return arrived + logpdf.normal(xp, value, mean, log_sd)

        last = xp.loop(step, xp.zeros_like(mean) - np.log(3.0), y)
        widths = np.array([10.0, 1.5, 1.5, 1.0, 1.0, 1.0, *[1.5] * 6])
        return logpdf.prior(xp, theta, 0.0, widths) + logpdf.logsumexp(xp, last)

    return density
