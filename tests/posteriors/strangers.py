"""Models of applied statistics with little data: frontiers, zero inflation, change points, cures, unit roots."""

from __future__ import annotations

import numpy as np

from zoo import logpdf
from zoo.base import NUMPY
from zoo.targets_gp_ode import runge_kutta

from .registry import target
from .regressions import half_cauchy_log_scale


@target(4, "econometrics", "skewed")
def stochastic_frontier():
    """Normal noise less half-normal inefficiency: intercept, slope, log σ of either; the second may be nearly 0."""
    rng = np.random.default_rng(151)
    x = rng.standard_normal(25)
    y = 1.0 + 0.6 * x + 0.4 * rng.standard_normal(25) - np.abs(0.5 * rng.standard_normal(25))

    def density(theta, xp):
        log_v, log_u = theta[:, 2:3], theta[:, 3:]
        log_sd = 0.5 * xp.logaddexp(2.0 * log_v, 2.0 * log_u)
        z = (y - theta[:, :1] - theta[:, 1:2] * x) * xp.exp(-log_sd)
        fit = logpdf.normal(xp, z) - log_sd + np.log(2.0) + xp.log_ndtr(-z * xp.exp(log_u - log_v))
        prior = logpdf.prior(xp, theta[:, :2], 0.0, 3.0) + half_cauchy_log_scale(xp, theta[:, 2:]).sum(-1)
        return prior + fit.sum(-1)

    return density


@target(6, "counts", "skewed")
def zero_inflated_few():
    """Negative binomial counts with zeros of their own, three coefficients, a logit in two, log size; prior sd 3."""
    rng = np.random.default_rng(152)
    x = rng.standard_normal((40, 2))
    mean = np.exp(0.8 + 0.5 * x[:, 0])
    y = rng.negative_binomial(1.2, 1.2 / (1.2 + mean)) * (rng.random(40) > 0.35).astype(float)

    def density(theta, xp):
        log_mean = theta[:, :1] + theta[:, 1:2] * x[:, 0] + theta[:, 2:3] * x[:, 1]
        logit = theta[:, 3:4] + theta[:, 4:5] * x[:, 1]
        count = logpdf.negative_binomial(xp, y, log_mean, theta[:, 5:])
        of_counts = count - logpdf.softplus(xp, logit)
        zero = xp.logaddexp(-logpdf.softplus(xp, -logit), of_counts)
        return logpdf.prior(xp, theta, 0.0, 3.0) + xp.where(y == 0.0, zero, of_counts).sum(-1)

    return density


@target(4, "change_point", "multimodal")
def change_point_two_levels():
    """Two levels, log σ and the logit of a smooth change point that may be at either of two jumps."""
    rng = np.random.default_rng(153)
    t = np.linspace(0.0, 1.0, 30)
    y = 0.8 * (t > 0.35) + 0.7 * (t > 0.7) + 0.5 * rng.standard_normal(30)

    def density(theta, xp):
        share = logpdf.sigmoid(xp, (t - logpdf.sigmoid(xp, theta[:, 3:])) / 0.03)
        mean = theta[:, :1] * (1.0 - share) + theta[:, 1:2] * share
        prior = logpdf.prior(xp, theta, np.array([0.0, 0.0, -0.7, 0.0]), np.array([2.0, 2.0, 0.7, 1.5]))
        return prior + logpdf.normal(xp, y, mean, theta[:, 2:3]).sum(-1)

    return density


