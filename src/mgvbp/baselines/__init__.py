"""What to compare an approximation with: a point estimate by ADAM, and the posterior itself by NUTS."""

from mgvbp.baselines.adam import AdamIteration, PointEstimate, adam
from mgvbp.baselines.chains import Chains
from mgvbp.baselines.nuts import nuts

__all__ = ["AdamIteration", "Chains", "PointEstimate", "adam", "nuts"]
