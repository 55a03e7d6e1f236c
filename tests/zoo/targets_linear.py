"""Regressions with a continuous response: raw units, robust losses, censoring, nonlinear means."""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import Density, target
from .data import columns, design, sklearn_data, standardised


def linear(
    X: np.ndarray, y: np.ndarray, coefficient_sd: np.ndarray | float, log_sd_prior: tuple[float, float]
):
    """Normal errors; the last parameter is log σ with a normal prior (mean, sd)."""
    p = X.shape[1]
    centre, width = log_sd_prior

    def density(theta, xp):
        beta, log_sd = theta[:, :p], theta[:, p:]
        fit = logpdf.normal(xp, y, beta @ X.T, log_sd).sum(-1)
        return logpdf.prior(xp, beta, 0.0, coefficient_sd) + logpdf.prior(xp, log_sd, centre, width) + fit

    return density


@target(6, "linear", "real")
def linear_wage():
    y, *x = columns("wage1", "lwage", "educ", "exper", "tenure", "female", rows=300)
    return linear(design(*x), y, 3.0, (0.0, 1.0))


@target(12, "linear", "real", "scales")
def linear_diabetes_raw():
    """Ten covariates in their own units; coefficients from 0.1 to hundreds."""
    X, y = sklearn_data("diabetes", scaled=False)
    return linear(design(X, scale=False), y, 1e3, (0.0, 5.0))


@target(5, "linear", "real", "scales")
def linear_ceo_raw():
    """Salaries on covariates of the sizes 1, 1e6, 0.1 and 1e-3."""
    y, sales, roe, ros = columns("ceosal1", "salary", "sales", "roe", "ros")
    X = np.column_stack([np.ones(len(y)), sales * 1e3, roe / 100.0, ros / 1e5])
    return linear(X, y, 1e6, (0.0, 5.0))


@target(5, "linear", "real", "scales")
def linear_gpa_interaction():
    """College grades on school grades, ACT and their uncentred product: nearly collinear."""
    y, hs, act = columns("gpa1", "colGPA", "hsGPA", "ACT")
    return linear(design(hs, act, hs * act, scale=False), y, 10.0, (0.0, 1.0))


