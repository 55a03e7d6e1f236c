"""Gaussian processes and differential equations with a fixed-step Runge-Kutta method.

Far in a Gaussian's tails the solutions explode, so that strictly the lower bound is -∞ (tag ``tails``); under
the stored optima that takes events which no sample of a feasible size meets.
"""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import NUMPY, target


def kernel_factor(xp, x, log_amplitude, log_length, noise_variance):
    """Cholesky factors (S, n, n) of a squared-exponential kernel with noise on its diagonal."""
    squared = (x[:, None] - x) ** 2
    amplitude, length = xp.exp(2.0 * log_amplitude), xp.exp(-2.0 * log_length)
    kernel = amplitude[:, None, None] * xp.exp(-0.5 * squared * length[:, None, None])
    diagonal = noise_variance + 1e-6 * (1.0 + amplitude)
    return xp.cholesky(kernel + diagonal[:, None, None] * np.eye(len(x)))


@target(3, "gp")
def gp_hyperparameters():
    """log amplitude, log length scale and log noise of a regression on 25 points."""
    rng = np.random.default_rng(61)
    x = np.sort(rng.uniform(0.0, 10.0, 25))
    y = np.sin(x) + 0.3 * rng.standard_normal(25)

    def density(theta, xp):
        factor = kernel_factor(xp, x, theta[:, 0], theta[:, 1], xp.exp(2.0 * theta[:, 2]))
        z = xp.solve_lower(factor, xp.zeros((len(theta), 1)) + y)
        log_det = xp.log(xp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
        return logpdf.prior(xp, theta, np.array([0.0, 0.5, -1.0]), 1.0) - 0.5 * (z**2).sum(-1) - log_det

    return density


@target(18, "gp", "counts", "medium")
def gp_poisson():
    """A log rate on 15 points, whitened by the kernel's factor; mean, amplitude, log length.

    The amplitude is bounded by 2 (a logit), for with its logarithm the mean rate under a Gaussian diverges.
    """
    rng = np.random.default_rng(62)
    x = np.linspace(0.0, 7.0, 15)
    y = rng.poisson(np.exp(1.0 + np.sin(x))).astype(float)

    def density(theta, xp):
        mean, z = theta[:, :1], theta[:, 3:]
        log_amplitude = np.log(2.0) - logpdf.softplus(xp, -theta[:, 1])
        factor = kernel_factor(xp, x, log_amplitude, theta[:, 2], xp.zeros_like(theta[:, 0]))
        log_rate = mean + (factor * z[:, None, :]).sum(-1)
        prior = logpdf.prior(xp, theta[:, :3], np.array([1.0, -0.3, 0.3]), np.array([1.0, 1.0, 0.5]))
        return prior + logpdf.prior(xp, z) + logpdf.poisson(xp, y, log_rate).sum(-1)

    return density


def runge_kutta(xp, slope, state, step_size):
    """One classical step for a tuple of state arrays."""

    def moved(k, h):
        return tuple(s + h * d for s, d in zip(state, k, strict=True))

    k1 = slope(*state)
    k2 = slope(*moved(k1, 0.5 * step_size))
    k3 = slope(*moved(k2, 0.5 * step_size))
    k4 = slope(*moved(k3, step_size))
    return tuple(
        s + step_size / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        for s, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True)
    )


@target(8, "ode", "tails")
def lotka_volterra():
    """Four log rates, two log initial values and two log sds; log-normal observations at 20 times."""
    rng = np.random.default_rng(63)
    step_size, substeps = 0.125, 4

    def path(xp, rates, start, collect, carry, data):
        growth, loss, death, gain = rates

        def slope(u, v):  # in logarithms: positive without a transform
            return growth - loss * xp.exp(v), gain * xp.exp(u) - death

        def step(carry, row):
            u, v, extra = carry
            for _ in range(substeps):
                u, v = runge_kutta(xp, slope, (u, v), step_size)
            return u, v, collect(extra, row, u, v)

        return xp.loop(step, (*start, carry), data)[2]

    truth = [np.array([r]) for r in (0.8, 0.4, 0.9, 0.3)]
    seen = path(
        NUMPY,
        truth,
        (np.array([0.7]), np.array([0.3])),
        lambda e, _, u, v: [*e, (u[0], v[0])],
        [],
        np.zeros(20),
    )
    data = np.array(seen) + 0.2 * rng.standard_normal((20, 2))

    def density(theta, xp):
        rates = [xp.exp(theta[:, i]) for i in range(4)]

        def collect(total, row, u, v):
            fit = logpdf.normal(xp, row[0], u, theta[:, 6]) + logpdf.normal(xp, row[1], v, theta[:, 7])
            return total + fit

        total = path(xp, rates, (theta[:, 4], theta[:, 5]), collect, xp.zeros_like(theta[:, 0]), data)
        centre = np.array([-0.5, -1.0, -0.5, -1.0, 0.5, 0.5, -1.0, -1.0])
        return logpdf.prior(xp, theta, centre, 0.5) + total

    return density


@target(4, "ode", "counts", "tails")
def sir_epidemic():
    """log β, log γ, logit of the initial share and log size of negative binomial daily cases."""
    rng = np.random.default_rng(64)
    people, days = 763.0, 14

    def new_cases(xp, beta, gamma, start, collect, carry, data):
        def slope(s, i):
            return -beta * s * i, beta * s * i - gamma * i

        def step(carry, row):
            s, i, extra = carry
            before = s
            for _ in range(4):
                s, i = runge_kutta(xp, slope, (s, i), 0.25)
            return s, i, collect(extra, row, xp.maximum(before - s, 1e-10))

        return xp.loop(step, (1.0 - start, start, carry), data)[2]

    truth = new_cases(
        NUMPY, *(np.array([v]) for v in (1.6, 0.5, 0.003)), lambda e, _, c: [*e, c[0]], [], np.zeros(days)
    )
    y = rng.negative_binomial(10, 10.0 / (10.0 + people * np.array(truth))).astype(float)

    def density(theta, xp):
        beta, gamma, log_size = xp.exp(theta[:, 0]), xp.exp(theta[:, 1]), theta[:, 3]

        def collect(total, value, cases):
            return total + logpdf.negative_binomial(xp, value, xp.log(people * cases), log_size)

        start = logpdf.sigmoid(xp, theta[:, 2])
        total = new_cases(xp, beta, gamma, start, collect, xp.zeros_like(beta), y)
        return (
            logpdf.prior(xp, theta, np.array([0.0, -0.5, -5.0, 1.0]), np.array([1.0, 1.0, 1.5, 1.0])) + total
        )

    return density


@target(4, "ode", "nonlinear")
def logistic_growth():
    """log rate, log capacity, log initial size, log sd; the closed-form solution, observed in logarithms."""
    rng = np.random.default_rng(65)
    t = np.linspace(0.0, 6.0, 20)

    y = np.log(20.0 / (1.0 + 19.0 * np.exp(-1.2 * t))) + 0.15 * rng.standard_normal(20)

    def density(theta, xp):
        log_rate, log_capacity, log_start, log_sd = (theta[:, i : i + 1] for i in range(4))
        start_odds = xp.exp(log_capacity - log_start) - 1.0
        mean = log_capacity - xp.log1p(start_odds * xp.exp(-xp.exp(log_rate) * t))
        fit = logpdf.normal(xp, y, mean, log_sd).sum(-1)
        return logpdf.prior(xp, theta, np.array([0.0, 2.5, 0.0, -1.0]), np.array([1.0, 1.0, 1.0, 1.0])) + fit

    return density
