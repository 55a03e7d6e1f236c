r"""What draws of q tell where importance weights fail, as they do with many parameters.

On the path :math:`p_t \propto q\, e^{th}` from q to p, with h = log p − log q, the mean of any function g changes by
:math:`\operatorname{Cov}_t(g, h)`. A covariance knows only of what g and h have in common: if h is a sum of many
independent terms, those that do not involve a parameter add noise to what is said about it, but no bias, while the
weights :math:`e^h` suffer from all of them. With x the standardised parameter, g = x gives the shift of the mean and
g = x² that of the variance. There are two ways.

*By values*, the midpoint rule: half-way the weights are :math:`e^{h/2}`, whose logarithms have a quarter of the
variance,

.. math:: E_p[g] - E_q[g] = \int_0^1 \operatorname{Cov}_t(g, h)\,dt \approx \operatorname{Cov}_{1/2}(g, h).

*By gradients*, where q is Gaussian, with far less noise: Stein's identity for p says that
:math:`E_p[x] = E_p[\partial h]` and :math:`E_p[x^2 - 1] = E_p[x\,\partial h]`, with ∂h the derivative along the line on
which the other parameters follow their conditional means. As ∂h is small, unlike the sum h, the first order is enough:
:math:`E_p[u] \approx E_q[u] + \operatorname{Cov}_q(u, h)`.

Neither knows of tails that no draw of q reaches. Where the profiles φ of the parameters are known (`lines`), they give
the moments of :math:`q\,e^{\varphi}` exactly, and the path only what h has beside them: the same formula for h minus
that for φ.

The distance is :math:`\int_0^1 E_t[h]\,dt - E_q[h]`: to second order half the variance of h under q, and by the
midpoint rule :math:`E_{1/2}[h] - E_q[h]`. For skewed terms the first is too large and the second too small. Their
average errs by 1% for logarithms of gamma variates of shape 3, and by 9% for shape 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import softmax

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.lines import slopes_along
from mgvbp.posterior.diagnostics.marginals import Marginals, standardised
from mgvbp.posterior.diagnostics.pool import Pool
from mgvbp.posterior.diagnostics.profiles import Profiles
from mgvbp.posterior.diagnostics.weights import Smoothed

OUTLIER = 6.0
"""Standard deviations by which a log weight may exceed the mean. Not one in a million sums of many terms is further
out; draws that meet another mode, or a heavy tail, are by far."""
FOREIGN, UNLIKELY = 0.05, 0.01
"""Largest share of the weight on draws that came from q with less than the second number as probability. With more,
the posterior has mass where q has none, and nothing is known."""
OUTSIDE = 1e-3
"""Share of the mass of q that may lie where the density is zero."""
LEAST_SIZE = 50.0
"""Fewest effective draws half-way."""
LEAST_VARIANCE = 0.1
"""A variance is not believed to be a smaller part of that of q than this."""
LOGNORMAL, DOUBT = 1.0 / 3.0, 2.0
"""The k-hat of weights whose logarithms are normal is the first number times their standard deviation, from 100 draws
to 2,000. If it is larger by more than the second number of its errors, h is not a sum of many terms: a few
parameters, such as a scale and those that follow it, have mass where draws of q seldom come."""
CONVERGES = 0.2
"""Largest part of the distance by which both formulas for it may differ from their average."""


def by_path(
    q: Gaussian, pool: Pool, weights: Array, *, stein: bool, profiles: Profiles | None = None
) -> Marginals | None:
    """The marginals by the path to the posterior; None where that cannot hold.

    ``weights`` (N,) are those for the posterior; ``stein`` tells that q is Gaussian, so that gradients can be used.
    """
    h = pool.log_p - pool.log_q
    if not bounded(h[-pool.fresh :]) or weights[pool.share_of_q < UNLIKELY].sum() > FOREIGN:
        return None
    by_gradients = stein and pool.gradients is not None
    share = 0.0 if by_gradients else 0.5  # of the way to p
    inside = np.isfinite(h)
    if pool.weights_of_q[~inside].sum() > OUTSIDE:
        return None
    h = np.where(inside, h, 0.0)
    at = softmax(np.where(inside, pool.log_q + share * h - pool.log_mixture, -np.inf))
    if 1.0 / (at @ at) < LEAST_SIZE:
        return None
    h = np.where(at > 0.0, h, 0.0)
    h = np.where(at > 0.0, h - at @ h, 0.0)
    terms = _of_gradients(q, pool, h, at, profiles) if by_gradients else _of_values(q, pool, h, at, profiles)
    columns = [_moved(at, *term, profiles) for term in terms]
    return Marginals(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


def by_profiles(profiles: Profiles) -> Marginals:
    """The marginals by their profiles alone."""
    nothing, at = np.zeros((1, len(profiles.slopes))), np.ones(1)
    return Marginals(*_moved(at, slice(None), nothing, nothing, profiles))


def _of_values(
    q: Gaussian, pool: Pool, h: Array, at: Array, profiles: Profiles | None
) -> Iterator[tuple[slice, Array, Array]]:
    """Some parameters, and what each draw contributes to the changes of the means of x and x², (N, some) each."""
    for some, x in standardised(q, pool.theta):
        rest, square = np.repeat(h[:, None], x.shape[1], axis=1), np.square(x)
        if profiles is not None:
            rest -= _centred(at, profiles.heights(some, x))
        yield some, rest * (x - at @ x), rest * (square - at @ square)


def _of_gradients(
    q: Gaussian, pool: Pool, h: Array, at: Array, profiles: Profiles | None
) -> Iterator[tuple[slice, Array, Array]]:
    """The same by Stein's identity."""
    assert pool.gradients is not None
    slopes = slopes_along(q, pool.theta, pool.gradients) * (1.0 + h)[:, None]
    for some, x in standardised(q, pool.theta):
        rest = slopes[:, some]
        if profiles is not None:
            heights = _centred(at, profiles.heights(some, x))
            rest = rest - profiles.steepness(some, x) * (1.0 + heights)
        yield some, rest, rest * x


