r"""The marginals by a surrogate of the log density, which true weights correct.

Importance weights of a few hundred draws tell a mean to some hundredths of a standard deviation, and that is too coarse
where a tenth decides. A surrogate :math:`\hat p` through all draws that were evaluated is nearly right where they are,
and costs no evaluation at any number of others. So the true values are needed only for what it got wrong. For any
function g, with draws :math:`\theta_i` of the pool, whose density is m,

.. math:: \int g\, p = \int g\, \hat p + \sum_i g(\theta_i)\, \frac{p(\theta_i) - \hat p(\theta_i)}{m(\theta_i)}.

The first integral is known from many draws. In the sum :math:`\hat p(\theta_i)` is what the other draws predict there:
the surrogate goes through its own draws, and would seem to be right everywhere. What the sum changes of a mean, and
of a variance, is that of their influence functions, to first order.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp, softmax

from mgvbp.core.threads import one_thread
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import to_frame
from mgvbp.posterior.diagnostics.marginals import Marginals, by_weights
from mgvbp.posterior.diagnostics.outer import Outer
from mgvbp.posterior.diagnostics.pool import Pool
from mgvbp.surfaces.process import usual
from mgvbp.surfaces.surrogate import Surrogate, axes_of, fitted, log_volume

FREE = 4000
"""Draws of q under the surrogate, and as many further out. Their noise counts as error, and is seldom much of it."""
BLOCK = 1000
"""So many of them at a time, which bounds the memory."""


def by_surrogate(q: Gaussian, pool: Pool, rng: np.random.Generator) -> Marginals | None:
    """The marginals by a surrogate through the draws of the ``pool``; None where it misleads."""
    source = Outer(q)
    frame = source.mixture.moments
    anchor, volume = to_frame(frame, source.mixture), log_volume(frame)
    x = frame.family.to_frame(frame.factor, pool.theta - frame.mean)
    with one_thread(q.dim):
        surrogate = fitted([anchor], anchor, x, pool.log_p - volume, usual(q.dim), axes_of(frame), rng)
        free = _free(q, source, frame, surrogate, rng)
        expected = surrogate.unseen(x) + volume
    weights, log_mass = softmax(free.log_weights), logsumexp(free.log_weights)
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = np.exp(pool.log_weights - log_mass) - np.exp(expected - pool.log_mixture - log_mass)
        mass = 1.0 + wrong.sum()
        if not (np.isfinite(mass) and mass > 0.0):
            return None
        told, y = by_weights(q, free, weights), (free.theta - q.mean) / q.std
        mean = weights @ y
        off = (pool.theta - q.mean) / q.std - mean
        of_mean = (wrong / mass)[:, None] * off
        of_spread = 0.5 * (wrong / mass)[:, None] * (off**2 / (weights @ (y - mean) ** 2) - 1.0)
        return Marginals(
            told.shift + of_mean.sum(axis=0),
            np.hypot(told.shift_se, np.linalg.norm(of_mean, axis=0)),
            told.log_ratio + of_spread.sum(axis=0),
            np.hypot(told.log_ratio_se, np.linalg.norm(of_spread, axis=0)),
        )


def _free(
    q: Gaussian, source: Outer, frame: Gaussian, surrogate: Surrogate, rng: np.random.Generator
) -> Pool:
    """Draws of q, and draws further out, with the values of the surrogate."""
    theta = np.concatenate([source.mixture.sample(FREE, rng), source.sample(FREE, rng)])
    x = frame.family.to_frame(frame.factor, theta - frame.mean)
    log_p = np.concatenate([surrogate.cautious(x[i : i + BLOCK]) for i in range(0, len(x), BLOCK)])
    log_q = q.log_density_at(theta)
    log_mixture = math.log(FREE) + np.logaddexp(log_q, source.log_density(theta))
    return Pool(theta, log_p + log_volume(frame), log_q, log_mixture, None, FREE)
