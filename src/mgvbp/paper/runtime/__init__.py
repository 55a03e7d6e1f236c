"""Running times: the paper's tables runtime and runtime_npar, as ratios of methods measured in turns."""

from mgvbp.paper.runtime.results import figures, tables
from mgvbp.paper.runtime.timing import cells
from mgvbp.paper.spec import Experiment

EXPERIMENT = Experiment("runtime", cells, tables, figures, data=("labour", "sp500"))
