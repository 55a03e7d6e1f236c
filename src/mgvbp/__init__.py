"""Gaussian posterior approximations of any model, from log-likelihood evaluations alone."""

import typing as _typing

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
from mgvbp.ladder import FamilyComparison, compare_families
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
    "FamilyComparison",
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
    "compare_families",
    "fit",
    "from_jax",
    "from_numpyro",
    "from_pymc",
    "load",
    "resume",
]

if _typing.TYPE_CHECKING:
    from mgvbp import baselines as baselines
    from mgvbp import datasets as datasets
    from mgvbp import networks as networks
    from mgvbp import plots as plots
    from mgvbp import report as report
    from mgvbp import sklearn as sklearn
    from mgvbp import volatility as volatility
else:
    _ON_DEMAND = ("baselines", "datasets", "networks", "plots", "report", "sklearn", "volatility")

    def __getattr__(name: str) -> object:
        """Subpackages that ``import mgvbp`` leaves out, to stay light, come when they are asked for."""
        if name not in _ON_DEMAND:
            raise AttributeError(f"module 'mgvbp' has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"mgvbp.{name}")
