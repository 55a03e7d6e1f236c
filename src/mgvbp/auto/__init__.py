"""`auto`: the Gaussian optimum without tuning, from few queries, with a certificate."""

from mgvbp.auto.optimizer import Auto, AutoOptimizer, affordable
from mgvbp.auto.starts import MultiStart

__all__ = ["Auto", "AutoOptimizer", "MultiStart", "affordable"]