def _centred(at: Array, values: Array) -> Array:
    """Values (N, some) minus their means, and 0 at draws without weight."""
    return np.where(at[:, None] > 0.0, values - at @ values, 0.0)


def _moved(
    at: Array, some: slice, of_mean: Array, of_square: Array, profiles: Profiles | None
) -> tuple[Array, Array, Array, Array]:
    """Shift and logarithm of the ratio of the standard deviations, with errors, from each draw's contributions."""
    shift, square = at @ of_mean, at @ of_square
    error, error_of_square = (
        np.sqrt(np.square(at[:, None] * (part - mean)).sum(axis=0))
        for part, mean in ((of_mean, shift), (of_square, square))
    )
    if profiles is not None:
        names = ("mean", "mean_se", "square", "square_se")
        mean, mean_se, of_x2, of_x2_se = (profiles.column(name, some) for name in names)
        shift, square = shift + mean, square + of_x2 - 1.0
        error, error_of_square = np.hypot(error, mean_se), np.hypot(error_of_square, of_x2_se)
    variance = np.maximum(1.0 + square - shift**2, LEAST_VARIANCE)
    return shift, error, 0.5 * np.log(variance), 0.5 * error_of_square / variance


def bounded(h: Array) -> bool:
    """Whether log weights (S,) are all finite and none is an outlier that has more weight than sums of terms have."""
    if not np.isfinite(h).all():
        return False
    centred = h - h.mean()
    return bool(centred.max() <= OUTLIER * math.sqrt(float(centred @ centred) / len(h)))


def distance(h: Array, smoothed: Smoothed) -> tuple[float, float] | None:
    r"""KL(q‖p) from log weights h (S,) of draws of q, and its standard error; None where that cannot hold.

    ``smoothed`` are the weights with the shape of their tail, which must be that of a sum of many terms. The error
    counts that of the draws, and half of the difference between the two formulas.

    Examples
    --------
    >>> z = np.random.default_rng(0).standard_normal((4000, 50))
    >>> from mgvbp.posterior.diagnostics.weights import pareto_smoothed
    >>> h = -0.1 * (z**2).sum(axis=1)  # from N(0, I) to a Gaussian with 1.2 times its precision
    >>> kl, se = distance(h, pareto_smoothed(h))
    >>> bool(abs(kl - 25.0 * (0.2 - np.log(1.2))) < 3.0 * se)
    True
    """
    if not bounded(h) or smoothed.khat > LOGNORMAL * float(h.std()) + DOUBT * smoothed.khat_se:
        return None
    at_q, half = h - h.mean(), softmax(0.5 * h)
    middle = float(half @ at_q)
    by_variance = 0.5 * float(at_q @ at_q) / len(h)
    kl, apart = 0.5 * (by_variance + middle), 0.5 * abs(by_variance - middle)
    if 1.0 / (half @ half) < LEAST_SIZE or apart > CONVERGES * kl:
        return None
    influence = 0.25 * at_q**2 + 0.5 * (len(h) * half * (at_q - middle) - at_q)
    return kl, math.hypot(float(influence.std(ddof=1)) / math.sqrt(len(h)), apart)
