"""Files of mgvbp: a NumPy archive with a JSON header and a checksum. No part of a file is unpickled or evaluated.

The checksum covers all that a file says. Where it is right, the parts of a file need not be looked at for damage.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.checks import as_path
from mgvbp.errors import FileFormatError

Arrays = Mapping[str, NDArray[Any] | list[NDArray[Any]]]
"""Arrays by name; a list of arrays stands for the one that they make up, one behind the other."""

FORMAT_VERSION = 2


def write_archive(
    path: str | PathLike[str],
    kind: str,
    meta: dict[str, Any],
    arrays: Arrays,
    *,
    compressed: bool = True,
    new: bool = False,
) -> None:
    """Write arrays and a JSON header to ``path``, completely or not at all.

    The file has another name until it is complete, so that the file at ``path`` is complete even if two processes
    write at once. With ``new`` only the first of them succeeds; the others raise `FileExistsError`. A process that is
    killed while it writes leaves ``<name>.<random>.partial``, which may be deleted.
    """
    content = {"mgvbp": FORMAT_VERSION, "kind": kind, **meta}
    header = json.dumps({**content, "digest": _digest(content, arrays)})
    members = {"header": np.frombuffer(header.encode(), dtype=np.uint8), **arrays}
    target = as_path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "No such file or directory, make the folder first", str(target.parent)
        )
    partial = target.with_name(f"{target.name}.{secrets.token_hex(8)}.partial")
    compression = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    try:
        with partial.open("xb") as file:
            with zipfile.ZipFile(file, "w", compression) as archive:
                for name, array in members.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        _write_array(member, array)
            file.flush()
            os.fsync(file.fileno())
        if new:
            _claim(partial, target)
        else:
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _claim(partial: Path, target: Path) -> None:
    """Give a file its name, unless there is something by that name."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise
    except OSError:  # The file system has no links: for a moment the file is there and empty.
        target.open("xb").close()
        partial.replace(target)


def _write_array(file: IO[bytes], array: NDArray[Any] | list[NDArray[Any]]) -> None:
    if not isinstance(array, list):
        np.lib.format.write_array(file, array, allow_pickle=False)
        return
    shape = (sum(len(part) for part in array), *array[0].shape[1:])
    described = np.lib.format.dtype_to_descr(array[0].dtype)
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})
    for part in array:  # written one by one, so that no copy of all is made
        file.write(np.ascontiguousarray(part).data)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, on systems that can open a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _digest(content: dict[str, Any], arrays: Arrays) -> str:
    """A checksum of a header and of the arrays beside it."""
    digest = hashlib.blake2b(json.dumps(content).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        parts = array if isinstance(array, list) else [array]
        length = sum(len(part) for part in parts)
        digest.update(f"{name} {parts[0].dtype.str} {(length, *parts[0].shape[1:])}".encode())
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


READERS = {
    "posterior": "a saved posterior: mgvbp.load reads it",
    "checkpoint": "the checkpoint of a run: mgvbp.resume(path, log_likelihood, prior) finishes it",
}
"""What to do with a file of each kind, for somebody who takes it for another."""

DAMAGE = (Exception,)
"""What a damaged file can cause in NumPy, zipfile and json: anything."""


def read_archive(path: str | PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a file of `write_archive` of this kind; `FileFormatError` for any other file."""
    source = as_path(path)
    if source.exists() and not (source.is_file() or source.is_dir()):  # A folder is refused by open.
        raise FileFormatError(f"{path} is not a regular file")
    with source.open("rb") as file:
        try:
            if not zipfile.is_zipfile(file):  # NumPy would speak of pickles
                raise FileFormatError("no archive")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = dict(archive)
            header = json.loads(arrays.pop("header").tobytes())
            found, version = header.get("kind"), header.get("mgvbp")
            sound = version != FORMAT_VERSION or header.pop("digest") == _digest(header, arrays)
        except DAMAGE as error:
            raise FileFormatError(f"{path} is not a mgvbp file, or is damaged: {error}") from None
    if found != kind:
        raise FileFormatError(f"{path} is not a {kind} but {READERS.get(found, 'something else')}")
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has file format {version!r}; this version of mgvbp reads {FORMAT_VERSION}"
        )
    if not sound:
        raise FileFormatError(f"{path} is damaged: its checksum is another one")
    return header, arrays
