"""Files of mgvbp: a NumPy archive with a JSON header. No part of a file is unpickled or evaluated."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import zipfile
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.core.checks import as_path
from mgvbp.errors import FileFormatError

FORMAT_VERSION = 1


def write_archive(
    path: str | PathLike[str],
    kind: str,
    meta: dict[str, Any],
    arrays: Mapping[str, NDArray[Any] | list[NDArray[Any]]],
    *,
    compressed: bool = True,
    new: bool = False,
) -> None:
    """Write arrays and a JSON header to ``path``, completely or not at all; a list of arrays is joined to one.

    The file has another name until it is complete, so that the file at ``path`` is complete even if two processes
    write at once. With ``new`` only the first of them succeeds; the others raise `FileExistsError`. A process that is
    killed while it writes leaves ``<name>.<random>.partial``, which may be deleted.
    """
    header = json.dumps({"mgvbp": FORMAT_VERSION, "kind": kind, **meta})
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


DAMAGE = (Exception,)
"""What a damaged or hostile file can cause in NumPy, zipfile and json, and in the use of its contents: anything."""
MOST_COMPRESSED = 1100
"""Most bytes that one compressed byte can stand for: a little more than deflate can do."""
LARGEST_HEADER = 2**26
"""Most bytes of a header: several times what the labels of a million parameters take."""


def read_archive(
    path: str | PathLike[str],
    kind: str,
    names: Collection[str],
    most: Callable[[dict[str, Any]], int] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a file of `write_archive` of this kind, with these arrays; raise `FileFormatError` if it is anything else.

    ``most`` takes the header and returns the most bytes that the arrays may have. By default this is the size of the
    file, which suits files that are not compressed. No array is made before the limit is checked.
    """
    source = as_path(path)
    if source.exists() and not (source.is_file() or source.is_dir()):  # A folder is refused by open.
        raise FileFormatError(f"{path} is not a regular file")
    with source.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                sizes = _sizes(archive)
                if sizes["header"] > LARGEST_HEADER:
                    raise ValueError("its header is too long")
                header = json.loads(_read(archive, "header").tobytes().decode())
                if not (otherwise := _otherwise(header, kind)):
                    if other := sorted(set(sizes) - {"header", *names}):
                        raise ValueError(f"it has a part {other[0]!r}, which a {kind} has not")
                    limit = os.fstat(file.fileno()).st_size if most is None else most(header)
                    if sum(sizes.values()) - sizes["header"] > limit:
                        raise ValueError("its arrays are larger than they can be")
                    return header, {name: _read(archive, name) for name in sizes if name != "header"}
        except DAMAGE as error:
            raise FileFormatError(f"{path} is not a mgvbp file, or is damaged: {error}") from None
    raise FileFormatError(f"{path} {otherwise}")


def _otherwise(header: Any, kind: str) -> str:
    """Why the file is not of this kind, in words; empty if it is."""
    if not isinstance(header, dict) or header.get("kind") != kind:
        return f"does not hold a mgvbp {kind}"
    if (found := header.get("mgvbp")) != FORMAT_VERSION:
        return f"has file format {found!r}; this version of mgvbp reads {FORMAT_VERSION}"
    return ""


def _read(archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(f"{name}.npy") as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    """The bytes of each array, by name.

    Arrays that claim more bytes than the file can hold are refused, since NumPy would allocate them before it reads.
    """
    sizes: dict[str, int] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name in sizes:
            raise ValueError(f"it has two parts {name!r}")
        with archive.open(info) as member:
            version = np.lib.format.read_magic(member)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }
            shape, _, dtype = read[version](member)
            sizes[name] = math.prod(shape) * dtype.itemsize
            size = sizes[name] + member.tell()
        if size != info.file_size or size > MOST_COMPRESSED * (info.compress_size + 1):
            raise ValueError(f"{info.filename} is not the array that it claims to be")
    return sizes


def count(value: Any, name: str) -> int:
    """``value``, from a header, if it is a non-negative integer."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise FileFormatError(f"{name} cannot be {str(value)[:100]}")
    return value
