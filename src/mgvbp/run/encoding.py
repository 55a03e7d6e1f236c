"""States and settings as JSON with arrays beside it, and back: no code, and only classes of a fixed list.

What comes back goes on bit for bit. So an object that occurs twice is one object again, because an archive knows by
identity the Gaussian that it was last drawn from. And arrays lie in memory as they did, because that decides in which
order BLAS adds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgvbp.auto.approach import Approach
from mgvbp.auto.ascent import Ascent, Line, Point
from mgvbp.auto.chords import Chords
from mgvbp.auto.climb import Climb
from mgvbp.auto.evolution import Evolution, Generation
from mgvbp.auto.leap import Leap
from mgvbp.auto.low_rank import LowRankState, Pull, Rest
from mgvbp.auto.method import Auto
from mgvbp.auto.mixtures.ascent import Position
from mgvbp.auto.mixtures.distance import Expected
from mgvbp.auto.mixtures.rounds import Aim
from mgvbp.auto.mixtures.scouts import Scouts
from mgvbp.auto.mixtures.state import MixtureState, Place, Question, Tried
from mgvbp.auto.search import Starts
from mgvbp.auto.secants import Secant
from mgvbp.auto.state import Phase, SearchState
from mgvbp.auto.stream.adam import Adam
from mgvbp.auto.stream.state import Measured, Stage, StreamState
from mgvbp.auto.structured import StructuredState, Sums
from mgvbp.auto.trial import Trial
from mgvbp.core.distance import Distance
from mgvbp.core.outcome import Check, Ending, Outcome
from mgvbp.errors import InvalidInputError
from mgvbp.estimators import Control, EmpiricalFisher, Gradient, Regression, Score
from mgvbp.families import BlockDiagonal, Diagonal, Family, Full, LowRank, SparsePrecision
from mgvbp.families.gaussian import Gaussian
from mgvbp.families.mixture import GaussianMixture
from mgvbp.methods import MGVB, MGVBP, QBVI, VOGN, Geodesic
from mgvbp.methods.optimizer import Frame, State
from mgvbp.run.loop import Snapshot, Standing, Start, Window
from mgvbp.surfaces.archive import Archive
from mgvbp.surfaces.moments import Moments
from mgvbp.surfaces.surface import Surface

METHODS = (Auto, Geodesic, MGVB, MGVBP, QBVI, VOGN)
ESTIMATORS = (EmpiricalFisher, Gradient, Regression, Score)
STATES = (
    Adam, Aim, Approach, Archive, Ascent, Check, Chords, Climb, Control, Distance, Ending, Evolution, Expected, Frame,
    Generation, Leap, Line, LowRankState, Measured, MixtureState, Moments, Place, Point, Position, Pull, Question, Rest,
    Scouts, SearchState, Secant, Snapshot, Start, Starts, State, StreamState, StructuredState, Sums, Surface, Standing,
    Trial, Tried, Window,
)  # fmt: skip
CLASSES: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (*METHODS, *ESTIMATORS, *STATES)}
"""Classes whose objects are made again from their fields."""
ENUMS: dict[str, type[Enum]] = {"Outcome": Outcome, "Phase": Phase, "Stage": Stage}
KINDS = {"float64": np.float64, "int64": np.int64, "bool": np.bool_}
"""Kinds of numbers; a file has one array of each."""


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
        if isinstance(value, Enum):
            return {"enum": type(value).__name__, "member": value.name}
        if isinstance(value, dict):
            return {"dict": {key: self(item, key) for key, item in value.items()}}
        if isinstance(value, Full | Diagonal):
            return {"family": value.name, "dim": value.dim}
        if isinstance(value, SparsePrecision):
            return {"sparse": [value.dim, self(value.edges), self(value.order)]}
        if isinstance(value, LowRank):
            return {"low_rank": [value.dim, value.rank]}
        if isinstance(value, BlockDiagonal):
            return {"blocks": [block.tolist() for block in value.blocks]}
        if isinstance(value, Gaussian):  # a Posterior too, as a prior
            return {"gaussian": [self(part) for part in (value.mean, value.factor, value.family)]}
        if isinstance(value, GaussianMixture):
            return {"mixture": [self(part) for part in (value.weights, value.means, value.factors)]}
        kind = type(value).__name__
        if CLASSES.get(kind) is type(value):
            fields = (
                value._fields if isinstance(value, tuple) else [f.name for f in dataclasses.fields(value)]
            )
            return {
                "class": kind,
                "fields": {field: self(getattr(value, field), f"{name}: {field}") for field in fields},
            }
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
        if "enum" in value:
            return ENUMS[value["enum"]][value["member"]]
        if "dict" in value:
            return {key: self(item) for key, item in value["dict"].items()}
        if "family" in value:
            return {"full": Full, "diagonal": Diagonal}[value["family"]](value["dim"])
        if "sparse" in value:
            dim, edges, order = value["sparse"]
            return SparsePrecision.from_edges(dim, self(edges), self(order))
        if "low_rank" in value:
            return LowRank.of(*value["low_rank"])
        if "blocks" in value:
            return BlockDiagonal(value["blocks"])
        if "gaussian" in value:
            mean, factor, family = (self(part) for part in value["gaussian"])
            assert isinstance(family, Family)
            return Gaussian.from_factor(mean, factor, family)
        if "mixture" in value:
            return GaussianMixture(*(self(part) for part in value["mixture"]))
        if "tuple" in value:
            return tuple(self(item) for item in value["tuple"])
        return CLASSES[value["class"]](**{name: self(field) for name, field in value["fields"].items()})


def _spaced(array: NDArray[Any], step: int) -> NDArray[Any]:
    """The same vector with gaps in memory: BLAS adds up one with gaps, as a column of a matrix, in another order."""
    spaced = np.empty(len(array) * step, array.dtype)[::step]
    spaced[:] = array
    return spaced
