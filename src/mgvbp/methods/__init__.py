"""Optimisation methods, one file each, applied to the same frame; `optimizer` runs them by ask and tell.

This package may import `estimators`, `problem` and lower layers. It never calls the user's function. Begin with
`base` and `mgvbp`, the paper's Algorithm 1 as one overridable function; the other methods differ from it in a line or
two.
"""

from __future__ import annotations

from mgvbp.core.checks import one_of
from mgvbp.errors import InvalidInputError
from mgvbp.methods.base import Method
from mgvbp.methods.geodesic import Geodesic
from mgvbp.methods.mgvb import MGVB
from mgvbp.methods.mgvbp import MGVBP
from mgvbp.methods.optimizer import STREAM as STREAM
from mgvbp.methods.optimizer import Optimizer, State
from mgvbp.methods.qbvi import QBVI
from mgvbp.methods.vogn import VOGN

__all__ = ["MGVB", "MGVBP", "QBVI", "VOGN", "Geodesic", "Method", "Optimizer", "State", "resolve_method"]

NAMED: dict[str, Method] = {
    "mgvbp": MGVBP(),
    "mgvb": MGVB(),
    "qbvi": QBVI(),
    "geodesic": Geodesic(),
    "vogn": VOGN(),
}


def resolve_method(method: str | Method) -> Method:
    """Return the method that ``method`` names, with the paper's settings."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str) and method == "auto":
        raise InvalidInputError(f"auto takes no steps that can be run one by one: choose {', '.join(NAMED)}")
    return NAMED[one_of(method, ["auto", *NAMED], "method", " or a Method")]
