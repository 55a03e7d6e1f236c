"""The words of a command line as numbers and paths. A word that is not one ends the command with its usage."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path


def file(text: str) -> Path:
    """The path of a file."""
    if not Path(text).name:
        raise ArgumentTypeError(f"{text!r} is not the path of a file")
    return Path(text)


def integers(text: str) -> tuple[int, ...]:
    """Integers with commas between them, such as 1,1."""
    if not all(part.isdecimal() for part in text.split(",")):
        raise ArgumentTypeError(f"{text!r} is not integers with commas between, such as 1,1")
    return tuple(map(int, text.split(",")))


def probabilities(text: str) -> tuple[float, ...]:
    """Probabilities below one half with commas between them, such as 0.01,0.05."""
    try:
        levels = tuple(map(float, text.split(",")))
    except ValueError:
        levels = ()
    if not levels or not all(0.0 < level < 0.5 for level in levels):
        raise ArgumentTypeError(f"{text!r} is not numbers between 0 and 0.5 with commas between")
    return levels


def count(text: str) -> int:
    """An integer that is 1 or more."""
    if not text.isdecimal() or int(text) == 0:
        raise ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def count_or_zero(text: str) -> int:
    """An integer that is 0 or more, such as a seed."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)


def processes(text: str) -> int:
    """An integer that is 1 or more, or -1 for as many as there are cores."""
    if text != "-1" and not (text.isdecimal() and int(text)):
        raise ArgumentTypeError(f"{text!r} is neither a number of processes nor -1")
    return int(text)
