"""`auto`: the Gaussian optimum without tuning, from few queries, with a certificate."""

from mgvbp.auto.method import Auto, affordable
from mgvbp.auto.optimizer import AutoOptimizer
from mgvbp.auto.starts import MultiStart

__all__ = ["Auto", "AutoOptimizer", "MultiStart", "affordable"]
