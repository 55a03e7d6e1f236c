r"""The best Gaussian of a regression, with expectations in closed form or by quadrature instead of draws.

`mgvbp.fit` estimates the gradients of the lower bound from log-likelihoods at draws. A regression's log-likelihood
is a sum of functions of linear predictors :math:`x_i^\top β`, whose expectations under :math:`q = N(μ, P^{-1})` are
low-dimensional integrals. So Newton's step can be taken without noise (Opper and Archambeau 2009):

.. math::
    P^+ = (1 - ρ) P + ρ\, E_q[-∇^2 h], \qquad μ^+ = μ + ρ\, E_q[-∇^2 h]^{-1} E_q[∇h], \qquad h = \log p(y, θ),

with the entries of P that the family has; in the full family ρ = 1 is the natural-gradient step of length 1. ρ is
halved while the bound would fall.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mgvbp.core import Array
from mgvbp.errors import ConvergenceWarning, NotPositiveDefiniteError, warn_user
from mgvbp.families import LOG_2PI, Family, Gaussian
from mgvbp.models import BLOCK, RegressionModel
from mgvbp.posterior import TRACE_DTYPES, Posterior, Trace
from mgvbp.problem import Parameters

SHORTEST = 2.0**-20
"""The shortest step that is tried. If it does not raise the bound, double precision shows no further rise."""
SHORT = 2.0**-3
"""Where the bound changes by less than the errors of expectations, no shorter step than this is tried."""


class Expectations(NamedTuple):
    """``E_q[f]``, ``E_q[∇f]`` (d,) and ``E_q[−∇²f]`` (d, d)."""

    value: float
    gradient: Array
    curvature: Array


class ExpectedLikelihood(ABC):
    """A model whose expectations under a Gaussian are known, each row counting as often as its weight says.

    Parameters
    ----------
    model : RegressionModel
    weights : ndarray of shape (N,), optional
        Of the rows, positive; 1 by default.
    """

    error: float = 0.0
    """The error of expected values in nats: smaller changes of the bound mean nothing."""

    def __init__(self, model: RegressionModel, weights: Array | None = None) -> None:
        self.model = model
        self.weights = np.ones(len(model.y)) if weights is None else weights

    @property
    def y(self) -> Array:
        """The responses: what ArviZ calls observed data."""
        return self.model.y

    @abstractmethod
    def expectations(self, mean: Array, covariance: Array) -> Expectations:
        """Those of the log-likelihood under N(mean, covariance); a covariance of 0 gives the plain derivatives."""

    def start(self, prior: Gaussian) -> tuple[Array, Array]:
        """A mean to start from, and a positive semidefinite information matrix there."""
        zero = np.zeros(prior.dim)
        return zero, self.expectations(zero, np.zeros((len(zero), len(zero)))).curvature

    def __call__(self, theta: Array) -> Array:
        """The log-likelihood, (S, d) -> (S,)."""
        if (self.weights == 1.0).all():
            return self.model(theta)
        step = max(1, BLOCK // len(self.weights))
        parts = [self.model.pointwise(theta[i : i + step]) @ self.weights for i in range(0, len(theta), step)]
        return np.concatenate(parts)

    def pointwise(self, theta: Array) -> Array:
        """The weighted log-likelihood of each row, (S, d) -> (S, N)."""
        return np.asarray(self.model.pointwise(theta) * self.weights)


@dataclass(frozen=True)
class Iterate:
    """A Gaussian, its lower bound, the expectations of h under it, the step that led to it and the next to be tried."""

    q: Gaussian
    bound: float
    h: Expectations
    step: float
    following_step: float = 1.0

    @cached_property
    def direction(self) -> Array:
        """Where the mean should go: by Newton's formula, whatever the family."""
        try:
            return Gaussian(precision=self.h.curvature).covariance @ self.h.gradient
        except NotPositiveDefiniteError:
            return self.q.covariance @ self.h.gradient

    @cached_property
    def gap(self) -> float:
        """Nats to the optimum, to second order: what the mean can gain, and ``‖G‖²`` for the precision."""
        family, L = self.q.family, self.q.factor
        G = 0.5 * family.shift(family.whiten(L, family.from_dense(self.h.curvature)), -1.0)
        return float(0.5 * self.h.gradient @ self.direction + np.square(G).sum())


