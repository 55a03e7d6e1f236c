"""Compact copies of the text files: a fourteenth of the size, mapped into memory instead of read.

A copy is three files: the features and the labels as ``.npy``, and a header in JSON that is written last and
says which text file they came from (path, size, time of the last change), which version of this format they
have, and their checksums. Whatever does not agree with its header is made anew. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from mgvbp.core.storage import DAMAGE
from mgvbp.datasets.download import Progress
from mgvbp.datasets.files import cache_directory
from mgvbp.datasets.lob.layout import Features, Labels
from mgvbp.datasets.lob.text import read_text
from mgvbp.errors import DataUnavailableError

VERSION = 1
"""The version of the format: copies of another version are made anew."""
CHUNK = 2**20
"""Bytes that are read at once for a checksum."""


def open_compact(text: Path, report: Progress | None = None) -> tuple[Features, Labels]:
    """The arrays of a text file, from its compact copy, which is made first where there is none.

    Raises
    ------
    FileFormatError
        The text file is damaged.
    DataUnavailableError
        The copy cannot be written.
    """
    text = text.resolve()
    state = text.stat()
    header = {"lob": VERSION, "source": str(text), "size": state.st_size, "mtime_ns": state.st_mtime_ns}
    key = hashlib.sha256(str(text).encode()).hexdigest()[:16]
    stem = cache_directory() / "fi2010" / f"{text.stem}-{key}"
    arrays = _open(stem, header)
    if arrays is None:
        features, labels = read_text(text, report)
        try:
            _write(stem, header, {"features": features, "labels": labels})
        except OSError as error:
            raise DataUnavailableError(
                f"a compact copy of {text.name} must be written to {stem.parent}, which failed: {error}"
            ) from None
        arrays = _open(stem, header)
        if arrays is None:  # another process is writing the same, or the disk is broken
            return features, labels
    return arrays


def _path(stem: Path, name: str) -> Path:
    return stem.with_name(f"{stem.name}.{name}")


def _open(stem: Path, header: dict[str, Any]) -> tuple[Features, Labels] | None:
    """The arrays in memory maps; None if they are not those of the header."""
    try:
        found = json.loads(_path(stem, "json").read_text(encoding="utf-8"))
        names = ("features", "labels")
        if found != {**header, **{name: _checksum(_path(stem, f"{name}.npy")) for name in names}}:
            return None
        features, labels = (
            np.asarray(np.load(_path(stem, f"{name}.npy"), mmap_mode="r", allow_pickle=False))
            for name in names
        )
    except DAMAGE:
        return None
    return features, labels


def _write(stem: Path, header: dict[str, Any], arrays: dict[str, Features | Labels]) -> None:
    """Each file whole or not at all, the header last; unfinished ones are in a directory of this call."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=stem.parent, prefix="unfinished-") as directory:
        for name, array in arrays.items():
            np.save(Path(directory, name + ".npy"), array, allow_pickle=False)
        sums = {name: _checksum(Path(directory, name + ".npy")) for name in arrays}
        Path(directory, "json").write_text(json.dumps({**header, **sums}), encoding="utf-8")
        for name in (*(f"{name}.npy" for name in arrays), "json"):
            Path(directory, name).replace(_path(stem, name))


def _checksum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            total = zlib.crc32(chunk, total)
    return total
