"""Checkpoints: a run is a function of its settings, its seed and the values it was told, so these are kept.

A resumed run is told them again and, having arrived where it was, goes on: every method, judge and trace is restored
bit for bit without knowing of files. What it costs is the arithmetic between evaluations, not the evaluations.
Files are NumPy archives with a JSON header (`mgvbp.storage`), not compressed and replaced as a whole.

The record is kept in memory and on disk: 8 bytes a draw, and with gradients 8 (d + 1), or 8 (2 d + 1) with squares.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp._linalg import Array
from mgvbp.attempts import Failures
from mgvbp.encoding import check_extent, encoded
from mgvbp.errors import CheckpointWarning, FileFormatError, InvalidInputError, InvalidTypeError, warn_user
from mgvbp.parallel import Evaluate, Here, Pool
from mgvbp.record import COLUMNS, Part, Record, Told, difference, read_checkpoint
from mgvbp.storage import write_archive

LARGE = 2**30
"""Bytes of a file from which the user is told that it grows: all of it is written every time."""


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
        What the run was told in an earlier life; without one there must be nothing at ``path``.
    compare : bool
        Whether a replay asks the model for values that it was told.

    Attributes
    ----------
    replaying : bool
        Whether nothing was evaluated in this life.
    kept : bool
        Whether there is a file to resume from, be it that a later write has failed: files are replaced as a whole.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        every: float,
        settings: Mapping[str, Any],
        record: Record | None = None,
        *,
        compare: bool = True,
    ) -> None:
        self._path = _checked_path(path)
        if not isinstance(every, int | float | np.number) or not every >= 0.0:
            raise InvalidInputError(f"every must be a number of seconds; got {every!r}")
        check_extent(settings)
        if record is None:
            _require_nothing(self._path)
        self._every, self._compare = float(every), compare
        self._settings, self._arrays = encoded(settings)
        self._record = record or Record()
        self._written = time.monotonic()
        self._warned: set[str] = set()
        self.replaying = True
        self.kept = record is not None

    @property
    def resumption(self) -> str:
        """How to go on with the run; empty where there is nothing to resume from."""
        return _resumption(self._path) if self.kept else ""

    @property
    def told(self) -> list[Told]:
        """The iterations so far."""
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
                found = self._evaluated(iteration, theta, evaluate)
                # in one step: an interrupt finds the iteration told, or not
                self.told.append(Told(found, float(np.linalg.norm(theta))))
                self._record.part = None
                self._write_in_time()
            return self.told[iteration - 1].arrays

        return remembered

    def _evaluated(self, iteration: int, theta: Array, evaluate: Here | Pool) -> tuple[Array, ...]:
        """Evaluate the draws that were not evaluated in an earlier life, and keep what comes as it comes."""
        part = self._record.unfinished
        if part is None:
            part = Part(iteration, float(np.linalg.norm(theta)), np.zeros(len(theta), bool))
            self._record.part = part
        else:
            self._recognise(iteration, theta, evaluate)
        self.replaying = False
        missing = np.flatnonzero(~part.known)
        if len(missing) == 0:
            return part.arrays

        def observer(rows: NDArray[np.intp], arrays: tuple[Array, ...]) -> None:
            part.add(missing[rows], arrays)
            if not part.known.all():  # else it is told in a moment
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

    def _recognise(self, iteration: int, theta: Array, evaluate: Here | Pool) -> None:
        """Refuse a replay that makes other draws, and another model."""
        part = self._record.unfinished if iteration > len(self.told) else None
        arrays, norm = (part.arrays, part.norm) if part else self.told[iteration - 1]
        known = part.known if part else np.ones(len(arrays[0]), bool)
        shapes = [theta.shape[:1], *(theta.shape for _ in arrays[1:])]
        if [array.shape for array in arrays] != shapes or not math.isclose(
            np.linalg.norm(theta), norm, rel_tol=1e-6
        ):
            raise InvalidInputError(
                f"{self._path} has other draws at iteration {iteration}: it is the checkpoint of another problem, or "
                "was written on another platform, by another NumPy or SciPy"
            )
        if iteration > 1:
            return
        derivatives = COLUMNS.index(evaluate.needs)
        if derivatives != len(arrays) - 1:
            raise InvalidInputError(
                f"{self._path} is the checkpoint of a model with {len(arrays) - 1} derivatives; this one has "
                f"{derivatives}"
            )
        # draws without a value may have failed by accident; the difference of two knows no constant
        rows = np.flatnonzero(known & np.isfinite(arrays[0]))[:2]
        if self._compare and len(rows):
            again = self._again(theta[rows], evaluate)
            if otherwise := difference([array[rows] for array in arrays], again):
                raise InvalidInputError(
                    f"{self._path} is the checkpoint of another model: {otherwise}; if the log-likelihood is a "
                    "random one, resume(..., check=False)"
                )

    def _again(self, theta: Array, evaluate: Here | Pool) -> tuple[Array, ...]:
        """What the model has at draws that had a value, at the second attempt if need be."""
        problem, needs = evaluate.problem, evaluate.needs
        with suppress(Exception):
            found = problem.evaluate_at(1, theta, needs)
            if np.isfinite(found[0]).all():
                return found
        try:
            return problem.evaluate_at(1, theta, needs)
        except Exception as error:
            raise InvalidInputError(
                f"the model could not be evaluated at the first draws of {self._path}, of dimension {theta.shape[1]}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _write_in_time(self) -> None:
        if time.monotonic() - self._written >= self._every:
            self.write()

    def write(self) -> None:
        """Replace the file."""
        meta = {"settings": self._settings, "failures": asdict(self.failures)}
        try:
            write_archive(
                self._path, "checkpoint", meta, {**self._record.arrays, **self._arrays}, compressed=False
            )
            size = self._path.stat().st_size
        except (OSError, MemoryError) as error:
            reason = str(error) or type(error).__name__
            self._warn("failure", f"the checkpoint could not be written, the run goes on: {reason}")
        else:
            self.kept = True
            if size > LARGE:
                self._warn(
                    "size",
                    f"the checkpoint has grown to {size / 2**30:.1f} GiB, which are in memory as well and written anew "
                    f"every {self._every:g} s (every=)",
                )
        self._written = time.monotonic()

    def _warn(self, what: str, message: str) -> None:
        """Warn, once of everything."""
        if what not in self._warned:
            self._warned.add(what)
            warn_user(message, CheckpointWarning)


def _checked_path(path: object) -> Path:
    name = os.fspath(path) if isinstance(path, str | PathLike) else None
    if not isinstance(name, str):
        raise InvalidTypeError(f"checkpoint must be the path of a file; got {path!r}")
    if not Path(name).name or "\0" in name:
        raise InvalidInputError(f"checkpoint must be the path of a file; got {path!r}")
    return Path(name)


def _require_nothing(path: Path) -> None:
    """Refuse to begin a run where there is another one."""
    try:
        free = not path.exists()
    except OSError:  # what cannot be looked at cannot be written: there will be a warning
        free = True
    if free:
        return
    what, advice = "something that is no checkpoint", "choose another path, or delete it"
    with suppress(FileFormatError, OSError):
        number = len(read_checkpoint(path)[1].told)
        what = f"a checkpoint of {number} iteration{'s' * (number != 1)}"
        advice = f"{_resumption(path)}; delete it to begin anew"
    raise InvalidInputError(f"there is {what} at {path}: {advice}")


def _resumption(path: Path) -> str:
    return f"mgvbp.resume({str(path)!r}, ...) goes on with it"
