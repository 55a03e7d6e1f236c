"""Models written for another package, fitted as they are, under their own names.

This package may import `problem` and lower layers; a foreign package is imported when a model of it is given. Begin
with `model`, the class that Bayesian models become, and `estimated`, the one of models with a likelihood alone.
`functions` differentiates functions of JAX and PyTorch; `pymc`, `numpyro_model`, `stan_model`, `statsmodels` and `arch`
translate names and constraints, and `recognised` finds the one for a model that `fit` is given as it is.
"""

from mgvbp.interop.arch.model import from_arch
from mgvbp.interop.functions.compiled import trace
from mgvbp.interop.functions.jax_function import JaxLikelihood, from_jax
from mgvbp.interop.functions.torch_function import TorchLikelihood, from_torch
from mgvbp.interop.model import ForeignModel, ForeignParameters, Observations
from mgvbp.interop.numpyro_model import from_numpyro
from mgvbp.interop.pymc.model import from_pymc
from mgvbp.interop.recognised import adapted
from mgvbp.interop.stan_model import from_stan
from mgvbp.interop.statsmodels.model import from_statsmodels

__all__ = [
    "ForeignModel",
    "ForeignParameters",
    "JaxLikelihood",
    "Observations",
    "TorchLikelihood",
    "adapted",
    "from_arch",
    "from_jax",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "from_statsmodels",
    "from_torch",
    "trace",
]
