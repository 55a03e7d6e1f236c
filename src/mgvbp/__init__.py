"""Gaussian posterior approximations of any model, from log-likelihood evaluations alone."""

from mgvbp import models as models
from mgvbp import transforms as transforms
from mgvbp.asynchronous import Asynchronous
from mgvbp.auto import Auto
from mgvbp.diagnostics import Diagnosis
from mgvbp.errors import (
    CheckpointWarning,
    ConvergenceWarning,
    DataUnavailableError,
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
    ScaleWarning,
    UnknownNameError,
)
from mgvbp.estimators import EmpiricalFisher, Gradient, Regression, Score
from mgvbp.families import BlockDiagonal, Diagonal, Full
from mgvbp.fitting import fit, resume
from mgvbp.foreign import from_jax, from_numpyro, from_pymc
from mgvbp.gaussian import Gaussian
from mgvbp.loading import load
from mgvbp.marginal import Marginal
from mgvbp.methods import MGVB, MGVBP, QBVI, VOGN, Geodesic
from mgvbp.minibatch import Minibatches
from mgvbp.model import Model
from mgvbp.optimizer import Optimizer, State
from mgvbp.parameters import Parameters
from mgvbp.posterior import Posterior
from mgvbp.problem import Problem
from mgvbp.sharded import ShardedLikelihood
from mgvbp.trace import Trace

__version__ = "0.1.0"

__all__ = [
    "MGVB",
    "MGVBP",
    "QBVI",
    "VOGN",
    "Asynchronous",
    "Auto",
    "BlockDiagonal",
    "CheckpointWarning",
    "ConvergenceWarning",
    "DataUnavailableError",
    "Diagnosis",
    "Diagonal",
    "DivergenceError",
    "EmpiricalFisher",
    "EvaluationError",
    "FileFormatError",
    "Full",
    "Gaussian",
    "Geodesic",
    "Gradient",
    "InvalidInputError",
    "InvalidTypeError",
    "Marginal",
    "MgvbpError",
    "MgvbpWarning",
    "Minibatches",
    "MissingDependencyError",
    "Model",
    "NonFiniteWarning",
    "NotPositiveDefiniteError",
    "Optimizer",
    "Parameters",
    "Posterior",
    "Problem",
    "Regression",
    "ScaleWarning",
    "Score",
    "ShardedLikelihood",
    "State",
    "Trace",
    "UnknownNameError",
    "fit",
    "from_jax",
    "from_numpyro",
    "from_pymc",
    "load",
    "resume",
]
