r"""How far the mean and the standard deviation of each parameter under q are from those under the posterior.

With normalised weights w for the posterior and v for q, and x the draws in standard deviations of q, the shift of the
mean is :math:`\sum_i (w_i - v_i) x_i`, and the logarithm of the ratio of the standard deviations is half that of
:math:`\sum_i w_i (x_i - \bar x_w)^2 / \sum_i v_i (x_i - \bar x_v)^2`. Both compare the same draws with themselves, so
that most of their noise cancels: if q is exact, both are 0. Standard errors are those of the first-order influence of
each draw.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.families.gaussian import Gaussian
from mgvbp.posterior.diagnostics.pool import Pool

NUMBERS = 500_000
"""Numbers that are worked on at once, so that many parameters need no memory beyond that of their draws."""
SMALLEST = 1e-300
"""Variances below this, of weights that are all on one draw, count as this."""


class Marginals(NamedTuple):
    """What is known about the parameters, (d,) each; inf errors where nothing is."""

    shift: Array
    """Mean of the posterior minus that of q, in standard deviations of q."""
    shift_se: Array
    log_ratio: Array
    """Logarithm of the posterior's standard deviation divided by that of q."""
    log_ratio_se: Array

    @property
    def typical_error(self) -> float:
        """The median over the parameters of the larger standard error."""
        return float(np.median(np.maximum(self.shift_se, self.log_ratio_se)))

    def off(self, errors: float) -> Array:
        """The larger of both distances (d,), if it were so many standard errors larger.

        Both are in standard deviations of the posterior: that of the mean, and that of q's standard deviation.
        """
        with np.errstate(over="ignore"):
            narrower = np.exp(-self.log_ratio)  # the deviation of q divided by the posterior's
            of_mean = narrower * (np.abs(self.shift) + errors * self.shift_se)
            of_deviation = np.abs(narrower - 1.0) + errors * narrower * self.log_ratio_se
        return np.maximum(of_mean, of_deviation)

    def or_farther(self, other: Marginals) -> Marginals:
        """For each parameter what is further off, of these and the others."""
        farther = other.off(0.0) > self.off(0.0)
        return Marginals(*(np.where(farther, theirs, own) for own, theirs in zip(self, other, strict=True)))


def by_weights(q: Gaussian, pool: Pool, weights: Array) -> Marginals:
    """The marginals by the normalised ``weights`` (N,) of the draws for the posterior."""
    v, columns = pool.weights_of_q, []
    for _, x in standardised(q, pool.theta):
        at_p, at_q = x - weights @ x, x - v @ x
        var_p = np.maximum(weights @ np.square(at_p), SMALLEST)
        var_q = np.maximum(v @ np.square(at_q), SMALLEST)
        influence = weights[:, None] * at_p - v[:, None] * at_q
        spread = weights[:, None] * (at_p**2 / var_p - 1.0) - v[:, None] * (at_q**2 / var_q - 1.0)
        shift_se, spread_se = (np.sqrt(np.square(part).sum(axis=0)) for part in (influence, spread))
        columns.append(((weights - v) @ x, shift_se, 0.5 * np.log(var_p / var_q), 0.5 * spread_se))
    return Marginals(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


def standardised(q: Gaussian, theta: Array) -> Iterator[tuple[slice, Array]]:
    """The draws (N, d) in standard deviations of q from its mean, some parameters at a time, and which these are."""
    step = max(1, NUMBERS // len(theta))
    mean, std = q.mean, q.std
    for start in range(0, q.dim, step):
        some = slice(start, start + step)
        yield some, (theta[:, some] - mean[some]) / std[some]
