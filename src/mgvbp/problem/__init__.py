"""What is to be approximated: a log-likelihood and a prior, over parameters with names and constraints.

This package may import `families` (a Gaussian prior), `transforms` (constraints) and `core`; it makes no draws and
takes no decisions. Begin with `problem`, which checks what the user's function returns; then `parameters` and
`model`, which give names to θ. `minibatch` and `sharded` are log-likelihoods of data too large for one call.
"""

from mgvbp.problem.minibatch import Minibatches
from mgvbp.problem.model import Model
from mgvbp.problem.parameters import Key as Key
from mgvbp.problem.parameters import Parameters
from mgvbp.problem.predictive import PredictiveDraws
from mgvbp.problem.problem import (
    LogLikelihood,
    NamedParameters,
    Prior,
    Problem,
    agreed_parameters,
    grad_log_prior,
    log_prior,
)
from mgvbp.problem.sharded import ShardedLikelihood

__all__ = [
    "LogLikelihood",
    "Minibatches",
    "Model",
    "NamedParameters",
    "Parameters",
    "PredictiveDraws",
    "Prior",
    "Problem",
    "ShardedLikelihood",
    "agreed_parameters",
    "grad_log_prior",
    "log_prior",
]
