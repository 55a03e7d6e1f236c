"""Models of kinds that the other files do not have; nothing is tuned on them, they judge what was tuned elsewhere."""

from __future__ import annotations

import numpy as np

from zoo import logpdf
from zoo.base import NUMPY
from zoo.targets_gp_ode import runge_kutta
from zoo.targets_linear import linear
from zoo.targets_time_series import stochastic_volatility_of

from .registry import held_out
from .regressions import half_cauchy_log_scale


@held_out(1, "multimodal", "heavy_tails")
def cauchy_location():
    """The location of four observations with Cauchy errors, which lie in two pairs; prior sd 5."""
    y = np.array([-2.6, -1.9, 2.0, 3.4])

    def density(theta, xp):
        return logpdf.prior(xp, theta, 0.0, 5.0) - xp.log1p(((y - theta) / 0.7) ** 2).sum(-1)

    return density


@held_out(3, "glm", "learning")
def dogs_learning():
    """Shocks of eight dogs over 15 trials: a logit in the numbers of earlier avoidances and shocks."""
    rng = np.random.default_rng(131)
    truth = np.array([2.0, -0.4, -0.25])
    shocks, avoided, shocked = np.zeros((8, 15)), np.zeros((8, 15)), np.zeros((8, 15))
    for t in range(15):
        avoided[:, t], shocked[:, t] = (1.0 - shocks[:, :t]).sum(axis=1), shocks[:, :t].sum(axis=1)
        logit = truth[0] + truth[1] * avoided[:, t] + truth[2] * shocked[:, t]
        shocks[:, t] = rng.random(8) < 1.0 / (1.0 + np.exp(-logit))
    X = np.column_stack([np.ones(120), avoided.ravel(), shocked.ravel()])
    y = shocks.ravel()

    def density(theta, xp):
        return logpdf.prior(xp, theta, 0.0, 5.0) + logpdf.bernoulli(xp, y, theta @ X.T).sum(-1)

    return density


@held_out(4, "ode", "kinetics")
def saturable_elimination():
    """Absorption and Michaelis-Menten elimination: log ka, log Km, log Vm, log σ of the log concentrations."""
    rng = np.random.default_rng(132)
    times, substeps, dose = np.arange(1, 11) * 1.0, 4, 6.0

    def path(xp, ka, km, vm, collect, carry, data):
        def slope(inside, c):
            c = xp.maximum(c, 1e-8)
            return -ka * inside, ka * inside - vm * c / (km + c)

        def step(carry, row):
            inside, c, extra = carry
            for _ in range(substeps):
                inside, c = runge_kutta(xp, slope, (inside, c), 1.0 / substeps)
            return inside, c, collect(extra, row, xp.log(xp.maximum(c, 1e-8)))

        zero = xp.zeros_like(ka)
        return xp.loop(step, (zero + dose, zero, carry), data)[2]

    truth = [np.array([value]) for value in (0.9, 1.5, 1.0)]
    seen = path(NUMPY, *truth, lambda extra, _, log_c: [*extra, log_c[0]], [], times)
    y = np.array(seen) + 0.2 * rng.standard_normal(len(times))

    def density(theta, xp):
        def collect(total, value, log_c):
            return total + logpdf.normal(xp, value, log_c, theta[:, 3])

        rates = [xp.exp(theta[:, i]) for i in range(3)]
        total = path(xp, *rates, collect, xp.zeros_like(theta[:, 0]), y)
        return (
            logpdf.prior(xp, theta, np.array([0.0, 0.0, 0.0, -1.5]), np.array([0.7, 0.8, 0.5, 0.5])) + total
        )

    return density


@held_out(6, "capture")
def capture_times():
    """Animals caught on five occasions: logit of the share of 120 that exist, logits of five capture rates."""
    rng = np.random.default_rng(133)
    rates = np.array([0.15, 0.3, 0.1, 0.25, 0.2])
    caught = rng.random((70, 5)) < rates
    caught = caught[caught.any(axis=1)]
    totals, seen, unseen = caught.sum(axis=0) * 1.0, len(caught), 120 - len(caught)

    def density(theta, xp):
        exists, logits = theta[:, 0], theta[:, 1:]
        never = -logpdf.softplus(xp, logits).sum(-1)
        yes, no = -logpdf.softplus(xp, -exists), -logpdf.softplus(xp, exists)
        fit = seen * (yes + never) + (totals * logits).sum(-1) + unseen * xp.logaddexp(no, yes + never)
        return logpdf.prior(xp, theta, np.array([0.0, -1, -1, -1, -1, -1]), 1.5) + fit

    return density


