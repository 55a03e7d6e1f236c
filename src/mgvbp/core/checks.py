"""Checks of arguments: each returns its argument in the form we work with, or raises and says what came instead."""

from __future__ import annotations

import math
import os
import reprlib
import sys
from collections.abc import Collection
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mgvbp.core.linalg import Array
from mgvbp.errors import InvalidInputError, InvalidTypeError

LARGEST = float(np.finfo(np.float64).max)
"""The largest float64."""


def shown(value: object) -> str:
    """``value`` as an error message shows it: shortened."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of thousands of digits
        return f"a large {type(value).__name__}"


def as_floats(value: ArrayLike | None, name: str, *, finite: bool = True) -> Array:
    """``value`` as a float64 array, which must be finite unless ``finite`` is False."""
    kind, array = "", None
    try:
        given = np.asarray(value)
        kind = f", dtype {given.dtype}"
        if given.dtype.kind in "fiub" or _real_objects(given):
            array = given.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    if array is None:
        raise InvalidTypeError(f"{name} must be a number or an array of numbers; got {shown(value)}{kind}")
    if finite and not np.isfinite(array).all():
        raise InvalidInputError(f"{name} has non-finite entries")
    return array


def _real_objects(array: np.ndarray[Any, Any]) -> bool:
    """Whether the array has numbers and truth values as objects, as the values of a mixed pandas frame are."""
    return array.dtype.kind == "O" and all(isinstance(entry, (Real, np.bool_)) for entry in array.flat)


def true_or_false(value: object, name: str) -> bool:
    """``value`` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidTypeError(f"{name} must be True or False; got {shown(value)}")
    return bool(value)


def positive_integer(value: object, name: str, least: int = 1) -> int:
    """``value`` as an int of at least ``least``."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be an integer; got {shown(value)}")
    if value < least:
        raise InvalidInputError(f"{name} must be at least {least}; got {shown(value)}")
    if value > sys.maxsize:
        raise InvalidInputError(f"{name} must be at most {sys.maxsize}; got {shown(value)}")
    return int(value)


def positive_number(value: object, name: str) -> float:
    """``value`` as a finite float above 0."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a positive number; got {shown(value)}")
    if not 0.0 < value <= LARGEST:
        raise InvalidInputError(f"{name} must be positive; got {shown(value)}")
    return float(value)


def probabilities(value: ArrayLike, name: str) -> Array:
    """``value`` as a float64 array of numbers between 0 and 1, both excluded."""
    levels = as_floats(value, name)
    if not ((levels > 0.0) & (levels < 1.0)).all():
        raise InvalidInputError(f"{name} must be between 0 and 1; got {shown(value)}")
    return levels


def one_of(value: object, names: Collection[str], what: str, otherwise: str = "") -> str:
    """``value`` if it is one of ``names``; ``otherwise`` tells the user what else is allowed."""
    if not isinstance(value, str) or value not in names:
        quoted = ", ".join(repr(name) for name in names)
        raise InvalidInputError(f"{what} must be one of {quoted}{otherwise}; got {shown(value)}")
    return value


def as_name(value: object, what: str) -> str:
    """``value`` as a name that can be printed: a terminal obeys the control characters of a text."""
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what} must be a string; got {shown(value)}")
    if not value or not value.isprintable():
        raise InvalidInputError(f"{what} must have printable characters only; got {shown(value)}")
    return value


def as_path(value: object, name: str = "path") -> Path:
    """``value`` as the path of a file."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise InvalidTypeError(f"{name} must be the path of a file; got {shown(value)}")
    text: str = os.fspath(value)
    if not Path(text).name or "\0" in text:
        raise InvalidInputError(f"{name} must be the path of a file; got {shown(value)}")
    return Path(text)


@cache
def memory() -> float:
    """The bytes of this machine's memory; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def require_memory(numbers: int, what: str, advice: str) -> None:
    """Raise if so many floats cannot be held at once; a system that grants too much would end the process later."""
    if 8 * numbers > memory():
        size = 8 * numbers // 10**9
        raise InvalidInputError(
            f"{what} would take {f'{size:,}' if size < 10**9 else 'over a billion'} GB, but this machine has "
            f"{1e-9 * memory():,.0f} GB: {advice}"
        )


def as_generator(rng: object) -> np.random.Generator:
    """The generator of a seed, or the generator itself; for None the seed is random."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(None if rng is None else as_key(rng))


def as_key(rng: object) -> tuple[int, ...]:
    """Integers that identify a stream of draws: a seed, or four drawn from a generator; a tuple is a key already."""
    if isinstance(rng, tuple):
        return rng
    if isinstance(rng, np.random.Generator):
        return tuple(int(word) for word in rng.integers(2**32, size=4))
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return (int(rng),)
    raise InvalidTypeError(f"rng must be a non-negative int or a numpy.random.Generator; got {shown(rng)}")
