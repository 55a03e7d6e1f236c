"""Shapes, scales and small models that are far from Gaussian in other ways."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, log_ndtr

from zoo.targets_shapes import rotation

from .base import add
from .common import gaussian, logistic, normal, poisson
from .pieces import Piece
from .targets_slow import banana


def log_gamma(shape: float) -> Piece:
    """The logarithm of a Gamma variable."""
    return Piece(lambda x: shape * x - np.exp(x), starts=(np.log(shape),))


def ripples(amplitude: float, frequency: float, phase: float = 0.0) -> Piece:
    return Piece(lambda x: -0.5 * x**2 + amplitude * np.cos(frequency * x + phase))


def funnel(dim: int, sd: float) -> Piece:
    """Neal's funnel: v ~ N(0, sd²) and the others N(0, exp(v)); its expectation has a closed form."""

    def closed(m, c):
        with np.errstate(over="ignore"):
            shrink = np.exp(-m[0] + 0.5 * c[0, 0])
        squares = (m[1:] - c[0, 1:]) ** 2 + np.diag(c)[1:]
        return float(
            -0.5 * (m[0] ** 2 + c[0, 0]) / sd**2 - 0.5 * (dim - 1) * m[0] - 0.5 * shrink * squares.sum()
        )

    def f(v, *x):
        return -0.5 * (v / sd) ** 2 - 0.5 * len(x) * v - 0.5 * np.exp(-v) * sum(a**2 for a in x)

    return Piece(f, dim, closed=closed)


def dirichlet(x, y):
    """A Dirichlet on the scale of log ratios."""
    return 0.3 * x + 2.0 * y - 6.3 * np.logaddexp(np.logaddexp(x, y), 0.0)


add("form", "form_quartic", lambda x: -(x**4), gradients=True)
add("form", "form_quartic_in_3", *[Piece(lambda x: -(x**4))] * 3, mix=101)
add("form", "form_plateau_8", lambda x: -(x**8), gradients=True)
add("form", "form_plateau_20_in_2", *[Piece(lambda x: -((x / 2.0) ** 20))] * 2, mix=102)
add("form", "form_gamma_0.1", log_gamma(0.1), gradients=True)
add("form", "form_gamma_0.5_in_3", log_gamma(0.5), log_gamma(0.3), log_gamma(3.0), mix=103, gradients=True)
add("form", "form_gamma_diagonal", log_gamma(0.2), log_gamma(5.0), family="diagonal")
add("form", "form_gumbel", lambda x: -x - np.exp(-x), gradients=True)
add("form", "form_one_sided_exponentials_4", *[log_gamma(1.0)] * 4, mix=104, gradients=True)
add("form", "form_skew_normal", lambda x: -0.5 * x**2 + log_ndtr(10.0 * x), gradients=True)
add("form", "form_sinh", lambda x: -0.5 * np.sinh(x - 1.0) ** 2, gradients=True)
add("form", "form_cosh", lambda x: -np.cosh(3.0 * x), gradients=True)
add("form", "form_hole", Piece(lambda x: np.log(x**2 + 0.01) - 0.5 * x**2, starts=(1.5,)), gradients=True)
add("form", "form_singular", lambda x: -0.4 * np.log(np.abs(x) + 1e-6) - 0.5 * x**2)
add("form", "form_two_parabolas", lambda x: np.maximum(-0.5 * (x - 1.0) ** 2, -2.0 * (x + 1.0) ** 2 - 0.2))
add(
    "form",
    "form_huber",
    lambda x: -np.where(np.abs(x) < 0.3, 0.5 * x**2, 0.3 * np.abs(x) - 0.045),
    gradients=True,
)
add("form", "form_kinks_3", *[Piece(lambda x: np.minimum(3.0 * x, -0.3 * x))] * 3, mix=105, gradients=True)
add("form", "form_dirichlet", Piece(dirichlet, 2), gradients=True)

add("ripple", "ripple_0.3_at_5", ripples(0.3, 5.0), gradients=True)
add("ripple", "ripple_0.5_at_20", ripples(0.5, 20.0, 1.0), gradients=True)
add("ripple", "ripple_0.1_at_50", ripples(0.1, 50.0))
add("ripple", "ripple_1_at_2", ripples(1.0, 2.0, 1.5), gradients=True)
add("ripple", "ripple_3_at_8", ripples(3.0, 8.0))
add(
    "ripple",
    "ripple_in_3",
    ripples(0.3, 4.0),
    ripples(0.3, 7.0, 1.0),
    ripples(0.2, 11.0),
    mix=106,
    gradients=True,
)
add("ripple", "ripple_in_6", *[ripples(0.2, 3.0, p) for p in range(6)], mix=107)
add("ripple", "step_2", lambda x: -0.5 * x**2 - 2.0 * (x > 0.3), gradients=True)
add("ripple", "step_3_left", lambda x: -0.5 * x**2 - 3.0 * (x < -0.5), mix=(0.1,))
add("ripple", "step_stairs", lambda x: -np.abs(np.round(x)))
add("ripple", "step_1_in_3", *[Piece(lambda x: -0.5 * x**2 - (x > 0.5))] * 2, normal, mix=108)
add("ripple", "step_window", lambda x: -0.5 * x**2 + 2.0 * (np.abs(x - 1.0) < 0.2))
add(
    "ripple",
    "step_quadrants",
    Piece(lambda x, y: -0.5 * (x**2 + y**2) - 1.5 * (x * y > 0.0), 2, starts=((0.8, -0.8),)),
)

