"""Files: a NumPy archive with a JSON header. Nothing in them is ever unpickled or evaluated."""

from __future__ import annotations

import json
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.errors import FileFormatError

FORMAT_VERSION = 1


def write_archive(
    path: str | PathLike[str], kind: str, meta: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and a JSON header to ``path``, whole or not at all."""
    header = json.dumps({"mgvbp": FORMAT_VERSION, "kind": kind, **meta})
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("wb") as file:
            np.savez_compressed(file, header=np.frombuffer(header.encode(), dtype=np.uint8), **arrays)  # type: ignore[arg-type]
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


DAMAGE = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy, zipfile and json raise on a damaged or hostile file."""


def read_archive(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `write_archive` wrote; anything else raises `FileFormatError`."""
    with Path(path).open("rb") as file:
        try:
            _check_sizes(file)
            archive = np.load(file, allow_pickle=False)
            arrays = {name: archive[name] for name in archive.files}
            header = json.loads(arrays.pop("header").tobytes().decode())
        except (*DAMAGE, AttributeError) as error:
            raise FileFormatError(f"{path} is not a mgvbp file, or is damaged: {error}") from None
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise FileFormatError(f"{path} does not hold a mgvbp {kind}")
    if header.get("mgvbp") != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has file format {header.get('mgvbp')!r}; this version of mgvbp reads {FORMAT_VERSION}"
        )
    return header, arrays


MOST_COMPRESSED = 1100
"""Bytes that one byte of a compressed member can stand for: what deflate can do, and a little more."""


def _check_sizes(file: IO[bytes]) -> None:
    """Refuse arrays that claim to be larger than what is there: NumPy would make them before it reads."""
    with zipfile.ZipFile(file) as members:
        for info in members.infolist():
            with members.open(info) as member:
                version = np.lib.format.read_magic(member)
                read = {
                    (1, 0): np.lib.format.read_array_header_1_0,
                    (2, 0): np.lib.format.read_array_header_2_0,
                }
                shape, _, dtype = read[version](member)
                size = math.prod(shape) * dtype.itemsize + member.tell()
            if size != info.file_size or size > MOST_COMPRESSED * (info.compress_size + 1):
                raise ValueError(f"{info.filename} is not the array that it claims to be")
    file.seek(0)
