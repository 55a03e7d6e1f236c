"""Modes and maximum likelihood by trust-region Newton steps, all differences of a step in one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from mgvbp.core import Array
from mgvbp.posterior import Posterior
from mgvbp.problem import Prior
from mgvbp.run import fit

if TYPE_CHECKING:
    from mgvbp.volatility.har import HARLikelihood
    from mgvbp.volatility.likelihood import Likelihood

STEP = 1e-3
"""The step of central differences, in units of ``scale``: with it rounding errors and bias are about equal."""
EDGE = 1e-3
"""An estimate is on the edge of its range where the curvature in ψ, in units of ``scale``, is below this."""
WIDEST = 10.0
"""The largest variance that a fit starts with, in units of ``scale``: the curvature at a mode may be near zero."""
LOWEST = -1e100
"""Stands in for function values that are not finite, so that the search moves away from them."""


@dataclass(frozen=True, eq=False)
class Maximum:
    """A local maximum: ``point`` (d,), ``value``, ``hessian`` (d, d), and whether the gradient vanished."""

    point: Array
    value: float
    hessian: Array
    converged: bool


def maximise(function: Callable[[Array], Array], start: Array, scale: Array) -> Maximum:
    """Maximise a smooth function of rows, (S, d) -> (S,), from ``start`` (d,).

    ``scale`` (d,) has a typical change of each coordinate; the trust region is a ball in these units.
    """
    d, pairs = len(start), np.triu_indices(len(start), 1)
    unit = np.eye(d)
    both = unit[pairs[0]] + unit[pairs[1]]
    stencil = STEP * np.vstack([np.zeros((1, d)), unit, -unit, both, -both])

    @lru_cache(maxsize=1)  # value, gradient and Hessian are asked for one after the other
    def at(point: bytes) -> tuple[float, Array, Array]:
        """Value, gradient and Hessian of minus the function, in units of ``scale``."""
        values = function(start + scale * (np.frombuffer(point) + stencil))
        values = -np.where(np.isfinite(values), values, LOWEST)
        middle, up, down, above, below = np.split(values, np.cumsum([1, d, d, len(both)]))
        hessian = np.diag((up + down - 2.0 * middle) / STEP**2)
        i, j = pairs
        mixed = (above + below - up[i] - down[i] - up[j] - down[j] + 2.0 * middle) / (2.0 * STEP**2)
        hessian[i, j] = hessian[j, i] = mixed
        return float(middle[0]), (up - down) / (2.0 * STEP), hessian

    def part(which: int) -> Callable[[Array], Any]:
        return lambda x: at(x.tobytes())[which]

    options: Any = {"gtol": 1e-4, "maxiter": 100}
    found = minimize(part(0), np.zeros(d), jac=part(1), hess=part(2), method="trust-exact", options=options)
    value, _, hessian = at(found.x.tobytes())
    return Maximum(start + scale * found.x, -value, -hessian / np.outer(scale, scale), bool(found.success))


@dataclass(frozen=True, eq=False)
class MaximumLikelihood:
    """The maximum likelihood estimate, with what is reported beside it."""

    likelihood: Likelihood | HARLikelihood
    psi: Array
    """The estimate on the unconstrained scale, (d,)."""
    log_likelihood: float
    hessian: Array
    """Of the log-likelihood in ψ, (d, d)."""
    converged: bool = True
    """Whether the gradient vanished there."""

    @property
    def params(self) -> dict[str, float]:
        """The estimates by name."""
        return {name: float(v) for name, v in self.likelihood.parameters.constrain(self.psi).items()}

    @cached_property
    def std_errors(self) -> dict[str, float]:
        """Standard errors from the Hessian; NaN for an estimate on the edge of its range."""
        return self._named(self._covariance)

    @cached_property
    def robust_std_errors(self) -> dict[str, float]:
        """Bollerslev and Wooldridge's (1992) standard errors, which do not need the right distribution."""
        scores = self._slopes(self.likelihood.pointwise)
        inner = ~np.isnan(np.diag(self._covariance))
        block = np.ix_(inner, inner)
        sandwich = np.full_like(self._covariance, np.nan)
        sandwich[block] = self._covariance[block] @ (scores @ scores.T)[block] @ self._covariance[block]
        return self._named(sandwich)

    @property
    def aic(self) -> float:
        """Akaike's information criterion; smaller is better."""
        return 2.0 * len(self.psi) - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's information criterion; smaller is better."""
        return len(self.psi) * float(np.log(self.likelihood.n_obs)) - 2.0 * self.log_likelihood

    @cached_property
    def _covariance(self) -> Array:
        """The covariance of ψ given the estimates on the edge, whose rows and columns are NaN."""
        root = np.sqrt(np.maximum(-np.diag(self.hessian), 0.0))
        inner = np.flatnonzero((root * self.likelihood.scale) ** 2 > EDGE)
        block, units = np.ix_(inner, inner), np.outer(root[inner], root[inner])
        covariance = np.full_like(self.hessian, np.nan)
        correlation = -self.hessian[block] / units
        if len(inner) and np.linalg.eigvalsh(correlation)[0] > 1e-10:
            covariance[block] = np.linalg.inv(correlation) / units
        return covariance

    def _named(self, covariance: Array) -> dict[str, float]:
        """Standard errors of the parameters by the delta method."""
        parameters = self.likelihood.parameters
        J = self._slopes(lambda psi: np.array(list(parameters.constrain(psi).values())).T).T
        inner = ~np.isnan(np.diag(covariance))
        variances = np.einsum("ik,kl,il->i", J[:, inner], covariance[np.ix_(inner, inner)], J[:, inner])
        errors = np.where(inner, np.sqrt(variances), np.nan)  # one number of ψ a parameter
        return dict(zip(parameters.names, errors.tolist(), strict=True))

    def _slopes(self, function: Callable[[Array], Array]) -> Array:
        """The derivatives (d, n) of a function (S, d) -> (S, n) at the estimate."""
        steps = STEP * self.likelihood.scale
        up, down = np.split(function(self.psi + np.concatenate([np.diag(steps), -np.diag(steps)])), 2)
        return np.asarray((up - down) / (2.0 * steps[:, None]))


def fit_from(
    likelihood: Likelihood | HARLikelihood, prior: Prior, mode: Array, hessian: Array, **options: Any
) -> Posterior:
    """Fit the posterior from a mode (d,), with the inverse of minus the ``hessian`` there as the first covariance."""
    scales = np.outer(likelihood.scale, likelihood.scale)
    curvatures, axes = np.linalg.eigh(-hessian * scales)
    variance = (axes / np.maximum(curvatures, 1.0 / WIDEST)) @ axes.T * scales
    return fit(likelihood, prior, initial_mean=mode, initial_variance=variance, **options)


def fit_after(
    likelihood: Likelihood | HARLikelihood, before: Posterior, rng: int | np.random.Generator
) -> Posterior:
    """Fit the posterior of new days: the one ``before`` them is the prior and the start."""
    return fit(likelihood, before, initial_mean=before.mean, initial_variance=before.covariance, rng=rng)
