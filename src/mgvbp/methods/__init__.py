"""Optimisation methods: one file each, applied to the same frame."""

from __future__ import annotations

from mgvbp.checks import one_of
from mgvbp.estimators import Estimator, Regression
from mgvbp.methods.base import Method
from mgvbp.methods.geodesic import Geodesic
from mgvbp.methods.mgvb import MGVB
from mgvbp.methods.mgvbp import MGVBP
from mgvbp.methods.qbvi import QBVI

__all__ = ["MGVB", "MGVBP", "QBVI", "Geodesic", "Method", "resolve_method"]

NAMED: dict[str, Method] = {
    "mgvbp": MGVBP(),
    "mgvb": MGVB(),
    "qbvi": QBVI(),
    "geodesic": Geodesic(),
}


AUTO_REGRESSION = MGVBP(
    step_size=0.5, decay_after=40, momentum=0.0, precision_scale=2.0, window=10, patience=40
)
"""Regression gradients are nearly exact: long steps, and a decay that averages what noise is left."""


def resolve_method(method: str | Method, estimator: Estimator) -> Method:
    """Return the method that ``method`` names; the named ones have the paper's settings."""
    if isinstance(method, Method):
        return method
    if one_of(method, ["auto", *NAMED], "method", " or a Method") == "auto":
        return AUTO_REGRESSION if isinstance(estimator, Regression) else MGVBP()
    return NAMED[method]
