"""What is known of a posterior, as ``make_reference`` stored it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PATH = Path(__file__).with_name("reference.json")
QUANTILES = (0.05, 0.5, 0.95)


class Reference(NamedTuple):
    """Evidence, moments and quantiles of the coordinates, each with its standard error."""

    dim: int
    method: str
    """``exact``, ``quadrature``, ``chains`` or ``importance``: what the numbers are from."""
    log_evidence: float
    log_evidence_se: float
    mean: np.ndarray
    """(d,)"""
    mean_se: np.ndarray
    sd: np.ndarray
    sd_se: np.ndarray
    quantiles: np.ndarray
    """(3, d): 5%, 50% and 95%"""
    quantiles_se: np.ndarray
    checks: dict[str, Any]
    """Other estimates of the log evidence as ``[value, se]``, R-hat, effective sizes, seconds, notes."""


@functools.cache
def references() -> dict[str, Reference]:
    """By name, for the targets of this package and for those of the zoo with d ≤ 20."""
    entries = json.loads(PATH.read_text(encoding="utf-8"))
    return {name: read(entry) for name, entry in entries.items()}


def read(entry: dict[str, Any]) -> Reference:
    arrays = {key: np.array(entry[key]) for key in entry if isinstance(entry[key], list)}
    return Reference(**(entry | arrays))
