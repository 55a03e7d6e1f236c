"""Checkpoints: a run is a function of its settings, its seed and the values it was told, so these are kept.

A resumed run is told them again and, having arrived where it was, goes on: every method, judge and trace is restored
bit for bit without knowing of files. What it costs is the arithmetic between evaluations, not the evaluations.
Files are NumPy archives with a JSON header (`mgvbp.storage`), replaced as a whole.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mgvbp._linalg import Array
from mgvbp.auto import Auto
from mgvbp.errors import CheckpointWarning, FileFormatError, InvalidInputError, warn_user
from mgvbp.estimators import EmpiricalFisher, Gradient, Regression, Score
from mgvbp.families import BlockDiagonal, Diagonal, Full
from mgvbp.gaussian import Gaussian
from mgvbp.methods import MGVB, MGVBP, QBVI, VOGN, Geodesic
from mgvbp.storage import DAMAGE, read_archive, write_archive

Told = list[tuple[Array, ...]]
Evaluate = Callable[[int, Array], tuple[Array, ...]]

PLAIN: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (Auto, EmpiricalFisher, Geodesic, Gradient, MGVB, MGVBP, QBVI, Regression, Score, VOGN)
}
"""Classes of settings that their fields, all numbers or names, restore."""
COLUMNS = ("values", "gradients", "squares")


class Recorder:
    """A function of iteration and draws that remembers what another one returned, and writes it to a file.

    Parameters
    ----------
    path : path
    every : float
        Seconds between two writes. A write that fails is a warning, not the end of the run.
    settings : mapping
        What, besides the log-likelihood, `fit` was called with.
    told : list of tuples of arrays
        What the first iterations were told in an earlier life.
    """

    def __init__(
        self, path: str | PathLike[str], every: float, settings: Mapping[str, Any], told: Told | None = None
    ) -> None:
        self._path, self._every = Path(path), every
        self._settings, self._arrays = encoded(settings)
        self.told: Told = told or []
        self._written = time.monotonic()
        self._failed = False

    def recording(self, evaluate: Evaluate) -> Evaluate:
        """``evaluate``, told from memory where it can be, and recorded otherwise."""

        def remembered(iteration: int, theta: Array) -> tuple[Array, ...]:
            if iteration <= len(self.told):
                if iteration == 1:
                    self._recognise(theta, evaluate)
                return self.told[iteration - 1]
            self.told.append(evaluate(iteration, theta))
            if time.monotonic() - self._written >= self._every:
                self.write()
            return self.told[-1]

        return remembered

    def _recognise(self, theta: Array, evaluate: Evaluate) -> None:
        """Refuse a model that has another value at the first draw than the one that was recorded."""
        values, *derivatives = self.told[0]
        shapes = {part.shape for part in derivatives}
        if values.shape != theta.shape[:1] or not shapes <= {theta.shape}:
            raise InvalidInputError(f"{self._path} is the checkpoint of another problem, with other draws")
        again = evaluate(1, theta[:1])[0]
        if not np.allclose(again, values[:1], rtol=1e-6, atol=1e-9, equal_nan=True):
            raise InvalidInputError(
                f"{self._path} is the checkpoint of another model: its first draw had the log-likelihood "
                f"{values[0]:.10g}, and has {again[0]:.10g} now"
            )

    def write(self) -> None:
        """Replace the file."""
        columns = {
            name: np.concatenate(parts)
            for name, parts in zip(COLUMNS, zip(*self.told, strict=True), strict=False)
        }
        sizes = np.array([len(values) for values, *_ in self.told], dtype=np.int64)
        try:
            write_archive(
                self._path,
                "checkpoint",
                {"settings": self._settings},
                {"sizes": sizes, **columns, **self._arrays},
            )
        except OSError as error:
            if not self._failed:
                warn_user(f"the checkpoint could not be written, the run goes on: {error}", CheckpointWarning)
            self._failed = True
        self._written = time.monotonic()


def read_checkpoint(path: str | PathLike[str]) -> tuple[dict[str, Any], Told]:
    """The settings and what was told, of a file that a `Recorder` wrote."""
    header, arrays = read_archive(path, "checkpoint")
    try:
        settings = decoded(header["settings"], arrays)
        sizes = arrays["sizes"]
        columns = [arrays[name] for name in COLUMNS if name in arrays]
        if sizes.dtype != np.int64 or sizes.ndim != 1 or (sizes < 1).any():
            raise FileFormatError("the sizes of its iterations are no sizes")
        for column in columns:
            if column.dtype != np.float64 or len(column) != sizes.sum():
                raise FileFormatError(
                    f"a column is {column.dtype} {column.shape}; expected {sizes.sum()} float64"
                )
        ends = np.cumsum(sizes)[:-1]
        return settings, list(zip(*(np.split(column, ends) for column in columns), strict=True))
    except (*DAMAGE, InvalidInputError) as error:
        raise FileFormatError(f"{path} is not a valid checkpoint: {error}") from None


# --- settings as JSON and arrays ------------------------------------------------------------------------


def encoded(settings: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Settings as JSON, and the arrays it refers to."""
    arrays: dict[str, Array] = {}

    def encode(name: str, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, tuple) and all(isinstance(word, int) for word in value):
            return list(value)
        if isinstance(value, np.generic):
            return value.item()
        if type(value).__name__ in PLAIN and dataclasses.is_dataclass(value):
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
            return BlockDiagonal(value["blocks"])
        if "gaussian" in value:
            mean, factor = (arrays[f"{value['gaussian']}_{part}"] for part in ("mean", "factor"))
            family = decode(value["family"])
            named = {"full": Full, "diagonal": Diagonal}
            family = named[family](len(mean)) if isinstance(family, str) else family
            return Gaussian.from_factor(mean, np.asfortranarray(factor), family)
        fields = {name: decode(field) for name, field in value.items() if name != "class"}
        return PLAIN[value["class"]](**fields)

    if not isinstance(settings, dict):
        raise FileFormatError("its settings are not settings")
    return {name: decode(value) for name, value in settings.items()}
