"""Recursions in time: autoregressions, moving averages, state space, volatility."""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import target
from .data import columns, standardised


@target(5, "time_series", "real")
def ar3_interest():
    """AR(3) with intercept and log σ on the US three-month rate, 56 years; given the first three values."""
    (rate,) = columns("intdef", "i3")
    y = rate[3:]
    X = np.column_stack([np.ones(len(y)), rate[2:-1], rate[1:-2], rate[:-3]])

    def density(theta, xp):
        fit = logpdf.normal(xp, y, theta[:, :4] @ X.T, theta[:, 4:]).sum(-1)
        return logpdf.prior(xp, theta, 0.0, 2.0) + fit

    return density


@target(9, "time_series", "real")
def var1_deficit():
    """Bivariate VAR(1) of inflation and deficit; the noise by its Cholesky factor with log diagonal."""
    data = standardised(np.column_stack(columns("intdef", "inf", "def")))
    now, before = data[1:], np.column_stack([np.ones(len(data) - 1), data[:-1]])

    def density(theta, xp):
        first = now[:, 0] - theta[:, :3] @ before.T
        second = now[:, 1] - theta[:, 3:6] @ before.T - theta[:, 6:7] * first
        fit = logpdf.normal(xp, first, 0.0, theta[:, 7:8]) + logpdf.normal(xp, second, 0.0, theta[:, 8:])
        return logpdf.prior(xp, theta) + fit.sum(-1)

    return density


@target(4, "time_series")
def arma11():
    """μ, φ and θ through tanh, log σ; residuals by recursion from zero."""
    rng = np.random.default_rng(41)
    noise, y = rng.standard_normal(151), np.zeros(151)
    for t in range(1, 151):
        y[t] = 0.7 * y[t - 1] + noise[t] + 0.4 * noise[t - 1]
    y = y[1:] + 2.0

    def density(theta, xp):
        mu, phi, ma, log_sd = theta[:, 0], xp.tanh(theta[:, 1]), xp.tanh(theta[:, 2]), theta[:, 3]

        def step(carry, value):
            previous, residual, total = carry
            residual = value - mu - phi * previous - ma * residual
            return value - mu, residual, total + residual**2

        zero = xp.zeros_like(mu)
        total = xp.loop(step, (zero, zero, zero), y)[2]
        return logpdf.prior(xp, theta) - 0.5 * total * xp.exp(-2.0 * log_sd) - len(y) * log_sd

    return density


@target(4, "time_series")
def ma2():
    """Invertible by partial autocorrelations through tanh."""
    rng = np.random.default_rng(42)
    noise = rng.standard_normal(122)
    y = 0.5 + noise[2:] + 0.6 * noise[1:-1] - 0.3 * noise[:-2]

    def density(theta, xp):
        mu, r1, r2, log_sd = theta[:, 0], xp.tanh(theta[:, 1]), xp.tanh(theta[:, 2]), theta[:, 3]
        first = r1 * (1.0 - r2)  # Durbin-Levinson: the roots stay outside the unit circle

        def step(carry, value):
            one, two, total = carry
            residual = value - mu - first * one + r2 * two
            return residual, one, total + residual**2

        zero = xp.zeros_like(mu)
        total = xp.loop(step, (zero, zero, zero), y)[2]
        return logpdf.prior(xp, theta) - 0.5 * total * xp.exp(-2.0 * log_sd) - len(y) * log_sd

    return density


@target(2, "time_series", "state_space", "real")
def local_level_inflation():
    """Local level model of inflation by the Kalman filter: log sd of noise and of level."""
    (y,) = columns("phillips", "inf")

    def density(theta, xp):
        noise, drift = xp.exp(2.0 * theta[:, 0]), xp.exp(2.0 * theta[:, 1])

        def step(carry, value):
            level, variance, total = carry
            variance = variance + drift
            spread = variance + noise
            error = value - level
            gain = variance / spread
            total = total - 0.5 * xp.log(spread) - 0.5 * error**2 / spread
            return level + gain * error, gain * noise, total

        zero = xp.zeros_like(noise)
        total = xp.loop(step, (zero, zero + 100.0, zero), y)[2]
        return logpdf.prior(xp, theta, 0.0, 1.5) + total

    return density


