"""Models written for another package, fitted as they are, under their own names."""

from mgvbp.foreign.jax_function import JaxLikelihood, from_jax
from mgvbp.foreign.model import ForeignModel, ForeignParameters
from mgvbp.foreign.numpyro_model import from_numpyro
from mgvbp.foreign.pymc_model import from_pymc

__all__ = ["ForeignModel", "ForeignParameters", "JaxLikelihood", "from_jax", "from_numpyro", "from_pymc"]