@held_out(3, "capture", "skewed")
def capture_heterogeneity():
    """Capture rates that differ between animals: logit of the share of 90 that exist, mean and log sd of the logits."""
    rng = np.random.default_rng(134)
    occasions = 6
    catches = rng.binomial(occasions, 1.0 / (1.0 + np.exp(1.3 - 0.9 * rng.standard_normal(45))))
    count = np.bincount(catches[catches > 0], minlength=occasions + 1)[1:] * 1.0
    never = 90.0 - count.sum()
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    log_weights = np.log(weights / weights.sum())
    times = np.arange(occasions + 1.0)[:, None]

    def density(theta, xp):
        exists, mean, log_sd = (theta[:, i : i + 1] for i in range(3))
        logit = (mean + xp.exp(log_sd) * nodes)[:, None, :]
        each = logpdf.logsumexp(xp, logpdf.binomial(xp, times, float(occasions), logit) + log_weights)
        yes, no = -logpdf.softplus(xp, -exists), -logpdf.softplus(xp, exists)
        fit = (count * (yes + each[:, 1:])).sum(-1) + (never * xp.logaddexp(no, yes + each[:, :1])).sum(-1)
        return logpdf.prior(xp, theta, np.array([0.0, -1.0, -0.5]), np.array([1.5, 1.0, 0.7])) + fit

    return density


@held_out(14, "hierarchical", "real")
def surgical():
    """Deaths in twelve hospitals (the example of the BUGS manual): mean, log sd and twelve logits, centred."""
    operations = np.array([47.0, 148, 119, 810, 211, 196, 148, 215, 207, 97, 256, 360])
    deaths = np.array([0.0, 18, 8, 46, 8, 13, 9, 31, 14, 8, 29, 24])

    def density(theta, xp):
        mean, log_sd, logits = theta[:, :1], theta[:, 1:2], theta[:, 2:]
        prior = logpdf.prior(xp, mean, 0.0, 5.0) + half_cauchy_log_scale(xp, log_sd, 1.0).sum(-1)
        groups = logpdf.normal(xp, logits, mean, log_sd).sum(-1)
        return prior + groups + logpdf.binomial(xp, deaths, operations, logits).sum(-1)

    return density


@held_out(15, "hierarchical", "real")
def rats_growth():
    """Weights of five rats at five ages (the first of the BUGS example), in units of 20 g and weeks.

    Intercept and slope of each, their means and log sds, log σ; centred.
    """
    weight = np.array(
        [
            [151.0, 199, 246, 283, 320],
            [145, 199, 249, 293, 354],
            [147, 214, 263, 312, 328],
            [155, 200, 237, 272, 297],
            [135, 188, 230, 280, 323],
        ]
    )
    y, week = (weight - 240.0) / 20.0, np.arange(-2.0, 3.0)

    def density(theta, xp):
        means, log_sds, log_sd = theta[:, :2], theta[:, 2:4], theta[:, 4]
        level, slope = theta[:, 5:10], theta[:, 10:]
        prior = logpdf.prior(xp, means, np.array([0.0, 2.0]), 3.0)
        prior = prior + half_cauchy_log_scale(xp, theta[:, 2:5], 1.0).sum(-1)
        groups = logpdf.normal(xp, level, means[:, :1], log_sds[:, :1]).sum(-1)
        groups = groups + logpdf.normal(xp, slope, means[:, 1:], log_sds[:, 1:]).sum(-1)
        mean = level[:, :, None] + slope[:, :, None] * week
        return prior + groups + logpdf.normal(xp, y, mean, log_sd[:, None, None]).sum((-1, -2))

    return density


