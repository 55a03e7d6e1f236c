"""Posteriors that are not Gaussian and whose evidence, moments and quantiles are known: ``reference.json``.

``TARGETS`` are for development and for ``benchmarks/mixtures.py``; on ``HELD_OUT`` nothing is tuned.
"""

from . import dynamics, held_out, hierarchies, regressions, shapes, strangers  # noqa: F401  (importing registers the targets)
from .reference import Reference, references
from .registry import HELD_OUT, TARGETS

__all__ = ["HELD_OUT", "TARGETS", "Reference", "references"]