@target(4, "time_series", "state_space")
def local_linear_trend():
    """Level and slope, three log sds and a log-odds AR coefficient of the slope (damped trend)."""
    rng = np.random.default_rng(43)
    level, slope, y = 0.0, 0.1, np.zeros(80)
    for t in range(80):
        slope = 0.9 * slope + 0.1 * rng.standard_normal()
        level += slope + 0.2 * rng.standard_normal()
        y[t] = level + 0.5 * rng.standard_normal()

    def density(theta, xp):
        noise, drift, bend = (xp.exp(2.0 * theta[:, i]) for i in range(3))
        damp = logpdf.sigmoid(xp, theta[:, 3])

        def step(carry, value):
            m, s, p, c, q, total = carry  # level, slope, their variances p and q, covariance c
            m, s = m + s, damp * s
            p, c, q = p + 2.0 * c + q + drift, damp * (c + q), damp**2 * q + bend
            spread, error = p + noise, value - m
            gain, gain_slope = p / spread, c / spread
            total = total - 0.5 * xp.log(spread) - 0.5 * error**2 / spread
            return (
                m + gain * error,
                s + gain_slope * error,
                p - gain * p,
                c - gain * c,
                q - gain_slope * c,
                total,
            )

        zero = xp.zeros_like(noise)
        total = xp.loop(step, (zero, zero, zero + 10.0, zero, zero + 1.0, zero), y)[5]
        return logpdf.prior(xp, theta, np.array([-1.0, -1.0, -2.0, 2.0]), 1.0) + total

    return density


def garch_total(xp, returns, omega, alpha, beta, loss):
    """Sum of ``loss(return, variance)`` along the GARCH(1, 1) recursion from the sample variance."""

    def step(carry, value):
        variance, total = carry
        total = total + loss(value, variance)
        return omega + alpha * value**2 + beta * variance, total

    start = xp.zeros_like(omega)
    return xp.loop(step, (start + float(np.var(returns)), start), returns)[1]


def garch_parameters(xp, theta):
    """log ω; (α, β) as persistence and share, each a logit."""
    persistence, share = logpdf.sigmoid(xp, theta[:, 1]), logpdf.sigmoid(xp, theta[:, 2])
    return xp.exp(theta[:, 0]), persistence * share, persistence * (1.0 - share)


@target(3, "time_series", "volatility")
def garch11():
    """Simulated returns; priors N(0, 1.5²) on the transformed scale."""
    rng = np.random.default_rng(44)
    variance, y = 1.0, np.zeros(200)
    for t in range(200):
        y[t] = np.sqrt(variance) * rng.standard_normal()
        variance = 0.1 + 0.2 * y[t] ** 2 + 0.7 * variance

    def density(theta, xp):
        def loss(value, variance):
            return -0.5 * xp.log(variance) - 0.5 * value**2 / variance

        total = garch_total(xp, y, *garch_parameters(xp, theta), loss)
        return logpdf.prior(xp, theta, np.array([-1.0, 1.0, 0.0]), 1.5) + total

    return density


@target(5, "time_series", "volatility", "real")
def garch11_t_nyse():
    """Weekly NYSE returns with mean and t errors, log(ν - 2)."""
    (y,) = columns("nyse", "return", rows=200)

    def density(theta, xp):
        nu = 2.0 + xp.exp(theta[:, 4])
        half = 0.5 * (nu + 1.0)
        constant = xp.gammaln(half) - xp.gammaln(0.5 * nu) - 0.5 * xp.log(nu - 2.0)

        def loss(value, variance):
            error = (value - theta[:, 3]) ** 2
            return constant - 0.5 * xp.log(variance) - half * xp.log1p(error / (variance * (nu - 2.0)))

        total = garch_total(xp, y, *garch_parameters(xp, theta), loss)
        return (
            logpdf.prior(xp, theta, np.array([-1.0, 1.0, 0.0, 0.0, 2.0]), np.array([1.5, 1.5, 1.5, 1.0, 1.0]))
            + total
        )

    return density


def stochastic_volatility_of(length: int, seed: int):
    """Non-centred log volatilities: μ, logit φ, logit σ and ``length`` innovations.

    With log σ in place of logit σ every Gaussian's lower bound would be -∞: the mean of exp(-h) diverges.
    """
    rng = np.random.default_rng(seed)
    h, y = 0.0, np.zeros(length)
    for t in range(length):
        h = 0.9 * h + 0.4 * rng.standard_normal()
        y[t] = np.exp(0.5 * h) * rng.standard_normal()

    def density(theta, xp):
        mu, phi, sigma = theta[:, 0], logpdf.sigmoid(xp, theta[:, 1]), logpdf.sigmoid(xp, theta[:, 2])

        def step(carry, row):
            state, total = carry
            value, innovation = row
            state = phi * state + sigma * innovation
            h = mu + state
            return state, total - 0.5 * h - 0.5 * value**2 * xp.exp(-h)

        zero = xp.zeros_like(mu)
        total = xp.loop(step, (zero, zero), (y, theta[:, 3:].T))[1]
        prior = logpdf.prior(xp, theta[:, :3], np.array([0.0, 2.0, -0.5]), np.array([1.0, 1.0, 0.7]))
        return prior + logpdf.prior(xp, theta[:, 3:]) + total

    return density


@target(30, "time_series", "volatility", "medium")
def stochastic_volatility():
    return stochastic_volatility_of(27, 45)


@target(63, "time_series", "volatility", "large")
def stochastic_volatility_60():
    return stochastic_volatility_of(60, 46)
