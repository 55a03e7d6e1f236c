"""Models of other packages that `mgvbp.fit` is given as they are: which function takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from mgvbp.interop.arch.model import from_arch
from mgvbp.interop.numpyro_model import from_numpyro
from mgvbp.interop.pymc.model import from_pymc
from mgvbp.interop.stan_model import from_stan
from mgvbp.interop.statsmodels.model import from_statsmodels

ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "pymc": from_pymc,
    "statsmodels": from_statsmodels,
    "arch": from_arch,
    "bridgestan": from_stan,
}
"""The function for the models of each package."""


def adapted(given: Any) -> Any:
    """What `ADAPTERS` makes of a model, or of results, whose class comes from one of these packages; else ``given``.

    A NumPyro model is a function, of no class of its own: a function that comes here is taken for one.

    Examples
    --------
    >>> import statsmodels.api as sm
    >>> model = adapted(sm.Poisson([1.0, 3.0, 2.0], [[1.0], [1.0], [1.0]]))
    >>> type(model).__name__, model.parameters.names
    ('StatsmodelsModel', ('const',))
    >>> adapted("a text")
    'a text'
    """
    packages = {base.__module__.partition(".")[0] for base in type(given).__mro__}
    for package in packages & set(ADAPTERS):
        return ADAPTERS[package](given)
    if "numpyro" in sys.modules and callable(given):
        return from_numpyro(given)
    return given