@held_out(7, "linear", "few")
def linear_few():
    """Five covariates, eleven observations and log σ: coefficients like a t distribution."""
    rng = np.random.default_rng(135)
    X = np.column_stack([np.ones(11), rng.standard_normal((11, 5))])
    y = X @ np.array([0.5, 1.0, -0.5, 0.0, 0.3, 0.0]) + 0.8 * rng.standard_normal(11)
    return linear(X, y, 10.0, (0.0, 1.0))


@held_out(10, "hierarchical")
def radon_counties():
    """Log radon in six counties with a floor effect, t errors with 4 degrees: partial pooling, centred."""
    rng = np.random.default_rng(136)
    county, floor = np.repeat(np.arange(6), [2, 3, 4, 6, 9, 12]), (rng.random(36) < 0.3) * 1.0
    y = (1.3 + 0.4 * rng.standard_normal(6))[county] - 0.6 * floor + 0.5 * rng.standard_t(4.0, 36)

    def density(theta, xp):
        mean, slope, log_tau, log_sd = (theta[:, i : i + 1] for i in range(4))
        level = theta[:, 4:]
        prior = logpdf.prior(xp, theta[:, :2], 0.0, 3.0) + half_cauchy_log_scale(xp, theta[:, 2:4], 1.0).sum(
            -1
        )
        groups = logpdf.normal(xp, level, mean, log_tau).sum(-1)
        return prior + groups + logpdf.student_t(xp, y, level[:, county] + slope * floor, log_sd, 4.0).sum(-1)

    return density


@held_out(6, "ode")
def soil_pools():
    """Two carbon pools that feed each other: log rates, logit transfers, logit of the first share, log σ.

    Only the carbon lost so far is seen, at ten times.
    """
    rng = np.random.default_rng(137)
    substeps = 3

    def lost(xp, fast, slow, over, back, share, collect, carry, data):
        def slope(a, b):
            return -fast * a + back * slow * b, -slow * b + over * fast * a

        def step(carry, row):
            a, b, extra = carry
            for _ in range(substeps):
                a, b = runge_kutta(xp, slope, (a, b), 1.0 / substeps)
            return a, b, collect(extra, row, 1.0 - a - b)

        return xp.loop(step, (share, 1.0 - share, carry), data)[2]

    truth = [np.array([value]) for value in (0.7, 0.08, 0.3, 0.2, 0.4)]
    seen = lost(NUMPY, *truth, lambda extra, _, gone: [*extra, gone[0]], [], np.zeros(10))
    y = np.array(seen) + 0.02 * rng.standard_normal(10)

    def density(theta, xp):
        fast, slow = 3.0 * logpdf.sigmoid(xp, theta[:, 0]), 0.5 * logpdf.sigmoid(xp, theta[:, 1])
        over, back, share = (logpdf.sigmoid(xp, theta[:, i]) for i in (2, 3, 4))

        def collect(total, value, gone):
            return total + logpdf.normal(xp, value, gone, theta[:, 5])

        total = lost(xp, fast, slow, over, back, share, collect, xp.zeros_like(fast), y)
        return (
            logpdf.prior(xp, theta, np.array([-1.0, -1, -1, -1, 0, -3.5]), np.array([1, 1, 1, 1, 1, 0.5]))
            + total
        )

    return density


@held_out(15, "time_series", "volatility")
def volatility_path():
    """Stochastic volatility over twelve returns, with μ, logit φ and logit σ."""
    return stochastic_volatility_of(12, 138)


@held_out(3, "survival", "skewed")
def weibull_censored():
    """Ten lifetimes of which six are censored: log scale, effect of a treatment, log shape."""
    t = np.array([0.8, 2.0, 3.0, 3.0, 3.0, 1.7, 2.6, 3.0, 3.0, 3.0])
    ended = np.array([1.0, 1, 0, 0, 0, 1, 1, 0, 0, 0])
    treated = np.repeat([0.0, 1.0], 5)

    def density(theta, xp):
        log_scale, log_shape = theta[:, :1] + theta[:, 1:2] * treated, theta[:, 2:]
        z = xp.exp(log_shape) * (np.log(t) - log_scale)
        fit = ended * (log_shape + z) - xp.exp(z)
        prior = logpdf.prior(xp, theta, np.array([1.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.5]))
        return prior + fit.sum(-1)

    return density