@target(100, "linear", "large")
def linear_ridge_100():
    """99 correlated covariates, 150 rows."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((150, 99)) @ (0.5 * np.eye(99) + 0.5 * np.eye(99, k=1) + 0.05)
    y = X @ (rng.standard_normal(99) * (rng.random(99) < 0.2)) + rng.standard_normal(150)
    return linear(X, y, 1.0, (0.0, 1.0))


@target(8, "linear", "real")
def linear_heteroscedastic():
    """Savings-like data: mean and log σ both linear in three covariates."""
    y, *x = columns("hprice1", "price", "lotsize", "sqrft", "bdrms")
    X, y = design(*(np.log(v) for v in x)), standardised(y)

    def density(theta, xp):
        return logpdf.prior(xp, theta, 0.0, 2.0) + logpdf.normal(
            xp, y, theta[:, :4] @ X.T, theta[:, 4:] @ X.T
        ).sum(-1)

    return density


@target(6, "linear", "real", "robust")
def student_regression():
    """t errors with log σ and log(ν - 1)."""
    y, *x = columns("rdchem", "rdintens", "lsales", "profmarg")
    extra, profits = columns("rdchem", "sales", "profits")
    X = design(*x, profits / extra)

    def density(theta, xp):
        log_sd, nu = theta[:, 4:5], 1.0 + xp.exp(theta[:, 5:])
        fit = logpdf.student_t(xp, y, theta[:, :4] @ X.T, log_sd, nu).sum(-1)
        return logpdf.prior(xp, theta, 0.0, np.array([5.0, 2, 2, 2, 1, 1])) + fit

    return density


@target(5, "linear", "real", "nonsmooth")
def quantile_wage():
    """The 0.9 quantile of wages: asymmetric Laplace errors with log scale."""
    y, *x = columns("wage1", "wage", "educ", "exper", "tenure", rows=200)
    X = design(*x)

    def density(theta, xp):
        log_scale = theta[:, 4:]
        r = (y - theta[:, :4] @ X.T) * xp.exp(-log_scale)
        fit = -log_scale - xp.maximum(0.9 * r, -0.1 * r)
        return logpdf.prior(xp, theta, 0.0, 10.0) + fit.sum(-1)

    return density


@target(11, "linear", "real", "nonsmooth")
def lasso_diabetes():
    """Laplace priors on ten coefficients; log σ."""
    X, y = sklearn_data("diabetes")
    X, y = standardised(X), standardised(y)

    def density(theta, xp):
        beta, log_sd = theta[:, :10], theta[:, 10:]
        fit = logpdf.normal(xp, y, beta @ X.T, log_sd).sum(-1)
        return fit - 20.0 * xp.abs(beta).sum(-1) + logpdf.prior(xp, log_sd, 0.0, 1.0)

    return density


@target(6, "linear", "real", "scales", "censored")
def tobit_hours():
    """Hours worked in a year, zero for those not in the labour force; hours in units of one."""
    y, *x = columns("mroz", "hours", "kidslt6", "educ", "exper", "age", rows=350)
    X = design(*x)
    worked = y > 0

    def density(theta, xp):
        log_sd = theta[:, 5:]
        z = (y - theta[:, :5] @ X.T) * xp.exp(-log_sd)
        fit = xp.where(worked, -0.5 * z**2 - log_sd, xp.log_ndtr(z))
        return logpdf.prior(xp, theta[:, :5], 0.0, 1e4) + logpdf.prior(xp, log_sd, 0.0, 5.0) + fit.sum(-1)

    return density


def curve_fit(mean, x: np.ndarray, y: np.ndarray, centre: list[float], width: float | np.ndarray) -> Density:
    """``y = mean(θ, x) + σ ε``: the last parameter is log σ; independent normal priors."""
    middle = np.array(centre)

    def density(theta, xp):
        fit = logpdf.normal(xp, y, mean(theta, x, xp), theta[:, -1:]).sum(-1)
        return logpdf.prior(xp, theta, middle, width) + fit

    return density


@target(3, "nonlinear")
def michaelis_menten():
    """log V and log K, barely identified apart: concentrations below K."""
    rng = np.random.default_rng(21)
    x = np.linspace(0.2, 4.0, 15)
    y = 8.0 * x / (4.0 + x) + 0.25 * rng.standard_normal(15)

    def mean(theta, x, xp):
        return xp.exp(theta[:, :1]) * x / (xp.exp(theta[:, 1:2]) + x)

    return curve_fit(mean, x, y, [1.0, 1.0, 0.0], 1.5)


@target(5, "nonlinear")
def biexponential_decay():
    """Two decay rates ordered by a positive difference."""
    rng = np.random.default_rng(22)
    x = np.linspace(0.0, 6.0, 30)
    y = 3.0 * np.exp(-2.5 * x) + 2.0 * np.exp(-0.3 * x) + 0.1 * rng.standard_normal(30)

    def mean(theta, x, xp):
        slow = xp.exp(theta[:, 2:3])
        fast = slow + xp.exp(theta[:, 3:4])
        return xp.exp(theta[:, :1] - fast * x) + xp.exp(theta[:, 1:2] - slow * x)

    return curve_fit(mean, x, y, [0.5, 0.5, -1.0, 0.5, -1.0], 1.0)


@target(5, "nonlinear")
def dose_response():
    """Four-parameter logistic curve."""
    rng = np.random.default_rng(23)
    x = np.tile(np.linspace(-3.0, 3.0, 10), 2)
    y = 1.0 + 4.0 / (1.0 + np.exp(-2.0 * (x - 0.5))) + 0.3 * rng.standard_normal(20)

    def mean(theta, x, xp):
        slope = xp.exp(theta[:, 2:3])
        return theta[:, :1] + xp.exp(theta[:, 1:2]) * logpdf.sigmoid(xp, slope * (x - theta[:, 3:4]))

    return curve_fit(mean, x, y, [0.0, 1.0, 0.0, 0.0, -1.0], np.array([3.0, 1.0, 1.0, 2.0, 1.0]))


@target(3, "nonlinear", "flat")
def saturated_sigmoid():
    """A bounded mean: away from the data's region the likelihood is flat and only a wide prior slopes."""
    rng = np.random.default_rng(24)
    x = np.linspace(0.0, 20.0, 25)
    y = 10.0 / (1.0 + np.exp(-(x - 12.0))) + rng.standard_normal(25)

    def mean(theta, x, xp):
        return 10.0 * logpdf.sigmoid(xp, theta[:, :1] + theta[:, 1:2] * x)

    return curve_fit(mean, x, y, [0.0, 0.0, 0.0], np.array([50.0, 10.0, 1.0]))


@target(5, "nonlinear")
def smooth_change_point():
    """A level shift at an unknown time, with log width and log σ."""
    rng = np.random.default_rng(25)
    t = np.arange(60) / 10.0
    y = np.where(t < 3.6, 1.0, 2.5) + 0.5 * rng.standard_normal(60)

    def mean(theta, t, xp):
        rise = logpdf.sigmoid(xp, (t - theta[:, 2:3]) * xp.exp(-theta[:, 3:4]))
        return theta[:, :1] + theta[:, 1:2] * rise

    return curve_fit(mean, t, y, [0.0, 0.0, 3.0, -1.5, -0.5], np.array([2.0, 2.0, 1.5, 0.5, 1.0]))
