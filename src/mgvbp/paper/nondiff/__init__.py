"""The paper's non-differentiable model: table non_diff, and which form of the model its numbers fit."""

from mgvbp.paper.nondiff.results import figures, tables
from mgvbp.paper.nondiff.runs import cells
from mgvbp.paper.spec import Experiment

EXPERIMENT = Experiment("nondiff", cells, tables, figures)
