"""Files: a NumPy archive with a JSON header. Nothing in them is ever unpickled or evaluated."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mgvbp.errors import FileFormatError

FORMAT_VERSION = 1


def write_archive(
    path: str | PathLike[str],
    kind: str,
    meta: dict[str, Any],
    arrays: Mapping[str, NDArray[Any] | list[NDArray[Any]]],
    *,
    compressed: bool = True,
) -> None:
    """Write arrays and a JSON header to ``path``, whole or not at all; a list of arrays is written end to end.

    Until it is whole the file has a name of its own, so that of two writers each leaves a whole file; a process that
    is killed in between leaves ``<name>.<random>.partial``, which may be deleted.
    """
    header = json.dumps({"mgvbp": FORMAT_VERSION, "kind": kind, **meta})
    members = {"header": np.frombuffer(header.encode(), dtype=np.uint8), **arrays}
    target = Path(path)
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
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _write_array(file: IO[bytes], array: NDArray[Any] | list[NDArray[Any]]) -> None:
    if not isinstance(array, list):
        np.lib.format.write_array(file, array, allow_pickle=False)
        return
    shape = (sum(len(part) for part in array), *array[0].shape[1:])
    described = np.lib.format.dtype_to_descr(array[0].dtype)
    np.lib.format.write_array_header_1_0(file, {"descr": described, "fortran_order": False, "shape": shape})
    for part in array:  # one after the other: there is no second copy of all
        file.write(part.tobytes())


def _sync_folder(folder: Path) -> None:
    """Let the new name survive a power cut, where the system can open a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
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
"""What NumPy, zipfile and json raise on a damaged or hostile file, and Python on what it says."""
MOST_COMPRESSED = 1100
"""Bytes that one byte of a compressed member can stand for: what deflate can do, and a little more."""
LARGEST_HEADER = 2**26
"""Bytes of a header: several times the labels of a million parameters."""


def read_archive(
    path: str | PathLike[str],
    kind: str,
    names: Collection[str],
    most: Callable[[dict[str, Any]], int] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `write_archive` wrote; anything else raises `FileFormatError`.

    Parameters
    ----------
    path : path
    kind : str
        What the file has to be.
    names : collection of str
        The arrays that it may have.
    most : callable, optional
        How many bytes of arrays the header implies; by default there may be no more than the file has itself, which
        suits files that are not compressed. No array is made before that is known.
    """
    with Path(path).open("rb") as file:
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
    """What a file is instead, in words."""
    if not isinstance(header, dict) or header.get("kind") != kind:
        return f"does not hold a mgvbp {kind}"
    if (found := header.get("mgvbp")) != FORMAT_VERSION:
        return f"has file format {found!r}; this version of mgvbp reads {FORMAT_VERSION}"
    return ""


def _read(archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(f"{name}.npy") as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    """The bytes of each array, by name; refuses those that claim more than is there: NumPy would make them first."""
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
    """``value``, of a header, if it is a number of things."""
    if type(value) is not int or not 0 <= value < 2**63:
        raise FileFormatError(f"{name} cannot be {str(value)[:100]}")
    return value