def fit_exact(
    likelihood: ExpectedLikelihood,
    prior: Gaussian,
    *,
    family: Family,
    tol: float,
    max_iter: int,
    parameters: Parameters | None = None,
    start: Gaussian | None = None,
) -> Posterior:
    """The Gaussian of ``family`` with the largest lower bound, up to ``tol`` nats.

    The ``parameters`` are the names that the posterior has, those of the model by default. The search begins at
    ``start``, a Gaussian of the family, or where the likelihood says.
    """
    if start is None:
        mean, information = likelihood.start(prior)
        start = Gaussian.from_factor(mean, family.factor(precision=information + prior.precision), family)
    path = [iterate(likelihood, prior, start, 1.0)]
    while path[-1].gap > tol and len(path) <= max_iter:
        following = ascended(likelihood, prior, path[-1])
        if following is None:
            break
        path.append(following)
    q, gap, error = path[-1].q, path[-1].gap, likelihood.error
    converged = gap <= tol
    reason = f"the lower bound is within {tol:g} nats of its maximum"
    if not converged:
        reason = f"reached max_iter = {max_iter}" if len(path) > max_iter else "the bound no longer rises"
        rough = f", and expectations are known to {error:.2g} nats" if error > tol else ""
        warn_user(
            f"not converged, {reason}: the lower bound may be {gap:.2g} nats below its maximum{rough}; try a larger "
            "max_iter or tol, or a smaller prior_variance",
            ConvergenceWarning,
            "max-iter",
        )
    return Posterior(
        q.mean,
        q.factor,
        q.family,
        lower_bound=path[-1].bound,
        converged=converged,
        stop_reason=reason,
        trace=record(path),
        method="newton",
        estimator="exact",
        gap=gap,
        gap_se=None if error else 0.0,  # the error of quadratures is not estimated
        parameters=likelihood.model.parameters if parameters is None else parameters,
        log_density=lambda theta: likelihood(theta) + prior.log_density(theta),
        pointwise=likelihood.pointwise,
    )


def ascended(likelihood: ExpectedLikelihood, prior: Gaussian, at: Iterate) -> Iterate | None:
    """The next iterate, whose bound is larger; None if there is none in this direction.

    The first step that is tried is twice the last one, or the last one itself if twice was too long; 1 at most.
    """
    family, precision, direction, gap = at.q.family, at.q.precision, at.direction, at.gap
    first = step = at.following_step
    while step > SHORTEST:
        target = (1.0 - step) * precision + step * at.h.curvature
        try:
            q = Gaussian.from_factor(at.q.mean + step * direction, family.factor(precision=target), family)
        except NotPositiveDefiniteError:
            step *= 0.5
            continue
        following = iterate(likelihood, prior, q, step)
        gain = following.bound - at.bound
        unclear = abs(gain) < likelihood.error
        if (following.gap < gap) if unclear else (gain > 0.0):
            return replace(following, following_step=min(1.0, 2.0 * step) if step == first else step)
        if unclear and step <= SHORT:
            return None
        step *= 0.5
    return None


def iterate(likelihood: ExpectedLikelihood, prior: Gaussian, q: Gaussian, step: float) -> Iterate:
    """Evaluate the bound ``E_q[h] + entropy`` and its gradients at ``q``."""
    h = expectations(likelihood, prior, q.mean, q.covariance)
    entropy = 0.5 * q.dim * (1.0 + LOG_2PI) - np.log(q.family.diagonal(q.factor)).sum()
    return Iterate(q, float(h.value + entropy), h, step)


def expectations(
    likelihood: ExpectedLikelihood, prior: Gaussian, mean: Array, covariance: Array
) -> Expectations:
    """Those of h, the log-likelihood and the Gaussian log prior."""
    with np.errstate(over="ignore", invalid="ignore"):  # a step too far: its bound is −inf or nan
        f = likelihood.expectations(mean, covariance)
    P = prior.precision
    deviation = mean - prior.mean
    spread = np.einsum("ij,ij->", P, covariance)
    log_prior = prior.log_density(mean[None])[0] - 0.5 * spread
    return Expectations(float(f.value + log_prior), f.gradient - P @ deviation, f.curvature + P)


def record(path: list[Iterate]) -> Trace:
    """The trace of a run that made no draws."""
    bounds = np.array([point.bound for point in path])
    columns = {
        "phase": ["step"] * len(path),
        "lower_bound": bounds,
        "smoothed": bounds,
        "gap": [point.gap for point in path],
        "step_size": [point.step for point in path],
        "radius": np.full(len(path), np.inf),
    }
    columns |= {name: np.zeros(len(path)) for name in TRACE_DTYPES.keys() - columns}
    return Trace(**{name: np.asarray(columns[name], dtype) for name, dtype in TRACE_DTYPES.items()})


def variances(X: Array, covariance: Array) -> Array:
    """``x_iᵀ Σ x_i`` of each row, (n, k) and (k, k) -> (n,)."""
    return np.asarray(np.einsum("ni,ni->n", X @ covariance, X))
