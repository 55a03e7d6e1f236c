"""Optimisation methods: one file each, applied to the same frame."""

from __future__ import annotations

from mgvbp.checks import one_of
from mgvbp.methods.base import Method
from mgvbp.methods.geodesic import Geodesic
from mgvbp.methods.mgvb import MGVB
from mgvbp.methods.mgvbp import MGVBP
from mgvbp.methods.qbvi import QBVI
from mgvbp.methods.vogn import VOGN

__all__ = ["MGVB", "MGVBP", "QBVI", "VOGN", "Geodesic", "Method", "resolve_method"]

NAMED: dict[str, Method] = {
    "mgvbp": MGVBP(),
    "mgvb": MGVB(),
    "qbvi": QBVI(),
    "geodesic": Geodesic(),
    "vogn": VOGN(),
}


def resolve_method(method: str | Method) -> Method:
    """Return the method that ``method`` names, with the paper's settings; the engine of ``auto`` is elsewhere."""
    if isinstance(method, Method):
        return method
    name = one_of(method, ["auto", *NAMED], "method", " or a Method")
    return NAMED["mgvbp" if name == "auto" else name]
