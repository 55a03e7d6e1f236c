"""Logistic regression on the Labour data: the tables logistic_perf, logistic_mu, _var, _cov and _S, and figures."""

from mgvbp.paper.common import METHODS, PRIOR_VARIANCE
from mgvbp.paper.labour.figures import figures
from mgvbp.paper.labour.runs import (
    INITIAL_VARIANCE,
    NUM_DRAWS,
    SETTINGS,
    cells,
    exact_lower_bound,
    expectation,
    measures,
    problem,
)
from mgvbp.paper.labour.tables import tables
from mgvbp.paper.spec import Experiment

__all__ = [
    "EXPERIMENT", "INITIAL_VARIANCE", "METHODS", "NUM_DRAWS", "PRIOR_VARIANCE", "SETTINGS", "exact_lower_bound",
    "expectation", "measures", "problem",
]  # fmt: skip
"""The problem and its settings serve other experiments, the benchmarks and the pages of the documentation too."""

EXPERIMENT = Experiment("labour", cells, tables, figures, data=("labour",))
