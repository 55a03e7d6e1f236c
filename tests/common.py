"""What several test files share."""

from mgvbp import MGVBP

FAST = MGVBP(step_size=0.5, decay_after=40, momentum=0.0, precision_scale=2.0, window=10, patience=40)
"""Long steps for gradients with little noise (the regression estimator): converges in a few iterations."""
