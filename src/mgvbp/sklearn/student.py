"""Linear regression with Student-t errors, which outliers do not lead astray."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, digamma, polygamma

from mgvbp.core import Array
from mgvbp.families import Gaussian
from mgvbp.models import LOG_TAIL, StudentRegression
from mgvbp.sklearn.base import Data, Scaling
from mgvbp.sklearn.exact import Expectations
from mgvbp.sklearn.linear import NOISE_FLOOR, BayesianLinearRegression, ScaledRegression
from mgvbp.sklearn.shared import Derivatives, SharedLikelihood
from mgvbp.transforms import LowerBound

MAD = 1.4826
"""The standard deviation of a normal distribution in median absolute deviations."""
ROUNDS = 20
"""Of reweighted least squares, for the start."""


class BayesianStudentTRegression(ScaledRegression):
    """Linear regression with Student-t errors: their scale and degrees of freedom are learned, too.

    ``y = w + xᵀb + σε``, ε of ν > 2 degrees of freedom. The priors are on scaled data, features having mean 0 and
    standard deviation 1, y median 0 and median absolute deviation 1/1.48: normal with variance ``prior_variance`` for
    each coefficient and the intercept, standard normal for log σ, N(log 10, 1) for log(ν − 2), which puts ν between 3.4
    and 73 with 95%. (Residuals below 1e-4 of the scale are taken for rounding, so that an exact fit has a posterior.)

    Parameters
    ----------
    prior_variance : float or "evidence"
        6.25 by default, which is vague. ``"evidence"`` takes the number with the largest lower bound of the log
        evidence (``prior_variance_``).
    fit_intercept : bool
        If False, data are not centred; features are scaled by their root mean squares, y by its median absolute value.
    family : {"full", "diagonal"} or BlockDiagonal
        The structure of the posterior's covariance. θ is the intercept, the coefficients, log σ, log(ν − 2).
    tol : float
        How many nats below its optimum the lower bound may be.
    max_iter : int
        Limit on the number of iterations; usually there are fewer than 20.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Posterior means in the units of X and y.
    coef_sd_ : ndarray of shape (n_features,)
        Their posterior standard deviations.
    intercept_ : float
    posterior_ : Posterior
        Of θ, for the scaled data, under the names of the features.
    lower_bound_ : float
        Lower bound of the log evidence of the scaled y.
    prior_variance_ : float
        The prior variance that was used.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where X has names of type str.

    Examples
    --------
    One of twenty points on a line is far off:

    >>> X = np.arange(20.0)[:, None]
    >>> y = 3.0 * X[:, 0] + np.sin(X[:, 0])
    >>> y[18] = -500.0
    >>> BayesianStudentTRegression().fit(X, y).coef_.round(1)
    array([3.])
    """

    _others: ClassVar = BayesianLinearRegression._others | {"nu": (LowerBound(2.0), *LOG_TAIL)}

    def _likelihood(self, data: Data) -> StudentErrors:
        self._response = robust_scaling(data.response, data.weights, centre=self.fit_intercept)
        return StudentErrors(StudentRegression(data.design, self._response(data.response)), data.weights)

    def _noise(self) -> float:
        q, shared = self.posterior_, range(self.posterior_.dim - 2, self.posterior_.dim)
        psi, tau = q.mean[-2:]
        (v, c), (_, u) = q.covariance_of(shared)
        # E[σ² ν/(ν − 2)] = E[exp(2ψ)] + 2 E[exp(2ψ − τ)], τ = log(ν − 2)
        log_square, log_rest = 2.0 * psi + 2.0 * v, 2.0 * psi - tau + 2.0 * v - 2.0 * c + 0.5 * u
        return float(np.exp(log_square) + 2.0 * np.exp(log_rest))


def robust_scaling(y: Array, weights: Array, *, centre: bool) -> Scaling:
    """Median and scaled median absolute deviation; the usual scaling if more than half of the values are the same."""
    location = weighted_median(y, weights) if centre else 0.0
    scale = MAD * weighted_median(np.abs(y - location), weights)
    if scale <= 10.0 * np.finfo(float).eps * np.abs(y).max():
        return Scaling.of(y, weights, centre=centre)
    return Scaling(np.asarray(location), np.asarray(scale))


def weighted_median(values: Array, weights: Array) -> float:
    """The median of values that count as often as their weights say.

    Examples
    --------
    >>> weighted_median(np.array([5.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]))
    1.5
    """
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = np.searchsorted(share, [0.5 - 1e-12, 0.5 + 1e-12])
    return float(0.5 * (values[order[low]] + values[order[min(high, len(order) - 1)]]))


class StudentErrors(SharedLikelihood):
    """The likelihood, and the factor ``exp(−½ (1e-4 / σ)²)`` of `NormalErrors`, which is 1 unless the fit is exact."""

    num_shared = 2

    def __call__(self, theta: Array) -> Array:
        with np.errstate(over="ignore"):
            return super().__call__(theta) - 0.5 * NOISE_FLOOR**2 * np.exp(-2.0 * theta[:, -2])

    def start(self, prior: Gaussian) -> tuple[Array, Array]:
        """Reweighted least squares and their scale, in turns, and the Fisher information without what mixes."""
        X, y, w, nu = self.model.X, self.model.y, self.weights, 2.0 + float(np.exp(LOG_TAIL[0]))
        each, variance = w, 1.0
        beta: np.ndarray[Any, Any] = np.zeros(X.shape[1])
        for _ in range(ROUNDS):
            ridge = (X.T * each) @ X + variance * prior.precision[:-2, :-2]
            beta = np.linalg.solve(ridge, X.T @ (each * y))
            squares = (y - X @ beta) ** 2
            each = w * (nu + 1.0) / (nu + squares / variance)
            variance = float(each @ squares) / float(w.sum()) + NOISE_FLOOR**2
        n = float(w.sum())
        information = np.zeros((prior.dim, prior.dim))
        information[:-2, :-2] = (X.T * w) @ X * ((nu + 1.0) / (nu + 3.0) / variance)
        information[-2, -2] = 2.0 * n * nu / (nu + 3.0)
        tail = polygamma(1, 0.5 * nu) - polygamma(1, 0.5 * nu + 0.5)
        tail -= 2.0 * (nu + 5.0) / (nu * (nu + 1.0) * (nu + 3.0))
        information[-1, -1] = 0.25 * n * (nu - 2.0) ** 2 * float(tail)
        return np.concatenate([beta, [0.5 * np.log(variance), LOG_TAIL[0]]]), information

    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        found = super().expectations(mean, covariance)
        floor = NOISE_FLOOR**2 * np.exp(2.0 * covariance[-2, -2] - 2.0 * mean[-2])
        gradient, curvature = found.gradient.copy(), found.curvature.copy()
        gradient[-2] += floor
        curvature[-2, -2] += 2.0 * floor
        return Expectations(found.value - 0.5 * floor, gradient, curvature)

    def derivatives(self, eta: Array, shared: Array, y: Array) -> Derivatives:
        """With ``u = (y − η)/σ``, ``w = (ν + 1)/(ν + u²)``, ψ = log σ and τ = log(ν − 2)."""
        psi, h = shared[:, 0, None], np.exp(shared[:, 1, None])  # h = ν − 2 = dν/dτ
        nu = 2.0 + h
        a = np.exp(-psi)
        u = (y[:, None, None] - eta) * a
        squares = u * u
        total = nu + squares
        w = (nu + 1.0) / total
        slope = w * (nu - squares) / total  # d(wu)/du
        log_kernel = np.log1p(squares / nu)
        value = -betaln(0.5 * nu, 0.5) - 0.5 * np.log(nu) - psi - 0.5 * (nu + 1.0) * log_kernel
        half = 0.5 * (nu + 1.0)
        first = 0.5 * (digamma(half) - digamma(0.5 * nu)) - 0.5 / nu
        second = 0.25 * (polygamma(1, half) - polygamma(1, 0.5 * nu)) + 0.5 / nu**2
        ratio = squares / (nu * total)
        by_nu = first - 0.5 * log_kernel + half * ratio
        by_nu_twice = second + ratio - half * ratio * (2.0 * nu + squares) / (nu * total)
        w_nu = (squares - 1.0) / total**2
        return Derivatives(
            value,
            eta=a * w * u,
            shared=[w * squares - 1.0, by_nu * h],
            eta_eta=-(a**2) * slope,
            eta_shared=[-a * u * (w + slope), a * u * w_nu * h],
            shared_shared={
                (0, 0): -squares * (w + slope),
                (0, 1): squares * w_nu * h,
                (1, 1): by_nu_twice * h**2 + by_nu * h,
            },
        )
