"""Several seeds of one run: their means, their spread, and how far one more run may be from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from scipy.stats import t as student

from mgvbp.paper.common import ROUNDING

LEVEL = 0.9973
"""The share of runs that a tolerance takes in: that of three standard deviations, were these known."""
NOTE = (
    "Our number is the mean over the seeds. Tolerance: rounding, and what takes in 99.7% of single runs by their "
    "spread over the seeds (Student's t)."
)


def over_seeds(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each value over runs, its standard deviation under ``spread ...``, and the number of runs."""
    columns = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    found = {name: float(x.mean()) for name, x in columns.items()} | {"seeds": float(len(runs))}
    if len(runs) > 1:
        found |= {f"spread {name}": float(x.std(ddof=1)) for name, x in columns.items()}
    return found


def quantile(runs: float, of: float = 0.0) -> float:
    """Standard deviations, measured over ``runs``, by which one run may be off the mean ``of`` so many, or of all."""
    return float(student.ppf(0.5 + LEVEL / 2.0, runs - 1.0) * np.sqrt(1.0 + 1.0 / (of or runs)))


def tolerances(
    values: Mapping[str, float],
    columns: Iterable[str],
    prefix: str = "",
    factor: float = 1.0,
    of: float = 0.0,
    rounding: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, float]:
    """How far one run of the paper may be from our number, by column: rounding and Monte Carlo error.

    ``values`` are those of `over_seeds`. Our number is the mean ``of`` so many runs, or of all. ``factor`` multiplies
    the spread. ``rounding`` has the columns that are not printed to three decimals.
    """
    if values.get("seeds", 0.0) < 2.0:
        return {}
    share = factor * quantile(values["seeds"], of)
    spreads = {c: values.get(f"spread {prefix}{c}") for c in columns}
    return {
        c: rounding.get(c, ROUNDING) + share * spread for c, spread in spreads.items() if spread is not None
    }
