"""Linear regression on the Istanbul data under four covariance structures: istanbul_mu, _cov and _cov_2."""

from mgvbp.paper.istanbul.results import figures, tables
from mgvbp.paper.istanbul.runs import cells
from mgvbp.paper.spec import Experiment

EXPERIMENT = Experiment("istanbul", cells, tables, figures, data=("istanbul",))
