"""Models of statsmodels: `from_statsmodels`."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np

from mgvbp.core.checks import shown
from mgvbp.core.linalg import Array
from mgvbp.core.optional import require
from mgvbp.errors import InvalidInputError, InvalidTypeError
from mgvbp.interop.estimated import EstimatedModel, quietly
from mgvbp.interop.statsmodels_kinds import read


class StatsmodelsModel(EstimatedModel):
    """A model of statsmodels, made by `mgvbp.from_statsmodels`."""


def from_statsmodels(model: Any, /, priors: Mapping[str, Any] | None = None) -> StatsmodelsModel:
    require("statsmodels", "statsmodels")
    model, estimate = estimated(model)
    return StatsmodelsModel(model, read(model, estimate), priors)


def estimated(given: Any) -> tuple[Any, Array]:
    """A model and the maximum of its likelihood, of a model or of its results."""
    known = hasattr(given, "params") and hasattr(given, "model")
    model = given.model if known else given
    if not callable(getattr(model, "loglike", None)) or not hasattr(model, "endog"):
        raise InvalidTypeError(
            "expected a model of statsmodels with a likelihood (a method loglike), or its results; got "
            f"{shown(given)}"
        )
    return model, params_of(given) if known else maximised(model)


def maximised(model: Any) -> Array:
    """The estimate of the model's own ``fit``; its warnings are not ours, since the estimate is but a start."""
    known = signature(model.fit).parameters
    wanted = {"disp": 0, "return_params": True}
    options: dict[str, Any] = {name: value for name, value in wanted.items() if name in known}
    if type(model).__name__ == "OrderedModel":  # whose simplex method stops far from the maximum
        options["method"] = "bfgs"
    try:
        result = quietly(lambda: model.fit(**options))
    except Exception as error:
        raise InvalidInputError(
            f"{type(model).__name__}.fit() failed, and the search begins with its estimate ({error}): are columns "
            "collinear? If another of its methods succeeds, give the results: from_statsmodels(model.fit(method=...))"
        ) from error
    return params_of(result)


def params_of(result: Any) -> Array:
    """The parameters (k,) of results, or the array of parameters that some models return in their place."""
    params = np.array(getattr(result, "params", result), np.float64).ravel(order="F")
    if not np.isfinite(params).all():
        raise InvalidInputError(f"the estimate of the model is not finite: {params}")
    return params
