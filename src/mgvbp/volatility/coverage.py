"""Was value at risk exceeded as often as it said, and not in clusters: two likelihood-ratio tests.

The log-likelihood of n₁ exceedances and n₀ other days at probability π is ``n₀ log(1 − π) + n₁ log π``, with
``0 log 0 = 0``, so that series with none, with nothing else, or without any pair of them are no special case. The
distributions of both tests hold for long series: with less than about 5 expected exceedances read them as a hint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, xlog1py, xlogy

from mgvbp.core import as_floats, positive_number
from mgvbp.errors import InvalidInputError


class Kupiec(NamedTuple):
    """Result of `kupiec`."""

    statistic: float
    """Twice the log of the likelihood ratio."""
    p_value: float
    exceedances: int
    expected: float
    """``alpha`` times the number of days."""


class Christoffersen(NamedTuple):
    """Result of `christoffersen`."""

    independence: float
    """The statistic of: the probability is the same after an exceedance as after another day."""
    independence_p_value: float
    conditional: float
    """The statistic of: the probability is ``alpha`` after either."""
    conditional_p_value: float
    transitions: tuple[tuple[int, int], tuple[int, int]]
    """``transitions[i][j]`` days of kind j after one of kind i; 1 is an exceedance."""


def kupiec(exceedances: ArrayLike, alpha: float) -> Kupiec:
    """Test that exceedances have probability ``alpha`` (Kupiec 1995); χ² with 1 degree of freedom.

    Parameters
    ----------
    exceedances : array_like of shape (T,)
        True, or 1, for each day whose loss was above its value at risk.
    alpha : float
        The probability of it: 0.01 for value at risk "at 99%".

    Examples
    --------
    >>> test = kupiec(np.arange(250) % 50 == 0, alpha=0.01)
    >>> test.exceedances, test.expected, round(test.statistic, 3), round(test.p_value, 3)
    (5, 2.5, 1.957, 0.162)
    """
    hits, alpha = _checked(exceedances, alpha, least=1)
    n1 = int(hits.sum())
    n0 = hits.size - n1
    ratio = 2.0 * (_at_best(n0, n1) - _log_likelihood(n0, n1, alpha))
    return Kupiec(*_chi_squared(ratio, 1), exceedances=n1, expected=alpha * hits.size)


def christoffersen(exceedances: ArrayLike, alpha: float) -> Christoffersen:
    """Test that exceedances do not cluster, and have probability ``alpha`` (Christoffersen 1998); χ² with 1 and 2.

    All likelihoods are those of the days 2, ..., T given day 1. So the conditional statistic is the one of
    independence plus `kupiec`'s of these days.

    Parameters
    ----------
    exceedances : array_like of shape (T,)
        True, or 1, for each day whose loss was above its value at risk; T is at least 2.
    alpha : float

    Examples
    --------
    >>> test = christoffersen(np.arange(250) % 50 < 2, alpha=0.04)
    >>> test.transitions
    ((235, 4), (5, 5))
    >>> round(test.independence_p_value, 6), round(test.conditional_p_value, 6)
    (2e-06, 1e-05)
    """
    hits, alpha = _checked(exceedances, alpha, least=2)
    counts = np.bincount(2 * hits[:-1] + hits[1:], minlength=4).reshape(2, 2)
    (n00, n01), (n10, n11) = counts.tolist()
    markov = _at_best(n00, n01) + _at_best(n10, n11)
    n0, n1 = n00 + n10, n01 + n11
    independence = _chi_squared(2.0 * (markov - _at_best(n0, n1)), 1)
    conditional = _chi_squared(2.0 * (markov - _log_likelihood(n0, n1, alpha)), 2)
    return Christoffersen(*independence, *conditional, transitions=((n00, n01), (n10, n11)))


def _log_likelihood(n0: int, n1: int, probability: float) -> float:
    return float(xlog1py(n0, -probability) + xlogy(n1, probability))


def _at_best(n0: int, n1: int) -> float:
    """The log-likelihood at its maximum, the share of exceedances; 0 if there are no days."""
    return _log_likelihood(n0, n1, n1 / max(n0 + n1, 1))


def _chi_squared(ratio: float, degrees: int) -> tuple[float, float]:
    """A likelihood-ratio statistic and its p-value."""
    statistic = max(ratio, 0.0)  # the difference of equal likelihoods may round below
    return statistic, float(chdtrc(degrees, statistic))


def _checked(exceedances: ArrayLike, alpha: float, least: int) -> tuple[NDArray[np.int64], float]:
    hits = as_floats(exceedances, "exceedances")
    if hits.ndim != 1 or len(hits) < least:
        raise InvalidInputError(
            f"exceedances must be a series of at least {least} days; got shape {hits.shape}"
        )
    if not np.isin(hits, (0.0, 1.0)).all():
        raise InvalidInputError(
            "exceedances must be True or False, or 1 or 0: compare losses with value at risk first"
        )
    if positive_number(alpha, "alpha") >= 1.0:
        raise InvalidInputError(f"alpha must be a probability between 0 and 1; got {alpha}: 1% is 0.01")
    return hits.astype(np.int64), float(alpha)
