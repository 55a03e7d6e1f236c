"""Regressions with few observations, heavy tails or shrinkage, and exchangeable mixtures."""

from __future__ import annotations

import numpy as np

from zoo import logpdf
from zoo.targets_glm import logistic, poisson_regression
from zoo.targets_hierarchical import half_normal_log_scale

from .registry import target


def half_cauchy_log_scale(xp, log_scale, scale=1.0):
    """A half-Cauchy prior of a scale with the log-Jacobian of its logarithm, elementwise and normalised."""
    ratio = 2.0 * (log_scale - np.log(scale))
    return np.log(2.0 / np.pi) - np.log(scale) + log_scale - xp.logaddexp(ratio, 0.0)


@target(3, "glm", "skewed")
def logistic_few():
    """Ten observations, of which two are ones; prior sd 5."""
    x = np.array([-1.6, -1.2, -0.9, -0.5, -0.1, 0.2, 0.6, 0.9, 1.4, 1.9])
    z = np.array([0.3, -1.1, 0.8, 1.4, -0.6, -0.2, 0.9, -1.5, 0.4, -0.7])
    y = np.array([0.0, 0, 0, 0, 0, 0, 1, 0, 0, 1])
    return logistic(np.column_stack([np.ones(10), x, z]), y, 5.0)


@target(6, "glm", "skewed")
def logistic_separated_6():
    """Five covariates and 16 observations that a plane separates; t priors with 4 degrees, scale 2.5."""
    rng = np.random.default_rng(101)
    X = np.column_stack([np.ones(16), rng.standard_normal((16, 5))])
    y = 1.0 * (X @ np.array([0.3, 2.0, -1.0, 0.5, 0.0, 0.0]) > 0)

    def density(theta, xp):
        prior = logpdf.student_t(xp, theta, 0.0, np.log(2.5), 4.0).sum(-1)
        return prior + logpdf.bernoulli(xp, y, theta @ X.T).sum(-1)

    return density


@target(3, "glm", "skewed", "counts")
def poisson_few():
    """Eight counts, most of them zero; prior sd 3."""
    x = np.array([-1.5, -1.0, -0.6, -0.2, 0.3, 0.7, 1.1, 1.6])
    z = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    return poisson_regression(np.column_stack([np.ones(8), x, z]), np.array([0.0, 0, 0, 0, 1, 0, 2, 1]), 3.0)


@target(4, "glm", "skewed", "counts")
def negative_binomial_few():
    """Twelve overdispersed counts; the log size is hardly known."""
    rng = np.random.default_rng(102)
    X = np.column_stack([np.ones(12), rng.standard_normal((12, 2))])
    y = rng.negative_binomial(1.5, 1.5 / (1.5 + np.exp(1.0 + 0.7 * X[:, 1]))).astype(float)

    def density(theta, xp):
        fit = logpdf.negative_binomial(xp, y, theta[:, :3] @ X.T, theta[:, 3:]).sum(-1)
        return logpdf.prior(xp, theta, 0.0, 2.0) + fit

    return density


@target(4, "linear", "robust")
def student_errors():
    """Intercept, slope, log σ and log ν; ν has the Gamma(2, 0.1) prior."""
    rng = np.random.default_rng(103)
    x = np.linspace(-1.5, 1.5, 24)
    y = 0.5 + 1.2 * x + 0.4 * rng.standard_t(3.0, 24)

    def density(theta, xp):
        log_sd, log_nu = theta[:, 2:3], theta[:, 3:]
        nu = xp.exp(log_nu)
        prior = logpdf.prior(xp, theta[:, :3], 0.0, np.array([2.0, 2.0, 1.0]))
        prior = prior + (2.0 * (log_nu + np.log(0.1)) - 0.1 * nu).sum(-1)
        return prior + logpdf.student_t(xp, y, theta[:, :1] + theta[:, 1:2] * x, log_sd, nu).sum(-1)

    return density


@target(14, "linear", "shrinkage", "funnel")
def horseshoe_6():
    """Six coefficients as ``z λ τ`` with half-Cauchy scales, log σ: two effects are real, four are not."""
    rng = np.random.default_rng(104)
    X = rng.standard_normal((30, 6))
    y = X @ np.array([1.5, -0.8, 0.0, 0.0, 0.0, 0.0]) + 0.7 * rng.standard_normal(30)

    def density(theta, xp):
        z, log_lambda, log_tau, log_sd = theta[:, :6], theta[:, 6:12], theta[:, 12:13], theta[:, 13:]
        coefficients = z * xp.exp(log_lambda + log_tau)
        prior = logpdf.prior(xp, z) + half_cauchy_log_scale(xp, log_lambda).sum(-1)
        prior = prior + half_cauchy_log_scale(xp, log_tau, 0.3).sum(-1) + logpdf.prior(xp, log_sd)
        return prior + logpdf.normal(xp, y, coefficients @ X.T, log_sd).sum(-1)

    return density


def mixture_data(seed: int, low: float, high: float, first: int, second: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(low, 1.0, first), rng.normal(high, 1.0, second)])


@target(2, "mixture", "multimodal", "exchangeable")
def label_switching_2():
    """Two means with equal weights and unit sds: the posterior is the same after a swap."""
    y = mixture_data(105, -1.2, 1.2, 8, 8)

    def density(theta, xp):
        one, two = (logpdf.normal(xp, y, theta[:, i : i + 1]) for i in range(2))
        return logpdf.prior(xp, theta, 0.0, 3.0) + (xp.logaddexp(one, two) - np.log(2.0)).sum(-1)

    return density


@target(5, "mixture", "multimodal", "exchangeable")
def label_switching_5():
    """Logit weight, two means, two log sds: a swap of the labels also turns the sign of the logit."""
    y = mixture_data(106, -1.8, 1.8, 14, 22)

    def density(theta, xp):
        logit, low, high, sd1, sd2 = (theta[:, i : i + 1] for i in range(5))
        one = logpdf.normal(xp, y, low, sd1) - logpdf.softplus(xp, logit)
        two = logpdf.normal(xp, y, high, sd2) - logpdf.softplus(xp, -logit)
        prior = logpdf.prior(xp, theta, 0.0, np.array([1.0, 3.0, 3.0, 0.5, 0.5]))
        return prior + xp.logaddexp(one, two).sum(-1)

    return density


@target(3, "linear", "skewed")
def few_normals():
    """Two group means and a common log σ from six observations: t-like tails, half-normal(5) for σ."""
    y = np.array([1.2, 0.4, 2.1, -0.6, 0.3, -1.5])
    group = np.array([0, 0, 0, 1, 1, 1])

    def density(theta, xp):
        log_sd = theta[:, 2:]
        prior = logpdf.prior(xp, theta[:, :2], 0.0, 10.0) + half_normal_log_scale(xp, log_sd, 5.0)
        return prior + logpdf.normal(xp, y, theta[:, group], log_sd).sum(-1)

    return density
