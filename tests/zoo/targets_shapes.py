"""Densities chosen for their shape: scales, curvature, tails, flat regions."""

from __future__ import annotations

import numpy as np

from . import logpdf
from .base import Density, target


def gaussian(mean: np.ndarray, precision_factor: np.ndarray) -> Density:
    """Normal with precision ``F Fᵀ``, normalised; the optimal full lower bound is 0."""
    log_det = np.linalg.slogdet(precision_factor)[1]

    def density(theta, xp):
        z = (theta - mean) @ precision_factor
        return -0.5 * (z**2).sum(-1) + log_det - 0.5 * len(mean) * logpdf.LOG_2PI

    return density


def rotation(dim: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, dim)))[0]


@target(10, "gaussian", "scales")
def gaussian_condition_1e10():
    """A rotated covariance with condition number 1e10."""
    return gaussian(np.linspace(-1.0, 1.0, 10), rotation(10, 1) * np.logspace(-2.5, 2.5, 10))


@target(6, "gaussian", "scales", "far")
def gaussian_scales():
    """Standard deviations from 1e-6 to 1e6, equicorrelated, means of the size of the sd."""
    sd = np.logspace(-6, 6, 6)
    correlation = 0.5 * np.eye(6) + 0.5
    return gaussian(
        sd * np.array([1, -1, 2, -2, 1, 3]), np.linalg.inv(np.linalg.cholesky(correlation)).T / sd[:, None]
    )


@target(3, "gaussian", "far")
def gaussian_far_narrow():
    """Mean at 50 and standard deviation 0.1 in each coordinate."""
    return gaussian(np.full(3, 50.0), np.eye(3) / 0.1)


@target(4, "gaussian", "far")
def gaussian_location_1e3():
    sd = np.array([1.0, 5.0, 20.0, 100.0])
    return gaussian(np.array([1e3, -1e3, 2e3, 1e3]), (rotation(4, 2) / sd))


@target(100, "gaussian", "large")
def gaussian_ar1_100():
    """A stationary AR(1) path with coefficient 0.8: tridiagonal precision."""
    factor = np.eye(100) - 0.8 * np.eye(100, k=1)
    factor[-1, -1] = 0.6
    return gaussian(np.sin(np.arange(100) / 5.0), factor)


@target(1, "skewed")
def log_gamma():
    """The logarithm of a Gamma(2, 1) variable."""

    def density(theta, xp):
        return (2.0 * theta - xp.exp(theta)).sum(-1)

    return density


@target(5, "skewed")
def log_gamma_5():
    """Logarithms of Gamma variables with shapes 0.3 to 10, mixed by a unit triangular matrix."""
    shape = np.array([0.3, 0.7, 1.5, 4.0, 10.0])
    mix = np.eye(5) + 0.4 * np.eye(5, k=1)

    def density(theta, xp):
        x = theta @ mix
        return (shape * x - xp.exp(x) - xp.gammaln(shape)).sum(-1)

    return density


@target(2, "skewed")
def skew_normal_2():
    """Azzalini's skew normal with strong skewness along one direction."""
    slant = np.array([4.0, -2.0])

    def density(theta, xp):
        return logpdf.prior(xp, theta, 0.0, np.array([1.0, 3.0])) + xp.log_ndtr(theta @ slant)

    return density


@target(2, "curved")
def banana_2():
    def density(theta, xp):
        x, y = theta[:, 0], theta[:, 1]
        return -0.5 * (x / 2.0) ** 2 - 0.5 * (y - 0.15 * (x**2 - 4.0)) ** 2

    return density


@target(10, "curved")
def banana_10():
    """Five bananas with growing curvature."""
    curvature = np.linspace(0.03, 0.15, 5)

    def density(theta, xp):
        x, y = theta[:, :5], theta[:, 5:]
        return (-0.5 * (x / 2.0) ** 2 - 0.5 * (y - curvature * (x**2 - 4.0)) ** 2).sum(-1)

    return density


def funnel(dim: int, sd: float) -> Density:
    """Neal's funnel with ``v ~ N(0, sd²)`` and ``x ~ N(0, exp(v))``."""

    def density(theta, xp):
        v, x = theta[:, 0], theta[:, 1:]
        return logpdf.prior(xp, theta[:, :1], 0.0, sd) + logpdf.normal(xp, x, 0.0, 0.5 * v[:, None]).sum(-1)

    return density


@target(3, "funnel")
def funnel_3():
    return funnel(3, 1.5)


@target(10, "funnel")
def funnel_10():
    return funnel(10, 1.0)


@target(5, "heavy_tails")
def student_t_5():
    """Multivariate t with 5 degrees of freedom, correlated."""
    factor = np.linalg.inv(np.linalg.cholesky(0.4 * np.eye(5) + 0.6)).T

    def density(theta, xp):
        z = (theta - 1.0) @ factor
        return -0.5 * (5.0 + 5.0) * xp.log1p((z**2).sum(-1) / 5.0)

    return density


@target(4, "nonsmooth")
def laplace_4():
    """Independent Laplace coordinates after a shear, with scales 0.1 to 10."""
    shear = np.eye(4) + 0.5 * np.eye(4, k=1)

    def density(theta, xp):
        return -xp.abs((theta / np.array([0.1, 0.5, 2.0, 10.0]) - 1.0) @ shear).sum(-1)

    return density


@target(2, "multimodal")
def bimodal_2():
    """Weights 0.8 and 0.2, centres six apart."""

    def density(theta, xp):
        left = np.log(0.8) + logpdf.prior(xp, theta, np.array([-2.0, 0.0]), 1.0)
        right = np.log(0.2) + logpdf.prior(xp, theta, np.array([4.0, 1.0]), 0.7)
        return xp.logaddexp(left, right)

    return density


@target(3, "improper")
def improper_flat():
    """Flat along (1, 1, 1): the lower bound grows without limit."""
    project = np.eye(3) - np.ones((3, 3)) / 3.0

    def density(theta, xp):
        return -0.5 * ((theta @ project - np.array([1.0, 0.0, -1.0])) ** 2).sum(-1)

    return density
