"""Time series, Gaussian processes, kinetics and differential equations."""

from __future__ import annotations

import numpy as np

from zoo import logpdf
from zoo.base import NUMPY
from zoo.targets_gp_ode import kernel_factor, runge_kutta
from zoo.targets_linear import curve_fit

from .registry import target


@target(4, "nonlinear", "kinetics")
def pharmacokinetic():
    """One compartment with absorption: log ka, log clearance, log volume, log σ of the log concentration.

    Seven samples, most of them late, so that absorption is poorly known.
    """
    rng = np.random.default_rng(121)
    t = np.array([0.5, 1.5, 3.0, 5.0, 8.0, 12.0, 18.0])

    def mean(theta, t, xp):
        ka, k = xp.exp(theta[:, :1]), xp.exp(theta[:, 1:2] - theta[:, 2:3])
        gap = ka - k
        # (1 - exp(-gap t)) / gap is smooth and positive through gap = 0
        small = xp.abs(gap) < 1e-6
        safe = xp.where(small, 1.0, gap)
        rise = xp.where(small, t, -xp.expm1(-safe * t) / safe)
        return np.log(10.0) + theta[:, :1] - theta[:, 2:3] - k * t + xp.log(rise)

    truth = np.array([[0.2, -0.7, 1.2]])
    y = mean(truth, t, NUMPY)[0] + 0.25 * rng.standard_normal(7)
    return curve_fit(mean, t, y, [0.0, 0.0, 0.5, -1.0], np.array([1.0, 1.0, 1.0, 0.7]))


@target(4, "time_series")
def arma_unit_root():
    """μ, atanh φ, atanh θ and log σ of 60 values with φ = 0.97: the mean is hardly identified."""
    rng = np.random.default_rng(122)
    noise, y = rng.standard_normal(61), np.zeros(61)
    for t in range(1, 61):
        y[t] = 0.97 * y[t - 1] + noise[t] + 0.3 * noise[t - 1]
    y = y[1:] + 1.0

    def density(theta, xp):
        mu, phi, ma, log_sd = theta[:, 0], xp.tanh(theta[:, 1]), xp.tanh(theta[:, 2]), theta[:, 3]

        def step(carry, value):
            previous, residual, total = carry
            residual = value - mu - phi * previous - ma * residual
            return value - mu, residual, total + residual**2

        zero = xp.zeros_like(mu)
        total = xp.loop(step, (zero + y[0] - mu, zero, zero), y[1:])[2]
        prior = logpdf.prior(xp, theta, np.array([0.0, 1.0, 0.0, 0.0]), np.array([5.0, 1.0, 0.7, 1.0]))
        return prior - 0.5 * total * xp.exp(-2.0 * log_sd) - (len(y) - 1) * log_sd

    return density


@target(3, "time_series", "skewed")
def ar1_short():
    """Stationary AR(1) on twelve values with its first value: mean, atanh φ, log σ."""
    y = np.array([0.9, 1.4, 1.1, 1.8, 2.2, 1.7, 2.3, 2.6, 1.9, 2.0, 2.7, 3.1])

    def density(theta, xp):
        mu, phi, log_sd = theta[:, :1], xp.tanh(theta[:, 1:2]), theta[:, 2:]
        first = logpdf.normal(xp, y[:1], mu, log_sd - 0.5 * xp.log(1.0 - phi**2 + 1e-300)).sum(-1)
        rest = logpdf.normal(xp, y[1:], mu + phi * (y[:-1] - mu), log_sd).sum(-1)
        return logpdf.prior(xp, theta, np.array([0.0, 0.5, -0.5]), np.array([3.0, 1.0, 1.0])) + first + rest

    return density


