"""Whether chains have mixed: R-hat and effective sample sizes of each entry, by ArviZ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mgvbp.core.linalg import Array
from mgvbp.errors import ConvergenceWarning, warn_user

LARGEST_RHAT = 1.01
"""Above it chains have not mixed (Vehtari et al. 2021)."""


def rhat(draws: Array) -> Array:
    """Rank-normalised split R-hat of each entry of ``draws`` (chains, n, d), (d,) (Vehtari et al. 2021).

    Of one chain its halves are compared, as if they were two.
    """
    if len(draws) == 1:
        half = draws.shape[1] // 2
        draws = np.stack([draws[0, :half], draws[0, half : 2 * half]])
    return _by_entry("rhat", draws)


def ess(draws: Array, method: str = "bulk") -> Array:
    """Effective sample size of each entry of ``draws`` (chains, n, d), (d,): in the ``bulk``, or in the ``tail``."""
    return _by_entry("ess", draws, **({"method": "tail", "prob": (0.05, 0.95)} if method == "tail" else {}))


def _by_entry(name: str, draws: Array, **options: Any) -> Array:
    from arviz_stats.base.array import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):  # of chains that stand still
        return np.asarray(getattr(array_stats, name)(draws, chain_axis=0, draw_axis=1, **options))


def largest_rhat(draws: Array) -> float:
    """The largest R-hat of chains (chains, n, d) that have mixed: 1.01, or what short chains reach by chance.

    R-hat compares halves of chains, m draws each; if these are independent, its square is 1 + (F − 1)/m with an F
    distributed variable that is rarely above 3.

    Examples
    --------
    >>> largest_rhat(np.zeros((4, 1000, 2))), round(largest_rhat(np.zeros((4, 50, 2))), 2)
    (1.01, 1.04)
    """
    return max(LARGEST_RHAT, float(np.sqrt(1.0 + 4.0 / draws.shape[1])))


def warn_of_chains(
    transitions: int, divergences: int, worst: float, remedy: str, largest: float = LARGEST_RHAT
) -> None:
    """Warn of divergent transitions and of chains that disagree: ``worst``, their R-hat, is above ``largest``."""
    if divergences:
        warn_user(
            f"{divergences} of {transitions} transitions diverged: the chains may miss a narrow part of the "
            "posterior; a reparametrised model is the remedy",
            ConvergenceWarning,
            "divergent-transitions",
        )
    if math.isnan(worst):
        warn_user(
            "whether the chains have mixed is not known: they have fewer than eight draws (two chains or more: four "
            f"each), or stand still; {remedy}",
            ConvergenceWarning,
            "chains-disagree",
        )
    elif worst > largest:
        warn_user(
            f"the chains disagree, R-hat is {worst:.3f} (at most {largest:.3g} if they have mixed): {remedy}",
            ConvergenceWarning,
            "chains-disagree",
        )
