"""Checkpoints: a file with the state of a run, from which `mgvbp.resume` goes on.

A run's state is immutable. A checkpoint is the state after the last iteration and, of the iteration that has begun
since, the draws that were evaluated. To resume means to read it: nothing is done again. Files (`mgvbp.core.storage`)
are not compressed, and replaced as a whole.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.checks import as_path
from mgvbp.core.linalg import Array
from mgvbp.core.storage import read_archive, write_archive
from mgvbp.core.version import __version__
from mgvbp.errors import CheckpointWarning, FileFormatError, InvalidInputError, warn_user
from mgvbp.posterior.failures import Failures
from mgvbp.posterior.trace import rows_of
from mgvbp.run.checkpoints.encoding import Decoder, Encoder
from mgvbp.run.checkpoints.recognition import Function, recognise
from mgvbp.run.evaluation.evaluation import Evaluator
from mgvbp.run.loop import Snapshot

SAME_DRAWS = 1e-6
"""Relative difference below which draws made again are taken for those of the file. Another BLAS changes their last
digits, a wrong state all of them, so that anything between 1e-10 and 1e-2 would do."""


@dataclass(frozen=True, eq=False)
class Part:
    """The draws of an iteration, and what is known of them so far.

    Only `with_rows` writes to the arrays, and it marks draws as known after their values are there. So an interrupt at
    any moment leaves a part that is right.
    """

    theta: Array
    """All draws of the iteration, (S, d)."""
    known: NDArray[np.bool_]
    """Which of them were evaluated, (S,)."""
    arrays: tuple[Array, ...]
    """What came of these, as `Problem.evaluate_at` returns it, and NaN for the others; empty if nothing is known."""

    @classmethod
    def of(cls, theta: Array) -> Part:
        """Nothing is known yet; the draws are copied, as a function may change what it is given."""
        return cls(theta.copy(), np.zeros(len(theta), bool), ())

    def with_rows(self, rows: NDArray[np.intp], arrays: tuple[Array, ...]) -> Part:
        """With the values of some draws, in place: there may be as many calls as there are draws."""
        part = self
        if not self.arrays:
            blank = tuple(np.full((len(self.known), *array.shape[1:]), np.nan) for array in arrays)
            part = Part(self.theta, self.known.copy(), blank)
        for array, some in zip(part.arrays, arrays, strict=True):
            array[rows] = some
        part.known[rows] = True
        return part

    def completed(self, rows: NDArray[np.intp], arrays: tuple[Array, ...]) -> Part:
        """With the values of all other draws, as another part, so that this one stays what it is."""
        whole = arrays
        if len(rows) < len(self.known):
            whole = tuple(array.copy() for array in self.arrays)
            for array, some in zip(whole, arrays, strict=True):
                array[rows] = some
        return Part(self.theta, np.ones(len(self.known), bool), whole)

    def witness(self) -> Part:
        """The first two draws that had a value; the others may have failed by accident."""
        rows = np.flatnonzero(self.known & np.isfinite(self.arrays[0]))[:2] if self.arrays else np.arange(0)
        return Part(self.theta[rows], np.ones(len(rows), bool), tuple(array[rows] for array in self.arrays))


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file has."""

    settings: dict[str, Any]
    snapshot: Snapshot | None = None
    """The state after the last iteration that has ended; None before the first has."""
    part: Part | None = None
    """The iteration that has begun since then."""
    witness: Part | None = None
    """Two draws of the first iteration, by which the model is known again; None before that has ended."""
    failures: Failures = field(default_factory=Failures)
    """Evaluations that failed, so far as their draws are in the snapshot or known in the part."""

    @property
    def iterations(self) -> int:
        """How many iterations have ended."""
        return self.snapshot.iterations if self.snapshot else 0


