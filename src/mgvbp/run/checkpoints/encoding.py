"""States and settings as JSON with arrays beside it, and back: no code, and only records of this package.

What comes back goes on bit for bit. So an object that occurs twice is one object again, because an archive knows by
identity the Gaussian that it was last drawn from. And arrays lie in memory as they did, because that decides in which
order BLAS adds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from enum import Enum
from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgvbp.errors import InvalidInputError
from mgvbp.families import BlockDiagonal, Diagonal, Full, LowRank, SparsePrecision
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture

PACKAGES = ("auto", "core", "estimators", "methods", "posterior", "run", "surfaces")
"""Packages of the records of a checkpoint: enumerations, and named tuples and dataclasses, made from their fields."""
PARTS: dict[type, tuple[Callable[..., Any], tuple[str, ...]]] = {
    Full: (Full, ("dim",)),
    Diagonal: (Diagonal, ("dim",)),
    BlockDiagonal: (BlockDiagonal, ("blocks",)),
    LowRank: (LowRank.of, ("dim", "rank")),
    SparsePrecision: (SparsePrecision.from_edges, ("dim", "edges", "order")),
    Gaussian: (Gaussian.from_factor, ("mean", "factor", "family")),  # a Posterior too, as a prior
    GaussianMixture: (GaussianMixture, ("weights", "means", "factors")),
}
"""Other classes: what makes an object of each again, and from which of its attributes."""
KINDS = {"float64": np.float64, "int64": np.int64, "bool": np.bool_}
"""Kinds of numbers; a file has one array of each."""


def record(name: str) -> Any:
    """The record of this name, such as ``auto.state.SearchState``; raises if there is none."""
    module, _, kind = name.rpartition(".")
    found = getattr(import_module(f"mgvbp.{module}"), kind) if module.split(".")[0] in PACKAGES else None
    if not (dataclasses.is_dataclass(found) or hasattr(found, "_fields") or hasattr(found, "__members__")):
        raise ValueError(f"{name} is no record of mgvbp")
    return found


@cache
def name_of(kind: type) -> str | None:
    """The name by which `record` finds a class; None if it does not."""
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("mgvbp.")
    try:
        return name if record(name) is kind else None
    except (ImportError, AttributeError, ValueError):
        return None


class Encoder:
    """Turns objects into JSON; ``arrays`` has their numbers end to end, by kind."""

    def __init__(self) -> None:
        self._parts: dict[str, list[NDArray[Any]]] = {kind: [] for kind in KINDS}
        self._sizes = dict.fromkeys(KINDS, 0)
        self._known: dict[int, tuple[int, object]] = {}  # by identity; the object stays alive with it

    @property
    def arrays(self) -> dict[str, list[NDArray[Any]]]:
        """The numbers, in the order in which the JSON refers to them."""
        return {kind: parts or [np.empty(0, KINDS[kind])] for kind, parts in self._parts.items()}

    def __call__(self, value: Any, name: str = "it") -> Any:
        """``value`` as JSON; ``name`` is what an error calls it."""
        if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if id(value) in self._known:
            return {"again": self._known[id(value)][0]}
        number = len(self._known)
        self._known[id(value)] = number, value
        return {"number": number, **self._fields(value, name)}

    def _fields(self, value: Any, name: str) -> dict[str, Any]:
        if isinstance(value, np.ndarray):
            return self._array(value, name)
        if isinstance(value, dict):
            return {"dict": {key: self(item, key) for key, item in value.items()}}
        for kind, (_, parts) in PARTS.items():
            if isinstance(value, kind):
                return {"made": kind.__name__, "of": [self(getattr(value, part)) for part in parts]}
        if known := name_of(type(value)):  # type: ignore[arg-type]  # a class can be hashed
            if isinstance(value, Enum):
                return {"enum": known, "member": value.name}
            fields = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
            content = {field: self(getattr(value, field), f"{name}: {field}") for field in fields}
            return {"class": known, "fields": content}
        if isinstance(value, tuple | list):
            return {"tuple": [self(item, name) for item in value]}
        if callable(value):
            raise InvalidInputError(f"a checkpoint cannot hold the function {name}: use numbers and names")
        raise InvalidInputError(f"a checkpoint cannot hold {name}={value!r}")

    def _array(self, value: NDArray[Any], name: str) -> dict[str, Any]:
        if value.dtype.kind == "U":  # words that occur again and again
            words, indices = np.unique(value, return_inverse=True)
            return {"words": words.tolist(), "indices": self(indices)}
        kind = "int64" if value.dtype.kind in "iu" else value.dtype.name
        if kind not in KINDS:
            raise InvalidInputError(f"a checkpoint cannot hold {name} of dtype {value.dtype}")
        order: Literal["F", "C"] = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        start = self._sizes[kind]
        self._parts[kind].append(value.ravel(order=order).astype(KINDS[kind], copy=False))
        self._sizes[kind] += value.size
        described = {"array": kind, "start": start, "shape": list(value.shape), "order": order}
        if value.ndim == 1 and value.size > 1 and value.strides[0] > value.itemsize:
            described["step"] = value.strides[0] // value.itemsize
        return described


class Decoder:
    """The inverse of `Encoder`; raises whatever a wrong file makes it raise."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._known: dict[int, Any] = {}

    def __call__(self, value: Any) -> Any:
        """The object that the JSON describes."""
        if not isinstance(value, dict):
            return value
        if "again" in value:
            return self._known[value["again"]]
        found = self._known[value["number"]] = self._made(value)
        return found

    def _made(self, value: dict[str, Any]) -> Any:
        if "array" in value:
            size = math.prod(value["shape"])
            numbers = self._arrays[value["array"]][value["start"] : value["start"] + size]
            array = numbers.reshape(value["shape"], order=value["order"]).copy(order="K")
            return _spaced(array, value["step"]) if "step" in value else array
        if "words" in value:
            return np.array(value["words"], dtype=np.str_)[self(value["indices"])]
        if "dict" in value:
            return {key: self(item) for key, item in value["dict"].items()}
        if "made" in value:
            made = next(make for kind, (make, _) in PARTS.items() if kind.__name__ == value["made"])
            return made(*(self(part) for part in value["of"]))
        if "enum" in value:
            return record(value["enum"])[value["member"]]
        if "tuple" in value:
            return tuple(self(item) for item in value["tuple"])
        return record(value["class"])(**{name: self(field) for name, field in value["fields"].items()})


def _spaced(array: NDArray[Any], step: int) -> NDArray[Any]:
    """The same vector with gaps in memory: BLAS adds up one with gaps, as a column of a matrix, in another order."""
    spaced = np.empty(len(array) * step, array.dtype)[::step]
    spaced[:] = array
    return spaced