add("funnel", "funnel_2", funnel(2, 1.5), gradients=True)
add("funnel", "funnel_2_steep", funnel(2, 3.0), gradients=True)
add("funnel", "funnel_5", funnel(5, 1.0), gradients=True)
add("funnel", "funnel_10", funnel(10, 1.0), gradients=True)
add("funnel", "funnel_10_wide", funnel(10, 2.0))
add("funnel", "funnel_5_diagonal", funnel(5, 1.5), family="diagonal", gradients=True)

add("scales", "scales_1e-6_1e6", *[normal] * 5, mix=1.0 / np.logspace(-6, 6, 5), shift=np.logspace(-6, 6, 5))
add(
    "scales",
    "scales_rotated_12",
    *[normal] * 12,
    mix=rotation(12, 109) / np.logspace(-2, 2, 12),
    gradients=True,
)
add("scales", "scales_banana", banana(1.0), normal, mix=(1e-3, 1e-3, 1e4), gradients=True)
add("scales", "scales_tiny_gamma", log_gamma(2.0), normal, mix=(1e4, 1.0), gradients=True)
add("scales", "scales_far", *[normal] * 3, shift=(300.0, -1e4, 50.0), mix=(10.0, 0.01, 1.0), gradients=True)
add(
    "scales",
    "diagonal_0.99",
    gaussian(np.linalg.inv([[1.0, 0.99], [0.99, 1.0]])),
    family="diagonal",
    gradients=True,
)
add(
    "scales",
    "diagonal_0.99_in_5",
    gaussian(np.linalg.inv(0.01 * np.eye(5) + 0.99)),
    family="diagonal",
    gradients=True,
)
add("scales", "diagonal_0.9999", gaussian(np.linalg.inv([[1.0, 0.9999], [0.9999, 1.0]])), family="diagonal")
sheared = Piece(lambda x, y: -np.abs(x + y) - 5.0 * np.abs(x - y), 2)
add("scales", "diagonal_laplace_correlated", sheared, family="diagonal")

rng = np.random.default_rng(111)
returns = np.zeros(150)
variance = 1.0
for i in range(150):
    returns[i] = np.sqrt(variance) * rng.standard_normal()
    variance = 0.1 + 0.15 * returns[i] ** 2 + 0.75 * variance


def garch(omega, alpha, beta):
    """GARCH(1,1): log ω, and α, β as shares of one with the rest; a normal prior."""
    total = 1.0 + np.exp(alpha) + np.exp(beta)
    a, b, w = np.exp(alpha) / total, np.exp(beta) / total, np.exp(omega)
    news = w + a * returns[:, None] ** 2
    h = np.empty_like(news)
    h[0] = returns.var()
    for i in range(1, len(returns)):
        h[i] = news[i - 1] + b * h[i - 1]
    prior = -0.5 * (omega**2 + alpha**2 + beta**2) / 9.0
    return prior - 0.5 * (np.log(h) + returns[:, None] ** 2 / h).sum(axis=0)


points = np.array([1.2, 2.5, -0.3, 0.8, 4.0, 0.1])


def scale_model(mean, log_sd):
    """A mean and the logarithm of a standard deviation, from six observations."""
    squares = ((points[:, None] - mean) ** 2).sum(axis=0)
    return -6.0 * log_sd - 0.5 * squares * np.exp(-2.0 * log_sd) - 0.5 * (mean / 10.0) ** 2 - 0.5 * log_sd**2


def robust(mean, log_sd, log_nu):
    """Student's t with unknown location, scale and degrees of freedom."""
    nu = np.exp(log_nu)
    z = (points[:, None] - mean) * np.exp(-log_sd)
    constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(nu) - log_sd
    return (
        (constant - 0.5 * (nu + 1.0) * np.log1p(z**2 / nu)).sum(axis=0)
        - 0.5 * (mean / 10.0) ** 2
        - 0.5 * log_sd**2
        - 0.5 * (log_nu - 1.0) ** 2
    )


def schools(m, log_tau, *x):
    """Centred hierarchy: five effects, their mean and the logarithm of their spread."""
    effects = np.stack(x)
    y, sd = np.array([2.8, 0.8, -0.3, 0.7, -0.1]), np.array([1.5, 1.0, 1.6, 1.1, 0.9])
    return (
        -0.5 * (((y - effects.T) / sd) ** 2).sum(axis=1)
        - 5.0 * log_tau
        - 0.5 * ((effects - m) ** 2).sum(axis=0) * np.exp(-2.0 * log_tau)
        - 0.5 * (m / 5.0) ** 2
        - 0.5 * log_tau**2
    )


add("model", "model_garch", Piece(garch, 3, starts=((-2.0, 0.0, 1.0),)), gradients=True)
add("model", "model_scale", Piece(scale_model, 2), gradients=True)
add("model", "model_student", Piece(robust, 3), gradients=True)
add("model", "model_hierarchy", Piece(schools, 7), gradients=True)
add("model", "model_logistic_12", logistic(60, 12, 113), gradients=True)
add("model", "model_logistic_few", logistic(8, 5, 115, 5.0), gradients=True)
add("model", "model_poisson", poisson(30, 4, 117), gradients=True)
add("model", "model_poisson_diagonal", poisson(30, 4, 117), family="diagonal")
