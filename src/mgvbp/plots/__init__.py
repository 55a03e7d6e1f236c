"""Pictures of posteriors and of how they were found (matplotlib; ``pip install 'mgvbp[plots]'``).

Each function draws on axes of yours, or on a new figure, and returns the axes.
"""

# of what figures are made, for the experiments
from mgvbp.canvas import finished as finished
from mgvbp.canvas import private_figure as private_figure
from mgvbp.plots.bound import lower_bound
from mgvbp.plots.elsewhere import reliability, volatility_band
from mgvbp.plots.matrix import covariance
from mgvbp.plots.pairs import corner
from mgvbp.plots.panels import marginals
from mgvbp.plots.race import convergence

__all__ = [
    "convergence",
    "corner",
    "covariance",
    "lower_bound",
    "marginals",
    "reliability",
    "volatility_band",
]
