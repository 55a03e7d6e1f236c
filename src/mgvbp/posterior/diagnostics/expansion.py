r"""What draws of q tell where importance weights fail, as they do with many parameters: an expansion in cumulants.

Along the path :math:`p_t \propto q\, e^{th}` from q to p, with h = log p − log q, the mean of any function g has the
derivatives :math:`\kappa(g, h)`, :math:`\kappa(g, h, h)`, …, the joint cumulants under q, so that

.. math:: E_p[g] - E_q[g] = \kappa(g, h) + \tfrac12 \kappa(g, h, h) + \dots
   \qquad \mathrm{KL}(q\,\|\,p) = \tfrac12 \kappa_2(h) + \tfrac16 \kappa_3(h) + \dots

A cumulant knows only of what its arguments have in common. If h is a sum of many independent terms, those that do not
involve a parameter drop out of its own cumulants, however large their sum is, while the weights :math:`e^h` suffer from
all of them. With x the standardised parameter, g = x gives the shift of the mean and g = x² that of the variance.

Where q is Gaussian and gradients are known, Stein's identity replaces x by derivatives: with ∂h the derivative along
the line on which the other parameters follow their conditional means, :math:`\kappa(x, h) = E[\partial h]`,
:math:`\tfrac12\kappa(x, h, h) = E[(h - \bar h)\,\partial h]`, and the same with another factor x for x² − 1. That has
far less noise, as ∂h is small where the sum h is large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.marginals import Marginals, standardised
from mgvbp.posterior.diagnostics.pool import Pool

OUTLIER = 6.0
"""Standard deviations by which no log weight may exceed the mean: of sums of many terms not one in a million does, but
draws that meet another mode, or a heavy tail, do by far more."""
FOREIGN, UNLIKELY = 0.05, 0.01
"""No expansion holds if draws that hardly came from q, with less than this probability, have this share of the weight:
the posterior has mass where q has none."""
LEAST_VARIANCE = 0.1
"""A variance is not believed to be a smaller part of that of q than this, whatever the expansion says."""
CONVERGES = 0.25
"""Largest ratio of the third term to the second at which the expansion of the distance is believed. Sums of skewed
terms have 0.1 and less; a Gaussian that is far too narrow has 0.5."""


def by_expansion(q: Gaussian, pool: Pool, weights: Array, *, stein: bool) -> Marginals | None:
    """The marginals to second order; None where the expansion cannot hold.

    ``weights`` (N,) are those for the posterior; ``stein`` tells that q is Gaussian, so that gradients can be used.
    """
    h = pool.log_p - pool.log_q
    v = np.where(np.isfinite(h), pool.weights_of_q, 0.0)
    if not bounded(h[-pool.fresh :]) or weights[pool.share_of_q < UNLIKELY].sum() > FOREIGN:
        return None
    v /= v.sum()
    h = np.where(v > 0.0, h, 0.0)
    h = np.where(v > 0.0, h - v @ h, 0.0)
    columns = [_expanded(v, *terms) for terms in _terms(q, pool, h, v, stein=stein)]
    return Marginals(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


def _terms(q: Gaussian, pool: Pool, h: Array, v: Array, *, stein: bool) -> Iterator[tuple[Array, Array]]:
    """What each draw contributes to the means of x and x² − 1 under p, (N, some parameters) each."""
    if stein and pool.gradients is not None:
        slopes = pool.gradients - q.grad_log_density_at(pool.theta)
        slopes = q.family.from_frame(q.factor, q.family.solve(q.factor, slopes)) / q.std
        slopes *= (1.0 + h)[:, None]
        start = 0
        for x in standardised(q, pool.theta):
            along = slopes[:, start : start + x.shape[1]]
            start += x.shape[1]
            yield along, along * x
        return
    factor = (h + 0.5 * (np.square(h) - v @ np.square(h)))[:, None]
    for x in standardised(q, pool.theta):
        centred = x - v @ x
        square = np.square(centred)
        yield factor * centred, factor * (square / (v @ square) - 1.0)


def _expanded(v: Array, of_mean: Array, of_square: Array) -> tuple[Array, Array, Array, Array]:
    shift, square = v @ of_mean, v @ of_square
    variance = np.maximum(1.0 + square - shift**2, LEAST_VARIANCE)
    error, error_of_square = (
        np.sqrt(np.square(v[:, None] * (part - mean)).sum(axis=0))
        for part, mean in ((of_mean, shift), (of_square, square))
    )
    return shift, error, 0.5 * np.log(variance), 0.5 * error_of_square / variance


def bounded(h: Array) -> bool:
    """Whether log weights (S,) are all finite and none is an outlier that has more weight than sums of terms have."""
    if not np.isfinite(h).all():
        return False
    centred = h - h.mean()
    return bool(centred.max() <= OUTLIER * math.sqrt(float(centred @ centred) / len(h)))


def distance(h: Array) -> tuple[float, float] | None:
    """KL(q‖p) from log weights h (S,) to third order, and its standard error; None where that cannot hold.

    The error counts that of the draws and, for what the expansion leaves out, half of its last term.

    Examples
    --------
    >>> z = np.random.default_rng(0).standard_normal((4000, 50))
    >>> kl, se = distance(-0.1 * (z**2).sum(axis=1))  # from N(0, I) to a Gaussian with 1.2 times its precision
    >>> bool(abs(kl - 25.0 * (0.2 - np.log(1.2))) < 3.0 * se)
    True
    """
    if not bounded(h):
        return None
    c = h - h.mean()
    second, third = 0.5 * float(c @ c) / len(h), float((c**3).mean()) / 6.0
    if abs(third) > CONVERGES * second:
        return None
    # the mean of h is estimated too, which changes the third cumulant by −3 κ₂ h̄
    influence = 0.5 * c**2 + (c**3 - 6.0 * second * c) / 6.0
    error = float(influence.std(ddof=1)) / math.sqrt(len(h))
    return max(second + third, 0.0), math.hypot(error, 0.5 * third)
