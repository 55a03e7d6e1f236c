"""What a run was told, in memory and in a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.attempts import Failures
from mgvbp.encoding import ARRAYS, check, decoded
from mgvbp.errors import FileFormatError, MgvbpError
from mgvbp.storage import DAMAGE, count, read_archive

COLUMNS = ("values", "gradients", "squares")
"""What `Problem.evaluate_at` returns, so far as an estimator needs it."""


class Told(NamedTuple):
    """An iteration that is finished."""

    arrays: tuple[Array, ...]
    """What `Problem.evaluate_at` returned."""
    norm: float
    """The norm of its draws, by which a replay sees that it makes the same ones."""


@dataclass
class Part:
    """An iteration that is not finished."""

    iteration: int
    norm: float
    known: NDArray[np.bool_]
    """The draws that were evaluated, (S,)."""
    arrays: tuple[Array, ...] = ()
    """What came of them; NaN for the others."""

    def add(self, rows: NDArray[np.intp], arrays: tuple[Array, ...]) -> None:
        """Take the values of some draws."""
        if not self.arrays:
            self.arrays = tuple(np.full((len(self.known), *array.shape[1:]), np.nan) for array in arrays)
        for whole, array in zip(self.arrays, arrays, strict=True):
            whole[rows] = array
        self.known[rows] = True


@dataclass
class Record:
    """What a run was told so far."""

    told: list[Told] = field(default_factory=list)
    failures: Failures = field(default_factory=Failures)
    part: Part | None = None

    @property
    def unfinished(self) -> Part | None:
        """The part, if anything of it is known and its iteration is not told: an interrupt may come in between."""
        part = self.part
        return part if part and part.iteration > len(self.told) and part.known.any() else None

    @property
    def arrays(self) -> dict[str, NDArray[Any] | list[NDArray[Any]]]:
        """What a file has of it."""
        told, unfinished = list(self.told), self.unfinished
        if unfinished is not None:
            told.append(Told(unfinished.arrays, unfinished.norm))
        columns = zip(COLUMNS, zip(*(found for found, _ in told), strict=True), strict=False)
        return {
            "sizes": np.array([len(found[0]) for found, _ in told], dtype=np.int64),
            "norms": np.array([norm for _, norm in told]),
            **({} if unfinished is None else {"known": unfinished.known}),
            **{name: list(parts) for name, parts in columns},
        }


def read_checkpoint(path: str | PathLike[str]) -> tuple[dict[str, Any], Record]:
    """The settings and what was told, of a file that a `mgvbp.checkpoint.Recorder` wrote."""
    header, arrays = read_archive(path, "checkpoint", ("sizes", "norms", "known", *COLUMNS, *ARRAYS))
    try:
        settings = decoded(header["settings"], arrays)
        check(settings)
        return settings, _record(arrays, settings, _failures(header["failures"]))
    except (*DAMAGE, MgvbpError) as error:
        raise FileFormatError(f"{path} is not a valid checkpoint: {error}") from None


def _record(arrays: Mapping[str, Any], settings: Mapping[str, Any], failures: Failures) -> Record:
    sizes, norms = arrays["sizes"], arrays["norms"]
    if sizes.dtype != np.int64 or sizes.ndim != 1 or (sizes < 1).any():
        raise FileFormatError("the sizes of its iterations are no sizes")
    if norms.dtype != np.float64 or norms.shape != sizes.shape:
        raise FileFormatError("its iterations have no norms")
    if len(sizes) and settings["num_draws"] not in (None, sizes[0]):
        raise FileFormatError(f"it has {sizes[0]} draws an iteration, and says {settings['num_draws']}")
    names = COLUMNS[: sum(name in arrays for name in COLUMNS)]
    columns = [arrays[name] for name in names]
    for name, column in zip(names, columns, strict=True):
        shape = (math.fsum(sizes), *([] if name == "values" else [settings["dim"]]))
        if column.dtype != np.float64 or column.shape != shape:
            raise FileFormatError(f"its {name} are {column.dtype} {column.shape}")
    if len(sizes) > 0 and not columns:
        raise FileFormatError("it has no values")
    splits = np.cumsum(sizes)[:-1]
    found = zip(*(np.split(column, splits) for column in columns), strict=True) if len(sizes) else ()
    record = Record([Told(*both) for both in zip(found, norms.tolist(), strict=True)], failures)
    if "known" in arrays:
        known, last = arrays["known"], record.told.pop()
        if known.dtype != np.bool_ or known.shape != last.arrays[0].shape or not known.any():
            raise FileFormatError("of its last iteration it is not known what is known")
        record.part = Part(len(record.told) + 1, last.norm, known, last.arrays)
    return record


def _failures(stored: Any) -> Failures:
    counts = {name: count(number, name) for name, number in stored.items() if name != "first_error"}
    if not isinstance(stored["first_error"], str):
        raise FileFormatError("its first error is no text")
    return Failures(**counts, first_error=stored["first_error"])


def difference(before: list[Array], again: tuple[Array, ...]) -> str:
    """What is not the same at two draws, or one, in words."""
    values, new = before[0], again[0]
    rtol, noise = _tolerances(values)
    same = np.isclose(new, values, rtol, 1e-9)
    if not same.all():
        row = int(np.argmin(same))
        return f"a draw had the log-likelihood {values[row]:.10g}, and has {new[row]:.10g} now"
    apart, now = values[-1] - values[0], new[-1] - new[0]
    if abs(now - apart) > rtol * abs(apart) + noise * np.abs(values).max() + 1e-9:
        return f"the log-likelihoods of two draws were {apart:.10g} apart, and are {now:.10g} now"
    for name, old, found in zip(COLUMNS[1:], before[1:], again[1:], strict=False):
        rtol, _ = _tolerances(old)
        scale = np.abs(old[np.isfinite(old)]).max(initial=0.0)
        if not np.allclose(found, old, rtol, rtol * scale + 1e-9, equal_nan=True):
            return f"a draw has other {name}"
    return ""


def _tolerances(array: Array) -> tuple[float, float]:
    """Relative ones of numbers, and of the difference of two in units of these.

    In single precision, where sums depend on how many draws there are at once, they say no more than the numbers.
    """
    with np.errstate(over="ignore"):
        single = np.array_equal(array.astype(np.float32), array, equal_nan=True)
    return (1e-3, 1e-3) if single else (1e-6, 1e-9)
