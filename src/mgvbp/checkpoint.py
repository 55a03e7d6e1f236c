"""Checkpoints: a run is a function of its settings, its seed and the values it was told, so these are kept.

A resumed run is told them again and, having arrived where it was, goes on: every method, judge and trace is restored
bit for bit without knowing of files. What it costs is the arithmetic between evaluations, not the evaluations.
Files are NumPy archives with a JSON header (`mgvbp.storage`), replaced as a whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.checks import positive_integer
from mgvbp.encoding import check, decoded, encoded
from mgvbp.errors import (
    CheckpointWarning,
    FileFormatError,
    InvalidInputError,
    InvalidTypeError,
    MgvbpError,
    warn_user,
)
from mgvbp.parallel import Evaluate, Failures, Here, Pool
from mgvbp.storage import DAMAGE, read_archive, write_archive

COLUMNS = ("values", "gradients", "squares")


@dataclass
class Part:
    """An iteration that is not finished."""

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

    told: list[tuple[Array, ...]] = field(default_factory=list)
    """For each iteration what `Problem.evaluate_at` returned."""
    norms: list[float] = field(default_factory=list)
    """The norm of each iteration's draws, by which a replay sees that it makes the same ones."""
    failures: Failures = field(default_factory=Failures)
    part: Part | None = None


