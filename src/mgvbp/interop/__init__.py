"""Models written for another package, fitted as they are, under their own names.

This package may import `problem` and lower layers; a foreign package is imported when a model of it is given. Begin
with `model`, the class that Bayesian models become, and `estimated`, the one of models with a likelihood alone.
`jax_function` and `torch_function` differentiate functions, with `autodiff` in common; `numpyro_model`, `pymc_model`
(with the compilation in `pymc_graphs`) and `stan_model` translate names and constraints, as `statsmodels_model` and
`arch_model` do; `recognised` finds the one for a model that `fit` is given as it is.
"""

from mgvbp.interop.arch_model import from_arch
from mgvbp.interop.compiled import trace
from mgvbp.interop.jax_function import JaxLikelihood, from_jax
from mgvbp.interop.model import ForeignModel, ForeignParameters, Observations
from mgvbp.interop.numpyro_model import from_numpyro
from mgvbp.interop.pymc_model import from_pymc
from mgvbp.interop.recognised import adapted
from mgvbp.interop.stan_model import from_stan
from mgvbp.interop.statsmodels_model import from_statsmodels
from mgvbp.interop.torch_function import TorchLikelihood, from_torch

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
