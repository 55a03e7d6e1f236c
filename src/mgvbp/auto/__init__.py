"""`auto`: the Gaussian optimum without tuning, from few queries, with a certificate."""

from mgvbp.auto.gradient import GradientAutoOptimizer
from mgvbp.auto.method import Auto, affordable, uses_gradient
from mgvbp.auto.optimizer import AutoOptimizer
from mgvbp.auto.starts import MultiStart

__all__ = ["Auto", "AutoOptimizer", "GradientAutoOptimizer", "MultiStart", "affordable", "uses_gradient"]
