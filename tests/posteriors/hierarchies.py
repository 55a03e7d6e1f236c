"""Groups with a common distribution, centred and not, with vague priors of the scales."""

from __future__ import annotations

import numpy as np

from zoo import logpdf

from .registry import target
from .regressions import half_cauchy_log_scale

MEANS_Y = np.array([4.1, 2.9, 6.3, 3.6, 1.2, 5.0])
MEANS_SE = np.array([1.2, 0.9, 1.5, 0.7, 1.1, 1.9])
"""Estimates of six groups and their standard errors: the effects integrate out in closed form."""
MEANS_PRIOR = (0.0, 10.0, 5.0)
"""Mean and sd of μ, scale of the half-Cauchy of τ."""


@target(8, "hierarchical", "centred", "funnel")
def groups_centred():
    """μ, log τ and six effects with known errors; τ half-Cauchy(5)."""

    def density(theta, xp):
        mu, log_tau, effects = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = logpdf.prior(xp, mu, *MEANS_PRIOR[:2])
        prior = prior + half_cauchy_log_scale(xp, log_tau, MEANS_PRIOR[2]).sum(-1)
        groups = logpdf.normal(xp, effects, mu, log_tau).sum(-1)
        return prior + groups + logpdf.prior(xp, effects, MEANS_Y, MEANS_SE)

    return density


@target(8, "hierarchical")
def groups_noncentred():
    """The same model with ``effects = μ + τ z``."""

    def density(theta, xp):
        mu, log_tau, z = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = logpdf.prior(xp, mu, *MEANS_PRIOR[:2])
        prior = prior + half_cauchy_log_scale(xp, log_tau, MEANS_PRIOR[2]).sum(-1)
        effects = mu + xp.exp(log_tau) * z
        return prior + logpdf.prior(xp, z) + logpdf.prior(xp, effects, MEANS_Y, MEANS_SE)

    return density


@target(8, "hierarchical", "centred")
def anova_centred():
    """Five groups of four observations: μ, log τ, log σ and the groups' means, well identified."""
    rng = np.random.default_rng(111)
    group = np.repeat(np.arange(5), 4)
    y = (1.0 + 1.5 * rng.standard_normal(5))[group] + 0.6 * rng.standard_normal(20)

    def density(theta, xp):
        mu, log_tau, log_sd, means = theta[:, :1], theta[:, 1:2], theta[:, 2:3], theta[:, 3:]
        prior = logpdf.prior(xp, mu, 0.0, 5.0) + half_cauchy_log_scale(xp, theta[:, 1:3], 1.0).sum(-1)
        groups = logpdf.normal(xp, means, mu, log_tau).sum(-1)
        return prior + groups + logpdf.normal(xp, y, means[:, group], log_sd).sum(-1)

    return density


@target(13, "hierarchical", "glm")
def logistic_clusters():
    """Ten clusters of six binary responses with a covariate: intercept, slope, log τ and ten z."""
    rng = np.random.default_rng(112)
    cluster, x = np.repeat(np.arange(10), 6), rng.standard_normal(60)
    effects = 1.0 * rng.standard_normal(10)
    y = 1.0 * (rng.random(60) < 1.0 / (1.0 + np.exp(-(0.3 + 0.8 * x + effects[cluster]))))

    def density(theta, xp):
        log_tau, z = theta[:, 2:3], theta[:, 3:]
        prior = logpdf.prior(xp, theta[:, :2], 0.0, 3.0) + half_cauchy_log_scale(xp, log_tau, 1.0).sum(-1)
        logit = theta[:, :1] + theta[:, 1:2] * x + (xp.exp(log_tau) * z)[:, cluster]
        return prior + logpdf.prior(xp, z) + logpdf.bernoulli(xp, y, logit).sum(-1)

    return density


@target(10, "hierarchical", "counts")
def poisson_groups_8():
    """Eight counts around a common log rate, non-centred; τ in (0, 3) by a logit.

    With log τ in place of the logit every Gaussian's lower bound would be -∞: the mean rate diverges.
    """
    y, exposure = np.array([0.0, 2, 1, 7, 3, 0, 12, 4]), np.array([1.0, 1, 2, 2, 1, 3, 2, 1])

    def density(theta, xp):
        mu, tau, z = theta[:, :1], 3.0 * logpdf.sigmoid(xp, theta[:, 1:2]), theta[:, 2:]
        prior = logpdf.prior(xp, theta[:, :2], np.array([0.0, -1.0]), np.array([2.0, 1.5]))
        fit = logpdf.poisson(xp, y, mu + tau * z + np.log(exposure)).sum(-1)
        return prior + logpdf.prior(xp, z) + fit

    return density


def tumours(groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Tumours among the animals of each group, with rates from a Beta(2, 11)."""
    rng = np.random.default_rng(113)
    animals = rng.integers(10, 25, groups).astype(float)
    return rng.binomial(animals.astype(int), rng.beta(2.0, 11.0, groups)).astype(float), animals


def beta_prior(xp, logit_mean, log_size):
    """``(a, b)`` of the rates, and a N(-1.5, 1.5²) prior of the logit, N(2, 1.5²) of the log size."""
    size = xp.exp(log_size)
    a, b = size * logpdf.sigmoid(xp, logit_mean), size * logpdf.sigmoid(xp, -logit_mean)
    prior = logpdf.prior(xp, logit_mean, -1.5, 1.5) + logpdf.prior(xp, log_size, 2.0, 1.5)
    return a, b, prior


@target(2, "hierarchical", "counts", "skewed")
def tumours_2():
    """Logit of the mean rate and log size of the beta distribution, the 20 groups' rates integrated out."""
    y, n = tumours(20)

    def density(theta, xp):
        a, b, prior = beta_prior(xp, theta[:, :1], theta[:, 1:])
        fit = xp.gammaln(y + a) + xp.gammaln(n - y + b) - xp.gammaln(n + a + b)
        return prior + (fit - xp.gammaln(a) - xp.gammaln(b) + xp.gammaln(a + b)).sum(-1)

    return density


@target(10, "hierarchical", "counts", "centred", "skewed")
def tumours_10():
    """The same model on eight groups with the logits of the groups' rates as parameters."""
    y, n = tumours(8)

    def density(theta, xp):
        a, b, prior = beta_prior(xp, theta[:, :1], theta[:, 1:2])
        up, down = -logpdf.softplus(xp, -theta[:, 2:]), -logpdf.softplus(xp, theta[:, 2:])
        groups = (a + y) * up + (b + n - y) * down  # with the Jacobian of the logit
        return prior + (groups - xp.gammaln(a) - xp.gammaln(b) + xp.gammaln(a + b)).sum(-1)

    return density
