"""Constraints on parameters, each a map from unconstrained real numbers with its inverse and log-Jacobian.

This package may import `core` only. Begin with `base`, the interface of a constraint, and `elementwise`, which has
most of them.
"""

from mgvbp.transforms.base import Transform
from mgvbp.transforms.correlation import CorrelationCholesky
from mgvbp.transforms.elementwise import Elementwise, Interval, LowerBound, Positive, Real, UpperBound
from mgvbp.transforms.figarch import FigarchRegion
from mgvbp.transforms.garch import GarchRegion
from mgvbp.transforms.ordered import Ordered
from mgvbp.transforms.simplex import Simplex

__all__ = [
    "TRANSFORMS",
    "CorrelationCholesky",
    "Elementwise",
    "FigarchRegion",
    "GarchRegion",
    "Interval",
    "LowerBound",
    "Ordered",
    "Positive",
    "Real",
    "Simplex",
    "Transform",
    "UpperBound",
]

TRANSFORMS: dict[str, type[Transform]] = {
    kind.__name__: kind
    for kind in (
        Real,
        Positive,
        LowerBound,
        UpperBound,
        Interval,
        Ordered,
        Simplex,
        CorrelationCholesky,
        GarchRegion,
        FigarchRegion,
    )
}
"""The transforms by name, for reading files."""
