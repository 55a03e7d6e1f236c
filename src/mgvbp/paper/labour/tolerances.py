"""How far a number of ours may be from the paper's: what another seed changes, and the rounding of the print."""

from __future__ import annotations

from collections.abc import Sequence

from mgvbp.paper.labour.model import PERFORMANCE

SPREAD: dict[str, dict[str, list[float]]] = {
    "full": {
        "LB*": [0.0025],
        "LB start": [1.6],
        "mu": [0.0032, 0.0059, 0.0012, 0.0023, 0.0016, 0.0017, 0.0019, 0.0039],
        "var": [0.138, 0.149, 0.026, 0.056, 0.034, 0.035, 0.048, 0.141],
        "cov": [0.141, 0.178, 0.045, 0.075, 0.059, 0.104, 0.079],
    },
    "diagonal": {
        "LB*": [0.037],
        "mu": [0.0102, 0.0069, 0.0027, 0.0029, 0.0033, 0.0041, 0.0036, 0.0090],
        "var": [0.029, 0.157, 0.014, 0.028, 0.053, 0.049, 0.058, 0.055],
    },
}
"""Standard deviations over ten seeds of MGVBP with the log-likelihood estimator and the authors' settings. They say how
much another seed may change. For covariances, each is the largest of a column."""
ROUNDING = 0.0005
"""Half a unit of the paper's third decimal."""
TWO_WOMEN = {"train": 0.005, "test": 0.014}
"""By how much a measure changes if two women more, or two fewer, are classified correctly."""
MEASURE_TOLERANCES = {column: TWO_WOMEN[column.split()[0]] for column in PERFORMANCE}


def tolerances(family: str, quantity: str, columns: Sequence[str], factor: float = 1.0) -> dict[str, float]:
    """Three standard deviations of the difference between two runs, and the rounding of the print."""
    spread = SPREAD[family][quantity]
    return {c: 3.0 * 2.0**0.5 * factor * sd + ROUNDING for c, sd in zip(columns, spread, strict=True)}
