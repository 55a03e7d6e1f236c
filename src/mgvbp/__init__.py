"""Gaussian posterior approximations of any model, from log-likelihood evaluations alone."""

from mgvbp.auto import Auto
from mgvbp.diagnostics import Diagnosis
from mgvbp.errors import (
    ConvergenceWarning,
    DivergenceError,
    EvaluationError,
    FileFormatError,
    InvalidInputError,
    InvalidTypeError,
    MgvbpError,
    MgvbpWarning,
    MissingDependencyError,
    NonFiniteWarning,
    NotPositiveDefiniteError,
)
from mgvbp.estimators import Regression, Score
from mgvbp.families import BlockDiagonal, Diagonal, Full
from mgvbp.fitting import fit
from mgvbp.gaussian import Gaussian
from mgvbp.loading import load
from mgvbp.methods import MGVB, MGVBP, QBVI, Geodesic
from mgvbp.optimizer import Optimizer, State
from mgvbp.posterior import Posterior
from mgvbp.problem import Problem
from mgvbp.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "MGVB",
    "MGVBP",
    "QBVI",
    "Auto",
    "BlockDiagonal",
    "ConvergenceWarning",
    "Diagnosis",
    "Diagonal",
    "DivergenceError",
    "EvaluationError",
    "FileFormatError",
    "Full",
    "Gaussian",
    "Geodesic",
    "InvalidInputError",
    "InvalidTypeError",
    "MgvbpError",
    "MgvbpWarning",
    "MissingDependencyError",
    "NonFiniteWarning",
    "NotPositiveDefiniteError",
    "Optimizer",
    "Posterior",
    "Problem",
    "Regression",
    "Score",
    "State",
    "Trace",
    "fit",
    "load",
]