class Recorder:
    """Keeps where a run is, and writes it to a file, every so many seconds.

    ``settings`` is what, besides the log-likelihood, `fit` was called with. ``saved`` is what the file has if the run
    is resumed; without it there must be nothing at ``path``. The evaluator counts in ``failures`` the draws that
    failed. ``kept`` says whether there is a file to resume from, which stays when a later write fails.
    """

    def __init__(
        self, path: str | PathLike[str], every: float, settings: dict[str, Any], saved: Saved | None = None
    ) -> None:
        self._path = as_path(path, "checkpoint")
        if not isinstance(every, int | float | np.number) or not every >= 0.0:
            raise InvalidInputError(f"every must be a number of seconds; got {every!r}")
        Encoder()(settings)  # This raises before the run begins if a setting cannot be stored.
        self.kept = saved is not None
        self._every, self._saved = float(min(every, 1e300)), saved or Saved(settings)
        self.failures = replace(self._saved.failures)
        self._written = time.monotonic()
        self._warned = False

    @property
    def start(self) -> Snapshot | None:
        """The state to go on from; None at the beginning."""
        return self._saved.snapshot

    def begin_at(self, snapshot: Snapshot) -> None:
        """Go on from another state than that of the file."""
        self._saved = replace(self._saved, snapshot=snapshot)

    def recognise(self, evaluate: Function) -> None:
        """Refuse a model that is not the one of the file; a file without any value knows none."""
        saved = self._saved
        witness = saved.witness or (saved.part.witness() if saved.part else None)
        if witness and len(witness.theta):
            recognise(witness.theta, witness.arrays, evaluate, self._path)

    @property
    def resumption(self) -> str:
        """How to go on with the run; empty where there is nothing to resume from."""
        return _resumption(self._path) if self.kept else ""

    def evaluated(self, evaluator: Evaluator, iteration: int, theta: Array) -> tuple[Array, ...]:
        """Evaluate the draws that are not known yet, and keep what comes as it comes."""
        begun = self._saved.part
        if begun is None or not _same_draws(begun.theta, theta):
            begun = Part.of(theta)
        self._saved = replace(self._saved, part=begun)
        missing = np.flatnonzero(~begun.known)
        if len(missing) == 0:
            return begun.arrays

        def keep(rows: NDArray[np.intp], arrays: tuple[Array, ...]) -> None:
            assert self._saved.part is not None
            self._saved = replace(self._saved, part=self._saved.part.with_rows(missing[rows], arrays))
            self._write_in_time()

        rest = theta if len(missing) == len(theta) else theta[missing]
        whole = begun.completed(missing, evaluator(iteration, rest, keep, len(theta)))
        # All of it changes at once. An interrupt before this line leaves the draws that failed unknown and uncounted:
        # they are evaluated, and if they fail again counted, when the run is resumed.
        self._saved = replace(
            self._saved,
            part=whole,
            witness=self._saved.witness or whole.witness(),
            failures=replace(self.failures),
        )
        return whole.arrays

    def keep(self, snapshot: Snapshot) -> None:
        """Take the state after an iteration."""
        self._saved = replace(self._saved, snapshot=snapshot, part=None)
        self._write_in_time()

    def _write_in_time(self) -> None:
        if time.monotonic() - self._written >= self._every:
            self.write()

    def write(self, first: bool = False) -> None:
        """Replace the file, of which there must be none at the ``first`` write; an error of the disk is a warning."""
        # Workers that are lost do not belong to draws, so that all of them count at any time.
        failures = replace(self._saved.failures, workers_lost=self.failures.workers_lost)
        try:
            content, arrays = encoded(replace(self._saved, failures=failures))
            write_archive(self._path, "checkpoint", content, arrays, compressed=False, new=not self.kept)
            self.kept = True
        except (OSError, MemoryError) as error:
            if first and isinstance(error, FileExistsError):
                raise InvalidInputError(_occupied(self._path)) from None
            if not self._warned:
                reason = str(error) or type(error).__name__
                warn_user(
                    f"the checkpoint could not be written, the run goes on: {reason}", CheckpointWarning
                )
            self._warned = True
        self._written = time.monotonic()


def _same_draws(before: Array, now: Array) -> bool:
    """Whether the draws made now are those of the file."""
    scale = np.abs(before).max(initial=0.0)
    return before.shape == now.shape and np.allclose(before, now, SAME_DRAWS, SAME_DRAWS * scale)


# --- the file -------------------------------------------------------------------------------------------


def encoded(saved: Saved) -> tuple[dict[str, Any], dict[str, list[NDArray[Any]]]]:
    """The header and the arrays of a file; the arrays are not copied."""
    encoder, trace = Encoder(), None
    if saved.snapshot:  # its rows are stored by columns
        trace, saved = saved.snapshot.trace, replace(saved, snapshot=replace(saved.snapshot, rows=()))
    return {"version": __version__, "content": encoder({"saved": saved, "trace": trace})}, encoder.arrays


def read_checkpoint(path: str | PathLike[str]) -> Saved:
    """What a `Recorder` wrote; anything else raises `FileFormatError`."""
    header, arrays = read_archive(path, "checkpoint")
    try:
        content = Decoder(arrays)(header["content"])
        saved: Saved = content["saved"]
        if saved.snapshot:
            saved = replace(saved, snapshot=replace(saved.snapshot, rows=rows_of(content["trace"])))
        return saved
    except Exception as error:  # whatever the classes of another version make of it
        version = header.get("version", "an unknown version")
        raise FileFormatError(
            f"{path}, written by mgvbp {version}, is not a valid checkpoint of mgvbp {__version__}: {error}"
        ) from None


# --- the path -------------------------------------------------------------------------------------------


def _occupied(path: Path) -> str:
    """What is at the path already, and what to do."""
    try:
        number = read_checkpoint(path).iterations
    except (FileFormatError, OSError):
        return f"there is something that is no checkpoint at {path}: choose another path, or delete it"
    what = f"a checkpoint of {number} iteration{'s' * (number != 1)}"
    return f"there is {what} at {path}: {_resumption(path)}; delete it to begin anew"


def _resumption(path: Path) -> str:
    return f"mgvbp.resume({str(path)!r}, ...) goes on with it"
