"""Constraints on parameters, each a map from unconstrained real numbers with its inverse and log-Jacobian.

This package may import `core` only. Begin with `base`, the interface of a constraint, and `elementwise`, which has
most of them.
"""

from mgvbp.transforms.base import Transform
from mgvbp.transforms.elementwise import Elementwise, Interval, LowerBound, Positive, Real, UpperBound
from mgvbp.transforms.regions import FigarchRegion, GarchRegion, GarchSumRegion
from mgvbp.transforms.vectors import CorrelationCholesky, Ordered, Simplex

__all__ = [
    "TRANSFORMS",
    "CorrelationCholesky",
    "Elementwise",
    "FigarchRegion",
    "GarchRegion",
    "GarchSumRegion",
    "Interval",
    "LowerBound",
    "Ordered",
    "Positive",
    "Real",
    "Simplex",
    "Transform",
    "UpperBound",
]

SINGLE = (Real, Positive, LowerBound, UpperBound, Interval)
VECTORS = (Ordered, Simplex, CorrelationCholesky, GarchRegion, GarchSumRegion, FigarchRegion)
TRANSFORMS: dict[str, type[Transform]] = {kind.__name__: kind for kind in (*SINGLE, *VECTORS)}
"""The transforms by name, for reading files: those of single numbers, and those of vectors."""