@target(13, "gp", "counts", "funnel", "tails")
def gp_counts_13():
    """Log amplitude, log length and eleven whitened values of a Gaussian process with Poisson counts."""
    rng = np.random.default_rng(123)
    x = np.linspace(-10.0, 10.0, 11)
    y = rng.poisson(np.exp(1.5 * np.sin(x / 3.0))).astype(float)

    def density(theta, xp):
        log_amplitude, log_length, z = theta[:, 0], theta[:, 1], theta[:, 2:]
        factor = kernel_factor(xp, x, log_amplitude, log_length, xp.zeros_like(log_amplitude))
        log_rate = (factor * z[:, None, :]).sum(-1)
        prior = log_amplitude - 0.5 * (xp.exp(log_amplitude) / 2.0) ** 2  # half-normal(2)
        prior = prior + logpdf.prior(xp, theta[:, 1:2], np.log(5.0), 0.3) + logpdf.prior(xp, z)
        return prior + logpdf.poisson(xp, y, log_rate).sum(-1)

    return density


@target(5, "ode", "nonlinear")
def reaction_chain():
    """A ⇌ B → C by Runge-Kutta: three log rates and two log σ; B alone is seen well."""
    rng = np.random.default_rng(124)
    step_size, substeps = 0.25, 4

    def path(xp, rates, collect, carry, data):
        forward, back, onward = rates

        def slope(a, b):
            flow = forward * a - back * b
            return -flow, flow - onward * b

        def step(carry, row):
            a, b, extra = carry
            for _ in range(substeps):
                a, b = runge_kutta(xp, slope, (a, b), step_size)
            return a, b, collect(extra, row, a, b)

        one = xp.ones_like(forward)
        return xp.loop(step, (one, 0.0 * one, carry), data)[2]

    truth = [np.array([rate]) for rate in (0.5, 0.3, 0.25)]
    seen = path(NUMPY, truth, lambda extra, _, a, b: [*extra, (a[0], b[0])], [], np.zeros(10))
    data = np.array(seen) + np.array([0.15, 0.04]) * rng.standard_normal((10, 2))

    def density(theta, xp):
        rates = [4.0 * logpdf.sigmoid(xp, theta[:, i]) for i in range(3)]  # at most 4: Runge-Kutta is stable

        def collect(total, row, a, b):
            fit = logpdf.normal(xp, row[0], a, theta[:, 3]) + logpdf.normal(xp, row[1], b, theta[:, 4])
            return total + fit

        total = path(xp, rates, collect, xp.zeros_like(theta[:, 0]), data)
        centre, width = np.array([-1.5, -1.5, -1.5, -1.5, -2.5]), np.array([1.5, 1.5, 1.5, 0.7, 0.7])
        return logpdf.prior(xp, theta, centre, width) + total

    return density


@target(6, "ode", "nonlinear", "counts")
def seir_epidemic():
    """log β, log of the incubation and recovery rates, logits of the first and of the reported share, log size."""
    rng = np.random.default_rng(125)
    people, days = 2000.0, 24

    def cases(xp, rates, start, collect, carry, data):
        beta, leave, recover = rates

        def slope(s, e, i):
            return -beta * s * i, beta * s * i - leave * e, leave * e - recover * i

        def step(carry, row):
            s, e, i, extra = carry
            for _ in range(2):
                s, e, i = runge_kutta(xp, slope, (s, e, i), 0.5)
            return s, e, i, collect(extra, row, xp.maximum(leave * e, 1e-10))

        return xp.loop(step, (1.0 - start, start, 0.0 * start, carry), data)[3]

    truth = [np.array([v]) for v in (1.4, 0.5, 0.4)]
    daily = cases(NUMPY, truth, np.array([0.004]), lambda extra, _, c: [*extra, c[0]], [], np.zeros(days))
    mean = 0.3 * people * np.array(daily)
    y = rng.negative_binomial(8, 8.0 / (8.0 + mean)).astype(float)

    def density(theta, xp):
        rates = [3.0 * logpdf.sigmoid(xp, theta[:, i]) for i in range(3)]
        share, log_size = logpdf.sigmoid(xp, theta[:, 4]), theta[:, 5]

        def collect(total, value, now):
            return total + logpdf.negative_binomial(xp, value, xp.log(people * share * now), log_size)

        total = cases(xp, rates, logpdf.sigmoid(xp, theta[:, 3]), collect, xp.zeros_like(log_size), y)
        centre = np.array([0.0, -1.5, -1.5, -5.0, -1.0, 1.5])
        return logpdf.prior(xp, theta, centre, np.array([1.0, 0.7, 0.7, 1.0, 0.7, 1.0])) + total

    return density
