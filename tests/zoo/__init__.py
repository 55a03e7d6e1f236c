"""Targets on unconstrained scales for a Gaussian approximation that starts at mean 0 and variance 1."""

from . import (  # noqa: F401  (importing a file registers its targets)
    targets_glm,
    targets_gp_ode,
    targets_hard,
    targets_hierarchical,
    targets_linear,
    targets_mixture_hmm,
    targets_shapes,
    targets_time_series,
)
from .base import TARGETS, Target

__all__ = ["TARGETS", "Target"]
