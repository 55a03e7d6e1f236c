"""Modes and maximum likelihood by trust-region Newton steps, all differences of a step in one batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from mgvbp.core import Array
from mgvbp.problem import Parameters

STEP = 1e-3
"""The step of central differences, in units of ``scale``: with it rounding errors and bias are about equal."""
EDGE = 1e-3
"""An estimate is on the edge of its range where the curvature in ψ, in units of ``scale``, is below this."""
LOWEST = -1e100
"""Taken for a function value that is not finite: the search moves away from it."""


@dataclass(frozen=True, eq=False)
class Maximum:
    """A local maximum: ``point`` (d,), ``value``, ``hessian`` (d, d), and whether the gradient vanished."""

    point: Array
    value: float
    hessian: Array
    converged: bool


def maximise(function: Callable[[Array], Array], start: Array, scale: Array) -> Maximum:
    """Maximise a smooth function of rows, (S, d) -> (S,), from ``start`` (d,).

    Parameters
    ----------
    function : callable
    start : ndarray of shape (d,)
    scale : ndarray of shape (d,)
        Sizes by which the coordinates move; the trust region is a ball in these units.
    """
    differences = Differences(function, start, scale)
    zero = np.zeros(len(start))
    found = minimize(
        differences.value,
        zero,
        jac=differences.gradient,
        hess=differences.hessian,
        method="trust-exact",
        options={"gtol": 1e-4, "maxiter": 100},
    )
    value, _, hessian = differences.at(found.x)
    return Maximum(start + scale * found.x, -value, -hessian / np.outer(scale, scale), bool(found.success))


class Differences:
    """Value, gradient and Hessian of minus a function by central differences, in scaled coordinates."""

    def __init__(self, function: Callable[[Array], Array], origin: Array, scale: Array) -> None:
        self._function, self._origin, self._scale = function, origin, scale
        self._point: Array | None = None
        d = len(origin)
        self._pairs = np.triu_indices(d, 1)
        unit = np.eye(d)
        both = unit[self._pairs[0]] + unit[self._pairs[1]]
        self._stencil = STEP * np.vstack([np.zeros((1, d)), unit, -unit, both, -both])

    def value(self, x: Array) -> float:
        return self.at(x)[0]

    def gradient(self, x: Array) -> Array:
        return self.at(x)[1]

    def hessian(self, x: Array) -> Array:
        return self.at(x)[2]

    def at(self, x: Array) -> tuple[float, Array, Array]:
        """The three at ``x``; those of the last point are kept."""
        if self._point is None or not np.array_equal(x, self._point):
            self._point, self._found = x.copy(), self._evaluate(x)
        return self._found

    def _evaluate(self, x: Array) -> tuple[float, Array, Array]:
        d = len(x)
        values = self._function(self._origin + self._scale * (x + self._stencil))
        values = -np.where(np.isfinite(values), values, LOWEST)
        middle, up, down, both, neither = np.split(
            values, [1, 1 + d, 1 + 2 * d, 1 + 2 * d + len(self._pairs[0])]
        )
        hessian = np.diag((up + down - 2.0 * middle) / STEP**2)
        i, j = self._pairs
        mixed = (both + neither - up[i] - down[i] - up[j] - down[j] + 2.0 * middle) / (2.0 * STEP**2)
        hessian[i, j] = hessian[j, i] = mixed
        return float(middle[0]), (up - down) / (2.0 * STEP), hessian


class NamedLikelihood(Protocol):
    """What is asked of a likelihood beside its values: names, sizes and the terms of its sum."""

    @property
    def parameters(self) -> Parameters:
        """Of ψ."""

    @property
    def scale(self) -> Array:
        """Sizes by which the entries of ψ move, (d,)."""

    @property
    def n_obs(self) -> int:
        """How many observations there are."""

    def __call__(self, theta: Array, /) -> Array:
        """The log-likelihood, (S, d) -> (S,)."""

    def pointwise(self, theta: Array, /) -> Array:
        """The log-likelihood of each observation, (S, d) -> (S, n_obs)."""


@dataclass(frozen=True, eq=False)
class MaximumLikelihood:
    """The maximum likelihood estimate, with what is reported beside it.

    Attributes
    ----------
    log_likelihood : float
    psi : ndarray of shape (d,)
        The estimate on the unconstrained scale.
    hessian : ndarray of shape (d, d)
        Of the log-likelihood in ψ.
    converged : bool
        Whether the gradient vanished there.
    """

    likelihood: NamedLikelihood
    psi: Array
    log_likelihood: float
    hessian: Array
    converged: bool = True

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
        steps = STEP * self.likelihood.scale
        around = self.psi + np.concatenate([np.diag(steps), -np.diag(steps)])
        up, down = np.split(self.likelihood.pointwise(around), 2)
        scores = (up - down) / (2.0 * steps[:, None])
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
        """Of ψ; NaN in rows and columns of estimates on the edge, which the others are given."""
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
        steps = STEP * self.likelihood.scale
        around = self.psi + np.concatenate([np.diag(steps), -np.diag(steps)])
        values = np.array(list(self.likelihood.parameters.constrain(around).values()))
        up, down = np.split(values, 2, axis=1)
        J = (up - down) / (2.0 * steps)
        inner = ~np.isnan(np.diag(covariance))
        variances = np.einsum("ik,kl,il->i", J[:, inner], covariance[np.ix_(inner, inner)], J[:, inner])
        errors = np.where(inner, np.sqrt(variances), np.nan)  # one number of ψ a parameter
        return dict(zip(self.likelihood.parameters.names, errors.tolist(), strict=True))