class Recorder:
    """A function of iteration and draws that remembers what another one returned, and writes it to a file.

    Parameters
    ----------
    path : path
    every : float
        Seconds between two writes. A write that fails is a warning, not the end of the run.
    settings : mapping
        What, besides the log-likelihood, `fit` was called with.
    record : Record, optional
        What the run was told in an earlier life.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        every: float,
        settings: Mapping[str, Any],
        record: Record | None = None,
    ) -> None:
        if not isinstance(path, str | PathLike):
            raise InvalidTypeError(f"checkpoint must be the path of a file; got {path!r}")
        if not isinstance(every, int | float | np.number) or not every >= 0.0:
            raise InvalidInputError(f"every must be a number of seconds; got {every!r}")
        self._path, self._every = Path(path), float(every)
        self._settings, self._arrays = encoded(settings)
        self._record = record or Record()
        self._written = time.monotonic()
        self._warned = False

    @property
    def told(self) -> list[tuple[Array, ...]]:
        """What each iteration so far was told."""
        return self._record.told

    @property
    def failures(self) -> Failures:
        """Evaluations that failed, those of an earlier life too."""
        return self._record.failures

    def recording(self, evaluate: Evaluate) -> Evaluate:
        """``evaluate``, told from memory where it can be, and recorded otherwise."""
        assert isinstance(evaluate, Here | Pool)
        if isinstance(evaluate, Pool):
            evaluate.failures = self.failures
        if not self.told:  # a bad path is known at once, and there is always something to resume
            self.write()

        def remembered(iteration: int, theta: Array) -> tuple[Array, ...]:
            if iteration <= len(self.told):
                self._recognise(iteration, theta, evaluate)
            else:
                self.told.append(self._evaluated(iteration, theta, evaluate))
                self._record.norms.append(float(np.linalg.norm(theta)))
                self._record.part = None
                self._write_in_time()
            return self.told[iteration - 1]

        return remembered

    def _evaluated(self, iteration: int, theta: Array, evaluate: Here | Pool) -> tuple[Array, ...]:
        """Evaluate the draws that were not evaluated in an earlier life, and keep what comes as it comes."""
        if self._record.part is not None:
            self._recognise(iteration, theta, evaluate)
        part = self._record.part = self._record.part or Part(
            float(np.linalg.norm(theta)), np.zeros(len(theta), bool)
        )
        missing = np.flatnonzero(~part.known)
        if len(missing) == 0:
            return part.arrays

        def observer(rows: NDArray[np.intp], arrays: tuple[Array, ...]) -> None:
            part.add(missing[rows], arrays)
            self._write_in_time()

        evaluate.observer = observer
        try:
            found = evaluate(iteration, theta if len(missing) == len(theta) else theta[missing])
        finally:
            evaluate.observer = None
        if len(missing) < len(theta):
            part.add(missing, found)
            return part.arrays
        return found

    def _recognise(self, iteration: int, theta: Array, evaluate: Evaluate) -> None:
        """Refuse a replay that makes other draws, or a model that has another value at the first draw."""
        record = self._record
        if iteration <= len(record.told):
            (values, *derivatives), before = record.told[iteration - 1], record.norms[iteration - 1]
        else:
            assert record.part is not None
            (values, *derivatives), before = record.part.arrays, record.part.norm
        norm, shapes = float(np.linalg.norm(theta)), {part.shape for part in derivatives}
        if values.shape != theta.shape[:1] or not shapes <= {theta.shape} or not _close(norm, before, 1e-6):
            raise InvalidInputError(
                f"{self._path} has other draws at iteration {iteration}: it is the checkpoint of another problem, or "
                "was written on another platform, by another NumPy or SciPy"
            )
        if iteration > 1:
            return
        finite = np.flatnonzero(np.isfinite(values))  # a draw without a value may have failed by accident
        row = int(finite[0]) if len(finite) else 0
        try:
            again, *more = evaluate(1, theta[row : row + 1])
        except Exception as error:
            raise InvalidInputError(
                f"{self._path} is the checkpoint of another model: this one fails at its first draw, of dimension "
                f"{theta.shape[1]}: {type(error).__name__}: {error}"
            ) from error
        if len(more) != len(derivatives):
            raise InvalidInputError(
                f"{self._path} is the checkpoint of a model with {len(derivatives)} derivatives; this one has "
                f"{len(more)}"
            )
        # a sum in single precision is another one for a draw alone
        single = (values.astype(np.float32) == values)[finite].all()
        if not _close(float(again[0]), float(values[row]), 1e-3 if single else 1e-6):
            raise InvalidInputError(
                f"{self._path} is the checkpoint of another model: its draw {row + 1} had the log-likelihood "
                f"{values[row]:.10g}, and has {again[0]:.10g} now"
            )

    def _write_in_time(self) -> None:
        if time.monotonic() - self._written >= self._every:
            self.write()

    def write(self) -> None:
        """Replace the file."""
        record, unfinished = self._record, {}
        told, norms = record.told, record.norms
        if record.part is not None and record.part.arrays:
            told, norms = [*told, record.part.arrays], [*norms, record.part.norm]
            unfinished = {"known": record.part.known}
        columns = {
            name: np.concatenate(parts) for name, parts in zip(COLUMNS, zip(*told, strict=True), strict=False)
        }
        sizes = np.array([len(values) for values, *_ in told], dtype=np.int64)
        try:
            write_archive(
                self._path,
                "checkpoint",
                {"settings": self._settings, "failures": asdict(self.failures)},
                {"sizes": sizes, "norms": np.array(norms), **unfinished, **columns, **self._arrays},
            )
        except OSError as error:
            if not self._warned:
                warn_user(f"the checkpoint could not be written, the run goes on: {error}", CheckpointWarning)
            self._warned = True
        self._written = time.monotonic()


def _close(a: float, b: float, rtol: float) -> bool:
    return math.isclose(a, b, rel_tol=rtol, abs_tol=1e-9) or a == b or (math.isnan(a) and math.isnan(b))


def read_checkpoint(path: str | PathLike[str]) -> tuple[dict[str, Any], Record]:
    """The settings and what was told, of a file that a `Recorder` wrote."""
    header, arrays = read_archive(path, "checkpoint")
    try:
        settings = decoded(header["settings"], arrays)
        check(settings)
        sizes, norms = arrays["sizes"], arrays["norms"]
        if sizes.dtype != np.int64 or sizes.ndim != 1 or (sizes < 1).any():
            raise FileFormatError("the sizes of its iterations are no sizes")
        if norms.dtype != np.float64 or norms.shape != sizes.shape:
            raise FileFormatError("its iterations have no norms")
        names = COLUMNS[: sum(name in arrays for name in COLUMNS)]
        columns = [arrays[name] for name in names]
        for name, column in zip(names, columns, strict=True):
            shape = (math.fsum(sizes), *([] if name == "values" else [settings["dim"]]))
            if column.dtype != np.float64 or column.shape != shape:
                raise FileFormatError(f"its {name} are {column.dtype} {column.shape}")
        if len(sizes) > 0 and not columns:
            raise FileFormatError("it has no values")
        splits = np.cumsum(sizes)[:-1]
        told = list(zip(*(np.split(column, splits) for column in columns), strict=True)) if len(sizes) else []
        record = Record(told, norms.tolist(), _failures(header["failures"]))
        if "known" in arrays:
            known, last = arrays["known"], record.told.pop()
            if known.dtype != np.bool_ or known.shape != last[0].shape or not known.any():
                raise FileFormatError("of its last iteration it is not known what is known")
            record.part = Part(record.norms.pop(), known, last)
        return settings, record
    except (*DAMAGE, ArithmeticError, AttributeError, LookupError, MgvbpError) as error:
        raise FileFormatError(f"{path} is not a valid checkpoint: {error}") from None


def _failures(stored: Any) -> Failures:
    failures = Failures(**stored)
    for name, count in failures.counts.items():
        positive_integer(count, name)
    if not isinstance(failures.first_error, str):
        raise FileFormatError("its failures are no failures")
    return failures
