"""Linear regression with normal and with Student-t errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, digamma

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import LOG_2PI, Gaussian
from mgvbp.models.base import SmoothRegression
from mgvbp.models.default_prior import moments, standardisation, standardised_prior
from mgvbp.problem.parameters import Parameters
from mgvbp.transforms import LowerBound, Positive, Real

LOG_NOISE_VARIANCE = 1.0
"""The default prior variance of log σ, y having standard deviation 1: σ is between 1/7 and 7 with 95%."""
NORMAL = 1e7
"""ν above which the slope by it is 0: the errors are normal to seven digits."""
LOG_TAIL = (float(np.log(10.0)), 1.0)
"""The default prior mean and variance of log(ν − 2): from tails that are plain to see to those of a normal."""


class LeastSquares:
    """``‖y − A c‖²`` for many ``c`` at once, at a cost that does not grow with the rows of ``A`` (N, k).

    With ``A = Q R``: ``‖y − A c‖² = ‖Qᵀy − R c‖² + ‖y − Q Qᵀy‖²``, a sum of squares, in which nothing cancels
    as it does in ``yᵀy − 2cᵀAᵀy + cᵀAᵀA c``.
    """

    def __init__(self, A: Array, y: Array) -> None:
        Q, self.R = np.linalg.qr(A)
        self.target = Q.T @ y
        rest = y - Q @ self.target
        self.rest = float(rest @ rest)

    def __call__(self, coefficients: Array) -> Array:
        """(S, k) -> (S,)."""
        residual = coefficients @ self.R.T - self.target
        return np.asarray(np.einsum("si,si->s", residual, residual) + self.rest)


class LinearRegression(SmoothRegression):
    """``y_i = x_iᵀβ + σ ε_i`` with standard normal errors; θ = (β, log σ).

    See `RegressionModel` for the arguments. `predictive` gives the means ``x_iᵀβ``.

    A fit without a prior takes N(0, 6.25), a standard deviation of 2.5, for the coefficients of columns and response
    that are centred and scaled to standard deviation 1, and N(0, 1) for log σ on that scale.

    Examples
    --------
    >>> X = np.column_stack([np.ones(4), np.arange(4.0)])
    >>> model = LinearRegression(X, [0.1, 1.2, 1.9, 3.2], names=["intercept", "slope"])
    >>> model.parameters.labels
    ('beta[0]', 'beta[1]', 'sigma')
    >>> model([[0.1, 1.0, -2.0]]).round(4)
    array([2.6863])
    >>> model.predictive([[0.1, 1.0, -2.0]], [[1.0, 10.0]])
    array([[10.1]])
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, names: Sequence[str] | None = None) -> None:
        super().__init__(X, y, names)
        self._squares = LeastSquares(self.X, self.y)

    def _parameters(self) -> Parameters:
        return Parameters(beta=Real(self.X.shape[1]), sigma=Positive())

    @property
    def default_prior(self) -> Gaussian:
        """N(0, 6.25) for standardised coefficients, log-normal for σ."""
        return scaled_prior(self.X, self.y)

    def _log_likelihood(self, theta: Array) -> Array:
        psi = theta[:, -1]
        # where exp(−2ψ) overflows the likelihood is zero
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self._squares(theta[:, :-1]) * np.exp(-2.0 * psi)
        return np.asarray(-0.5 * squares - len(self.y) * (psi + 0.5 * LOG_2PI))

    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        psi = theta[:, -1:]
        with np.errstate(over="ignore", invalid="ignore"):
            standardised = (y - theta[:, :-1] @ X.T) * np.exp(-psi)
            return np.asarray(-0.5 * standardised**2 - psi - 0.5 * LOG_2PI)

    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        scale = np.exp(-theta[:, -1:])
        z = (y - theta[:, :-1] @ X.T) * scale
        return np.column_stack([(z @ X) * scale, np.square(z).sum(axis=1) - len(y)])

    def _predictive(self, theta: Array, X: Array) -> Array:
        return np.asarray(theta[:, :-1] @ X.T)

    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        return means + np.exp(theta[:, -1:]) * rng.standard_normal(means.shape)


class StudentRegression(SmoothRegression):
    """``y_i = x_iᵀβ + σ ε_i`` with Student-t errors of ν degrees of freedom; θ = (β, log σ, log(ν − 2)).

    σ is the scale of the t distribution, not its standard deviation, which is ``σ √(ν/(ν−2))``. ν stays above
    2, as in the paper, so that this exists. See `RegressionModel` for the arguments. `predictive` gives the
    means ``x_iᵀβ``.

    A fit without a prior takes that of `LinearRegression`, and N(log 10, 1) for log(ν − 2): ν is between 3.4 and 73
    with 95%.

    Examples
    --------
    >>> model = StudentRegression([[1.0], [1.0], [1.0]], [0.0, 0.5, 30.0])
    >>> model.parameters.labels
    ('beta[0]', 'sigma', 'nu')
    >>> model([[0.0, 0.0, 0.0]]).round(3)
    array([-14.577])
    """

    def _parameters(self) -> Parameters:
        return Parameters(beta=Real(self.X.shape[1]), sigma=Positive(), nu=LowerBound(2.0))

    @property
    def default_prior(self) -> Gaussian:
        """That of `LinearRegression`, log-normal for ν − 2."""
        return scaled_prior(self.X, self.y, LOG_TAIL)

    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        psi = theta[:, -2:-1]
        nu = np.minimum(self.parameters.constrain(theta)["nu"], 1e100)[:, None]  # normal to the last digit
        # the beta function, since the difference of two log-gammas loses all digits for large ν
        constant = -betaln(0.5 * nu, 0.5) - 0.5 * np.log(nu) - psi
        with np.errstate(over="ignore", invalid="ignore"):
            squares = ((y - theta[:, :-2] @ X.T) * np.exp(-psi)) ** 2
            return np.asarray(constant - 0.5 * (nu + 1.0) * np.log1p(squares / nu))

    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        scale, nu = np.exp(-theta[:, -2:-1]), self.parameters.constrain(theta)["nu"][:, None]
        z = (y - theta[:, :-2] @ X.T) * scale
        weights = (nu + 1.0) / (nu + z**2)
        # by ν: where ν is so large that the digits of the differences are lost, the slope is 0 but for rounding
        at = np.minimum(nu, NORMAL)
        gamma = 0.5 * (digamma(0.5 * at + 0.5) - digamma(0.5 * at) - 1.0 / at)
        tails = gamma + 0.5 * (z**2 * weights / at - np.log1p(z**2 / at))
        by_nu = np.where(nu < NORMAL, (at - 2.0) * tails, 0.0).sum(axis=1)
        return np.column_stack([((weights * z) @ X) * scale, (weights * z**2).sum(axis=1) - len(y), by_nu])

    def _predictive(self, theta: Array, X: Array) -> Array:
        return np.asarray(theta[:, :-2] @ X.T)

    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        nu = self.parameters.constrain(theta)["nu"][:, None]
        return means + np.exp(theta[:, -2:-1]) * rng.standard_t(nu, means.shape)


StudentTRegression = StudentRegression


def scaled_prior(X: Array, y: Array, *others: tuple[float, float]) -> Gaussian:
    """The default prior of (β, log σ), and of ``others`` by mean and variance, for y of any unit."""
    location, scale = moments(y, standardisation(X)[1] is not None)
    noise = (float(np.log(scale)), LOG_NOISE_VARIANCE)
    return standardised_prior(X, location=location, scale=scale, others=(noise, *others))
