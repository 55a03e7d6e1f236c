"""Counts with a log link: Poisson and negative-binomial regression."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, digamma, expit, gammaln, log_expit

from mgvbp.core.checks import as_floats
from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError
from mgvbp.families.gaussian import Gaussian, frozen
from mgvbp.models.base import SmoothRegression, blocks, checked_response, refuse
from mgvbp.models.default_prior import standardised_prior
from mgvbp.problem.parameters import Parameters
from mgvbp.transforms import Positive, Real

LOG_DISPERSION = (0.0, 4.0)
"""The default prior mean and variance of log φ: from counts that are nearly Poisson to those of heavy tails."""
POISSON = -16.0
"""log φ below which the slope by it is 0: counts are those of Poisson to seven digits."""
MOST_COUNTS = 1e15
"""The largest mean of a count that is drawn: sampling stops at about 9e18."""


class CountRegression(SmoothRegression):
    """Counts whose mean is ``exposure × exp(x_iᵀβ)``.

    Inside, the logarithm of the exposure is one more column, whose coefficient is 1.
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        names: Sequence[str] | None = None,
        exposure: ArrayLike | None = None,
    ) -> None:
        super().__init__(X, y, names)
        self._design = frozen(with_exposure(self.X, exposure))

    @property
    def default_prior(self) -> Gaussian:
        """N(0, 6.25) for standardised coefficients, relative to the mean rate."""
        exposure = float(np.exp(self._design[:, -1]).sum())
        rate = max(float(self.y.sum()), 0.5) / exposure  # no counts at all: half a count
        return standardised_prior(self.X, location=float(np.log(rate)), others=self._others)

    _others: tuple[tuple[float, float], ...] = ()
    """Default prior means and variances of what follows β in θ."""

    def predictive(self, theta: ArrayLike, X: ArrayLike, exposure: ArrayLike | None = None) -> Array:
        """The mean count at new rows for each draw; (S, d), (M, k) and (M,) -> (S, M)."""
        draws = self._checked_draws(theta)
        return self._predictive(draws, with_exposure(self._checked_rows(X), exposure))

    def log_predictive_density(
        self, theta: ArrayLike, X: ArrayLike, y: ArrayLike, exposure: ArrayLike | None = None
    ) -> Array:
        """``log mean_s p(y_i | x_i, θ_s)`` of each new count; (S, d), (M, k), (M,) and (M,) -> (M,)."""
        design = with_exposure(self._checked_rows(X), exposure)
        return self._log_mean_density(theta, design, self._checked_response(y, len(design), new=True))

    def _checked_response(self, y: ArrayLike, n: int, *, new: bool = False) -> Array:
        counts = checked_response(y, n)
        refuse((counts < 0.0) | (counts != np.floor(counts)), counts, "hold counts 0, 1, 2, ...")
        return counts

    def _predictive(self, theta: Array, X: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(self._log_means(theta, X))

    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        return counts_around(means, rng)

    def _log_means(self, theta: Array, X: Array) -> Array:
        k = len(self.names)
        return np.asarray(theta[:, :k] @ X[:, :k].T + X[:, k])


class PoissonRegression(CountRegression):
    """Poisson counts with mean ``exposure × exp(x_iᵀβ)``; θ = β.

    `predictive` gives the means; it and `log_predictive_density` take the ``exposure`` of the new rows too.

    Parameters
    ----------
    X, y, names
        See `RegressionModel`.
    exposure : float or array_like of shape (N,), optional
        Time, area or number at risk over which was counted; 1 by default.

    Notes
    -----
    A fit without a prior takes N(0, 6.25), a standard deviation of 2.5, for the coefficients of columns that are
    centred and scaled to standard deviation 1; the intercept at the means of the columns is relative to the logarithm
    of all counts over all exposure.

    Examples
    --------
    >>> model = PoissonRegression([[1.0], [1.0]], [2, 7], exposure=[1.0, 3.0])
    >>> model([[np.log(2.5)]]).round(4)
    array([-3.2814])
    >>> model.predictive([[np.log(2.5)]], [[1.0]], exposure=10.0)
    array([[25.]])
    """

    @cached_property
    def _sums(self) -> Array:
        """``Σ y_i x_i``, and ``Σ y_i log(exposure_i)`` last."""
        return np.asarray(self._design.T @ self.y)

    @cached_property
    def _constant(self) -> float:
        return float(gammaln(self.y + 1.0).sum())

    def _log_likelihood(self, theta: Array) -> Array:
        extended = np.column_stack([theta, np.ones(len(theta))])
        total = extended @ self._sums - self._constant
        with np.errstate(over="ignore"):
            for draws, rows in blocks(len(theta), len(self.y)):
                # rows by draws: the sum runs over vectors of draws
                means = self._design[rows] @ extended[draws].T
                total[draws] -= np.exp(means, out=means).sum(axis=0)
        return np.asarray(total)

    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        return np.asarray((y - np.exp(self._log_means(theta, X))) @ X[:, :-1])

    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        log_means = self._log_means(theta, X)
        with np.errstate(over="ignore"):
            return np.asarray(y * log_means - np.exp(log_means) - gammaln(y + 1.0))


class NegativeBinomialRegression(CountRegression):
    """Counts with mean ``m_i = exposure × exp(x_iᵀβ)`` and variance ``m_i + φ m_i²`` (NB2); θ = (β, log φ).

    The dispersion φ is positive; the limit of φ = 0 is the Poisson model. The arguments are those of
    `PoissonRegression`, and so is the default prior of β. That of log φ is N(0, 4): φ is between 1/50 and 50 with 95%.

    Examples
    --------
    >>> model = NegativeBinomialRegression([[1.0], [1.0]], [2, 7])
    >>> model.parameters.labels
    ('beta[0]', 'dispersion')
    >>> model([[1.5, -1.0]]).round(4)
    array([-4.7452])
    """

    _others = (LOG_DISPERSION,)

    def _parameters(self) -> Parameters:
        return Parameters(beta=Real(self.X.shape[1]), dispersion=Positive())

    def _log_density(self, theta: Array, X: Array, y: Array) -> Array:
        """``log Γ(y+r)/(Γ(r) y!) + y log p + r log(1 − p)`` with ``r = 1/φ`` and ``p = φm/(1 + φm)``.

        p is a logistic function of ``log φ + log m``. The coefficient, once for each different count, is
        ``1/(y B(y, r))``: differences of log-gammas would lose all digits for large r.
        """
        log_phi = np.maximum(theta[:, -1:], -700.0)  # Poisson to the last digit
        r = np.exp(-log_phi)
        counts, index = np.unique(y, return_inverse=True)
        positive = np.where(counts > 0.0, counts, 1.0)
        coefficient = np.where(counts > 0.0, -betaln(positive, r) - np.log(positive), 0.0)
        logit = log_phi + self._log_means(theta, X)
        with np.errstate(over="ignore"):
            return np.asarray(coefficient[:, index] + y * log_expit(logit) + r * log_expit(-logit))

    def _slopes(self, theta: Array, X: Array, y: Array) -> Array:
        log_phi = np.maximum(theta[:, -1:], POISSON)
        r = np.exp(-log_phi)
        logit = log_phi + self._log_means(theta, X)
        by_logit = y * expit(-logit) - r * expit(logit)
        by_r = digamma(y + r) - digamma(r) + log_expit(-logit)
        # below it is 0 but for rounding: the model is Poisson's, and the digits of the differences are lost
        by_phi = np.where(theta[:, -1:] > POISSON, by_logit - r * by_r, 0.0).sum(axis=1)
        return np.column_stack([by_logit @ X[:, :-1], by_phi])

    def _simulated(self, theta: Array, means: Array, rng: np.random.Generator) -> Array:
        phi = np.exp(theta[:, -1:])
        return counts_around(means * phi * rng.standard_gamma(1.0 / phi, means.shape), rng)


def counts_around(means: Array, rng: np.random.Generator) -> Array:
    """Poisson counts with these means; beyond 1e15, where a count is its mean to eight digits, the mean."""
    return np.where(means < MOST_COUNTS, rng.poisson(np.minimum(means, MOST_COUNTS)), means)


def with_exposure(X: Array, exposure: ArrayLike | None) -> Array:
    """``X`` (n, k) and the logarithm of the exposure as one more column."""
    given = as_floats(1.0 if exposure is None else exposure, "exposure")
    if given.shape not in ((), (len(X),)):
        raise InvalidInputError(
            f"exposure has shape {given.shape}; expected ({len(X)},), one for each row of X"
        )
    if not (given > 0.0).all():
        raise InvalidInputError(f"exposure must be positive; got {given.min():g}")
    return np.column_stack([X, np.broadcast_to(np.log(given), len(X))])
