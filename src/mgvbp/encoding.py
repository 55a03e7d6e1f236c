"""The settings of a fit as JSON and arrays, and back: no code, and nothing of a kind that `fit` does not take."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mgvbp._linalg import Array
from mgvbp.auto import Auto
from mgvbp.errors import FileFormatError, InvalidInputError
from mgvbp.estimators import EmpiricalFisher, Estimator, Gradient, Regression, Score
from mgvbp.families import BlockDiagonal, Diagonal, Full, resolve_family
from mgvbp.gaussian import Gaussian
from mgvbp.methods import MGVB, MGVBP, QBVI, VOGN, Geodesic, Method

PLAIN: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (Auto, EmpiricalFisher, Geodesic, Gradient, MGVB, MGVBP, QBVI, Regression, Score, VOGN)
}
"""Classes of settings that their fields, all numbers or names, restore."""
ARRAYS = ("initial_mean", "initial_variance", "starts", "prior_mean", "prior_factor")
"""Arrays that settings may refer to."""
LARGEST = 10**9
"""A dimension or number of draws or iterations beyond this is a damaged one."""
LARGEST_RUN = 2**28
"""Numbers (2 GiB) in the covariance, in an iteration's draws and in all starts of a run that a checkpoint can be of."""


def encoded(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Settings as JSON, and the arrays it refers to."""
    arrays: dict[str, Array] = {}

    def encode(name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if name == "rng":
            return list(value)
        if isinstance(value, np.generic):
            return value.item()
        if PLAIN.get(type(value).__name__) is type(value):
            fields = {
                f.name: encode(f"{name}: {f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)
            }
            return {"class": type(value).__name__, **fields}
        if isinstance(value, Full | Diagonal):
            return value.name
        if isinstance(value, BlockDiagonal):
            return {"blocks": [block.tolist() for block in value.blocks]}
        if isinstance(value, Gaussian):
            arrays[f"{name}_mean"], arrays[f"{name}_factor"] = value.mean, value.factor
            return {"gaussian": name, "family": encode(name, value.family)}
        if callable(value):
            raise InvalidInputError(f"a checkpoint cannot hold the function {name}: use numbers and names")
        try:
            arrays[name] = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInputError(f"a checkpoint cannot hold {name}={value!r}") from None
        return {"array": name}

    return {name: encode(name, value) for name, value in settings.items()}, arrays


def decoded(settings: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `encoded`; raises what a wrong file makes it raise."""

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return arrays[value["array"]]
        if "blocks" in value:
            return stored_blocks(value["blocks"])
        if "gaussian" in value:
            mean, factor = (arrays[f"{value['gaussian']}_{part}"] for part in ("mean", "factor"))
            return _gaussian(mean, factor, decode(value["family"]))
        fields = {name: decode(field) for name, field in value.items() if name != "class"}
        if any(isinstance(field, int) and field > LARGEST for field in fields.values()):
            raise FileFormatError(f"a number of its {value['class']} is larger than {LARGEST:,}")
        return PLAIN[value["class"]](**fields)

    if not isinstance(settings, dict):
        raise FileFormatError("its settings are not settings")
    return {name: decode(value) for name, value in settings.items()}


def stored_blocks(blocks: Any) -> BlockDiagonal:
    """Blocks of a header."""
    # numbers would be sizes, and a few bytes can name a size that fills the memory
    if not isinstance(blocks, list) or not all(isinstance(block, list) for block in blocks):
        raise FileFormatError("its blocks are no lists of indices")
    return BlockDiagonal(blocks)


def _gaussian(mean: Any, factor: Any, family: Any) -> Gaussian:
    if isinstance(family, str):
        family = {"full": Full, "diagonal": Diagonal}[family](len(mean))
    for array, shape in ((mean, (family.dim,)), (factor, family.shape)):
        if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            raise FileFormatError(f"its prior has an array {array.dtype} {array.shape}; expected {shape}")
    factor = np.asfortranarray(factor)
    if not (family.diagonal(factor) > 0.0).all() or not family.is_lower_triangular(factor):
        raise FileFormatError("its prior has a precision that is none")
    return Gaussian.from_factor(mean, factor, family)


def check(settings: Mapping[str, Any]) -> None:
    """Refuse settings of other kinds than those that `fit` records; whether they make sense is seen there."""

    def count(value: Any) -> bool:
        return type(value) is int and 0 < value <= LARGEST

    def text(value: Any) -> bool:
        return isinstance(value, str)

    def array(value: Any) -> bool:
        return isinstance(value, np.ndarray) and value.dtype == np.float64

    def place(value: Any) -> bool:
        return value is None or array(value) or (isinstance(value, int | float) and math.isfinite(value))

    def limit(value: Any) -> bool:
        return value is None or (type(value) is int and value > 0)

    def of_this_dimension(value: Any, kind: type[Gaussian | BlockDiagonal]) -> bool:
        return isinstance(value, kind) and value.dim == settings["dim"]

    valid: dict[str, Callable[[Any], bool]] = {
        "version": text,
        "dim": count,
        "vectorized": lambda value: isinstance(value, bool),
        "gradient": lambda value: isinstance(value, bool),
        "prior": lambda value: value is None or of_this_dimension(value, Gaussian),
        "other_prior": text,
        "method": lambda value: isinstance(value, str | Auto | Method),
        "family": lambda value: value in ("full", "diagonal") or of_this_dimension(value, BlockDiagonal),
        "estimator": lambda value: isinstance(value, str | Estimator),
        "draws": text,
        "num_draws": lambda value: value is None or count(value),
        "initial_mean": place,
        "initial_variance": place,
        "max_iterations": limit,
        "max_evaluations": limit,
        "starts": lambda value: count(value) or array(value),
        "rng": lambda value: (
            isinstance(value, list) and all(type(word) is int and word >= 0 for word in value)
        ),
    }
    for name, is_valid in valid.items():
        if not is_valid(settings[name]):
            raise FileFormatError(f"{name} cannot be {settings[name]!r}")
    check_extent(settings)


def check_extent(settings: Mapping[str, Any]) -> None:
    """Refuse a run beyond `LARGEST_RUN`: a few bytes can describe one that fills the memory."""
    dim, draws, starts = (settings[name] for name in ("dim", "num_draws", "starts"))
    covariance = math.prod(resolve_family(settings["family"], dim).shape)
    extents = {
        "the covariance": covariance,
        "the draws of an iteration": dim * (int(draws) if isinstance(draws, int | np.integer) else 100),
        "the starts": (int(starts) if isinstance(starts, int | np.integer) else 1)
        * (covariance + dim + 1000),
    }
    for what, numbers in extents.items():
        if numbers > LARGEST_RUN:
            raise InvalidInputError(
                f"a checkpoint is for runs with up to {LARGEST_RUN:,} numbers in {what}; this one has {numbers:,}"
            )
