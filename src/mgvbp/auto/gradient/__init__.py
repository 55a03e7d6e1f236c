"""`auto` when gradients are there: a few draws per parameter instead of per coefficient of a quadratic."""

from mgvbp.auto.gradient.optimizer import GradientAutoOptimizer

__all__ = ["GradientAutoOptimizer"]
