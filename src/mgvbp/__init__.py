"""Gaussian posterior approximations of any model, from log-likelihood evaluations alone.

Begin with `fit`. The packages below are the layers of the library, from `core` to `cli`: each says at its top what
lives there and what it may import (CONTRIBUTING.md has the map).
"""

from __future__ import annotations

import typing as _typing

from mgvbp import errors as errors
from mgvbp import transforms as transforms
from mgvbp.auto import Auto, Mixture
from mgvbp.core.version import __version__ as __version__
from mgvbp.estimators import EmpiricalFisher, Gradient, Regression, Score
from mgvbp.families import BlockDiagonal, Diagonal, Full, Gaussian, GaussianMixture, LowRank, SparsePrecision
from mgvbp.methods import MGVB, MGVBP, QBVI, VOGN, Geodesic, Optimizer, State
from mgvbp.posterior import Diagnosis, Marginal, Posterior, Trace
from mgvbp.problem import Minibatches, Model, Parameters, PredictiveDraws, Problem, ShardedLikelihood
from mgvbp.run import FamilyComparison, compare_families, fit, load, nested, resume

__all__ = [
    "MGVB",
    "MGVBP",
    "QBVI",
    "VOGN",
    "Auto",
    "BlockDiagonal",
    "Diagnosis",
    "Diagonal",
    "EmpiricalFisher",
    "FamilyComparison",
    "Full",
    "Gaussian",
    "GaussianMixture",
    "Geodesic",
    "Gradient",
    "LowRank",
    "Marginal",
    "Minibatches",
    "Mixture",
    "Model",
    "Optimizer",
    "Parameters",
    "Posterior",
    "PredictiveDraws",
    "Problem",
    "Regression",
    "Score",
    "ShardedLikelihood",
    "SparsePrecision",
    "State",
    "Trace",
    "compare_families",
    "fit",
    "from_arch",
    "from_jax",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "from_statsmodels",
    "from_torch",
    "load",
    "nested",
    "resume",
]

_ON_DEMAND = ("baselines", "datasets", "models", "networks", "plots", "report", "sklearn", "volatility")

if _typing.TYPE_CHECKING:
    from mgvbp import baselines as baselines
    from mgvbp import datasets as datasets
    from mgvbp import models as models
    from mgvbp import networks as networks
    from mgvbp import plots as plots
    from mgvbp import report as report
    from mgvbp import sklearn as sklearn
    from mgvbp import volatility as volatility
    from mgvbp.errors import *  # noqa: F403
    from mgvbp.interop import (
        from_arch,
        from_jax,
        from_numpyro,
        from_pymc,
        from_stan,
        from_statsmodels,
        from_torch,
    )
else:

    def __getattr__(name: str) -> object:
        """What ``import mgvbp`` leaves out, to stay light, and the names of `mgvbp.errors`."""
        from importlib import import_module

        if name in _ON_DEMAND:
            return import_module(f"mgvbp.{name}")
        if name in __all__:
            return getattr(import_module("mgvbp.interop"), name)
        if name in errors.__all__:
            return getattr(errors, name)
        raise AttributeError(f"module 'mgvbp' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted([*__all__, *_ON_DEMAND, "errors", "transforms", "__version__"])
