"""What to make of a diagnosis, in plain words."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from mgvbp._linalg import Array

Verdict = Literal["trust", "correct", "distrust"]

GOOD = 0.5
"""k-hat up to which the weights have a finite variance (Vehtari et al. 2024; for variational fits Yao et al. 2018)."""
HIGHEST = 0.7
"""k-hat up to which smoothed weights are of use, with any number of draws that one can afford (the same)."""
EVEN = 0.95
"""Share of effective draws from which weights are so even that k-hat describes the tail of next to nothing:
expectations change by at most √(1/0.95 − 1) = 0.23 standard deviations."""
SHIFT = 0.2
"""Error of a mean, in standard deviations, up to which it is small: a 95% interval still covers 94.5%."""
RATIO = 1.1
"""Factor by which a standard deviation may be off: a 95% interval that is too short by it covers 92.5%."""
FAR = 0.1
"""Nats below the family's optimum from which going on with the fit is worth it."""
MANY = 100
"""Parameters from which weights are uneven nearly always, however good the marginals are."""


def limit(num_draws: int) -> float:
    """k-hat from which this many draws are too few: ``min(1 − 1/log₁₀ S, 0.7)`` (Vehtari et al. 2024)."""
    return min(1.0 - 1.0 / math.log10(num_draws), HIGHEST)


def correctable(khat: float, ess: float, num_draws: int) -> bool:
    """Whether the weights can be used."""
    return khat <= limit(num_draws) or ess >= EVEN * num_draws


def judge(khat: float, ess: float, num_draws: int, mean_shift: Array, sd_ratio: Array) -> Verdict:
    """Whether q can be used as it is, with importance weights, or not at all."""
    if not correctable(khat, ess, num_draws):
        return "distrust"
    near = (np.abs(mean_shift) <= SHIFT) & (sd_ratio <= RATIO) & (sd_ratio >= 1.0 / RATIO)
    even = khat <= GOOD or ess >= EVEN * num_draws
    return "trust" if even and near.all() else "correct"


def advise(verdict: Verdict, khat: float, num_draws: int, family: str, dim: int, gap: float | None) -> str:
    """What to do, in a sentence or a few."""
    unfinished = (
        f" The lower bound seems {gap:.2g} nats below what the family can reach: let the fit go on first "
        "(max_iterations, tol, or method='auto')."
        if gap is not None and gap > FAR
        else ""
    )
    if verdict == "trust":
        return "Use it as it is: importance weights change means and deviations little." + unfinished
    if verdict == "correct":
        return "Use importance-corrected draws: posterior.resample(n)." + unfinished
    choices = ["a richer family (family='full', or larger blocks)"] if family != "full" else []
    elsewhere = ", ".join([*choices, "another parametrisation", "or MCMC"])
    words = f"The weights cannot correct it: try {elsewhere}."
    if khat < HIGHEST:
        needed = math.ceil(10.0 ** (1.0 / (1.0 - khat)))
        words = f"So few draws cannot correct it: diagnose({needed}) may tell more; else try {elsewhere}."
    if dim >= MANY:
        words += (
            " With so many parameters single marginals and predictions can be good all the same: check those."
        )
    return words + unfinished