@target(5, "multimodal", "symmetric")
def switching_regressions():
    """Two lines whose labels can be exchanged: two slopes, their intercept, log σ, the logit of the share."""
    rng = np.random.default_rng(154)
    x = rng.standard_normal(40)
    y = np.where(rng.random(40) < 0.4, 1.3, -0.4) * x + 0.3 + 0.4 * rng.standard_normal(40)

    def density(theta, xp):
        log_sd, logit = theta[:, 3:4], theta[:, 4:]
        one = logpdf.normal(xp, y, theta[:, 2:3] + theta[:, :1] * x, log_sd) - logpdf.softplus(xp, -logit)
        two = logpdf.normal(xp, y, theta[:, 2:3] + theta[:, 1:2] * x, log_sd) - logpdf.softplus(xp, logit)
        prior = logpdf.prior(xp, theta, np.array([0.0, 0, 0, -0.7, 0]), np.array([1.5, 1.5, 1.5, 0.7, 1.5]))
        return prior + xp.logaddexp(one, two).sum(-1)

    return density


@target(5, "pharmacology", "skewed")
def emax_vague():
    """Emax dose-response where the highest dose is not enough: E₀, log Emax, log ED₅₀, log Hill, log σ; wide priors."""
    rng = np.random.default_rng(155)
    dose = np.repeat(np.array([0.0, 0.5, 1.0, 2.0, 4.0]), 4)
    y = 1.0 + 3.0 * dose / (dose + 3.0) + 0.4 * rng.standard_normal(20)

    def density(theta, xp):
        hill = xp.exp(theta[:, 3:4])
        logit = hill * (np.log(np.maximum(dose, 1e-6)) - theta[:, 2:3])
        mean = theta[:, :1] + xp.exp(theta[:, 1:2]) * logpdf.sigmoid(xp, logit)
        centre, sd = np.array([0.0, 1.0, 1.0, 0.0, -0.5]), np.array([3.0, 2.0, 2.0, 0.5, 1.0])
        return logpdf.prior(xp, theta, centre, sd) + logpdf.normal(xp, y, mean, theta[:, 4:]).sum(-1)

    return density


@target(3, "ode", "counts")
def sir_few():
    """Six weekly counts as an epidemic begins: log rates of infection and recovery, logit of the share reported."""
    rng = np.random.default_rng(156)
    people, substeps = 1000.0, 6

    def counts(xp, infection, recovery, collect, carry, data):
        def slope(s, i):
            return -infection * s * i, infection * s * i - recovery * i

        def step(carry, row):
            s, i, extra = carry
            before = s
            for _ in range(substeps):
                s, i = runge_kutta(xp, slope, (s, i), 1.0 / substeps)
            return s, i, collect(extra, row, people * (before - s))

        one = xp.ones_like(infection)
        return xp.loop(step, (0.995 * one, 0.005 * one, carry), data)[2]

    truth = [np.array([value]) for value in (1.6, 0.8)]
    seen = np.array(counts(NUMPY, *truth, lambda extra, _, new: [*extra, new[0]], [], np.zeros(6)))
    y = rng.poisson(0.3 * seen).astype(float)

    def density(theta, xp):
        log_share = -logpdf.softplus(xp, -theta[:, 2])

        def collect(total, value, new):
            return total + logpdf.poisson(xp, value, log_share + xp.log(xp.maximum(new, 1e-9)))

        rates = [xp.exp(theta[:, i]) for i in (0, 1)]
        prior = logpdf.prior(xp, theta, np.array([0.0, -0.5, -1.0]), np.array([0.8, 0.8, 1.2]))
        return prior + counts(xp, *rates, collect, xp.zeros_like(theta[:, 0]), y)

    return density


@target(5, "counts", "few")
def hurdle_few():
    """A logit for any, and truncated Poisson counts of those that have some: two and two coefficients, log frailty."""
    rng = np.random.default_rng(157)
    x = rng.standard_normal(24)
    some = rng.random(24) < 1.0 / (1.0 + np.exp(0.4 - x))
    y = np.where(some, 1.0 + rng.poisson(np.exp(0.3 + 0.6 * x)), 0.0)

    def density(theta, xp):
        logit = theta[:, :1] + theta[:, 1:2] * x
        log_mean, log_size = theta[:, 2:3] + theta[:, 3:4] * x, theta[:, 4:]
        count = logpdf.negative_binomial(xp, y, log_mean, log_size)
        log_none = -xp.exp(log_size) * logpdf.softplus(xp, log_mean - log_size)
        positive = count - xp.log(-xp.expm1(log_none)) - logpdf.softplus(xp, -logit)
        prior = logpdf.prior(xp, theta, np.array([0.0, 0, 0, 0, 1.0]), np.array([2.5, 2.5, 2.5, 2.5, 1.5]))
        return prior + xp.where(y > 0.0, positive, -logpdf.softplus(xp, logit)).sum(-1)

    return density


