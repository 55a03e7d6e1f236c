"""Pictures of posteriors and of how they were found (matplotlib; ``pip install 'mgvbp[plots]'``).

Each function draws on axes of yours, or on a new figure, and returns the axes. It may import `posterior` and what is
below; matplotlib is imported when something is drawn. Begin with `canvas`, what all pictures share, and `panels`.
"""

# of what figures are made, for the experiments
from mgvbp.plots.bound import lower_bound
from mgvbp.plots.canvas import finished as finished
from mgvbp.plots.canvas import private_figure as private_figure
from mgvbp.plots.matrix import LARGEST_MATRIX as LARGEST_MATRIX
from mgvbp.plots.matrix import covariance
from mgvbp.plots.pairs import corner
from mgvbp.plots.panels import marginals
from mgvbp.plots.race import convergence
from mgvbp.plots.results import reliability, volatility_band

__all__ = [
    "convergence",
    "corner",
    "covariance",
    "lower_bound",
    "marginals",
    "reliability",
    "volatility_band",
]
