"""Targets made to deceive a certificate; the optima are known without any search of mgvbp's."""

from . import (  # noqa: F401  (importing a file registers its targets)
    targets_forms,
    targets_gradients,
    targets_improper,
    targets_judges,
    targets_modes,
    targets_noise,
    targets_relatives,
    targets_slow,
    targets_strangers,
    targets_tails,
)
from .base import TARGETS, Target

__all__ = ["TARGETS", "Target"]