@target(4, "survival", "skewed")
def weibull_cure():
    """Lifetimes of which some never end: logit of the share that is cured, log scale, effect, log shape."""
    rng = np.random.default_rng(158)
    group = np.repeat([0.0, 1.0], 15)
    life = np.exp(0.5 * group) * rng.weibull(1.3, 30)
    t = np.minimum(np.where(rng.random(30) < 0.4, np.inf, life), 2.5)
    ended = (t < 2.5) * 1.0

    def density(theta, xp):
        log_shape = theta[:, 3:]
        z = xp.exp(log_shape) * (np.log(t) - theta[:, 1:2] - theta[:, 2:3] * group)
        sick = -logpdf.softplus(xp, theta[:, :1])
        alive = xp.logaddexp(-logpdf.softplus(xp, -theta[:, :1]), sick - xp.exp(z))
        fit = xp.where(ended > 0.0, sick + log_shape + z - xp.exp(z), alive)
        prior = logpdf.prior(xp, theta, np.array([0.0, 0.0, 0.0, 0.0]), np.array([2.0, 1.5, 1.5, 0.7]))
        return prior + fit.sum(-1)

    return density


@target(3, "time_series", "skewed")
def ar1_unit_root():
    """An exact AR(1) likelihood near a unit root: mean, artanh of the coefficient with a flat prior, log σ."""
    rng = np.random.default_rng(160)
    y = np.zeros(40)
    for i in range(1, 40):
        y[i] = 0.97 * y[i - 1] + rng.standard_normal()

    def density(theta, xp):
        mean, log_sd = theta[:, :1], theta[:, 2:]
        rho, log_cosh = xp.tanh(theta[:, 1:2]), xp.logaddexp(theta[:, 1:2], -theta[:, 1:2]) - np.log(2.0)
        first = logpdf.normal(xp, y[0], mean, log_sd + log_cosh)  # σ² / (1 − ρ²)
        rest = logpdf.normal(xp, y[1:], mean + rho * (y[:-1] - mean), log_sd)
        prior = logpdf.prior(xp, theta[:, ::2], np.array([0.0, 0.0]), np.array([10.0, 1.0]))
        flat = -2.0 * log_cosh[:, 0] - np.log(2.0)
        return prior + flat + first.sum(-1) + rest.sum(-1)

    return density


@target(10, "hierarchical", "counts")
def beta_binomial_groups():
    """Eight groups with few trials: logit of the mean, log concentration, and a logit each with its beta prior."""
    trials = np.array([5.0, 8, 4, 12, 6, 10, 3, 9])
    hits = np.array([0.0, 1, 1, 4, 0, 2, 2, 1])

    def density(theta, xp):
        log_size, logit = theta[:, 1:2], theta[:, 2:]
        share = logpdf.sigmoid(xp, theta[:, :1])
        a, b = share * xp.exp(log_size), (1.0 - share) * xp.exp(log_size)
        prior = logpdf.prior(xp, theta[:, :2], np.array([-1.0, 2.0]), np.array([1.5, 1.2]))
        beta = xp.gammaln(a + b) - xp.gammaln(a) - xp.gammaln(b)
        beta = beta - a * logpdf.softplus(xp, -logit) - b * logpdf.softplus(xp, logit)
        return prior + beta.sum(-1) + logpdf.binomial(xp, hits, trials, logit).sum(-1)

    return density
