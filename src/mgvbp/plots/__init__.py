"""Pictures of posteriors and of how they were found (matplotlib; ``pip install 'mgvbp[plots]'``).

Each function draws on the axes that you give it, or on a new figure, and returns the axes. The package may import
`posterior` and what is below it; matplotlib is imported when something is drawn. Begin with `canvas`, which has what
all pictures share, and `panels`.
"""

# the names that are not in __all__ serve the figures of the experiments and the report
from mgvbp.plots.bound import lower_bound
from mgvbp.plots.canvas import finished as finished
from mgvbp.plots.canvas import private_figure as private_figure
from mgvbp.plots.matrix import LARGEST_MATRIX as LARGEST_MATRIX
from mgvbp.plots.matrix import covariance
from mgvbp.plots.pairs import corner
from mgvbp.plots.panels import marginals
from mgvbp.plots.predictions import predictive
from mgvbp.plots.race import convergence
from mgvbp.plots.results import reliability, volatility_band

__all__ = [
    "convergence",
    "corner",
    "covariance",
    "lower_bound",
    "marginals",
    "predictive",
    "reliability",
    "volatility_band",
]
